#include "locks/lock_model.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/text/glob.h"
#include "base/text/split.h"
#include "locks/lock_text.h"

namespace latchkey::locks {

using server::KeyPlace;

namespace {

// A new last element, of which every member is to be set: the first one when `all` is full, so that
// neither is made nor destroyed.
template <typename T>
T& reuse_or_add(boost::circular_buffer<T>& all) {
  if (!all.full()) {
    all.push_back();
  } else if (all.size() > 1) {
    all.rotate(all.begin() + 1);
  }
  return all.back();
}

// Counting references costs more than to see that there is nothing to do.
template <typename T>
void refer(std::shared_ptr<T>& to, const std::shared_ptr<T>& what) {
  if (to != what) to = what;
}

}  // namespace

std::string Party::shown() const {
  if (!name.empty()) return name;
  return id == 0 ? "an unknown client" : "client " + std::to_string(id);
}

// --- Records ------------------------------------------------------------------------------------

void LockModel::set_limits(const Limits& limits) {
  limits_ = limits;
  trim();
}

void LockModel::trim() {
  while (order_.size() > limits_.keys) forget(std::prev(order_.end()));
  if (log_.capacity() > limits_.events) log_.rset_capacity(limits_.events);
}

void LockModel::begin_replay() {
  replays_past_ = true;
}

void LockModel::end_replay() {
  replays_past_ = false;
  std::stable_sort(log_.begin(), log_.end(),
                   [](const Event& one, const Event& other) { return one.step < other.step; });
  order_.sort([](const Record& one, const Record& other) { return one.step > other.step; });
  trim();
}

void LockModel::set_patterns(std::string_view patterns) {
  patterns_.clear();
  for (const std::string_view pattern : base::split_words(patterns, ' '))
    patterns_.emplace_back(pattern);
}

bool LockModel::is_of(const Record& record, int database, std::string_view key) {
  return record.place->database == database && record.place->key == key;
}

const Record* LockModel::find(int database, std::string_view key) const {
  if (order_.empty()) return nullptr;
  if (is_of(order_.front(), database, key)) return &order_.front();
  const auto it = records_.find({database, key});
  return it == records_.end() ? nullptr : &*it->second;
}

Record* LockModel::use(int database, std::string_view key) {
  if (order_.empty()) return nullptr;
  if (!is_of(order_.front(), database, key)) {
    const auto it = records_.find({database, key});
    if (it == records_.end()) return nullptr;
    order_.splice(order_.begin(), order_, it->second);
  }
  order_.front().step = step_;
  order_.front().used = ++uses_;
  return &order_.front();
}

Record& LockModel::make(int database, std::string_view key) {
  if (Record* record = use(database, key)) return *record;
  while (order_.size() >= limits_.keys && !replays_past_) forget(std::prev(order_.end()));
  Record& record = order_.emplace_front();
  record.place = std::make_shared<const KeyPlace>(KeyPlace{database, std::string(key)});
  record.step = step_;
  record.used = ++uses_;
  records_.emplace(*record.place, order_.begin());
  return record;
}

void LockModel::forget(std::list<Record>::iterator record) {
  leave_holder(*record);
  if (record->semaphore != nullptr) forget_semaphore(*record);
  records_.erase(*record->place);
  order_.erase(record);
}

void LockModel::reset() {
  records_.clear();
  order_.clear();
  semaphores_ = 0;
  semaphores_of_.clear();
  traceless_.clear();
  traceless_by_name_.clear();
  held_by_.clear();
  log_.clear();
  findings_.clear();
  parties_.fill(nullptr);
  may_have_lost_ = false;
}

const PartyRef& LockModel::party(uint64_t client) const {
  static const PartyRef kNobody;
  if (client == 0) return kNobody;
  PartyRef& party = parties_[client % parties_.size()];
  if (party == nullptr || party->id != client || !clients_.is_still(*party))
    party = std::make_shared<const Party>(clients_.describe(client));
  return party;
}

KnownBy LockModel::recognise(const Record& record, const Token& token) const {
  const auto guards_something = [&](const Guard& guard) { return guard.lock == *record.place; };
  if (std::any_of(guards_.begin(), guards_.end(), guards_something)) return KnownBy::kPattern;
  if (!patterns_.empty())
    return matches_patterns(record.place->key) ? KnownBy::kPattern : KnownBy::kNothing;
  if (names_lock(record.place->key)) return KnownBy::kName;
  return is_random(token.text()) ? KnownBy::kToken : KnownBy::kNothing;
}

bool LockModel::matches_patterns(std::string_view key) const {
  return std::any_of(patterns_.begin(), patterns_.end(),
                     [&](const auto& pattern) { return pattern.matches(key); });
}

void LockModel::know_by_use(Record& record) {
  if (record.known_by != KnownBy::kNothing || !patterns_.empty()) return;
  record.known_by = KnownBy::kUse;
  check_atomic(record);
}

// --- Clients ------------------------------------------------------------------------------------

bool LockModel::same_client(const Party& party, uint64_t client) const {
  if (client == 0) return false;
  return party.id == client || (!party.name.empty() && this->party(client)->name == party.name);
}

bool LockModel::acts_for_holder(const Hold& hold, uint64_t client) const {
  return same_client(*hold.holder, client) ||
         std::find(hold.helpers.begin(), hold.helpers.end(), client) != hold.helpers.end();
}

bool LockModel::is_other_client(Record& record, uint64_t client) {
  if (record.hold->holder->id == 0) return false;
  if (!record.hold->holder_gone) return true;
  const Contender* contender = find_contender(record, client);
  return contender != nullptr && contender->row > 0 && contender->last_ms >= record.hold->since_ms;
}

Contender* LockModel::find_contender(Record& record, uint64_t client) {
  const auto it =
      std::find_if(record.contenders.begin(), record.contenders.end(),
                   [&](const Contender& contender) { return contender.client->id == client; });
  return it == record.contenders.end() ? nullptr : &*it;
}

Contender& LockModel::contender_of(Record& record, uint64_t client) {
  if (Contender* contender = find_contender(record, client)) return *contender;
  std::vector<Contender>& all = record.contenders;
  if (all.size() == kMaxContenders) {
    // The one that was refused longest ago.
    all.erase(std::min_element(all.begin(), all.end(), [](const auto& one, const auto& other) {
      return one.last_ms < other.last_ms;
    }));
  }
  return all.emplace_back(Contender{.client = party(client)});
}

const PastHold* LockModel::lost_hold(const Record& record, uint64_t client) {
  if (!record.may_have_lost) return nullptr;
  const auto it = std::find_if(record.past.rbegin(), record.past.rend(), [&](const PastHold& past) {
    return past.holder != nullptr && past.holder->id == client;
  });
  if (it == record.past.rend() || it->noticed || it->end != EventKind::kExpired) return nullptr;
  return &*it;
}

PastHold* LockModel::lost_hold(Record& record, uint64_t client) {
  return const_cast<PastHold*>(lost_hold(std::as_const(record), client));
}

bool LockModel::refused_just_now(const Hold& hold, const Contender& contender, const Cause& cause) {
  if (contender.last_ms < hold.since_ms || contender.row == 0 || contender.via != cause.via)
    return false;
  return cause.via == Via::kPlain ? contender.call + 1 == cause.call : contender.call == cause.call;
}

// --- Holding ------------------------------------------------------------------------------------

void LockModel::join_holder(Record& record) {
  Record*& first = held_by_[record.hold->holder->id];
  record.held_first = &first;
  record.held_before = nullptr;
  record.held_after = first;
  if (first != nullptr) first->held_before = &record;
  first = &record;
}

void LockModel::leave_holder(Record& record) {
  if (!record.hold) return;
  if (record.held_after != nullptr) record.held_after->held_before = record.held_before;
  if (record.held_before != nullptr) {
    record.held_before->held_after = record.held_after;
  } else {
    *record.held_first = record.held_after;
    // client_gone() will not be called again for this client.
    if (record.held_after == nullptr && record.hold->holder_gone)
      held_by_.erase(record.hold->holder->id);
  }
}

void LockModel::begin_hold(Record& record, const Cause& cause, Recipe recipe, const Token& token,
                           int64_t deadline_ms) {
  static const PartyRef kUnknown = std::make_shared<const Party>();
  if (record.known_by == KnownBy::kNothing) record.known_by = recognise(record, token);
  Hold& hold = record.hold.emplace();
  hold.holder = cause.client == 0 ? kUnknown : party(cause.client);
  hold.holder_gone = cause.client == 0;
  hold.token = token;
  hold.recipe = recipe;
  hold.via = cause.via;
  hold.call = cause.call;
  hold.since_ms = cause.time_ms;
  hold.deadline_ms = deadline_ms;
  hold.deadline_set_ms = cause.time_ms;
  hold.had_deadline = deadline_ms >= 0;
  hold.stale_ms = time_stamp(token.text(), cause.time_ms);
  join_holder(record);
  ++record.taken;
  // Among several that wait, a client that takes it many times in a row is quick, and has one turn.
  const PartyRef before = record.past.empty() ? nullptr : record.past.back().holder;
  const bool another = before == nullptr || before->id != cause.client;
  const uint64_t turn = another || record.contenders.size() <= 1 ? 1 : 0;
  for (Contender& contender : record.contenders) {
    const bool won = contender.client->id == cause.client;
    contender.others_won = won || contender.row == 0 ? 0 : contender.others_won + turn;
    if (won) contender.row = 0;
  }
}

void LockModel::end_hold(Record& record, EventKind how, int64_t now_ms, const PartyRef& by) {
  add_event(how, record, by, now_ms);
  leave_holder(record);
  Hold& hold = *record.hold;
  if (record.past.capacity() == 0) record.past.set_capacity(kMaxPastHolds);
  record.may_have_lost |= how == EventKind::kExpired;
  may_have_lost_ |= how == EventKind::kExpired;
  PastHold& past = reuse_or_add(record.past);
  past.holder = std::move(hold.holder);
  past.token = hold.token;
  past.since_ms = hold.since_ms;
  past.ended_ms = now_ms;
  past.end = how;
  past.noticed = false;
  record.hold.reset();
}

void LockModel::taken(int database, std::string_view key, const Cause& cause, Recipe recipe,
                      std::string_view token, int64_t deadline_ms) {
  Record& record = make(database, key);
  // The end of the last one may have been missed, or its record forgotten in between.
  if (record.hold) end_hold(record, EventKind::kFlushed, cause.time_ms, nullptr);
  // A client that takes the lock again knows that it had lost it.
  if (PastHold* lost = lost_hold(record, cause.client)) lost->noticed = true;
  begin_hold(record, cause, recipe, Token(token), deadline_ms);
  add_event(EventKind::kTaken, record, record.hold->holder, cause.time_ms);
  check_token(record, record.hold->token, cause.client, cause.time_ms);
}

void LockModel::refused(int database, std::string_view key, const Cause& cause, bool same_token,
                        uint64_t count) {
  Record* record = use(database, key);
  if (record == nullptr || !record->hold || count == 0 || cause.client == 0) return;
  Contender& contender = contender_of(*record, cause.client);
  if (contender.row == 0) {
    contender.first_ms = cause.time_ms;
    contender.others_won = 0;
  }
  contender.row += count;
  contender.refused += count;
  contender.last_ms = cause.time_ms;
  contender.via = cause.via;
  contender.call = cause.call;
  record->hold->refused += count;
  Event* last = log_.empty() ? nullptr : &log_.back();
  if (last != nullptr && last->kind == EventKind::kRefused && last->place == record->place &&
      last->client->id == cause.client) {
    last->count += count;
    last->last_ms = cause.time_ms;
  } else {
    add_event(EventKind::kRefused, *record, contender.client, cause.time_ms).count = count;
  }
  const Hold& hold = *record->hold;
  // Once while it is held.
  if (same_token && contender.same_token_at != record->taken) {
    contender.same_token_at = record->taken;
    check_token(*record, hold.token, cause.client, cause.time_ms);
  }
  check_starved(*record, contender, cause.time_ms);
}

// --- Deadlines ----------------------------------------------------------------------------------

void LockModel::deadline_set(int database, std::string_view key, const Cause& cause,
                             int64_t deadline_ms) {
  Record* record = use(database, key);
  if (record == nullptr || !record->hold) return;
  Hold& hold = *record->hold;
  if (deadline_ms < 0) {
    hold.deadline_ms = -1;
    add_event(EventKind::kPersisted, *record, party(cause.client), cause.time_ms);
    return;
  }
  const Contender* contender = find_contender(*record, cause.client);
  const bool loser = hold.holder->id != 0 && !acts_for_holder(hold, cause.client) &&
                     contender != nullptr && refused_just_now(hold, *contender, cause);
  if (loser) {
    prolonged_by(*record, cause, deadline_ms);
  } else if (!hold.had_deadline && hold.prolongations == 0) {
    set_first_deadline(*record, cause, deadline_ms);
  } else {
    hold.deadline_ms = deadline_ms;
    ++hold.prolongations;
    add_event(EventKind::kProlonged, *record, party(cause.client), cause.time_ms);
    const bool helps = cause.client != 0 && !acts_for_holder(hold, cause.client);
    if (helps && hold.helpers.size() < kMaxContenders) hold.helpers.push_back(cause.client);
  }
  hold.deadline_ms = deadline_ms;
  hold.deadline_set_ms = cause.time_ms;
  hold.had_deadline = true;
}

void LockModel::prolonged_by(Record& record, const Cause& cause, int64_t deadline_ms) {
  const Hold& hold = *record.hold;
  const int64_t before_ms = hold.deadline_ms;
  record.hold->deadline_ms = deadline_ms;
  const PartyRef loser = party(cause.client);
  add_event(EventKind::kProlongedByLoser, record, loser, cause.time_ms);
  know_by_use(record);
  const std::string moved =
      before_ms < 0 ? " gave it a deadline all the same: "
                    : " moved its deadline all the same, from " + clock_time(before_ms) + " to ";
  add_finding(FindingKind::kProlongedByLoser, record, loser, cause.time_ms,
              hold.holder->shown() + " holds the lock since " + clock_time(hold.since_ms) + "; " +
                  loser->shown() + " was refused at " + clock_time(cause.time_ms) + " and" + moved +
                  clock_time(deadline_ms) + ".");
}

void LockModel::set_first_deadline(Record& record, const Cause& cause, int64_t deadline_ms) {
  Hold& hold = *record.hold;
  hold.deadline_ms = deadline_ms;
  const bool by_holder = same_client(*hold.holder, cause.client);
  const bool one_step =
      cause.via != Via::kPlain && cause.via == hold.via && cause.call == hold.call;
  if (one_step && hold.recipe == Recipe::kHash) {
    // That is how it is taken.
  } else if (one_step) {
    hold.recipe =
        cause.via == Via::kScript ? Recipe::kScriptSetnxExpire : Recipe::kTransactionSetnxExpire;
    know_by_use(record);
  } else if (by_holder) {
    hold.recipe = Recipe::kSetnxExpire;
  }
  add_event(EventKind::kDeadlineSet, record, party(cause.client), cause.time_ms);
  // From a time stamp other clients see when the lock becomes stale, whatever the deadline.
  if (one_step || !by_holder || hold.stale_ms) return;
  hold.late_deadline_ms = cause.time_ms;
  check_atomic(record);
}

// --- Values -------------------------------------------------------------------------------------

void LockModel::value_set(int database, std::string_view key, const Cause& cause, Set how,
                          std::string_view value, int64_t deadline_ms) {
  Record* record = use(database, key);
  if (record == nullptr || !record->hold) return;
  Hold& hold = *record->hold;
  const Token token(value);
  const bool own = acts_for_holder(hold, cause.client);
  if (how == Set::kGetset && !own) return getset(*record, cause, token, deadline_ms);
  if (token == hold.token || own) {
    hold.stale_ms = time_stamp(value, cause.time_ms);
    hold.token = token;
    hold.deadline_ms = deadline_ms;
    hold.deadline_set_ms = cause.time_ms;
    ++hold.prolongations;
    add_event(EventKind::kProlonged, *record, party(cause.client), cause.time_ms);
    return;
  }
  if (how != Set::kCompared && !cause.compared)
    return overwrite(*record, cause, token, deadline_ms);
  end_hold(*record, EventKind::kTakenOver, cause.time_ms, party(cause.client));
  begin_hold(*record, cause, Recipe::kSetIf, token, deadline_ms);
}

void LockModel::getset(Record& record, const Cause& cause, const Token& token,
                       int64_t deadline_ms) {
  Hold& hold = *record.hold;
  if (!hold.stale_ms || cause.compared) return overwrite(record, cause, token, deadline_ms);
  if (*hold.stale_ms <= cause.time_ms) {
    end_hold(record, EventKind::kTakenOver, cause.time_ms, party(cause.client));
    return begin_hold(record, cause, Recipe::kGetset, token, deadline_ms);
  }
  // It has been too late, which does no harm as long as it goes away.
  hold.token = token;
  hold.deadline_ms = deadline_ms;
  if (hold.takeover_losers.size() < kMaxContenders) hold.takeover_losers.push_back(cause.client);
  add_event(EventKind::kTakeoverLost, record, party(cause.client), cause.time_ms);
}

void LockModel::overwrite(Record& record, const Cause& cause, const Token& token,
                          int64_t deadline_ms) {
  const Hold hold = *record.hold;
  const PartyRef by = party(cause.client);
  if (by != nullptr && record.known_by != KnownBy::kNothing && is_other_client(record, by->id)) {
    add_finding(FindingKind::kOverwritten, record, by, cause.time_ms,
                hold.holder->shown() + " held the lock since " + clock_time(hold.since_ms) +
                    "; at " + clock_time(cause.time_ms) + " " + by->shown() +
                    " wrote its own value over it.");
  }
  end_hold(record, EventKind::kOverwritten, cause.time_ms, by);
  begin_hold(record, cause, Recipe::kSet, token, deadline_ms);
}

void LockModel::used_otherwise(int database, std::string_view key) {
  const auto it = records_.find({database, key});
  if (it != records_.end()) forget(it->second);
}

// --- The end ------------------------------------------------------------------------------------

void LockModel::removed(int database, std::string_view key, const Cause& cause) {
  Record* record = use(database, key);
  if (record == nullptr || !record->hold) return;
  const Hold& hold = *record->hold;
  const auto& losers = hold.takeover_losers;
  const bool lost_takeover = std::find(losers.begin(), losers.end(), cause.client) != losers.end();
  if (cause.client == 0)
    return end_hold(*record, EventKind::kReleasedBlind, cause.time_ms, nullptr);
  const bool may_be_own =
      hold.holder->id == 0 || (!lost_takeover && acts_for_holder(hold, cause.client));
  if (cause.compared || may_be_own) return released(*record, cause);
  removed_by_other(*record, cause);
}

void LockModel::released(Record& record, const Cause& cause) {
  if (cause.compared) know_by_use(record);
  check_held_long(record, cause.time_ms);
  end_hold(record, cause.compared ? EventKind::kReleasedByComparison : EventKind::kReleasedBlind,
           cause.time_ms, party(cause.client));
}

void LockModel::removed_by_other(Record& record, const Cause& cause) {
  const Hold& hold = *record.hold;
  const PartyRef by = party(cause.client);
  const std::string holding = hold.holder->shown() + " held the lock since " +
                              clock_time(hold.since_ms) + "; at " + clock_time(cause.time_ms) +
                              " " + by->shown() + " deleted it";
  const auto& losers = hold.takeover_losers;
  PastHold* lost = lost_hold(record, cause.client);
  if (record.known_by == KnownBy::kNothing) {
    // It may be no lock.
  } else if (std::find(losers.begin(), losers.end(), cause.client) != losers.end()) {
    add_finding(FindingKind::kTakeoverLost, record, by, cause.time_ms,
                holding + ", as if it were the holder: its GETSET had come after that of " +
                    hold.holder->shown() + ".");
  } else if (lost != nullptr) {
    lost->noticed = true;
    add_finding(FindingKind::kLateRelease, record, by, cause.time_ms,
                by->shown() + " took the lock at " + clock_time(lost->since_ms) +
                    " and had it until it expired at " + clock_time(lost->ended_ms) + "; " +
                    holding + ", " + duration(cause.time_ms - lost->ended_ms) + " too late.");
  } else if (hold.stale_ms && *hold.stale_ms <= cause.time_ms) {
    add_finding(FindingKind::kStaleDelete, record, by, cause.time_ms,
                holding + ", because its time stamp had passed " +
                    duration(cause.time_ms - *hold.stale_ms) + " before.");
  } else if (is_other_client(record, cause.client)) {
    add_finding(FindingKind::kForeignRelease, record, by, cause.time_ms, holding + ".");
  }
  end_hold(record, EventKind::kReleasedByStranger, cause.time_ms, by);
}

void LockModel::release_failed(int database, std::string_view key, const Cause& cause) {
  Record* record = use(database, key);
  if (record == nullptr) return;
  PastHold* lost = lost_hold(*record, cause.client);
  if (lost == nullptr) return;
  lost->noticed = true;
  add_event(EventKind::kReleasedLate, *record, lost->holder, cause.time_ms);
  if (record->known_by == KnownBy::kNothing) return;
  const std::string whose =
      record->hold ? "it was " + record->hold->holder->shown() + "'s." : "it was nobody's.";
  add_finding(FindingKind::kLateRelease, *record, lost->holder, cause.time_ms,
              lost->holder->shown() + " took the lock at " + clock_time(lost->since_ms) +
                  " and had it until it expired at " + clock_time(lost->ended_ms) +
                  "; it released it " + duration(cause.time_ms - lost->ended_ms) + " later, when " +
                  whose);
}

bool LockModel::has_lost(int database, std::string_view key, uint64_t client) const {
  const Record* record = find(database, key);
  return record != nullptr && lost_hold(*record, client) != nullptr;
}

void LockModel::key_read(int database, std::string_view key, const Cause& cause) {
  Record* record = use(database, key);
  if (record == nullptr) return;
  PastHold* lost = lost_hold(*record, cause.client);
  if (lost == nullptr) return;
  // Whatever it wanted, it knows now that it has the lock no more.
  lost->noticed = true;
  add_event(EventKind::kCameBack, *record, lost->holder, cause.time_ms);
}

// --- Counted locks ------------------------------------------------------------------------------

void LockModel::counted(int database, std::string_view key, const Cause& cause,
                        std::string_view field, int64_t change, int64_t count,
                        int64_t deadline_ms) {
  Record& record = make(database, key);
  const Token token(field);
  if (!record.hold || !(record.hold->token == token)) {
    if (change <= 0) return;
    taken(database, key, cause, Recipe::kHash, field, deadline_ms);
    return know_by_use(record);
  }
  Hold& hold = *record.hold;
  hold.count = count;
  hold.was_left = change < 0;
  if (count <= 0) return;  // it is about to be deleted
  add_event(change < 0 ? EventKind::kLeft : EventKind::kReentered, record, party(cause.client),
            cause.time_ms);
}

void LockModel::check_reentry(Record& record, int64_t now_ms) {
  const Hold& hold = *record.hold;
  if (!hold.was_left || hold.count <= 0 || record.known_by == KnownBy::kNothing) return;
  add_finding(FindingKind::kReentryLost, record, hold.holder, now_ms,
              hold.holder->shown() + " took the lock at " + clock_time(hold.since_ms) +
                  " and took it again; it released it, but its count was still " +
                  std::to_string(hold.count) + " when " +
                  (hold.holder_gone ? "its connection closed at " : "the lock expired at ") +
                  clock_time(now_ms) + ".");
}

// --- Guards -------------------------------------------------------------------------------------

bool LockModel::guard(int database, std::string_view lock, std::vector<base::GlobPattern> globs) {
  unguard(database, lock);
  if (guards_.size() >= kMaxGuards) return false;
  guards_.push_back({KeyPlace{database, std::string(lock)}, std::move(globs)});
  return true;
}

bool LockModel::unguard(int database, std::string_view lock) {
  return std::erase_if(guards_, [&](const Guard& guard) {
           return guard.lock.database == database && guard.lock.key == lock;
         }) != 0;
}

void LockModel::written(int database, std::string_view key, const Cause& cause) {
  for (const Guard& guard : guards_) {
    if (guard.lock.database != database || guard.lock.key == key) continue;
    const bool guarded =
        std::any_of(guard.globs.begin(), guard.globs.end(),
                    [&](const base::GlobPattern& glob) { return glob.covers(key); });
    if (!guarded) continue;
    if (Record* record = use(database, guard.lock.key)) check_outlived(*record, key, cause);
  }
}

void LockModel::check_outlived(Record& record, std::string_view key, const Cause& cause) {
  if (record.hold && acts_for_holder(*record.hold, cause.client)) return;
  const PastHold* lost = lost_hold(record, cause.client);
  if (lost == nullptr) return;
  constexpr size_t kShown = 128;
  add_finding(FindingKind::kOutlived, record, lost->holder, cause.time_ms,
              lost->holder->shown() + " had the lock until it expired at " +
                  clock_time(lost->ended_ms) + ", and wrote to \"" +
                  printable(key.substr(0, kShown)) + "\" " +
                  duration(cause.time_ms - lost->ended_ms) + " later, when " +
                  (record.hold ? record.hold->holder->shown() + " had it." : "nobody had it."));
}

void LockModel::expired(int database, std::string_view key, int64_t now_ms) {
  Record* record = use(database, key);
  if (record == nullptr || !record->hold) return;
  if (!record->hold->holder_gone) check_reentry(*record, now_ms);
  end_hold(*record, EventKind::kExpired, now_ms, nullptr);
}

void LockModel::evicted(int database, std::string_view key, int64_t now_ms) {
  Record* record = use(database, key);
  if (record != nullptr && record->hold) end_hold(*record, EventKind::kEvicted, now_ms, nullptr);
}

void LockModel::cleared(int database, int64_t now_ms) {
  for (auto it = order_.begin(); it != order_.end();) {
    const auto record = it++;
    if (record->place->database != database) continue;
    if (record->hold) end_hold(*record, EventKind::kFlushed, now_ms, nullptr);
    if (record->semaphore != nullptr) forget(record);
  }
}

void LockModel::swapped(int first, int second) {
  records_.clear();
  for (auto record = order_.begin(); record != order_.end(); ++record) {
    const int database = record->place->database;
    if (database == first || database == second) {
      record->place = std::make_shared<const KeyPlace>(
          KeyPlace{database == first ? second : first, record->place->key});
    }
    records_.emplace(*record->place, record);
  }
}

void LockModel::client_gone(uint64_t client, int64_t now_ms) {
  if (has_semaphores()) tokens_lost_with(client, now_ms);
  const auto held = held_by_.find(client);
  if (held == held_by_.end()) return;
  std::vector<Record*> records;
  for (Record* record = held->second; record != nullptr; record = record->held_after) {
    if (!record->hold->holder_gone) records.push_back(record);
  }
  if (held->second == nullptr) held_by_.erase(held);
  // Not by their addresses.
  std::sort(records.begin(), records.end(), [](const Record* one, const Record* other) {
    return std::tie(one->hold->since_ms, one->place->key) <
           std::tie(other->hold->since_ms, other->place->key);
  });
  for (Record* record : records) {
    Hold& hold = *record->hold;
    hold.holder_gone = true;
    add_event(EventKind::kHolderGone, *record, hold.holder, now_ms);
    check_reentry(*record, now_ms);
    const bool ends = hold.deadline_ms >= 0 || hold.stale_ms;
    if (ends || record->known_by == KnownBy::kNothing) continue;
    add_finding(FindingKind::kNoDeadline, *record, hold.holder, now_ms,
                hold.holder->shown() + " took the lock at " + clock_time(hold.since_ms) +
                    " without a deadline and disconnected at " + clock_time(now_ms) +
                    "; it is still held.");
  }
}

std::vector<HeldLock> LockModel::held() const {
  std::vector<HeldLock> all;
  for (auto record = order_.rbegin(); record != order_.rend(); ++record) {
    if (record->hold) all.push_back({record->place, record->known_by, *record->hold});
  }
  return all;
}

void LockModel::put_back(const HeldLock& lock, int64_t now_ms) {
  Record& record = make(lock.place->database, lock.place->key);
  if (record.hold) {
    const Hold& hold = *record.hold;
    if (hold.token == lock.hold.token && hold.holder->id == lock.hold.holder->id) return;
    end_hold(record, EventKind::kFlushed, now_ms, nullptr);
  }
  record.known_by = lock.known_by;
  Hold& hold = record.hold.emplace(lock.hold);
  hold.holder_gone = !clients_.is_connected(hold.holder->id);
  join_holder(record);
  add_event(EventKind::kTaken, record, hold.holder, now_ms);
}

// --- Conclusions --------------------------------------------------------------------------------

void LockModel::check_token(Record& record, const Token& token, uint64_t client, int64_t now_ms) {
  if (record.known_by == KnownBy::kNothing || client == 0 || record.hold->stale_ms) return;
  // It names a client, not a time of holding, and that client has several connections.
  if (record.hold->recipe == Recipe::kHash) return;
  const auto is_other = [&](const PartyRef& other) {
    return other != nullptr && other->id != 0 && !same_client(*other, client) &&
           clients_.is_connected(other->id);
  };
  PartyRef other = is_other(record.hold->holder) ? record.hold->holder : nullptr;
  for (const PastHold& past : record.past) {
    if (past.holder == record.hold->holder || other != nullptr) continue;
    if (past.token == token && is_other(past.holder)) other = past.holder;
  }
  if (other == nullptr) return;
  const PartyRef by = party(client);
  add_finding(FindingKind::kForeignToken, record, by, now_ms,
              by->shown() + " and " + other->shown() + " both use the value \"" +
                  printable(token.text()) + "\" for the lock.");
}

void LockModel::check_atomic(Record& record) {
  if (!record.hold->late_deadline_ms || record.known_by == KnownBy::kNothing) return;
  const Hold& hold = *record.hold;
  const int64_t late_ms = *std::exchange(record.hold->late_deadline_ms, std::nullopt);
  add_finding(FindingKind::kNotAtomic, record, hold.holder, late_ms,
              hold.holder->shown() + " took the lock at " + clock_time(hold.since_ms) +
                  " and gave it a deadline by another request, " +
                  duration(late_ms - hold.since_ms) + " later.");
}

void LockModel::check_starved(Record& record, Contender& contender, int64_t now_ms) {
  const uint64_t others = kStarvedTurns * record.contenders.size();
  if (contender.row <= kStarvedRefusals || contender.others_won <= others) return;
  if (record.known_by != KnownBy::kNothing) {
    add_finding(FindingKind::kStarved, record, contender.client, now_ms,
                contender.client->shown() + " was refused " + std::to_string(contender.row) +
                    " times in a row between " + clock_time(contender.first_ms) + " and " +
                    clock_time(now_ms) + ", while others took the lock " +
                    std::to_string(contender.others_won) +
                    (record.contenders.size() > 1 ? " times in turn." : " times."));
  }
  contender.row = 1;
  contender.others_won = 0;
  contender.first_ms = now_ms;
}

void LockModel::check_held_long(Record& record, int64_t now_ms) {
  constexpr int64_t kShareLeft = 10;  // a tenth
  const Hold& hold = *record.hold;
  if (hold.deadline_ms < 0 || hold.holder->id == 0) return;
  const int64_t ttl_ms = hold.deadline_ms - hold.deadline_set_ms;
  const int64_t left_ms = hold.deadline_ms - now_ms;
  if (left_ms >= ttl_ms / kShareLeft) return;
  if (++record.long_holds < 2 || record.known_by == KnownBy::kNothing) return;
  add_finding(FindingKind::kHeldLong, record, hold.holder, now_ms,
              hold.holder->shown() + " released the lock " + duration(left_ms) +
                  " before it would have expired, of a time to live of " + duration(ttl_ms) +
                  "; that was the " + std::to_string(record.long_holds) +
                  std::string(ordinal_suffix(record.long_holds)) + " time it was so close.");
}

// --- Log ----------------------------------------------------------------------------------------

Event& LockModel::add_event(EventKind kind, const Record& record, const PartyRef& client,
                            int64_t time_ms) {
  if (log_.full() && (replays_past_ || log_.capacity() < limits_.events)) {
    constexpr size_t kFirst = 16;
    const size_t capacity = std::max(log_.capacity() * 2, kFirst);
    log_.set_capacity(replays_past_ ? capacity : std::min(capacity, limits_.events));
  }
  Event& event = reuse_or_add(log_);
  event.id = ++last_id_;
  event.kind = kind;
  refer(event.place, record.place);
  refer(event.client, client);
  event.time_ms = event.last_ms = time_ms;
  event.count = 1;
  event.deadline_ms = record.hold ? record.hold->deadline_ms : -1;
  event.step = step_;
  return event;
}

void LockModel::add_finding(FindingKind kind, const Record& record, PartyRef client, int64_t now_ms,
                            std::string evidence) {
  Finding finding{.id = ++last_id_,
                  .kind = kind,
                  .place = record.place,
                  .client = std::move(client),
                  .first_ms = now_ms,
                  .last_ms = now_ms,
                  .evidence = std::move(evidence)};
  const auto known = std::find_if(findings_.begin(), findings_.end(), [&](const Finding& other) {
    return other.kind == kind && *other.place == *record.place;
  });
  if (known != findings_.end()) {
    finding.first_ms = known->first_ms;
    finding.times = known->times + 1;
    findings_.erase(known);
  }
  if (findings_.size() >= kMaxFindings) findings_.pop_front();
  findings_.push_back(std::move(finding));
  if (on_finding) on_finding(findings_.back());
}

}  // namespace latchkey::locks

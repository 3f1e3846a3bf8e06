#include "locks/lock_model.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/glob.h"
#include "locks/lock_words.h"

namespace latchkey::locks {

// --- Records ------------------------------------------------------------------------------------

void LockModel::set_limits(const Limits& limits) {
  limits_ = limits;
  while (order_.size() > limits_.keys) forget(std::prev(order_.end()));
  while (log_.size() > limits_.events) log_.pop_front();
}

void LockModel::set_patterns(std::string_view patterns) {
  patterns_.clear();
  for (size_t start = 0; start < patterns.size();) {
    const size_t end = std::min(patterns.find(' ', start), patterns.size());
    if (end != start) patterns_.emplace_back(patterns.substr(start, end - start));
    start = end + 1;
  }
}

const Record* LockModel::find(int database, std::string_view key) const {
  const auto it = records_.find(std::pair(database, key));
  return it == records_.end() ? nullptr : &*it->second;
}

Record* LockModel::use(int database, std::string_view key) {
  const auto it = records_.find(std::pair(database, key));
  if (it == records_.end()) return nullptr;
  order_.splice(order_.begin(), order_, it->second);
  return &*it->second;
}

Record& LockModel::make(int database, std::string_view key) {
  if (Record* record = use(database, key)) return *record;
  while (order_.size() >= limits_.keys) forget(std::prev(order_.end()));
  Record& record = order_.emplace_front();
  record.place = std::make_shared<const Place>(Place{database, std::string(key)});
  records_.emplace(std::pair(database, std::string_view(record.place->key)), order_.begin());
  return record;
}

void LockModel::forget(std::list<Record>::iterator record) {
  leave_holder(*record);
  records_.erase(std::pair(record->place->database, std::string_view(record->place->key)));
  order_.erase(record);
}

void LockModel::reset() {
  records_.clear();
  order_.clear();
  held_by_.clear();
  log_.clear();
  findings_.clear();
  parties_.fill(nullptr);
}

PartyRef LockModel::party(uint64_t client) const {
  if (client == 0) return nullptr;
  PartyRef& party = parties_[client % parties_.size()];
  if (party == nullptr || party->id != client || !clients_.is_still(*party))
    party = std::make_shared<const Party>(clients_.describe(client));
  return party;
}

KnownBy LockModel::recognise(const Record& record, const Token& token) const {
  if (record.known_by != KnownBy::kNothing) return record.known_by;
  const auto guards_something = [&](const Guard& guard) { return guard.lock == *record.place; };
  if (std::any_of(guards_.begin(), guards_.end(), guards_something)) return KnownBy::kPattern;
  if (!patterns_.empty()) {
    const bool any = std::any_of(patterns_.begin(), patterns_.end(), [&](const auto& pattern) {
      return base::glob_match(pattern, record.place->key);
    });
    return any ? KnownBy::kPattern : KnownBy::kNothing;
  }
  if (names_lock(record.place->key)) return KnownBy::kName;
  return is_random(token.text()) ? KnownBy::kToken : KnownBy::kNothing;
}

void LockModel::know_by_use(Record& record) const {
  if (record.known_by == KnownBy::kNothing && patterns_.empty()) record.known_by = KnownBy::kUse;
}

// --- Who ----------------------------------------------------------------------------------------

bool LockModel::same_client(const Party& party, uint64_t client) const {
  if (party.id == client) return true;
  return !party.name.empty() && client != 0 && clients_.describe(client).name == party.name;
}

bool LockModel::acts_for_holder(const Hold& hold, uint64_t client) const {
  return same_client(*hold.holder, client) ||
         std::find(hold.helpers.begin(), hold.helpers.end(), client) != hold.helpers.end();
}

bool LockModel::is_surely_another(Record& record, uint64_t client) {
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
  if (all.size() == kMostContenders) {
    // Whoever has not been seen for longest.
    all.erase(std::min_element(all.begin(), all.end(), [](const auto& one, const auto& other) {
      return one.last_ms < other.last_ms;
    }));
  }
  return all.emplace_back(Contender{.client = party(client)});
}

PastHold* LockModel::lost_hold(Record& record, uint64_t client) {
  const auto it = std::find_if(record.past.rbegin(), record.past.rend(), [&](const PastHold& past) {
    return past.holder != nullptr && past.holder->id == client;
  });
  if (it == record.past.rend() || it->settled || it->end != EventKind::kExpired) return nullptr;
  return &*it;
}

bool LockModel::refused_just_now(const Hold& hold, const Contender& contender, const Cause& cause) {
  if (contender.last_ms < hold.since_ms || contender.row == 0 || contender.via != cause.via)
    return false;
  return cause.via == Via::kPlain ? contender.call + 1 == cause.call : contender.call == cause.call;
}

// --- Holding ------------------------------------------------------------------------------------

void LockModel::leave_holder(Record& record) {
  if (!record.hold) return;
  const auto it = held_by_.find(record.hold->holder->id);
  if (it == held_by_.end()) return;
  it->second.erase(&record);
  if (it->second.empty()) held_by_.erase(it);
}

void LockModel::begin_hold(Record& record, const Cause& cause, Recipe recipe, Token token,
                           int64_t deadline_ms) {
  const PartyRef holder = cause.client != 0 ? party(cause.client) : std::make_shared<const Party>();
  record.known_by = recognise(record, token);
  record.hold = Hold{.holder = holder,
                     .token = std::move(token),
                     .recipe = recipe,
                     .via = cause.via,
                     .call = cause.call,
                     .since_ms = cause.time_ms,
                     .deadline_ms = deadline_ms,
                     .deadline_set_ms = cause.time_ms};
  record.hold->stale_ms = time_stamp(record.hold->token.text(), cause.time_ms);
  held_by_[holder->id].insert(&record);
  ++record.taken;
  for (Contender& contender : record.contenders) {
    const bool won = contender.client->id == cause.client;
    contender.others_won = won || contender.row == 0 ? 0 : contender.others_won + 1;
    if (won) contender.row = 0;
  }
}

void LockModel::end_hold(Record& record, EventKind how, int64_t now_ms, const PartyRef& by) {
  add_event(how, record, by, now_ms);
  leave_holder(record);
  const Hold& hold = *record.hold;
  if (record.past.size() == kMostPastHolds) record.past.erase(record.past.begin());
  record.past.push_back({.holder = hold.holder,
                         .token = hold.token,
                         .since_ms = hold.since_ms,
                         .ended_ms = now_ms,
                         .end = how});
  record.hold.reset();
}

void LockModel::taken(int database, std::string_view key, const Cause& cause, Recipe recipe,
                      std::string_view token, int64_t deadline_ms) {
  Record& record = make(database, key);
  // The end of the last one may have been missed, or its record forgotten in between.
  if (record.hold) end_hold(record, EventKind::kFlushed, cause.time_ms, nullptr);
  // Whoever takes it again knows that it had lost it.
  if (PastHold* lost = lost_hold(record, cause.client)) lost->settled = true;
  begin_hold(record, cause, recipe, Token(token), deadline_ms);
  add_event(EventKind::kTaken, record, record.hold->holder, cause.time_ms);
  check_token(record, record.hold->token, cause.client, cause.time_ms);
}

void LockModel::refused(int database, std::string_view key, const Cause& cause,
                        std::string_view token, uint64_t count) {
  Record* record = use(database, key);
  if (record == nullptr || !record->hold || count == 0) return;
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
  if (Token(token) == hold.token) check_token(*record, hold.token, cause.client, cause.time_ms);
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
  const bool loser = !acts_for_holder(hold, cause.client) && contender != nullptr &&
                     refused_just_now(hold, *contender, cause);
  if (loser) {
    prolonged_by(*record, cause, deadline_ms);
  } else if (hold.deadline_ms < 0 && hold.prolongations == 0) {
    set_first_deadline(*record, cause, deadline_ms);
  } else {
    hold.deadline_ms = deadline_ms;
    ++hold.prolongations;
    add_event(EventKind::kProlonged, *record, party(cause.client), cause.time_ms);
    if (!acts_for_holder(hold, cause.client) && hold.helpers.size() < kMostContenders)
      hold.helpers.push_back(cause.client);
  }
  hold.deadline_ms = deadline_ms;
  hold.deadline_set_ms = cause.time_ms;
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
  find_fault(FindingKind::kProlongedByLoser, record, loser, cause.time_ms,
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
  // A time stamp tells others when the lock becomes stale, whatever becomes of the deadline.
  if (one_step || !by_holder || hold.stale_ms) return;
  find_fault(FindingKind::kNotAtomic, record, hold.holder, cause.time_ms,
             hold.holder->shown() + " took the lock at " + clock_time(hold.since_ms) +
                 " and gave it a deadline by another request, " +
                 duration(cause.time_ms - hold.since_ms) + " later.");
}

// --- Values -------------------------------------------------------------------------------------

void LockModel::value_set(int database, std::string_view key, const Cause& cause, Set how,
                          std::string_view value, int64_t deadline_ms) {
  Record* record = use(database, key);
  if (record == nullptr || !record->hold) return;
  Hold& hold = *record->hold;
  Token token(value);
  const bool own = acts_for_holder(hold, cause.client);
  if (how == Set::kGetset && !own) return getset(*record, cause, std::move(token), deadline_ms);
  if (token == hold.token || own) {
    hold.stale_ms = time_stamp(value, cause.time_ms);
    hold.token = std::move(token);
    hold.deadline_ms = deadline_ms;
    hold.deadline_set_ms = cause.time_ms;
    ++hold.prolongations;
    add_event(EventKind::kProlonged, *record, party(cause.client), cause.time_ms);
    return;
  }
  if (how != Set::kCompared && !cause.compared)
    return overwrite(*record, cause, std::move(token), deadline_ms);
  end_hold(*record, EventKind::kTakenOver, cause.time_ms, party(cause.client));
  begin_hold(*record, cause, Recipe::kSetIf, std::move(token), deadline_ms);
}

void LockModel::getset(Record& record, const Cause& cause, Token token, int64_t deadline_ms) {
  Hold& hold = *record.hold;
  if (!hold.stale_ms || cause.compared)
    return overwrite(record, cause, std::move(token), deadline_ms);
  if (*hold.stale_ms <= cause.time_ms) {
    end_hold(record, EventKind::kTakenOver, cause.time_ms, party(cause.client));
    return begin_hold(record, cause, Recipe::kGetset, std::move(token), deadline_ms);
  }
  // It has been too late, which does no harm as long as it goes away.
  hold.token = std::move(token);
  hold.deadline_ms = deadline_ms;
  if (hold.takeover_losers.size() < kMostContenders) hold.takeover_losers.push_back(cause.client);
  add_event(EventKind::kTakeoverLost, record, party(cause.client), cause.time_ms);
}

void LockModel::overwrite(Record& record, const Cause& cause, Token token, int64_t deadline_ms) {
  const Hold hold = *record.hold;
  const PartyRef by = party(cause.client);
  if (by != nullptr && record.known_by != KnownBy::kNothing && is_surely_another(record, by->id)) {
    find_fault(FindingKind::kOverwritten, record, by, cause.time_ms,
               hold.holder->shown() + " held the lock since " + clock_time(hold.since_ms) +
                   "; at " + clock_time(cause.time_ms) + " " + by->shown() +
                   " wrote its own value over it.");
  }
  end_hold(record, EventKind::kOverwritten, cause.time_ms, by);
  begin_hold(record, cause, Recipe::kSet, std::move(token), deadline_ms);
}

void LockModel::used_otherwise(int database, std::string_view key) {
  const auto it = records_.find(std::pair(database, key));
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
  if (cause.compared || (!lost_takeover && acts_for_holder(hold, cause.client)))
    return released(*record, cause);
  removed_by_stranger(*record, cause);
}

void LockModel::released(Record& record, const Cause& cause) {
  if (cause.compared) know_by_use(record);
  check_held_long(record, cause.time_ms);
  end_hold(record, cause.compared ? EventKind::kReleasedByComparison : EventKind::kReleasedBlind,
           cause.time_ms, party(cause.client));
}

void LockModel::removed_by_stranger(Record& record, const Cause& cause) {
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
    find_fault(FindingKind::kTakeoverLost, record, by, cause.time_ms,
               holding + ", as if it were the holder: its GETSET had come after that of " +
                   hold.holder->shown() + ".");
  } else if (lost != nullptr) {
    lost->settled = true;
    find_fault(FindingKind::kLateRelease, record, by, cause.time_ms,
               by->shown() + " took the lock at " + clock_time(lost->since_ms) +
                   " and had it until it expired at " + clock_time(lost->ended_ms) + "; " +
                   holding + ", " + duration(cause.time_ms - lost->ended_ms) + " too late.");
  } else if (hold.stale_ms && *hold.stale_ms <= cause.time_ms) {
    find_fault(FindingKind::kStaleDelete, record, by, cause.time_ms,
               holding + ", because its time stamp had passed " +
                   duration(cause.time_ms - *hold.stale_ms) + " before.");
  } else if (is_surely_another(record, cause.client)) {
    find_fault(FindingKind::kForeignRelease, record, by, cause.time_ms, holding + ".");
  }
  end_hold(record, EventKind::kReleasedByStranger, cause.time_ms, by);
}

void LockModel::release_failed(int database, std::string_view key, const Cause& cause) {
  Record* record = use(database, key);
  if (record == nullptr) return;
  PastHold* lost = lost_hold(*record, cause.client);
  if (lost == nullptr) return;
  lost->settled = true;
  add_event(EventKind::kReleasedLate, *record, lost->holder, cause.time_ms);
  if (record->known_by == KnownBy::kNothing) return;
  const std::string whose =
      record->hold ? "it was " + record->hold->holder->shown() + "'s." : "it was nobody's.";
  find_fault(FindingKind::kLateRelease, *record, lost->holder, cause.time_ms,
             lost->holder->shown() + " took the lock at " + clock_time(lost->since_ms) +
                 " and had it until it expired at " + clock_time(lost->ended_ms) +
                 "; it released it " + duration(cause.time_ms - lost->ended_ms) + " later, when " +
                 whose);
}

void LockModel::looked_at(int database, std::string_view key, const Cause& cause) {
  Record* record = use(database, key);
  if (record == nullptr) return;
  PastHold* lost = lost_hold(*record, cause.client);
  if (lost == nullptr) return;
  // Whatever it wanted, it knows now that it has the lock no more.
  lost->settled = true;
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
  find_fault(FindingKind::kReentryLost, record, hold.holder, now_ms,
             hold.holder->shown() + " took the lock at " + clock_time(hold.since_ms) +
                 " and took it again; it released it, but its count was still " +
                 std::to_string(hold.count) + " when " +
                 (hold.holder_gone ? "its connection closed at " : "the lock expired at ") +
                 clock_time(now_ms) + ".");
}

// --- Guards -------------------------------------------------------------------------------------

bool LockModel::guard(int database, std::string_view lock, std::vector<std::string> globs) {
  unguard(database, lock);
  if (guards_.size() >= kMostGuards) return false;
  guards_.push_back({Place{database, std::string(lock)}, std::move(globs)});
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
    const bool guarded = std::any_of(
        guard.globs.begin(), guard.globs.end(),
        [&](const std::string& glob) { return glob == "*" || base::glob_match(glob, key); });
    if (!guarded) continue;
    if (Record* record = use(database, guard.lock.key)) check_outlived(*record, key, cause);
  }
}

void LockModel::check_outlived(Record& record, std::string_view key, const Cause& cause) {
  if (record.hold && acts_for_holder(*record.hold, cause.client)) return;
  const PastHold* lost = lost_hold(record, cause.client);
  if (lost == nullptr) return;
  constexpr size_t kShown = 128;
  find_fault(FindingKind::kOutlived, record, lost->holder, cause.time_ms,
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
  for (Record& record : order_) {
    if (record.place->database == database && record.hold)
      end_hold(record, EventKind::kFlushed, now_ms, nullptr);
  }
}

void LockModel::swapped(int first, int second) {
  records_.clear();
  for (auto record = order_.begin(); record != order_.end(); ++record) {
    const int database = record->place->database;
    if (database == first || database == second) {
      record->place = std::make_shared<const Place>(
          Place{database == first ? second : first, record->place->key});
    }
    records_.emplace(std::pair(record->place->database, std::string_view(record->place->key)),
                     record);
  }
}

void LockModel::client_gone(uint64_t client, int64_t now_ms) {
  const auto held = held_by_.find(client);
  if (held == held_by_.end()) return;
  std::vector<Record*> records(held->second.begin(), held->second.end());
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
    find_fault(FindingKind::kNoDeadline, *record, hold.holder, now_ms,
               hold.holder->shown() + " took the lock at " + clock_time(hold.since_ms) +
                   " without a deadline and disconnected at " + clock_time(now_ms) +
                   "; it is still held.");
  }
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
    if (other == nullptr && past.token == token && is_other(past.holder)) other = past.holder;
  }
  if (other == nullptr) return;
  const PartyRef by = party(client);
  find_fault(FindingKind::kForeignToken, record, by, now_ms,
             by->shown() + " and " + other->shown() + " both use the value \"" +
                 printable(token.text()) + "\" for the lock.");
}

void LockModel::check_starved(Record& record, Contender& contender, int64_t now_ms) {
  const uint64_t others = std::max(kStarvedOthers, kStarvedTurns * record.contenders.size());
  if (contender.row <= kStarvedRefusals || contender.others_won <= others) return;
  if (record.known_by != KnownBy::kNothing) {
    find_fault(FindingKind::kStarved, record, contender.client, now_ms,
               contender.client->shown() + " was refused " + std::to_string(contender.row) +
                   " times in a row between " + clock_time(contender.first_ms) + " and " +
                   clock_time(now_ms) + ", while others took the lock " +
                   std::to_string(contender.others_won) + " times.");
  }
  contender.row = 1;
  contender.others_won = 0;
  contender.first_ms = now_ms;
}

void LockModel::check_held_long(Record& record, int64_t now_ms) {
  constexpr int64_t kShareLeft = 10;  // a tenth
  const Hold& hold = *record.hold;
  if (hold.deadline_ms < 0) return;
  const int64_t time_to_live_ms = hold.deadline_ms - hold.deadline_set_ms;
  const int64_t left_ms = hold.deadline_ms - now_ms;
  if (left_ms * kShareLeft >= time_to_live_ms) return;
  if (++record.long_holds < 2 || record.known_by == KnownBy::kNothing) return;
  find_fault(FindingKind::kHeldLong, record, hold.holder, now_ms,
             hold.holder->shown() + " released the lock " + duration(left_ms) +
                 " before it would have expired, of a time to live of " +
                 duration(time_to_live_ms) + "; that was the " + std::to_string(record.long_holds) +
                 std::string(ordinal_suffix(record.long_holds)) + " time it was so close.");
}

// --- Log ----------------------------------------------------------------------------------------

Event& LockModel::add_event(EventKind kind, const Record& record, PartyRef client,
                            int64_t time_ms) {
  if (log_.size() >= limits_.events) log_.pop_front();
  return log_.emplace_back(Event{.id = ++last_id_,
                                 .kind = kind,
                                 .place = record.place,
                                 .client = std::move(client),
                                 .time_ms = time_ms,
                                 .last_ms = time_ms,
                                 .token = record.hold ? record.hold->token.text() : std::string(),
                                 .deadline_ms = record.hold ? record.hold->deadline_ms : -1});
}

void LockModel::find_fault(FindingKind kind, const Record& record, PartyRef client, int64_t now_ms,
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
  if (findings_.size() >= kMostFindings) findings_.pop_front();
  findings_.push_back(std::move(finding));
  if (on_finding) on_finding(findings_.back());
}

}  // namespace latchkey::locks

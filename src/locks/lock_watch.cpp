#include "locks/lock_watch.h"

#include <algorithm>
#include <array>
#include <bit>
#include <tuple>
#include <utility>

#include "base/text/number.h"
#include "base/time_units.h"
#include "locks/lock_text.h"
#include "server/acl/user.h"
#include "server/client/blocking.h"
#include "server/client/pubsub.h"
#include "server/command/command_table.h"
#include "server/command/dispatcher.h"
#include "server/command/watch.h"
#include "server/server.h"

namespace latchkey::locks {

using namespace server;
using store::Entry;
using store::Keyspace;

namespace {

// Commands by which clients delete a key they name, and by which they store a string. What else
// changes a lock shows that it is none.
constexpr std::array<std::string_view, 11> kDeleting = {"hdel",    "del",      "unlink",   "delex",
                                                        "delifeq", "getdel",   "getex",    "expire",
                                                        "pexpire", "expireat", "pexpireat"};
constexpr std::array<std::string_view, 7> kStoring = {"set",  "setex",  "psetex", "getset",
                                                      "mset", "msetex", "setnx"};

// Before the lock's name in the channels to which findings are published.
constexpr std::string_view kChannelPrefix = "__lock__:";

bool is_one_of(const Command* command, std::span<const std::string_view> names) {
  return command != nullptr &&
         std::find(names.begin(), names.end(), command->full_name) != names.end();
}

Recipe recipe_of(LockRecipe recipe, int64_t deadline_ms) {
  switch (recipe) {
    case LockRecipe::kSetnx:
      return Recipe::kSetnx;
    case LockRecipe::kSetNx:
      return deadline_ms >= 0 ? Recipe::kSetNxExpiry : Recipe::kSetNx;
    case LockRecipe::kSetIf:
      return Recipe::kSetIf;
    case LockRecipe::kScriptSet:
      break;
  }
  return Recipe::kScriptSet;
}

}  // namespace

LockWatch::LockWatch(Server& server) : server_(server), model_(*this, server.environment().secret) {
  model_.on_finding = [this](const Finding& finding) { publish(finding); };
  server.config().on_change(
      {"lock-watch", "lock-patterns", "lock-watch-max-keys", "lock-log-max-len", "lock-notify"},
      [this] { apply_settings(); });
  apply_settings();
}

LockWatch::~LockWatch() {
  if (listens_) server_.events().remove(*this);
  server_.environment().lock_observer = nullptr;
  server_.set_lock_claims(nullptr);
}

void LockWatch::apply_settings() {
  const ConfigValues& settings = server_.settings();
  model();
  model_.set_limits({.keys = static_cast<size_t>(settings.lock_watch_max_keys),
                     .events = static_cast<size_t>(settings.lock_log_max_len)});
  model_.set_patterns(settings.lock_patterns);
  most_steps_ = std::bit_floor(
      std::min(static_cast<size_t>(settings.lock_watch_max_keys), size_t{LockStep::kMaxBack}));
  waits_ = !settings.lock_notify;
  resize_ring(std::min(ring_.size(), most_steps_));
  if (settings.lock_watch == on_) return;
  on_ = settings.lock_watch;
  listen();
  server_.environment().lock_observer = on_ ? this : nullptr;
  server_.set_lock_claims(on_ ? this : nullptr);
  // What happens while it is off is not known.
  model_.reset();
  any_ = false;
  since_ms_ = server_.data_clock().wall_us() / base::kUsPerMs;
}

void LockWatch::reset() {
  model();
  model_.reset();
  any_ = false;
  since_ms_ = server_.now_ms();
}

void LockWatch::put_back(const std::vector<HeldLock>& locks) {
  if (!on_) return;
  LockModel& model = this->model();
  for (const HeldLock& lock : locks) {
    Keyspace& keyspace = server_.database(lock.place->database);
    const store::KeyRef ref = keyspace.find(lock.place->key, Keyspace::kPeek);
    if (!ref) continue;
    keyspace.mark_lock(ref);
    model.put_back(lock, server_.now_ms());
    any_ = true;
  }
}

void LockWatch::publish(const Finding& finding) {
  if (!server_.settings().lock_notify) return;
  server_.pubsub().publish(std::string(kChannelPrefix) + finding.place->key,
                           std::string(description_of(finding.kind).name) + " " + finding.evidence);
}

// --- Clients ------------------------------------------------------------------------------------

Party LockWatch::describe(uint64_t id) const {
  const Client* client = server_.clients().find(id);
  if (client == nullptr) {
    const auto gone = gone_clients_.find(id);
    return gone == gone_clients_.end() ? Party{.id = id} : gone->second.party;
  }
  return {.id = id,
          .name = client->name,
          .address = client->peer_address(),
          .user = client->user != nullptr ? client->user->name : std::string()};
}

bool LockWatch::is_still(const Party& party) const {
  const Client* client = server_.dispatcher().serving();
  if (client == nullptr || client->id != party.id) client = server_.clients().find(party.id);
  if (client == nullptr) return true;
  return client->name == party.name &&
         (client->user != nullptr ? client->user->name == party.user : party.user.empty());
}

bool LockWatch::is_connected(uint64_t id) const {
  if (const auto it = gone_clients_.find(id); it != gone_clients_.end())
    return model_.step() < it->second.step;
  const Client* client = server_.clients().find(id);
  return client != nullptr && !client->has(kClientClosing);
}

// --- Claims -------------------------------------------------------------------------------------

LockModel& LockWatch::model() {
  if (seen_ != made_ || delivered_early_) {
    model_.begin_replay();
    deliver_steps();
    model_.end_replay();
    delivered_early_ = false;
  }
  model_.at(made_);
  return model_;
}

LockModel& LockWatch::model_now() {
  delivered_early_ |= seen_ != made_;
  model_.at(made_);
  return model_;
}

LockModel& LockWatch::model_for(uint64_t hash, int database, std::string_view key) {
  deliver_steps_of(hash, database, key);
  return model_now();
}

LockModel& LockWatch::model_for(const Entry& entry, int database) {
  if (seen_ != made_) deliver_steps_of(hash_of(entry.key()), database, entry.key());
  return model_now();
}

uint64_t LockWatch::hash_of(std::string_view key) const {
  return server_.environment().secret.hash(key);
}

bool LockWatch::is_of(const LockStep& step, uint64_t number, int database,
                      std::string_view key) const {
  if (step.entry == nullptr || step.database() != database) return false;
  return key ==
         (step.is(LockStep::kEnded) ? ends_[number & ring_mask_].key_text() : step.entry->key());
}

bool LockWatch::waits(uint64_t hash, const Entry& entry) const {
  uint64_t left = made_ - first_kept();
  uint64_t number = made_;
  for (uint32_t back = static_cast<uint32_t>(made_) - buckets_[hash & ring_mask_];
       back != 0 && back <= left; back = ring_[number & ring_mask_].back()) {
    number -= back;
    left -= back;
    const LockStep& step = ring_[number & ring_mask_];
    if (step.entry == &entry && !step.is(LockStep::kEnded)) return true;
  }
  return false;
}

uint64_t LockWatch::step_before(uint64_t before, uint64_t hash, int database,
                                std::string_view key) const {
  const uint64_t first = first_kept();
  uint64_t number = before;
  uint32_t back = before == made_ ? static_cast<uint32_t>(made_) - buckets_[hash & ring_mask_]
                                  : ring_[before & ring_mask_].back();
  while (back != 0 && back <= number - first) {
    number -= back;
    const LockStep& step = ring_[number & ring_mask_];
    if (is_of(step, number, database, key)) return number;
    back = step.back();
  }
  return before;
}

void LockWatch::deliver_step(uint64_t number) {
  LockStep& waiting = ring_[number & ring_mask_];
  if (waiting.entry == nullptr) return;
  const LockStep step = std::exchange(waiting, LockStep());
  waiting.set_back(step.back());
  Cause cause{.client = step.client_id,
              .time_ms = step.time_ms(),
              .via = static_cast<Via>(step.via()),
              .call = step.call};
  const auto recipe = static_cast<LockRecipe>(step.recipe());
  const auto database = step.database();
  model_.at(number);
  if (step.is(LockStep::kEnded)) {
    const End& end = ends_[number & ring_mask_];
    model_.taken(database, end.key_text(), cause, recipe_of(recipe, end.deadline_ms),
                 end.token_text(), end.deadline_ms);
    model_.at(end.step);
    return model_.removed(database, end.key_text(), end.cause);
  }
  const Entry& entry = *step.entry;
  if (entry.key().size() > kLongestKey) return;
  if (!step.is(LockStep::kRefused)) {
    char scratch[base::kMaxInt64Text];
    return model_.taken(database, entry.key(), cause, recipe_of(recipe, entry.deadline_ms()),
                        entry.string(scratch), entry.deadline_ms());
  }
  const Row& row = rows_[number & ring_mask_];
  model_.refused(database, entry.key(), cause, step.is(LockStep::kSameToken));
  cause.time_ms = row.last_ms;
  model_.refused(database, entry.key(), cause, false, row.refusals - 1);
}

void LockWatch::deliver_steps() {
  pending_steps_.clear();
  for (uint64_t number = first_kept(); number != made_; ++number) pending_steps_.push_back(number);
  deliver_pending();
  seen_ = made_;
  gone_clients_.clear();
}

void LockWatch::deliver_steps_of(uint64_t hash, int database, std::string_view key) {
  pending_steps_.clear();
  for (uint64_t number = made_;;) {
    const uint64_t before = step_before(number, hash, database, key);
    if (before == number) break;
    pending_steps_.push_back(number = before);
  }
  std::reverse(pending_steps_.begin(), pending_steps_.end());
  deliver_pending();
}

void LockWatch::deliver_pending() {
  leaving_.clear();
  for (const uint64_t number : pending_steps_) {
    if (gone_clients_.empty()) break;
    const auto it = gone_clients_.find(ring_[number & ring_mask_].client_id);
    if (it != gone_clients_.end()) leaving_.push_back(&it->second);
  }
  std::sort(leaving_.begin(), leaving_.end(), [](const GoneClient* one, const GoneClient* other) {
    return std::tie(one->step, one->party.id) < std::tie(other->step, other->party.id);
  });
  leaving_.erase(std::unique(leaving_.begin(), leaving_.end()), leaving_.end());
  auto next = leaving_.begin();
  const auto leave_before = [&](uint64_t step) {
    for (; next != leaving_.end() && (*next)->step <= step; ++next) {
      model_.at((*next)->step);
      model_.client_gone((*next)->party.id, (*next)->time_ms);
    }
  };
  for (const uint64_t number : pending_steps_) {
    leave_before(number);
    deliver_step(number);
  }
  leave_before(made_);
}

void LockWatch::resize_ring(size_t size) {
  const uint64_t kept = std::min<uint64_t>(made_ - first_kept(), size);
  const std::vector<LockStep> steps = std::exchange(ring_, std::vector<LockStep>(size));
  const std::vector<Row> rows = std::exchange(rows_, std::vector<Row>(size));
  const std::vector<End> ends =
      std::exchange(ends_, ends_.empty() ? std::vector<End>() : std::vector<End>(size));
  const uint64_t old_mask = std::exchange(ring_mask_, size - 1);
  buckets_.assign(size, 0);
  for (uint64_t number = made_ - kept; number != made_; ++number) {
    LockStep& step = ring_[number & ring_mask_] = steps[number & old_mask];
    rows_[number & ring_mask_] = rows[number & old_mask];
    if (step.entry == nullptr) continue;
    if (step.is(LockStep::kEnded)) ends_[number & ring_mask_] = ends[number & old_mask];
    const std::string_view key =
        step.is(LockStep::kEnded) ? ends_[number & ring_mask_].key_text() : step.entry->key();
    uint32_t& newest = buckets_[hash_of(key) & ring_mask_];
    step.set_back(static_cast<uint32_t>(number) - newest);
    newest = static_cast<uint32_t>(number);
  }
  make_room_at_ = !waits_ ? made_ : size == most_steps_ ? UINT64_MAX : made_ - kept + size;
}

void LockWatch::grow_ring() {
  constexpr size_t kFirst = 16;
  resize_ring(std::min(std::max(ring_.size() * 2, kFirst), most_steps_));
}

void LockWatch::taken_slowly(CommandContext& ctx, const store::KeyRef& ref, LockRecipe recipe) {
  any_ = true;
  if (Client* client = actor()) client->set(kClientTookLock);
  add_step_of(ctx, ref, {.bits_and_back = static_cast<uint32_t>(recipe)});
}

void LockWatch::made_by_script(CommandContext& ctx, const store::KeyRef& ref) {
  if (!cause_of(ref->key()).compared && std::exchange(looked_for_, 0) != base::digest(ref->key()))
    return;
  ctx.db.mark_lock(ref);
  taken_slowly(ctx, ref, LockRecipe::kScriptSet);
}

void LockWatch::refused_slowly(CommandContext& ctx, const store::KeyRef& ref,
                               std::string_view value) {
  if (actor() == nullptr) return;
  // What is forgotten stays so.
  if (!waits(ref.hash(), *ref) && model_.find(ctx.db.index(), ref->key()) == nullptr) return;
  char scratch[base::kMaxInt64Text];
  const bool same_token = ref->is_string() && ref->string(scratch) == value;
  add_step_of(ctx, ref,
              {.bits_and_back = LockStep::kRefused | (same_token ? LockStep::kSameToken : 0)});
}

void LockWatch::add_step_of(CommandContext& ctx, const store::KeyRef& ref, LockStep step) {
  if (ref->key().size() > kLongestKey || ctx.db.index() > LockStep::kMaxDatabase) return;
  if (made_ == make_room_at_ && waits_) grow_ring();
  const Cause cause = cause_of(ref->key());
  step.entry = &*ref;
  step.client_id = cause.client;
  step.time_and_database = LockStep::at(cause.time_ms, ctx.db.index());
  step.call = cause.call;
  step.bits_and_back |= static_cast<uint32_t>(cause.via) << LockStep::kViaShift;
  rows_[made_ & ring_mask_] = {.refusals = 1, .last_ms = cause.time_ms};
  add_step(ref.hash(), step);
  if (waits_) return;
  deliver_steps();
  make_room_at_ = made_;
}

bool LockWatch::end_step(const Entry& entry, int database, const Cause& cause) {
  if (!waits_ || seen_ == made_ || entry.key().size() > End::kLongest) return false;
  // Most often nothing has happened since.
  uint64_t number = made_ - 1;
  const LockStep& latest = ring_[number & ring_mask_];
  if (latest.entry != &entry || latest.is(LockStep::kEnded))
    number = step_before(made_, hash_of(entry.key()), database, entry.key());
  if (number == made_) return false;
  LockStep& step = ring_[number & ring_mask_];
  if (step.is(LockStep::kEnded | LockStep::kRefused) || step.client_id != cause.client)
    return false;
  char scratch[base::kMaxInt64Text];
  const std::string_view token = entry.string(scratch);
  if (token.size() > End::kLongest) return false;
  if (ends_.empty()) ends_.resize(ring_.size());
  End& end = ends_[number & ring_mask_];
  end.key_size = static_cast<uint8_t>(entry.key().copy(end.key.data(), End::kLongest));
  end.token_size = static_cast<uint8_t>(token.copy(end.token.data(), End::kLongest));
  end.deadline_ms = entry.deadline_ms();
  end.cause = cause;
  end.step = made_;
  step.bits_and_back |= LockStep::kEnded;
  return true;
}

// --- Transactions and scripts -------------------------------------------------------------------

void LockWatch::transaction_begins(Client& client) {
  transaction_ = ++calls_;
  reads_.clear();
  // EXEC runs only if what it watches is as it was when the client looked at it.
  if (!any_) return;
  for (const std::string& key : server_.watches().keys_watched_by(client))
    reads_.push_back(hash_of(key));
}

void LockWatch::note_script() {
  const Client* const client = server_.dispatcher().serving();
  const std::pair<uint64_t, uint64_t> request = client == nullptr
                                                    ? std::pair<uint64_t, uint64_t>()
                                                    : std::pair(client->id, client->total_commands);
  if (request == script_request_) return;
  script_request_ = request;
  script_ = ++calls_;
  reads_.clear();
}

void LockWatch::nested_begins(const Command& command, Arguments args) {
  if (nested_.by_script) note_script();
  if (!command.has(kReadOnly) || args.size() < 2 || args[1].size() > kLongestKey) return;
  if (const Client* client = server_.dispatcher().serving()) note_read(*client, command, args[1]);
  if (reads_.size() < kMaxReads) reads_.push_back(hash_of(args[1]));
}

void LockWatch::note_read(const Client& client, const Command& command, std::string_view key) {
  const int database = client.database;
  if (client.has(kClientTookLock) && model_.may_have_lost() &&
      model_.has_lost(database, key, client.id))
    model_for(hash_of(key), database, key).key_read(database, key, cause_of(key));
  // A script that has asked whether its client has the lock, and then asks how long to wait.
  if (!nested_.by_script || std::string_view(command.full_name) != "pttl") return;
  const Cause cause = cause_of(key);
  const Record* record = model_.find(database, key);
  if (cause.compared && record != nullptr && record->hold && record->hold->recipe == Recipe::kHash)
    model_now().refused(database, key, cause, false);
}

const Command* LockWatch::running() const {
  if (const Client* served = server_.blocking().served()) return served->last_command;
  if (nested_.command != nullptr) return nested_.command;
  const Client* const client = server_.dispatcher().serving();
  return client == nullptr ? nullptr : client->last_command;
}

Client* LockWatch::actor() const {
  // DEBUG LOADAOF runs what others have done.
  if ((server_.state() & kStateLoading) != 0) return nullptr;
  Client* const client = server_.dispatcher().serving();
  return client == nullptr || client->has(kStandsForOthers) ? nullptr : client;
}

Cause LockWatch::cause_of(std::string_view key) {
  const Client* const client = actor();
  Cause cause{.time_ms = server_.now_ms()};
  if (client == nullptr) return cause;
  cause.client = client->id;
  if (nested_.command == nullptr) {
    cause.call = static_cast<uint32_t>(client->total_commands);
    return cause;
  }
  if (nested_.by_script) note_script();
  cause.via = nested_.by_script ? Via::kScript : Via::kTransaction;
  cause.call = nested_.by_script ? script_ : transaction_;
  cause.compared =
      !reads_.empty() && std::find(reads_.begin(), reads_.end(), hash_of(key)) != reads_.end();
  return cause;
}

void LockWatch::release_failed(CommandContext& ctx, std::string_view key) {
  if (model_.may_have_lost() && model_.has_lost(ctx.db.index(), key, ctx.client.id))
    model_for(hash_of(key), ctx.db.index(), key).release_failed(ctx.db.index(), key, cause_of(key));
}

void LockWatch::counted(CommandContext& ctx, const store::KeyRef& ref, std::string_view field,
                        int64_t change, int64_t count) {
  if (nested_.command == nullptr || ctx.args[1].size() > kLongestKey || !names_client(field))
    return;
  any_ = true;
  ctx.db.mark_lock(ref);
  if (Client* client = actor()) client->set(kClientTookLock);
  model_for(*ref, ctx.db.index())
      .counted(ctx.db.index(), ctx.args[1], cause_of(ctx.args[1]), field, change, count,
               ref->deadline_ms());
}

// --- Guards and semaphores ----------------------------------------------------------------------

bool LockWatch::guard(int database, std::string_view lock, std::vector<base::GlobPattern> globs) {
  const bool done = model_.guard(database, lock, std::move(globs));
  listen();
  return done;
}

bool LockWatch::unguard(int database, std::string_view lock) {
  const bool done = model_.unguard(database, lock);
  listen();
  return done;
}

void LockWatch::unguard_all() {
  model_.unguard_all();
  listen();
}

void LockWatch::listen() {
  const bool wanted = on_ && (!model_.guards().empty() || model_.has_semaphores());
  if (wanted == listens_) return;
  listens_ = wanted;
  wanted ? server_.events().add(*this) : server_.events().remove(*this);
}

void LockWatch::list_made_slowly(CommandContext& ctx, std::string_view key, size_t elements) {
  if (key.size() > kLongestKey || model_.is_semaphore(ctx.db.index(), key)) return;
  model_now().tokens_made(ctx.db.index(), key, cause_of(key), static_cast<int64_t>(elements));
  any_ |= model_.has_semaphores();
  listen();
}

bool LockWatch::count_tokens(Keyspace& keyspace, std::string_view key, EventClass event_class,
                             std::string_view event, const Cause& cause) {
  constexpr std::array<std::string_view, 6> kPopping = {"lpop",  "rpop",  "blpop",
                                                        "brpop", "lmpop", "blmpop"};
  const int database = keyspace.index();
  if (!model_.is_semaphore(database, key)) return false;
  // It is still there, and would expire again when it is looked for.
  if (event_class == EventClass::kExpired) {
    model_now().used_otherwise(database, key);
    return true;
  }
  const store::KeyRef ref = keyspace.find(key, Keyspace::kPeek | Keyspace::kEvenExpired);
  const bool is_list = ref && ref->type() == store::Type::kList;
  // It may take a token along when it goes.
  if (Client* client = server_.clients().find(cause.client)) client->set(kClientTookLock);
  const bool emptied = event == "del" && is_one_of(running(), kPopping);
  if (event_class == EventClass::kList || emptied) {
    model_now().tokens_counted(database, key, cause,
                               is_list ? static_cast<int64_t>(ref->element_count()) : 0,
                               !is_one_of(running(), kPopping));
  } else if (!is_list) {
    model_now().used_otherwise(database, key);
  }
  return true;
}

void LockWatch::key_changed(Keyspace& keyspace, std::string_view key, EventClass event_class,
                            std::string_view event) {
  Cause cause = cause_of(key);
  if (const Client* served = server_.blocking().served()) cause.client = served->id;
  if (model_.has_semaphores()) {
    if (count_tokens(keyspace, key, event_class, event, cause)) return;
    if (cause.client != 0) model_.trace_left(cause.client);
  }
  if (model_.guards().empty()) return;
  if (event_class == EventClass::kExpired || event_class == EventClass::kEvicted) return;
  if (cause.client == 0) return;
  deliver_steps();
  model_now().written(keyspace.index(), key, cause);
}

void LockWatch::client_gone(Client& client) {
  const int64_t now_ms = server_.now_ms();
  model_now().client_gone(client.id, now_ms);
  if (seen_ != made_) keep({.step = made_, .time_ms = now_ms, .party = describe(client.id)});
}

void LockWatch::keep(GoneClient client) {
  if (gone_clients_.size() >= 2 * ring_.size()) {
    std::erase_if(gone_clients_,
                  [first = first_kept()](const auto& kept) { return kept.second.step <= first; });
    // Most of them have no steps.
    if (gone_clients_.size() > ring_.size()) deliver_steps();
  }
  gone_clients_.emplace(client.party.id, std::move(client));
}

// --- What happens to the keys -------------------------------------------------------------------

void LockWatch::lock_set(Keyspace& keyspace, const Entry& entry, std::string_view value,
                         int64_t deadline_ms) {
  LockModel& model = model_for(entry, keyspace.index());
  const bool compared = std::exchange(compared_, nullptr) == &entry;
  const bool exchanged = std::exchange(exchanged_, nullptr) == &entry;
  if (!is_one_of(running(), kStoring)) return model.used_otherwise(keyspace.index(), entry.key());
  // The client may hold the lock now, so client_gone() must be called for it.
  if (Client* client = actor()) client->set(kClientTookLock);
  const auto how = compared    ? LockModel::Set::kCompared
                   : exchanged ? LockModel::Set::kGetset
                               : LockModel::Set::kPlain;
  model.value_set(keyspace.index(), entry.key(), cause_of(entry.key()), how, value, deadline_ms);
}

void LockWatch::lock_changed(Keyspace& keyspace, const Entry& entry) {
  model_for(entry, keyspace.index()).used_otherwise(keyspace.index(), entry.key());
}

void LockWatch::lock_deadline_set(Keyspace& keyspace, const Entry& entry, int64_t deadline_ms) {
  LockModel& model = model_for(entry, keyspace.index());
  // FAULT has it expire now.
  if (deadline_ms >= 0 && deadline_ms <= server_.now_ms()) return;
  model.deadline_set(keyspace.index(), entry.key(), cause_of(entry.key()), deadline_ms);
}

void LockWatch::lock_expiring(Keyspace& keyspace, const Entry& entry) {
  model_for(entry, keyspace.index()).expired(keyspace.index(), entry.key(), entry.deadline_ms());
}

void LockWatch::lock_removed(Keyspace& keyspace, const Entry& entry) {
  const int database = keyspace.index();
  if (evicting_) return model_for(entry, database).evicted(database, entry.key(), server_.now_ms());
  Cause cause = cause_of(entry.key());
  cause.compared |= std::exchange(compared_, nullptr) == &entry;
  exchanged_ = nullptr;
  if (const Command* command = running(); command != seen_command_) {
    seen_command_ = command;
    seen_command_deletes_ = is_one_of(command, kDeleting);
  }
  const bool deletes = seen_command_deletes_;
  if (deletes && end_step(entry, database, cause)) return;
  LockModel& model = model_for(entry, database);
  if (cause.client != 0 && !deletes) return model.used_otherwise(database, entry.key());
  model.removed(database, entry.key(), cause);
}

bool LockWatch::is_served(const Keyspace& keyspace) const {
  // Checkpoints keep contents of databases beside them.
  return &keyspace == &server_.database(keyspace.index());
}

void LockWatch::locks_cleared(Keyspace& keyspace) {
  if (!any_) return;
  LockModel& model = this->model();
  if (is_served(keyspace)) model.cleared(keyspace.index(), server_.now_ms());
}

void LockWatch::locks_swapped(Keyspace& first, Keyspace& second) {
  if (!any_) return;
  LockModel& model = this->model();
  if (is_served(first) && is_served(second)) return model.swapped(first.index(), second.index());
  for (const Keyspace* keyspace : {&first, &second}) {
    if (is_served(*keyspace)) model.cleared(keyspace->index(), server_.now_ms());
  }
}

// --- Clients that wait ---------------------------------------------------------------------------

std::vector<LockWatch::Waiting> LockWatch::waiting_for(const Record& record) const {
  std::vector<Waiting> waiting;
  const std::string& lock = record.place->key;
  const auto add = [&](const Client& client, const std::string& how) {
    waiting.push_back({std::make_shared<const Party>(describe(client.id)), how});
  };
  server_.blocking().for_each_waiting([&](const server::KeyPlace& place, const Client& client) {
    if (place.database != record.place->database || !has_name(place.key, lock)) return;
    const std::string command(client.last_command != nullptr ? client.last_command->full_name : "");
    add(client, command + " " + std::string(place.key));
  });
  server_.pubsub().for_each_subscriber(
      TopicKind::kChannel, [&](std::string_view channel, const Client& client) {
        if (!channel.starts_with(kChannelPrefix) && has_name(channel, lock))
          add(client, "subscribe " + std::string(channel));
      });
  std::sort(waiting.begin(), waiting.end(), [](const Waiting& one, const Waiting& other) {
    return std::tie(one.client->id, one.how) < std::tie(other.client->id, other.how);
  });
  return waiting;
}

}  // namespace latchkey::locks

#include "locks/lock_watch.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "base/number.h"
#include "locks/lock_words.h"
#include "server/acl/user.h"
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

bool is_one_of(const Command* command, std::span<const std::string_view> names) {
  return command != nullptr &&
         std::find(names.begin(), names.end(), command->full_name) != names.end();
}

Recipe recipe_of(LockRecipe recipe, const Entry& entry) {
  switch (recipe) {
    case LockRecipe::kSetnx:
      return Recipe::kSetnx;
    case LockRecipe::kSetNx:
      return entry.has_deadline() ? Recipe::kSetNxExpiry : Recipe::kSetNx;
    case LockRecipe::kSetIf:
      break;
  }
  return Recipe::kSetIf;
}

}  // namespace

LockWatch::LockWatch(Server& server) : server_(server), model_(*this, server.environment().secret) {
  model_.on_finding = [this](const Finding& finding) { publish(finding); };
  server.config().on_change(
      {"lock-watch", "lock-patterns", "lock-watch-max-keys", "lock-log-max-len"},
      [this](std::string*) {
        apply_settings();
        return true;
      });
  apply_settings();
}

LockWatch::~LockWatch() {
  if (listens_) server_.events().remove(*this);
  server_.environment().lock_observer = nullptr;
  server_.set_lock_claims(nullptr);
}

void LockWatch::apply_settings() {
  const ConfigValues& settings = server_.settings();
  catch_up();
  model_.set_limits({.keys = static_cast<size_t>(settings.lock_watch_max_keys),
                     .events = static_cast<size_t>(settings.lock_log_max_len)});
  model_.set_patterns(settings.lock_patterns);
  most_claims_ = std::bit_floor(static_cast<size_t>(settings.lock_watch_max_keys));
  if (ring_.size() > most_claims_) ring_ = std::vector<Claim>(most_claims_);
  ring_mask_ = ring_.size() - 1;
  make_room_at_ = made_;
  if (settings.lock_watch == on_) return;
  on_ = settings.lock_watch;
  listen_for_guards();
  server_.environment().lock_observer = on_ ? this : nullptr;
  server_.set_lock_claims(on_ ? this : nullptr);
  // What happens while it is off is not known.
  model_.reset();
  any_ = false;
  since_ms_ = server_.data_clock().wall_us() / 1000;
}

void LockWatch::reset() {
  catch_up();
  model_.reset();
  any_ = false;
  since_ms_ = server_.now_ms();
}

void LockWatch::publish(const Finding& finding) {
  if (!server_.settings().lock_notify) return;
  server_.pubsub().publish("__lock__:" + finding.place->key,
                           std::string(words_of(finding.kind).name) + " " + finding.evidence);
}

// --- Clients ------------------------------------------------------------------------------------

Party LockWatch::describe(uint64_t id) const {
  const Client* client = server_.clients().find(id);
  if (client == nullptr) return {.id = id};
  return {.id = id,
          .name = client->name,
          .address = client->peer_address(),
          .user = client->user != nullptr ? client->user->name : std::string()};
}

bool LockWatch::is_still(const Party& party) const {
  const Client* client = server_.clients().find(party.id);
  if (client == nullptr) return true;
  return client->name == party.name &&
         (client->user != nullptr ? client->user->name == party.user : party.user.empty());
}

bool LockWatch::is_connected(uint64_t id) const {
  const Client* client = server_.clients().find(id);
  return client != nullptr && !client->has(kClientClosing);
}

// --- Claims -------------------------------------------------------------------------------------

void LockWatch::catch_up() {
  if (seen_ != made_) catch_up_with_claims();
  const Refusals refused = std::exchange(refused_, {});
  if (refused.count == 0) return;
  model_.refused(refused_lock_.database, refused_lock_.key,
                 {.client = refused.client_id, .time_ms = refused.time_ms, .call = refused.request},
                 refused_lock_.token, refused.count);
}

void LockWatch::catch_up_with_claims() {
  const uint64_t kept = std::min<uint64_t>(made_ - seen_, ring_.size());
  for (uint64_t i = made_ - kept; i != made_; ++i) {
    const Claim& claim = ring_[i & ring_mask_];
    const Entry& entry = *claim.entry;
    if (claim.client_id == 0 || entry.key().size() > kLongestKey) continue;
    char scratch[base::kMaxInt64Text];
    model_.taken(claim.keyspace->index(), entry.key(),
                 {.client = claim.client_id, .time_ms = claim.time_ms, .call = claim.request},
                 recipe_of(claim.recipe, entry), entry.string(scratch), entry.deadline_ms());
  }
  seen_ = made_;
}

void LockWatch::grow_ring() {
  constexpr size_t kFirst = 16;
  const size_t size = std::min(std::max(ring_.size() * 2, kFirst), most_claims_);
  std::vector<Claim> grown(size);
  const uint64_t kept = std::min<uint64_t>({made_ - seen_, ring_.size(), size});
  for (uint64_t i = made_ - kept; i != made_; ++i) grown[i & (size - 1)] = ring_[i & ring_mask_];
  ring_ = std::move(grown);
  ring_mask_ = size - 1;
  make_room_at_ = size == most_claims_ ? UINT64_MAX : made_ - kept + size;
}

void LockWatch::taken_slowly(CommandContext& ctx, const Entry& entry, LockRecipe recipe) {
  any_ = true;
  Client* const client = server_.dispatcher().serving();
  if (client == nullptr) return;
  client->set(kClientTookLock);
  if (made_ == make_room_at_) grow_ring();
  if (nested_.command == nullptr) {
    ring_[made_++ & ring_mask_] = {&entry,  client->id, ctx.now_ms(), client->total_commands,
                                   &ctx.db, recipe};
    return;
  }
  if (entry.key().size() > kLongestKey) return;
  catch_up();
  char scratch[base::kMaxInt64Text];
  model_.taken(ctx.db.index(), entry.key(), cause_of(entry.key()), recipe_of(recipe, entry),
               entry.string(scratch), entry.deadline_ms());
}

void LockWatch::refused_slowly(CommandContext& ctx, const Entry& entry, std::string_view value) {
  const Client* const client = server_.dispatcher().serving();
  if (client == nullptr) return;
  catch_up();
  model_.refused(ctx.db.index(), entry.key(), cause_of(entry.key()), value);
  if (nested_.command != nullptr) return;
  // The next attempts are counted by whoever tells of them.
  refused_ = {.entry = &entry, .client_id = client->id};
  refused_lock_.database = ctx.db.index();
  refused_lock_.key = entry.key().substr(0, kLongestKey);
  refused_lock_.token = value.substr(0, Token::kShown);
}

// --- Transactions and scripts -------------------------------------------------------------------

void LockWatch::transaction_begins(Client& client) {
  transaction_ = ++calls_;
  reads_.clear();
  // EXEC runs only if what it watches is as it was when the client looked at it.
  if (any_) reads_ = server_.watches().keys_watched_by(client);
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
  note_look(command, args[1]);
  if (reads_.size() < kMostReads) reads_.emplace_back(args[1]);
}

void LockWatch::note_look(const Command& command, std::string_view key) {
  const Client* const client = server_.dispatcher().serving();
  if (client == nullptr) return;
  catch_up();
  const Cause cause = cause_of(key);
  if (client->has(kClientTookLock)) model_.looked_at(client->database, key, cause);
  // A script that has asked whether its client has the lock, and then asks how long to wait.
  const Record* record = model_.find(client->database, key);
  const bool asks = nested_.by_script && cause.compared && command.full_name == "pttl";
  if (asks && record != nullptr && record->hold && record->hold->recipe == Recipe::kHash)
    model_.refused(client->database, key, cause, {});
}

const Command* LockWatch::running() const {
  if (nested_.command != nullptr) return nested_.command;
  const Client* const client = server_.dispatcher().serving();
  return client == nullptr ? nullptr : client->last_command;
}

Cause LockWatch::cause_of(std::string_view key) {
  const Client* const client = server_.dispatcher().serving();
  Cause cause{.time_ms = server_.now_ms()};
  if (client == nullptr || client->has(kClientMaster)) return cause;
  cause.client = client->id;
  if (nested_.command == nullptr) {
    cause.call = client->total_commands;
    return cause;
  }
  if (nested_.by_script) note_script();
  cause.via = nested_.by_script ? Via::kScript : Via::kTransaction;
  cause.call = nested_.by_script ? script_ : transaction_;
  cause.compared = std::find(reads_.begin(), reads_.end(), key) != reads_.end();
  return cause;
}

void LockWatch::release_failed(CommandContext& ctx, std::string_view key) {
  catch_up();
  compared_ = nullptr;
  model_.release_failed(ctx.db.index(), key, cause_of(key));
}

void LockWatch::counted(CommandContext& ctx, const store::KeyRef& ref, std::string_view field,
                        int64_t change, int64_t count) {
  if (nested_.command == nullptr || ctx.args[1].size() > kLongestKey || !names_client(field))
    return;
  catch_up();
  any_ = true;
  ctx.db.mark_lock(ref);
  if (Client* client = server_.dispatcher().serving()) client->set(kClientTookLock);
  model_.counted(ctx.db.index(), ctx.args[1], cause_of(ctx.args[1]), field, change, count,
                 ref->deadline_ms());
}

// --- Guards -------------------------------------------------------------------------------------

bool LockWatch::guard(int database, std::string_view lock, std::vector<std::string> globs) {
  const bool done = model_.guard(database, lock, std::move(globs));
  listen_for_guards();
  return done;
}

bool LockWatch::unguard(int database, std::string_view lock) {
  const bool done = model_.unguard(database, lock);
  listen_for_guards();
  return done;
}

void LockWatch::unguard_all() {
  model_.unguard_all();
  listen_for_guards();
}

void LockWatch::listen_for_guards() {
  const bool wanted = on_ && !model_.guards().empty();
  if (wanted == listens_) return;
  listens_ = wanted;
  wanted ? server_.events().add(*this) : server_.events().remove(*this);
}

void LockWatch::key_changed(Keyspace& keyspace, std::string_view key, EventClass event_class,
                            std::string_view) {
  if (event_class == EventClass::kExpired || event_class == EventClass::kEvicted) return;
  const Cause cause = cause_of(key);
  if (cause.client == 0) return;
  catch_up();
  model_.written(keyspace.index(), key, cause);
}

void LockWatch::client_gone(Client& client) {
  catch_up();
  model_.client_gone(client.id, server_.now_ms());
}

// --- What happens to the keys -------------------------------------------------------------------

void LockWatch::lock_set(Keyspace& keyspace, const Entry& entry, std::string_view value,
                         int64_t deadline_ms) {
  catch_up();
  const bool compared = std::exchange(compared_, nullptr) == &entry;
  const bool exchanged = std::exchange(exchanged_, nullptr) == &entry;
  if (!is_one_of(running(), kStoring)) return model_.used_otherwise(keyspace.index(), entry.key());
  const auto how = compared    ? LockModel::Set::kCompared
                   : exchanged ? LockModel::Set::kGetset
                               : LockModel::Set::kPlain;
  model_.value_set(keyspace.index(), entry.key(), cause_of(entry.key()), how, value, deadline_ms);
}

void LockWatch::lock_changed(Keyspace& keyspace, const Entry& entry) {
  catch_up();
  model_.used_otherwise(keyspace.index(), entry.key());
}

void LockWatch::lock_deadline_set(Keyspace& keyspace, const Entry& entry, int64_t deadline_ms) {
  catch_up();
  // FAULT has it expire now.
  if (deadline_ms >= 0 && deadline_ms <= server_.now_ms()) return;
  model_.deadline_set(keyspace.index(), entry.key(), cause_of(entry.key()), deadline_ms);
}

void LockWatch::lock_expiring(Keyspace& keyspace, const Entry& entry) {
  catch_up();
  model_.expired(keyspace.index(), entry.key(), entry.deadline_ms());
}

void LockWatch::lock_removed(Keyspace& keyspace, const Entry& entry) {
  catch_up();
  const int database = keyspace.index();
  if (evicting_) return model_.evicted(database, entry.key(), server_.now_ms());
  Cause cause = cause_of(entry.key());
  cause.compared |= std::exchange(compared_, nullptr) == &entry;
  if (cause.client != 0 && !is_one_of(running(), kDeleting))
    return model_.used_otherwise(database, entry.key());
  model_.removed(database, entry.key(), cause);
}

bool LockWatch::is_served(const Keyspace& keyspace) const {
  // Checkpoints keep contents of databases beside them.
  return &keyspace == &server_.database(keyspace.index());
}

void LockWatch::locks_cleared(Keyspace& keyspace) {
  if (!any_) return;
  catch_up();
  if (is_served(keyspace)) model_.cleared(keyspace.index(), server_.now_ms());
}

void LockWatch::locks_swapped(Keyspace& first, Keyspace& second) {
  if (!any_) return;
  catch_up();
  if (is_served(first) && is_served(second)) return model_.swapped(first.index(), second.index());
  for (const Keyspace* keyspace : {&first, &second}) {
    if (is_served(*keyspace)) model_.cleared(keyspace->index(), server_.now_ms());
  }
}

}  // namespace latchkey::locks

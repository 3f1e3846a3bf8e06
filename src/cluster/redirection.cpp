// Cluster as the SlotGate: decides which requests may run on this node.
#include "base/text/number.h"
#include "base/text/text.h"
#include "cluster/cluster.h"
#include "server/command/command_table.h"
#include "server/server.h"

namespace latchkey::cluster {

using namespace server;

namespace {

bool writes(const SlotGate::Request& request, Server& server) {
  const FlagFinder find = request.command.row->extras.find_flags;
  const uint32_t flags = request.command.flags;
  return ((find != nullptr ? find(server, request.words, flags) : flags) & kWrite) != 0;
}

// Whether the request ends subscriptions to channels of any slot, as Redis allows since 8.4.
bool may_run_anywhere(const SlotGate::Request& request, const Server& server) {
  return request.command.has(kPubSub) && request.command.full_name == "sunsubscribe" &&
         !server.edition().is_valkey() && server.edition().has({8, 4});
}

// Whether CROSSSLOT takes precedence over an unassigned slot.
bool cross_slot_takes_precedence(const Server& server) {
  return server.edition().has({8, 4}, {9, 0});
}

// The database of the requests after SELECT. An index out of range is refused later, and changes
// nothing.
int selected_by(const SlotGate::Request& request, const Server& server, int before) {
  int64_t number = 0;
  const bool is_there = request.words.size() == 2 && base::parse_int64(request.words[1], &number) &&
                        number >= 0 && number < server.database_count();
  return is_there ? static_cast<int>(number) : before;
}

// Whether the request brings a key from `database` to another one: MOVE, or COPY with DB, of which
// the last counts.
bool changes_database(const SlotGate::Request& request, int database) {
  if (request.command.full_name == "move") return true;
  if (request.command.full_name != "copy") return false;
  int64_t target = database;
  for (size_t i = 3; i + 1 < request.words.size(); ++i) {
    if (!base::equal_ignoring_case(request.words[i], "db")) continue;
    if (!base::parse_int64(request.words[++i], &target)) return false;
  }
  return target != database;
}

}  // namespace

SlotGate::Answer Cluster::check(std::span<const SlotGate::Request> requests, const Caller& caller) {
  Answer answer;
  bool has_channels = false;
  bool any_writes = false;
  bool is_owned = true;
  for (const SlotGate::Request& request : requests) {
    if (may_run_anywhere(request, server_)) continue;
    found_.clear();
    find_slotted_words(request, &found_);
    has_channels |= !found_.empty() && request.command.has(kPubSub);
    any_writes |= writes(request, server_);
    for (const KeyReference& word : found_) {
      const int slot = store::key_slot(request.words[word.position]);
      if (answer.slot == -1) answer.slot = slot;
      if (answer.slot != slot) return {.verdict = Verdict::kCrossSlot, .slot = slot};
      is_owned &= nodes_.owner(slot) != nullptr;
      if (!is_owned && !cross_slot_takes_precedence(server_))
        return {.verdict = Verdict::kNotServed, .slot = slot};
    }
  }
  if (answer.slot == -1) return answer;
  if (!is_owned) return {.verdict = Verdict::kNotServed, .slot = answer.slot};
  if (!is_up()) {
    answer = answer_when_down(std::move(answer), has_channels, any_writes);
    if (answer.verdict != Verdict::kServed) return answer;
  }
  const Node& owner = *nodes_.owner(answer.slot);
  if (nodes_.any_moves()) [[unlikely]] {
    if (const auto moving = answer_for_moving_slot(requests, caller, answer.slot, owner))
      return *moving;
  }
  if (&owner == &myself()) return answer;
  // A replica has its master's keys.
  if ((caller.reads_anywhere || has_channels) && !any_writes && myself().master == &owner) {
    answer.verdict = Verdict::kServed;
    return answer;
  }
  return redirect(Verdict::kElsewhere, answer.slot, owner, caller);
}

SlotGate::Answer Cluster::answer_when_down(Answer answer, bool has_channels,
                                           bool any_writes) const {
  const ConfigValues& values = server_.settings();
  if (has_channels) {
    if (!values.cluster_allow_pubsubshard_when_down) answer.verdict = Verdict::kDown;
  } else if (!values.cluster_allow_reads_when_down) {
    answer.verdict = Verdict::kDown;
  } else if (any_writes) {
    answer.verdict = Verdict::kDownForWrites;
  }
  return answer;
}

// The answer for a slot that is being migrated or imported; nothing when the usual one applies.
std::optional<SlotGate::Answer> Cluster::answer_for_moving_slot(
    std::span<const SlotGate::Request> requests, const Caller& caller, int slot,
    const Node& owner) {
  const bool is_here = &owner == &myself() || (caller.reads_anywhere && &owner == myself().master);
  const Node* const to = is_here ? nodes_.migrating_to(slot) : nullptr;
  const Node* const from = nodes_.importing_from(slot);
  if (to == nullptr && from == nullptr) return std::nullopt;
  const Answer served{.verdict = Verdict::kServed, .slot = slot};
  size_t keys = 0;
  size_t missing = 0;
  bool asking = caller.asking;
  int database = caller.database;
  for (const SlotGate::Request& request : requests) {
    // MIGRATE handles missing keys itself.
    if (request.command.full_name == "migrate") return served;
    if (server_.database_count() > 1) {
      if (request.command.full_name == "select") database = selected_by(request, server_, database);
      // Keys move one by one, so it is not known which node has the key of the other database.
      if (changes_database(request, database))
        return Answer{.verdict = Verdict::kTryAgain, .slot = slot};
    }
    asking |= request.command.has(kAsking);
    if (request.command.has(kPubSub)) continue;
    found_.clear();
    find_slotted_words(request, &found_);
    keys += found_.size();
    for (const KeyReference& word : found_) {
      const std::string_view key = request.words[word.position];
      if (!server_.database(database).find(key, store::Keyspace::kPeek)) ++missing;
    }
  }
  // A client that is blocked on a key keeps waiting until the slot has moved.
  if (caller.waits) return served;
  if (to != nullptr && missing > 0) {
    if (missing < keys) return Answer{.verdict = Verdict::kTryAgain, .slot = slot};
    return redirect(Verdict::kAskElsewhere, slot, *to, caller);
  }
  if (from == nullptr || !asking) return std::nullopt;
  if (keys > 1 && missing > 0) return Answer{.verdict = Verdict::kTryAgain, .slot = slot};
  return served;
}

SlotGate::Answer Cluster::redirect(Verdict verdict, int slot, const Node& node,
                                   const Caller& caller) const {
  const ClientView view = caller.client != nullptr ? view_of(*caller.client) : ClientView{};
  return {
      .verdict = verdict,
      .slot = slot,
      .where = preferred_endpoint(server_, node, view) + ":" + std::to_string(node.port_for(view))};
}

}  // namespace latchkey::cluster

#include "cluster/node_state.h"

#include <algorithm>
#include <vector>

#include "base/number.h"
#include "base/random.h"

namespace latchkey::cluster {

namespace {

constexpr size_t kIdDigits = 40;

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    if (end > 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

bool is_id(std::string_view text) {
  return text.size() == kIdDigits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

bool parse_epoch(std::string_view text, uint64_t* epoch) {
  int64_t number = 0;
  if (!base::parse_int64(text, &number) || number < 0) return false;
  *epoch = static_cast<uint64_t>(number);
  return true;
}

std::string flags_and_epoch(const NodeState& state) {
  return " myself,master - 0 0 " + std::to_string(state.config_epoch) + " connected" +
         state.slots.text();
}

std::string place(const NodeAddress& address) {
  return address.ip + ":" + std::to_string(address.port) + "@" + std::to_string(address.bus_port);
}

bool parse_variables(const std::vector<std::string_view>& words, NodeState* state) {
  for (size_t i = 1; i + 1 < words.size(); i += 2) {
    uint64_t* const epoch = words[i] == "currentEpoch"    ? &state->current_epoch
                            : words[i] == "lastVoteEpoch" ? &state->last_vote_epoch
                                                          : nullptr;
    if (epoch != nullptr && !parse_epoch(words[i + 1], epoch)) return false;
  }
  return words.size() % 2 == 1;
}

bool parse_node(const std::vector<std::string_view>& words, NodeState* state) {
  enum : size_t { kId, kAddress, kFlags, kMaster, kPing, kPong, kEpoch, kLink, kFirstSlot };
  if (words.size() < kFirstSlot || !is_id(words[kId])) return false;
  state->id = words[kId];
  constexpr std::string_view kShardId = "shard-id=";
  for (const std::string_view part : split(words[kAddress], ',')) {
    if (part.starts_with(kShardId)) state->shard_id = part.substr(kShardId.size());
  }
  if (state->shard_id.empty()) state->shard_id = base::random_hex(kIdDigits);
  if (!is_id(state->shard_id) || !parse_epoch(words[kEpoch], &state->config_epoch)) return false;
  return std::all_of(words.begin() + kFirstSlot, words.end(),
                     [&](std::string_view run) { return state->slots.add_run(run); });
}

}  // namespace

NodeState new_node() {
  NodeState state;
  state.id = base::random_hex(kIdDigits);
  state.shard_id = base::random_hex(kIdDigits);
  return state;
}

std::string describe(const NodeState& state, const NodeAddress& address) {
  const std::string hostname = address.hostname.empty() ? "" : "," + address.hostname;
  return state.id + " " + place(address) + hostname + flags_and_epoch(state);
}

std::string file_text(const NodeState& state, const NodeAddress& address) {
  return state.id + " " + place(address) + "," + address.hostname +
         ",tls-port=0,shard-id=" + state.shard_id + flags_and_epoch(state) + "\n" +
         "vars currentEpoch " + std::to_string(state.current_epoch) + " lastVoteEpoch " +
         std::to_string(state.last_vote_epoch) + "\n";
}

bool parse_file(std::string_view text, NodeState* state, std::string* error) {
  bool found = false;
  for (const std::string_view line : split(text, '\n')) {
    const auto words = split(line, ' ');
    if (words.empty()) continue;
    if (words[0] != "vars" && found) {
      *error = "it tells of other nodes, and this server is a cluster of one";
      return false;
    }
    const bool good = words[0] == "vars" ? parse_variables(words, state) : parse_node(words, state);
    if (!good) {
      *error = "it is damaged at '" + std::string(line) + "'";
      return false;
    }
    found |= words[0] != "vars";
  }
  if (!found) *error = "it tells of no node";
  state->current_epoch = std::max(state->current_epoch, state->config_epoch);
  return found;
}

}  // namespace latchkey::cluster

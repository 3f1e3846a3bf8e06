#include "cluster/nodes_text.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/port.h"
#include "base/random.h"
#include "base/text/number.h"
#include "base/text/split.h"

namespace latchkey::cluster {

namespace {

struct FlagName {
  uint16_t flag;
  std::string_view name;
};
constexpr FlagName kFlagNames[] = {
    {kMyself, "myself"},    {kMaster, "master"},         {kReplica, "slave"},
    {kSuspect, "fail?"},    {kFailing, "fail"},          {kHandshake, "handshake"},
    {kNoAddress, "noaddr"}, {kNoFailover, "nofailover"},
};
constexpr std::string_view kNoFlags = "noflags";
constexpr std::string_view kShardIdKey = "shard-id=";
constexpr std::string_view kTlsPortKey = "tls-port=";
constexpr std::string_view kNameKey = "nodename=";
constexpr std::string_view kClientIpv4Key = "client-ipv4=";
constexpr std::string_view kClientIpv6Key = "client-ipv6=";
constexpr std::string_view kClientPortKey = "client-tcp-port=";
constexpr std::string_view kClientTlsPortKey = "client-tls-port=";
constexpr std::string_view kZoneKey = "availability-zone=";

enum Word : size_t {
  kIdWord,
  kAddressWord,
  kFlagsWord,
  kMasterWord,
  kPing,
  kPong,
  kEpoch,
  kLink,
  kFirstSlot
};

using Words = std::vector<std::string_view>;

// --- Writing ------------------------------------------------------------------------------------

std::string place_of(const std::string& ip, int port, int bus_port) {
  return ip + ":" + std::to_string(port) + "@" + std::to_string(bus_port);
}

// In the order of slots.
std::string moves_of(const NodeTable& nodes) {
  std::map<int, std::string> moves;
  for (const auto& [slot, to] : nodes.migrating()) moves[slot] = "->-" + to->id;
  for (const auto& [slot, from] : nodes.importing()) moves[slot] = "-<-" + from->id;
  std::string text;
  for (const auto& [slot, move] : moves) text += " [" + std::to_string(slot) + move + "]";
  return text;
}

std::string line_of(const NodeTable& nodes, const Node& node, const std::string& place,
                    int64_t clock_ahead_ms) {
  const auto time = [&](int64_t at_ms) {
    return std::to_string(at_ms == 0 ? 0 : at_ms + clock_ahead_ms);
  };
  const Node& served = node.master != nullptr ? *node.master : node;
  const bool connected = node.is_myself() || node.link != nullptr;
  std::string text = node.id + " " + place + " " + flags_text(node.flags) + " " +
                     (node.master != nullptr ? node.master->id : "-") + " " +
                     time(node.ping_sent_ms) + " " + time(node.pong_received_ms) + " " +
                     std::to_string(served.config_epoch) +
                     (connected ? " connected" : " disconnected") + node.slots.text();
  if (node.is_myself()) text += moves_of(nodes);
  return text;
}

// --- Reading ------------------------------------------------------------------------------------

bool parse_flags(std::string_view text, uint16_t* flags) {
  *flags = 0;
  if (text == kNoFlags) return true;
  for (const std::string_view word : base::split_words(text, ',')) {
    const auto* const found = std::find_if(std::begin(kFlagNames), std::end(kFlagNames),
                                           [&](const FlagName& each) { return each.name == word; });
    if (found == std::end(kFlagNames)) return false;
    *flags = static_cast<uint16_t>(*flags | found->flag);
  }
  constexpr uint16_t kRoles = kMaster | kReplica;
  return (*flags & kRoles) != kRoles;
}

bool parse_port(std::string_view text, int* port) {
  int64_t number = 0;
  if (!base::parse_int64(text, &number) || number < 0 || number > base::kLastPort) return false;
  *port = static_cast<int>(number);
  return true;
}

// "ip:port@bus port"; an IPv6 address contains colons.
bool parse_place(std::string_view text, NodeAddress* address) {
  const size_t at = text.rfind('@');
  const size_t colon = text.substr(0, at).rfind(':');
  if (at == text.npos || colon == text.npos) return false;
  address->ip = text.substr(0, colon);
  return parse_port(text.substr(colon + 1, at - colon - 1), &address->port) &&
         parse_port(text.substr(at + 1), &address->bus_port);
}

// False when the part has this name but no port.
bool parse_port_named(std::string_view name, std::string_view part, int* port) {
  return !part.starts_with(name) || parse_port(part.substr(name.size()), port);
}

// The address, the hostname, then names with values.
bool parse_address(std::string_view text, Node* node) {
  const size_t comma = std::min(text.find(','), text.size());
  if (!parse_place(text.substr(0, comma), &node->address)) return false;
  text.remove_prefix(std::min(comma + 1, text.size()));
  node->hostname = text.substr(0, text.find(','));
  for (const std::string_view part : base::split_words(text, ',')) {
    if (part.starts_with(kShardIdKey)) node->shard_id = part.substr(kShardIdKey.size());
    if (!parse_port_named(kTlsPortKey, part, &node->address.tls_port) ||
        !parse_port_named(kClientPortKey, part, &node->client_port) ||
        !parse_port_named(kClientTlsPortKey, part, &node->client_tls_port))
      return false;
    if (part.starts_with(kZoneKey)) node->availability_zone = part.substr(kZoneKey.size());
    if (part.starts_with(kClientIpv4Key)) node->client_ipv4 = part.substr(kClientIpv4Key.size());
    if (part.starts_with(kClientIpv6Key)) node->client_ipv6 = part.substr(kClientIpv6Key.size());
    if (part.starts_with(kNameKey)) node->human_name = part.substr(kNameKey.size());
  }
  if (node->shard_id.empty()) node->shard_id = base::random_hex(kIdDigits);
  return is_id(node->shard_id);
}

bool add_node(const Words& words, int64_t now_ms, NodeTable* nodes) {
  uint16_t flags = 0;
  if (words.size() < kFirstSlot || !is_id(words[kIdWord]) || nodes->find(words[kIdWord]) != nullptr)
    return false;
  if (!parse_flags(words[kFlagsWord], &flags)) return false;
  if ((flags & kMyself) != 0 && nodes->has_myself()) return false;
  // A node that is neither master nor replica is kept as a master.
  if ((flags & kReplica) == 0) flags |= kMaster;
  Node& node = nodes->add(std::string(words[kIdWord]), flags, now_ms);
  if (node.has(kFailing)) node.failing_since_ms = now_ms;
  return parse_address(words[kAddressWord], &node) &&
         base::parse_uint64(words[kEpoch], &node.config_epoch);
}

// "[slot->-id]" or "[slot-<-id]".
bool parse_move(std::string_view text, NodeTable* nodes) {
  constexpr std::string_view kTo = "->-";
  constexpr std::string_view kFrom = "-<-";
  if (!text.starts_with('[') || !text.ends_with(']')) return false;
  text = text.substr(1, text.size() - 2);
  const bool leaves = text.find(kTo) != text.npos;
  const size_t arrow = text.find(leaves ? kTo : kFrom);
  int slot = 0;
  if (arrow == text.npos || !parse_slot(text.substr(0, arrow), &slot)) return false;
  Node* const other = nodes->find(text.substr(arrow + kTo.size()));
  if (other == nullptr) return false;
  leaves ? nodes->set_migrating(slot, other) : nodes->set_importing(slot, other);
  return true;
}

bool parse_slots(const Words& words, Node& node, NodeTable* nodes) {
  SlotSet slots;
  for (size_t i = kFirstSlot; i < words.size(); ++i) {
    const bool good = words[i].starts_with('[') ? parse_move(words[i], nodes)
                                                : node.is_master() && slots.add_run(words[i]);
    if (!good) return false;
  }
  slots.for_each([&](int slot) { nodes->assign(slot, node); });
  return true;
}

// Sets the master and slots of a line's node; all nodes are in the table before. The master may be
// a replica itself: nothing has come of a node that is down since its master was replaced.
bool relate_node(const Words& words, NodeTable* nodes) {
  Node& node = *nodes->find(words[kIdWord]);
  const std::string_view master = words[kMasterWord];
  if (master != "-" && (!is_id(master) || master == node.id)) return false;
  if (node.is_replica() && master != "-") nodes->make_replica(node, nodes->find(master));
  return parse_slots(words, node, nodes);
}

bool parse_variables(const Words& words, NodeTable* nodes) {
  for (size_t i = 1; i + 1 < words.size(); i += 2) {
    uint64_t* const epoch = words[i] == "currentEpoch"    ? &nodes->current_epoch
                            : words[i] == "lastVoteEpoch" ? &nodes->last_vote_epoch
                                                          : nullptr;
    if (epoch != nullptr && !base::parse_uint64(words[i + 1], epoch)) return false;
  }
  return words.size() % 2 == 1;
}

}  // namespace

std::string flags_text(uint16_t flags) {
  std::string text;
  for (const FlagName& each : kFlagNames) {
    if ((flags & each.flag) == 0) continue;
    if (!text.empty()) text += ',';
    text += each.name;
  }
  return text.empty() ? std::string(kNoFlags) : text;
}

std::string describe(const NodeTable& nodes, const Node& node, const ClientView& view) {
  const std::string hostname = node.hostname.empty() ? "" : "," + node.hostname;
  const std::string place = place_of(node.ip_for(view), node.port_for(view), node.address.bus_port);
  return line_of(nodes, node, place + hostname, view.clock_ahead_ms);
}

std::string describe_all(const NodeTable& nodes, const ClientView& view) {
  std::string text;
  for (const Node* node : nodes.all()) text += describe(nodes, *node, view) + "\n";
  return text;
}

std::string file_text(const NodeTable& nodes) {
  std::string text;
  for (const Node* node : nodes.all()) {
    if (node->has(kHandshake)) continue;
    const NodeAddress& address = node->address;
    std::string place =
        place_of(address.ip, address.port, address.bus_port) + "," + node->hostname + ",";
    const auto add = [&](std::string_view key, const std::string& value) {
      if (!value.empty()) place.append(key).append(value).append(",");
    };
    const auto number = [](int port) { return port == 0 ? "" : std::to_string(port); };
    add(kZoneKey, node->availability_zone);
    add(kClientTlsPortKey, number(node->client_tls_port));
    add(kClientPortKey, number(node->client_port));
    add(kClientIpv6Key, node->client_ipv6);
    add(kClientIpv4Key, node->client_ipv4);
    place.append(kTlsPortKey).append(std::to_string(address.tls_port));
    if (!node->human_name.empty()) place.append(",").append(kNameKey).append(node->human_name);
    place.append(",").append(kShardIdKey).append(node->shard_id);
    text += line_of(nodes, *node, place, 0) + "\n";
  }
  return text + "vars currentEpoch " + std::to_string(nodes.current_epoch) + " lastVoteEpoch " +
         std::to_string(nodes.last_vote_epoch) + "\n";
}

base::Result<> parse_file(std::string_view text, int64_t now_ms, NodeTable* nodes) {
  std::vector<Words> lines;
  const auto damaged = [&](const Words& words) {
    return base::fail("it is damaged at '" +
                      std::string(words[0].data(), words.back().data() + words.back().size()) +
                      "'");
  };
  for (const std::string_view line : base::split_words(text, '\n')) {
    const Words words = base::split_words(line, ' ');
    if (words.empty()) continue;
    const bool variables = words[0] == "vars";
    if (!(variables ? parse_variables(words, nodes) : add_node(words, now_ms, nodes)))
      return damaged(words);
    if (!variables) lines.push_back(words);
  }
  for (const Words& words : lines) {
    if (!relate_node(words, nodes)) return damaged(words);
  }
  if (lines.empty()) return base::fail("it tells of no node");
  if (!nodes->has_myself()) return base::fail("it does not say which node this is");
  nodes->current_epoch = nodes->highest_epoch();
  return {};
}

}  // namespace latchkey::cluster

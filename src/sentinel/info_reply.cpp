#include "sentinel/info_reply.h"

#include <algorithm>

#include "base/port.h"
#include "base/text/number.h"
#include "sentinel/hello.h"

namespace latchkey::sentinel {

namespace {

// The value of `name` in "a=1,b=2"; empty when it is not there.
std::string_view part_named(std::string_view list, std::string_view name) {
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    const std::string_view part = list.substr(0, comma);
    if (part.starts_with(name) && part.substr(name.size()).starts_with('='))
      return part.substr(name.size() + 1);
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return {};
}

std::optional<int64_t> number_within(std::string_view text, int64_t least, int64_t most) {
  int64_t number = 0;
  if (!base::parse_int64(text, &number) || number < least || number > most) return std::nullopt;
  return number;
}

std::optional<int> port_of(std::string_view text) {
  const auto port = number_within(text, 1, base::kLastPort);
  return port ? std::optional(static_cast<int>(*port)) : std::nullopt;
}

// Whether the name is "slave" and a number.
bool names_replica(std::string_view name) {
  constexpr std::string_view kPrefix = "slave";
  return name.starts_with(kPrefix) && name.size() > kPrefix.size() &&
         name.find_first_not_of("0123456789", kPrefix.size()) == std::string_view::npos;
}

void read_replica(std::string_view value, InfoReply* info) {
  const std::string_view host = part_named(value, "ip");
  const auto port = port_of(part_named(value, "port"));
  if (host.empty() || !port || info->replicas.size() == kMaxReplicas) return;
  info->replicas.push_back({std::string(host), *port});
}

void read_field(std::string_view name, std::string_view value, InfoReply* info) {
  constexpr int64_t kMaxSeconds = int64_t{1} << 40;
  if (name == "run_id") {
    if (is_id(value)) info->run_id = value;
  } else if (name == "role") {
    if (value == "master") info->role = InfoReply::Role::kMaster;
    if (value == "slave") info->role = InfoReply::Role::kReplica;
  } else if (names_replica(name)) {
    read_replica(value, info);
  } else if (name == "master_failover_state") {
    info->has_failover_state = true;
  } else if (name == "master_host") {
    if (!value.empty()) info->master_host = value;
  } else if (name == "master_port") {
    if (const auto port = port_of(value)) info->master_port = port;
  } else if (name == "master_link_status") {
    info->master_link_up = value == "up";
  } else if (name == "master_link_down_since_seconds") {
    if (const auto seconds = number_within(value, -1, kMaxSeconds))
      info->master_link_down_s = seconds;
  } else if (name == "slave_priority") {
    if (const auto priority = number_within(value, 0, INT32_MAX))
      info->priority = static_cast<int>(*priority);
  } else if (name == "slave_repl_offset") {
    uint64_t offset = 0;
    if (base::parse_uint64(value, &offset)) info->replication_offset = offset;
  } else if (name == "replica_announced") {
    info->announced = value != "0";
  }
}

}  // namespace

InfoReply parse_info(std::string_view text) {
  InfoReply info;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    read_field(line.substr(0, colon), line.substr(colon + 1), &info);
  }
  return info;
}

}  // namespace latchkey::sentinel

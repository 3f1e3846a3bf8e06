// What Sentinel reads in a server's INFO. Lines that it does not know, or cannot read, are skipped:
// a field keeps its value from before.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace latchkey::sentinel {

struct InfoReply {
  struct Replica {
    std::string host;
    int port = 0;
  };
  enum class Role : uint8_t { kMaster, kReplica };

  std::string run_id;  // empty: not said
  std::optional<Role> role;
  // Of a master: its replicas.
  std::vector<Replica> replicas;
  bool has_failover_state = false;  // as those do that know the command FAILOVER
  // Of a replica.
  std::optional<std::string> master_host;
  std::optional<int> master_port;
  std::optional<bool> master_link_up;
  std::optional<int64_t> master_link_down_s;
  std::optional<int> priority;
  std::optional<uint64_t> replication_offset;
  std::optional<bool> announced;
};

// Further replicas in one reply are ignored.
inline constexpr size_t kMaxReplicas = 4096;

// Linear in the text.
InfoReply parse_info(std::string_view text);

}  // namespace latchkey::sentinel

#include "sentinel/instance.h"

namespace latchkey::sentinel {

std::string_view kind_name(Kind kind) {
  switch (kind) {
    case Kind::kMaster:
      return "master";
    case Kind::kReplica:
      return "slave";
    case Kind::kSentinel:
      return "sentinel";
  }
  return {};
}

std::string_view failover_state_name(FailoverState state) {
  constexpr std::string_view kNames[] = {
      "none",           "wait_start",    "select_slave",  "send_slaveof_noone",
      "wait_promotion", "reconf_slaves", "update_config",
  };
  return kNames[static_cast<size_t>(state)];
}

Master& master_of(Instance& instance) {
  switch (instance.kind) {
    case Kind::kReplica:
      return static_cast<Replica&>(instance).master;
    case Kind::kSentinel:
      return static_cast<PeerSentinel&>(instance).master;
    case Kind::kMaster:
      break;
  }
  return static_cast<Master&>(instance);
}

std::string_view command_of(Instance& instance, std::string_view name) {
  if (instance.kind == Kind::kSentinel) return name;
  const auto& renamed = master_of(instance).renamed_commands;
  const auto found = renamed.find(std::string(name));
  return found != renamed.end() ? std::string_view(found->second) : name;
}

}  // namespace latchkey::sentinel

// The settings of a Sentinel that do not belong to one master.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace latchkey::sentinel {

// Milliseconds; SENTINEL DEBUG changes them.
struct Periods {
  int64_t info = 10'000;
  int64_t ping = 1'000;
  int64_t ask = 1'000;
  int64_t publish = 2'000;
  int64_t default_down_after = 30'000;
  int64_t default_failover_timeout = 180'000;
  int64_t tilt_trigger = 2'000;
  int64_t tilt = 30'000;
  int64_t replica_reconf_timeout = 10'000;
  int64_t min_link_reconnect = 15'000;
  int64_t election_timeout = 10'000;
  int64_t script_max_runtime = 60'000;
  int64_t script_retry_delay = 30'000;

  struct Name {
    std::string_view name;
    int64_t Periods::*member;
  };
  // In the order in which SENTINEL DEBUG lists them.
  static const std::array<Name, 13>& names();
};

// The longest period that may be set, in milliseconds: sums and multiples of periods must not
// overflow.
inline constexpr int64_t kLongestPeriodMs = int64_t{1} << 50;

struct Settings {
  bool resolve_hostnames = false;
  bool announce_hostnames = false;
  bool deny_scripts_reconfig = true;
  std::string announce_ip;  // empty: that of the connection
  int announce_port = 0;    // 0: the port at which it serves
  // For other Sentinels.
  std::string sentinel_user;
  std::string sentinel_pass;
};

// Bits of SENTINEL SIMULATE-FAILURE.
inline constexpr unsigned kCrashAfterElection = 1;
inline constexpr unsigned kCrashAfterPromotion = 2;

}  // namespace latchkey::sentinel

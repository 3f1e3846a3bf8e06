#include "sentinel/settings.h"

namespace latchkey::sentinel {

const std::array<Periods::Name, 13>& Periods::names() {
  static constexpr std::array<Name, 13> kNames = {{
      {"INFO-PERIOD", &Periods::info},
      {"PING-PERIOD", &Periods::ping},
      {"ASK-PERIOD", &Periods::ask},
      {"PUBLISH-PERIOD", &Periods::publish},
      {"DEFAULT-DOWN-AFTER", &Periods::default_down_after},
      {"DEFAULT-FAILOVER-TIMEOUT", &Periods::default_failover_timeout},
      {"TILT-TRIGGER", &Periods::tilt_trigger},
      {"TILT-PERIOD", &Periods::tilt},
      {"SLAVE-RECONF-TIMEOUT", &Periods::replica_reconf_timeout},
      {"MIN-LINK-RECONNECT-PERIOD", &Periods::min_link_reconnect},
      {"ELECTION-TIMEOUT", &Periods::election_timeout},
      {"SCRIPT-MAX-RUNTIME", &Periods::script_max_runtime},
      {"SCRIPT-RETRY-DELAY", &Periods::script_retry_delay},
  }};
  return kNames;
}

}  // namespace latchkey::sentinel

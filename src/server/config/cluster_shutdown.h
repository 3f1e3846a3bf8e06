// The bits of shutdown-on-sigint, shutdown-on-sigterm and SHUTDOWN that are about a node of a
// cluster; config_values.h has the others. Elsewhere they mean nothing.
#pragma once

namespace latchkey::server {

// Refuses while the node is a master with slots.
inline constexpr unsigned kShutdownSafe = 16;
// Fails over to a replica first.
inline constexpr unsigned kShutdownFailover = 32;

}  // namespace latchkey::server

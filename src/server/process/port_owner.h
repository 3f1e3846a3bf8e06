// Finds the process that listens on a port, for the error that the port is in use. Linux: reads
// /proc.
#pragma once

#include <string>
#include <string_view>

namespace latchkey::server {

// A sentence such as "Port 6379 is used by process 123 (redis-server *:6379)", or who can find out
// where this user is not shown it; empty when nobody listens there, or /proc does not show it.
// Reads every descriptor of every process, some milliseconds.
std::string describe_port_owner(int port, std::string_view proc = "/proc");

}  // namespace latchkey::server

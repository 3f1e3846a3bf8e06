// The test program's own bind(), which listener_test.cpp defines.
#pragma once

#include <netinet/in.h>

#include <functional>

namespace latchkey::tests {

// While it is set: whether a bind() to this IPv4 address is to fail because the port is in use.
extern std::function<bool(const sockaddr_in&)> is_port_taken;

}  // namespace latchkey::tests

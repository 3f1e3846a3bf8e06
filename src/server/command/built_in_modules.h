// The modules of the reference whose commands and types are built in here. Clients ask for them by
// MODULE LIST, HELLO and INFO, by which they know that the types are there.
#pragma once

#include <span>

#include "server/emulation/edition.h"

namespace latchkey::server {

struct BuiltInModule {
  // As rows name it (CommandExtras::module).
  const char* name;
  // Its version follows the server's, as "8.6" is 80600; else it is 1.
  bool has_server_version;
  // As INFO gives them.
  const char* options;
};

inline constexpr BuiltInModule kBuiltInModules[] = {
    {"vectorset", false, "handle-io-errors|handle-repl-async-load"},
    {"bf", true, ""},
    {"timeseries", true, "handle-io-errors"},
    {"ReJSON", true, "handle-io-errors"},
};

// Those that the edition has: all, or none.
std::span<const BuiltInModule> built_in_modules(const Edition& edition);

// The number by which the module's version is told.
int module_version(const BuiltInModule& module, const Edition& edition);

}  // namespace latchkey::server

// The first line of a script, if it begins with "#!": the engine, and the flags that it declares.
//
//     #!lua flags=no-writes,allow-oom
//
// A script without that line keeps the permissions of scripts before flags existed; one with it is
// held to its flags.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace latchkey::script {

enum ScriptFlag : uint32_t {
  kDeclared = 1u << 0,  // the script has such a line
  kNoWrites = 1u << 1,
  kAllowOom = 1u << 2,
  kAllowStale = 1u << 3,
  kNoCluster = 1u << 4,
  kAllowCrossSlotKeys = 1u << 5,
};

struct Shebang {
  // ScriptFlag bits.
  uint32_t flags = 0;
  // The code to compile: the script from the end of its first line on (that line break included, so
  // that line numbers stay right), or all of it. A view into the script.
  std::string_view code;
};

struct NamedScriptFlag {
  std::string_view name;
  ScriptFlag flag;
};
// The flags that scripts and functions can declare.
inline constexpr NamedScriptFlag kNamedScriptFlags[] = {
    {"no-writes", kNoWrites},
    {"allow-oom", kAllowOom},
    {"allow-stale", kAllowStale},
    {"no-cluster", kNoCluster},
    {"allow-cross-slot-keys", kAllowCrossSlotKeys}};
// 0 when there is no such flag.
uint32_t script_flag(std::string_view name);

// The CommandFlag bits of a call of a script with these ScriptFlag bits. `command_flags` are those
// of the command itself, which apply when the script declares nothing.
uint32_t command_flags_of(uint32_t script_flags, uint32_t command_flags);

// Fails when the line is malformed; the error is the reference's, from "ERR " on.
base::Result<Shebang> parse_shebang(std::string_view script);

}  // namespace latchkey::script

// Selects requests, for FAULT ADD, CALLS LIST, CALLS COUNT and CALLS WAIT.
//
//     [COMMAND <name | container | container|subcommand | @category>]...
//     [KEY <glob>] [CLIENT <id | glob of its name>] [USER <name>] [DB <index>]
//
// All that is given must match; of several COMMANDs one. COMMAND may be given often, the others
// once. A selector without anything matches every request.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/glob.h"
#include "server/command/call_listener.h"
#include "server/command/command_context.h"

// Selectors in the syntax of a command's row. A macro, because the rows join literals to it.
#define LATCHKEY_SELECTOR_SYNTAX                                                  \
  "[COMMAND command-name]... [KEY pattern] [CLIENT client-name] [USER username] " \
  "[DB index:integer]"

namespace latchkey::testing {

// What selectors look at.
struct Subject {
  const server::Command* command = nullptr;  // null: the request names no command
  uint64_t client_id = 0;
  std::string_view client_name;
  std::string_view user;
  int database = 0;
};

Subject subject_of(const server::Call& call);

// The positions of the request's keys; none when they cannot be told.
std::vector<uint32_t> key_positions(const server::Command* command, server::Arguments args);

// Whether a request is one of this container's (upper case), or names a subcommand that it lacks.
bool names_container(const server::Call& call, std::string_view container);

class Selector {
 public:
  enum class Read : uint8_t {
    kNothing,  // the next argument is no part of a selector
    kPart,
    kFailed,  // an error has been sent
  };
  // Reads one part, a word and its value, and steps over it. REQUIRES: arguments.more().
  Read read(server::CommandContext& ctx, server::ArgReader& arguments);

  bool is_empty() const;
  // Whether the request matches but for its keys.
  bool matches(const Subject& subject) const;
  // Whether a request must also have a key that matches_key().
  bool names_keys() const { return key_.has_value(); }
  bool matches_key(std::string_view key) const;
  // All of it.
  bool matches(const server::Call& call) const;

 private:
  // An id, or a glob of names.
  struct ClientName {
    std::string text;
    base::GlobPattern glob;
  };

  // Whether a pattern may be given: once, and not too long. False with the error sent.
  static bool may_be_given(server::CommandContext& ctx, bool is_given, std::string_view text);
  bool read_command(server::CommandContext& ctx, std::string_view name);
  bool matches_command(const server::Command* command) const;

  std::vector<uint32_t> command_ids_;
  uint32_t categories_ = 0;  // AclCategory bits
  std::optional<base::GlobPattern> key_;
  std::optional<ClientName> client_;
  std::optional<std::string> user_;
  std::optional<int> database_;
};

}  // namespace latchkey::testing

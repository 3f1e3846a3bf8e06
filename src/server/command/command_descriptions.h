// The replies of COMMAND and COMMAND DOCS about all commands, which clients ask for when they
// connect.
//
// Descriptions depend only on the set of commands, and a set that servers use never changes. So
// each description is written once for each protocol, when it is first requested, and every later
// reply contains it by reference. A server whose table lacks some of the commands (rename-command)
// leaves out their descriptions; nothing that is kept depends on a server.
//
// Kept are about 0.15 MB for COMMAND and 0.35 MB for COMMAND DOCS, of each protocol that was asked
// for. The memory is billed to the server that asked first, even if that is a space. A reply costs
// O(commands), without their lengths.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/blob.h"
#include "resp/reply_builder.h"

namespace latchkey::server {

class CommandSet;
class Edition;
struct Command;

class CommandDescriptions {
 public:
  // The set must outlive it.
  explicit CommandDescriptions(const CommandSet& set) : set_(&set) {}
  CommandDescriptions(const CommandDescriptions&) = delete;
  CommandDescriptions& operator=(const CommandDescriptions&) = delete;

  // An array of what write_command_info() writes of each. REQUIRES: the commands are among the
  // commands() of the set.
  void write_infos(std::span<const Command* const> commands, resp::ReplyBuilder& reply);
  // A map of their full names and what write_command_docs() writes. REQUIRES: as above.
  void write_docs(std::span<const Command* const> commands, resp::ReplyBuilder& reply);

  // Forgets what is kept, because commands were added to the set.
  void forget();

 private:
  struct Part {
    uint32_t begin = 0;
    uint32_t size = 0;
  };
  struct Kept {
    base::BlobRef bytes;
    std::vector<Part> parts;  // by Command::id; empty for subcommands, which are in their container
  };
  using Writer = void (*)(const Command&, const Edition&, resp::ReplyBuilder&);

  void keep(Writer writer, int protocol, Kept* kept) const;
  // Appends the descriptions. REQUIRES: something was written to `reply` before.
  void write(std::span<const Command* const> commands, Writer writer, Kept* kept,
             resp::ReplyBuilder& reply) const;

  const CommandSet* set_;
  // Of RESP2 and of RESP3.
  Kept infos_[2];
  Kept docs_[2];
};

}  // namespace latchkey::server

// What SCAN and CLUSTERSCAN have in common: their options, which keys match, and the reply.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/text/glob.h"
#include "server/command/command_context.h"
#include "store/keyspace.h"

namespace latchkey::commands {

// A glob pattern of keys. The text must outlive it.
class KeyPattern {
 public:
  explicit KeyPattern(std::string_view text) : text_(text), pattern_(text) {}
  bool matches(std::string_view key) const { return pattern_.covers(key); }
  std::string_view text() const { return text_; }
  // Whether only one key can match.
  bool is_literal() const { return text_.find_first_of("*?[\\") == std::string_view::npos; }

 private:
  std::string_view text_;
  base::GlobPattern pattern_;
};

class ScanRequest {
 public:
  // Whether TYPE with a name that is no type's is an error, as in Valkey.
  bool refuses_unknown_types = false;

  // Reads MATCH, COUNT and TYPE from the arguments from `first` on. `read_more` reads a further
  // option where it can: true when it has stepped over one, or has sent an error. False, with an
  // error sent, on invalid options.
  template <typename ReadMore>
  bool read(server::CommandContext& ctx, size_t first, ReadMore&& read_more) {
    for (server::ArgReader reader(ctx.args, first); reader.more();) {
      const uint64_t errors = ctx.reply.error_count();
      if (read_more(reader)) {
        if (ctx.reply.error_count() != errors) return false;
      } else if (!read_option(ctx, reader)) {
        return false;
      }
    }
    return true;
  }

  std::string_view pattern() const { return key_pattern_.text(); }
  // How many keys are wanted, at least 1.
  uint64_t count() const { return static_cast<uint64_t>(count_); }
  // To be called for each key that a step of the scan visits; keys that have expired are taken.
  void visit(const store::Keyspace& keyspace, const store::Entry& entry);
  // Keys of hidden slots visited so far, which do not count as seen.
  uint64_t hidden() const { return hidden_; }
  // Keys visited so far.
  uint64_t seen() const { return seen_; }
  // Whether the call has done enough after `steps` steps of the table, in case they find few keys.
  // Steps that came by hidden keys need not be among them.
  bool is_enough(uint64_t steps) const;

  // Sends the next cursor and the keys, without those that have expired or are of another type.
  void reply(server::CommandContext& ctx, std::string_view next_cursor);

 private:
  bool read_option(server::CommandContext& ctx, server::ArgReader& reader);

  int64_t count_ = 10;
  KeyPattern key_pattern_{"*"};
  std::optional<std::string_view> type_;
  uint64_t seen_ = 0;
  uint64_t hidden_ = 0;
  std::vector<const store::Entry*> found_;
};

}  // namespace latchkey::commands

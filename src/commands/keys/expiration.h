// Reads the expire time of a key or a field in a request: EX, PX, EXAT, PXAT, KEEPTTL and PERSIST,
// with the reference's limits.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "server/command/command_context.h"

namespace latchkey::commands {

enum class TimeUnit : uint8_t { kSeconds, kMilliseconds };
enum class TimeBase : uint8_t { kFromNow, kUnixTime };

// Converts `time`, of any sign, to a Unix time in milliseconds; nothing when it does not fit into
// 64 bits.
std::optional<int64_t> deadline_of(int64_t time, TimeUnit unit, TimeBase base, int64_t now_ms);

// "ERR invalid expire time in 'set' command".
void reply_invalid_expire_time(server::CommandContext& ctx);

// Reads a command's time argument, which must be above zero; on failure sends the error.
bool read_deadline(server::CommandContext& ctx, std::string_view text, TimeUnit unit, TimeBase base,
                   int64_t* deadline_ms);

// Whether what is given this deadline is deleted at once, because the time has passed. Not where
// expired keys have to stay: while the master or a file is followed, and in import-mode.
bool deletes_at_once(const server::CommandContext& ctx, int64_t deadline_ms);

// Propagates DEL or UNLINK of `key` instead of a request that gave it a deadline in the past.
void propagate_removal(server::CommandContext& ctx, std::string_view key);
// Deletes a key that has been given a deadline in the past: for Redis it is deleted, for Valkey
// (since 8.1) it expires.
void remove_at_once(server::CommandContext& ctx, store::KeyRef& ref, std::string_view key);

// The conditions NX, XX, GT and LT under which a new deadline replaces the old one. A missing
// deadline counts as later than any other.
struct DeadlineCondition {
  bool only_without = false;  // NX
  bool only_with = false;     // XX
  bool only_later = false;    // GT
  bool only_sooner = false;   // LT

  // Consumes the next argument when it is one of the four words.
  bool read(server::ArgReader& options);
  // `current_ms`: Unix time, or Keyspace::kNoDeadline.
  bool holds(int64_t current_ms, int64_t new_ms) const;
};
// Reads all of `words`; false, with the error sent, on other words and contradictory ones.
bool read_conditions(server::CommandContext& ctx, server::Arguments words,
                     DeadlineCondition* condition);

// The expiration option of SET, GETEX, MSETEX and similar commands. Only one kind may be given; if
// it is repeated, the last one counts.
//
//     ExpirationOption expiration(ExpirationOption::kMayKeep);
//     while (options.more()) {
//       if (expiration.read(options)) continue;
//       ...
//       return ctx.syntax_error();
//     }
//     int64_t deadline_ms;
//     if (!expiration.resolve(ctx, &deadline_ms)) return;
class ExpirationOption {
 public:
  // The word that the command accepts besides EX, PX, EXAT and PXAT: KEEPTTL or PERSIST.
  enum Word : uint8_t { kMayKeep, kMayPersist };

  explicit ExpirationOption(Word word) : word_(word) {}

  // Consumes the next argument (and its value) when it is an expiration option that is valid here.
  bool read(server::ArgReader& options);

  bool persists() const { return kind_ == Kind::kPersist; }
  // Whether the option is PXAT, whose time is the deadline itself.
  bool names_deadline() const { return kind_ == Kind::kPxAt; }
  bool names_unix_time() const { return kind_ == Kind::kExAt || kind_ == Kind::kPxAt; }

  // *deadline_ms becomes a deadline for Keyspace: Unix time in milliseconds; kKeepDeadline for
  // KEEPTTL; kNoDeadline without an option and for PERSIST. False, with the error sent, when the
  // time is not a number or out of range.
  bool resolve(server::CommandContext& ctx, int64_t* deadline_ms) const;

 private:
  enum class Kind : uint8_t { kNone, kEx, kPx, kExAt, kPxAt, kKeepTtl, kPersist };

  bool may_be(Kind kind) const { return kind_ == Kind::kNone || kind_ == kind; }

  Word word_;
  Kind kind_ = Kind::kNone;
  std::string_view time_;
};

}  // namespace latchkey::commands

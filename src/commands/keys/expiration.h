// When a key or a field is to expire, as commands say it: EX, PX, EXAT, PXAT, KEEPTTL and PERSIST,
// with the reference's limits.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "server/command/command_context.h"

namespace latchkey::commands {

enum class TimeUnit : uint8_t { kSeconds, kMilliseconds };
enum class TimeBase : uint8_t { kFromNow, kUnixTime };

// The Unix time in milliseconds that `time`, of any sign, stands for; none when it does not fit
// into 64 bits.
std::optional<int64_t> deadline_of(int64_t time, TimeUnit unit, TimeBase base, int64_t now_ms);

// "ERR invalid expire time in 'set' command".
void reply_invalid_expire_time(server::CommandContext& ctx);

// Reads a command's time argument that must lie after zero; on failure sends the error.
bool read_deadline(server::CommandContext& ctx, std::string_view text, TimeUnit unit, TimeBase base,
                   int64_t* deadline_ms);

// Has the request written as the removal of a key that it gave a deadline in the past.
void propagate_removal(server::CommandContext& ctx, std::string_view key);

// Which deadlines a new one may take the place of: NX, XX, GT and LT. Something without a deadline
// counts as living for ever.
struct DeadlineCondition {
  bool only_without = false;  // NX
  bool only_with = false;     // XX
  bool only_later = false;    // GT
  bool only_sooner = false;   // LT

  // Steps over the next argument when it is one of the four words.
  bool read(server::ArgReader& options);
  // `current_ms`: Unix time, or Keyspace::kNoDeadline.
  bool holds(int64_t current_ms, int64_t new_ms) const;
};

// The expiration option of SET, GETEX, MSETEX and their kin. At most one kind may be given; of
// several of one kind the last counts.
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
  // The word that may stand beside those that name a time.
  enum Word : uint8_t { kMayKeep, kMayPersist };

  explicit ExpirationOption(Word word) : word_(word) {}

  // Steps over the next argument (and its value) when it is an expiration option that may stand
  // here.
  bool read(server::ArgReader& options);

  bool persists() const { return kind_ == Kind::kPersist; }
  // Whether the time stands there as the deadline does.
  bool names_deadline() const { return kind_ == Kind::kPxAt; }
  bool names_unix_time() const { return kind_ == Kind::kExAt || kind_ == Kind::kPxAt; }

  // *deadline_ms becomes what Keyspace calls a deadline: Unix time in milliseconds; kKeepDeadline
  // for KEEPTTL; kNoDeadline without an option and for PERSIST. False, with the error sent, when
  // the time is none or out of range.
  bool resolve(server::CommandContext& ctx, int64_t* deadline_ms) const;

 private:
  enum class Kind : uint8_t { kNone, kEx, kPx, kExAt, kPxAt, kKeepTtl, kPersist };

  bool may_be(Kind kind) const { return kind_ == Kind::kNone || kind_ == kind; }

  Word word_;
  Kind kind_ = Kind::kNone;
  std::string_view time_;
};

}  // namespace latchkey::commands

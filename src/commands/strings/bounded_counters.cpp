// INCREX: a counter with bounds and a deadline in one command, as rate limiters need it.
//
// Redis 8.8 brought the command. What stands here follows its documentation
// (https://redis.io/docs/latest/commands/increx/ and the page of keyspace notifications), and for
// the texts of errors what Redis's own tests expect.
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <optional>
#include <string>

#include "base/text/number.h"
#include "commands/groups.h"
#include "commands/keys/expiration.h"
#include "server/command/command_context.h"
#include "server/server.h"

namespace latchkey::commands {

using namespace server;
using store::KeyRef;
using store::Keyspace;

namespace {

// The request as words; numbers are read when it is known what kind they are.
struct IncrexRequest {
  std::optional<std::string_view> integer;
  std::optional<std::string_view> real;
  std::optional<std::string_view> lower;
  std::optional<std::string_view> upper;
  bool saturate = false;
  bool only_without_deadline = false;  // ENX
  ExpirationOption expiration{ExpirationOption::kMayPersist};
  bool has_expiration = false;

  bool read(CommandContext& ctx);
};

bool IncrexRequest::read(CommandContext& ctx) {
  std::string_view text;
  for (ArgReader options(ctx.args, 2); options.more();) {
    const bool has_increment = integer || real;
    if (!has_increment && options.word("BYINT", &text)) {
      integer = text;
    } else if (!has_increment && options.word("BYFLOAT", &text)) {
      real = text;
    } else if (!lower && options.word("LBOUND", &text)) {
      lower = text;
    } else if (!upper && options.word("UBOUND", &text)) {
      upper = text;
    } else if (!saturate && options.word("SATURATE")) {
      saturate = true;
    } else if (!only_without_deadline && options.word("ENX")) {
      only_without_deadline = true;
    } else if (!has_expiration && expiration.read(options)) {
      has_expiration = true;
    } else {
      ctx.syntax_error();
      return false;
    }
  }
  if (only_without_deadline && expiration.persists()) {
    ctx.syntax_error();
    return false;
  }
  if (only_without_deadline && !has_expiration)
    return ctx.refuse("ERR ENX flag requires an expiration");
  return true;
}

// Both kinds of numbers read, add and reply in their own way; what becomes of the key is the same.
// *in_bounds: false when the sum was out of bounds and the request does not saturate.
struct IntegerKind {
  using Number = int64_t;
  static constexpr Number kLowest = INT64_MIN;
  static constexpr Number kHighest = INT64_MAX;
  static constexpr std::string_view kEvent = "incrby";

  static bool read(CommandContext& ctx, std::string_view text, Number* value,
                   std::string_view error) {
    return ctx.read_int64(text, value, error);
  }
  static std::string not_a_number(std::string_view name) {
    return "ERR " + std::string(name) + " is not an integer or out of range";
  }
  // Numbers that may be neither an increment nor a value, and what is said of them.
  static std::string_view unfit_increment(Number) { return {}; }
  static std::string_view unfit_value(Number) { return {}; }
  static Number of(int64_t stored) { return stored; }

  // The sum within the bounds, or nothing when it is outside and `saturate` is false. False, with
  // the error sent, when the change has no number.
  static bool add(CommandContext& ctx, Number value, Number* increment, Number lower, Number upper,
                  bool saturate, std::optional<Number>* sum) {
    // Two numbers of 64 bits have a sum of 65.
    const __int128 exact = static_cast<__int128>(value) + *increment;
    if (exact >= lower && exact <= upper) {
      *sum = static_cast<Number>(exact);
      return true;
    }
    if (!saturate) return true;
    const Number bound = exact < lower ? lower : upper;
    if (__builtin_sub_overflow(bound, value, increment))
      return ctx.refuse("ERR applied increment would overflow");
    *sum = bound;
    return true;
  }

  static void store(CommandContext& ctx, KeyRef& ref, Number value) {
    ctx.db.set_integer(ref, value);
  }
  static std::string text(Number value) { return std::to_string(value); }
  static void reply(CommandContext& ctx, Number value) { ctx.reply.integer(value); }
};

struct RealKind {
  using Number = long double;
  static constexpr Number kLowest = -LDBL_MAX;
  static constexpr Number kHighest = LDBL_MAX;
  static constexpr std::string_view kEvent = "incrbyfloat";

  static bool read(CommandContext& ctx, std::string_view text, Number* value,
                   std::string_view error) {
    if (base::parse_long_double(text, value)) return true;
    return ctx.refuse(error.empty() ? "ERR value is not a valid float" : error);
  }
  static std::string not_a_number(std::string_view name) {
    return "ERR " + std::string(name) + " is not a valid float";
  }
  static std::string_view unfit_increment(Number increment) {
    return std::isinf(increment) ? "ERR BYFLOAT increment cannot be Infinity" : "";
  }
  static std::string_view unfit_value(Number value) {
    return std::isinf(value) ? "ERR value cannot be Infinity" : "";
  }
  static Number of(int64_t stored) { return static_cast<Number>(stored); }

  static bool add(CommandContext& ctx, Number value, Number* increment, Number lower, Number upper,
                  bool saturate, std::optional<Number>* sum) {
    const Number exact = value + *increment;
    if (exact >= lower && exact <= upper && std::isfinite(exact)) {
      *sum = exact;
      return true;
    }
    if (!saturate) return true;
    // Beyond all numbers counts as their end.
    const Number reached = std::clamp(exact, kLowest, kHighest);
    const Number bound = std::max(lower, std::min(upper, reached));
    *increment = bound - value;
    if (!std::isfinite(*increment)) return ctx.refuse("ERR applied increment would be Infinity");
    *sum = bound;
    return true;
  }

  static void store(CommandContext& ctx, KeyRef& ref, Number value) {
    ctx.db.set_text(ref, text(value), Keyspace::kKeepDeadline);
  }
  static std::string text(Number value) { return base::format_long_double(value); }
  static void reply(CommandContext& ctx, Number value) {
    // Clients read no longer doubles, and these would be infinite to them.
    constexpr size_t kLongestDouble = 300;
    const std::string digits = text(value);
    if (!ctx.reply.is_resp3() || digits.size() > kLongestDouble) return ctx.reply.bulk(digits);
    // All digits, which a double might not hold.
    ctx.reply.raw("," + digits + "\r\n");
  }
};

template <typename Kind>
void reply_both(CommandContext& ctx, typename Kind::Number value, typename Kind::Number increment) {
  ctx.reply.array(2);
  Kind::reply(ctx, value);
  Kind::reply(ctx, increment);
}

// Whether the request gives the key at `ref`, which may not exist yet, the deadline that it names.
bool sets_deadline(const KeyRef& ref, const IncrexRequest& request, int64_t deadline_ms) {
  return deadline_ms >= 0 && !(request.only_without_deadline && ref && ref->has_deadline());
}

// The deadline that the request asks for has been resolved; the counter at `ref` has its new value.
// What is propagated is the result, for sums of other machines may differ and times go on.
void apply_expiration(CommandContext& ctx, KeyRef& ref, const IncrexRequest& request,
                      int64_t deadline_ms, std::string_view text) {
  const std::string_view key = ctx.args[1];
  if (sets_deadline(ref, request, deadline_ms)) {
    ctx.db.set_deadline(ref, deadline_ms);
    ctx.events.happened(ctx.db, key, EventClass::kGeneric, "expire");
    return ctx.propagate({"SET", key, text, "PXAT", deadline_ms});
  }
  if (!request.expiration.persists()) return ctx.propagate({"SET", key, text, "KEEPTTL"});
  if (ref->has_deadline()) {
    ctx.db.set_deadline(ref, Keyspace::kNoDeadline);
    ctx.events.happened(ctx.db, key, EventClass::kGeneric, "persist");
  }
  ctx.propagate({"SET", key, text});
}

template <typename Kind>
void increment(CommandContext& ctx, const IncrexRequest& request,
               std::optional<std::string_view> by) {
  using Number = typename Kind::Number;
  int64_t deadline_ms;
  if (!request.expiration.resolve(ctx, &deadline_ms)) return;
  Number lower = Kind::kLowest;
  Number upper = Kind::kHighest;
  Number change = 1;
  if (request.lower && !Kind::read(ctx, *request.lower, &lower, Kind::not_a_number("LBOUND")))
    return;
  if (request.upper && !Kind::read(ctx, *request.upper, &upper, Kind::not_a_number("UBOUND")))
    return;
  if (lower > upper) return ctx.reply.error("ERR LBOUND can't be greater than UBOUND");
  if (by && !Kind::read(ctx, *by, &change, Kind::not_a_number("Increment"))) return;
  if (const auto error = Kind::unfit_increment(change); !error.empty())
    return ctx.reply.error(error);

  KeyRef ref = ctx.db.find_to_replace(ctx.args[1]);
  if (!ctx.is_string(ref)) return;
  Number value = 0;
  if (ref && ref->is_integer()) {
    value = Kind::of(ref->integer());
  } else if (ref && !Kind::read(ctx, ref->text(), &value, {})) {
    return;
  }
  if (const auto error = Kind::unfit_value(value); !error.empty()) return ctx.reply.error(error);
  std::optional<Number> sum;
  if (!Kind::add(ctx, value, &change, lower, upper, request.saturate, &sum)) return;
  if (!sum) {
    ctx.propagate_nothing();
    return reply_both<Kind>(ctx, value, 0);
  }
  if (sets_deadline(ref, request, deadline_ms) && request.expiration.names_unix_time() &&
      deletes_at_once(ctx, deadline_ms)) {
    ref ? remove_at_once(ctx, ref, ctx.args[1]) : ctx.propagate_nothing();
    return reply_both<Kind>(ctx, *sum, change);
  }
  Kind::store(ctx, ref, *sum);
  ctx.changed(ctx.args[1], EventClass::kString, Kind::kEvent);
  apply_expiration(ctx, ref, request, deadline_ms, Kind::text(*sum));
  reply_both<Kind>(ctx, *sum, change);
}

void increx(CommandContext& ctx) {
  IncrexRequest request;
  if (!request.read(ctx)) return;
  if (request.real) return increment<RealKind>(ctx, request, request.real);
  increment<IntegerKind>(ctx, request, request.integer);
}

constexpr CommandRow kBoundedCounterRows[] = {
    {"INCREX", increx,
     "key [increment=BYFLOAT float:double|BYINT integer:integer] [SATURATE] [LBOUND lowerbound] "
     "[UBOUND upperbound] [expiration=EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT "
     "unix-time-milliseconds|PERSIST] [ENX]",
     kWrite | kDenyOom | kFast, keys(1).rw().access().update(), kAclString, Group::kString, "8.8.0",
     "O(1)",
     "Increments the numeric value of a key by a number and sets its expiration time. Uses 0 as "
     "initial value if the key doesn't exist."},
};

}  // namespace

std::span<const CommandRow> bounded_counter_rows() {
  return kBoundedCounterRows;
}

}  // namespace latchkey::commands

#include "commands/keys/expiration.h"

#include <string>
#include <utility>

#include "base/text/up_to_nul.h"
#include "server/command/command_table.h"
#include "server/server.h"

namespace latchkey::commands {

using namespace server;

std::optional<int64_t> deadline_of(int64_t time, TimeUnit unit, TimeBase base, int64_t now_ms) {
  int64_t deadline_ms = time;
  if (unit == TimeUnit::kSeconds && __builtin_mul_overflow(time, int64_t{1000}, &deadline_ms))
    return std::nullopt;
  if (base == TimeBase::kFromNow && __builtin_add_overflow(deadline_ms, now_ms, &deadline_ms))
    return std::nullopt;
  return deadline_ms;
}

void reply_invalid_expire_time(CommandContext& ctx) {
  ctx.reply.error("ERR invalid expire time in '" + ctx.command.full_name + "' command");
}

bool read_deadline(CommandContext& ctx, std::string_view text, TimeUnit unit, TimeBase base,
                   int64_t* deadline_ms) {
  int64_t time;
  if (!ctx.read_int64(text, &time)) return false;
  const std::optional<int64_t> deadline =
      time > 0 ? deadline_of(time, unit, base, ctx.now_ms()) : std::nullopt;
  if (!deadline.has_value()) {
    reply_invalid_expire_time(ctx);
    return false;
  }
  *deadline_ms = *deadline;
  return true;
}

bool deletes_at_once(const CommandContext& ctx, int64_t deadline_ms) {
  return deadline_ms <= ctx.now_ms() && (ctx.server.state() & kStateImporting) == 0 &&
         ctx.db.environment().expired == store::Environment::Expired::kRemove;
}

void propagate_removal(CommandContext& ctx, std::string_view key) {
  ctx.propagate({ctx.server.settings().lazyfree_lazy_expire ? "UNLINK" : "DEL", key});
}

void remove_at_once(CommandContext& ctx, store::KeyRef& ref, std::string_view key) {
  ctx.db.erase(ref, ctx.server.settings().lazyfree_lazy_expire);
  if (ctx.server.edition().is_valkey_since({8, 1})) {
    ++ctx.db.environment().figures.expired_keys;
    ctx.changed(key, server::EventClass::kExpired, "expired");
  } else {
    ctx.removed(key);
  }
  propagate_removal(ctx, key);
}

bool DeadlineCondition::read(ArgReader& options) {
  static constexpr std::pair<std::string_view, bool DeadlineCondition::*> kWords[] = {
      {"NX", &DeadlineCondition::only_without},
      {"XX", &DeadlineCondition::only_with},
      {"GT", &DeadlineCondition::only_later},
      {"LT", &DeadlineCondition::only_sooner}};
  for (const auto& [word, condition] : kWords) {
    if (!options.word(word)) continue;
    this->*condition = true;
    return true;
  }
  return false;
}

bool read_conditions(CommandContext& ctx, Arguments words, DeadlineCondition* condition) {
  for (ArgReader options(words, 0); options.more();) {
    if (condition->read(options)) continue;
    // The reference prints it up to a zero byte.
    const std::string_view option = options.peek();
    return ctx.refuse("ERR Unsupported option " + std::string(base::up_to_nul(option)));
  }
  if (condition->only_without &&
      (condition->only_with || condition->only_later || condition->only_sooner))
    return ctx.refuse("ERR NX and XX, GT or LT options at the same time are not compatible");
  if (condition->only_later && condition->only_sooner)
    return ctx.refuse("ERR GT and LT options at the same time are not compatible");
  return true;
}

bool DeadlineCondition::holds(int64_t current_ms, int64_t new_ms) const {
  const bool has_deadline = current_ms != store::Keyspace::kNoDeadline;
  if (only_without && has_deadline) return false;
  if (only_with && !has_deadline) return false;
  if (only_later && (!has_deadline || new_ms <= current_ms)) return false;
  if (only_sooner && has_deadline && new_ms >= current_ms) return false;
  return true;
}

bool ExpirationOption::read(ArgReader& options) {
  static constexpr std::pair<std::string_view, Kind> kTimes[] = {
      {"EX", Kind::kEx}, {"PX", Kind::kPx}, {"EXAT", Kind::kExAt}, {"PXAT", Kind::kPxAt}};
  for (const auto& [name, kind] : kTimes) {
    if (!may_be(kind) || !options.word(name, &time_)) continue;
    kind_ = kind;
    return true;
  }
  const Kind kind = word_ == kMayKeep ? Kind::kKeepTtl : Kind::kPersist;
  if (!may_be(kind) || !options.word(word_ == kMayKeep ? "KEEPTTL" : "PERSIST")) return false;
  kind_ = kind;
  return true;
}

bool ExpirationOption::resolve(CommandContext& ctx, int64_t* deadline_ms) const {
  switch (kind_) {
    case Kind::kNone:
    case Kind::kPersist:
      *deadline_ms = store::Keyspace::kNoDeadline;
      return true;
    case Kind::kKeepTtl:
      *deadline_ms = store::Keyspace::kKeepDeadline;
      return true;
    case Kind::kEx:
      return read_deadline(ctx, time_, TimeUnit::kSeconds, TimeBase::kFromNow, deadline_ms);
    case Kind::kPx:
      return read_deadline(ctx, time_, TimeUnit::kMilliseconds, TimeBase::kFromNow, deadline_ms);
    case Kind::kExAt:
      return read_deadline(ctx, time_, TimeUnit::kSeconds, TimeBase::kUnixTime, deadline_ms);
    case Kind::kPxAt:
      return read_deadline(ctx, time_, TimeUnit::kMilliseconds, TimeBase::kUnixTime, deadline_ms);
  }
  return false;
}

}  // namespace latchkey::commands

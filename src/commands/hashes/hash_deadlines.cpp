// Deadlines of hash fields: HEXPIRE, HTTL and their variants, HPERSIST, HGETEX and HSETEX.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/text.h"
#include "base/text/up_to_nul.h"
#include "base/time_units.h"
#include "commands/groups.h"
#include "commands/hashes/fields_clause.h"
#include "commands/hashes/hash_fields.h"
#include "commands/keys/expiration.h"
#include "commands/keys/typed_key.h"
#include "server/client/client.h"
#include "store/value/hash.h"

namespace latchkey::commands {

using namespace server;
using store::Hash;
using store::KeyRef;

namespace {

// The replies for a missing field, and for a field without a deadline.
constexpr int64_t kNoSuchField = -2;
constexpr int64_t kLivesForEver = -1;

void reply_integers(CommandContext& ctx, size_t count, int64_t value) {
  for (; count > 0; --count) ctx.reply.integer(value);
}

// --- Times --------------------------------------------------------------------------------------

// Reads a time argument; on failure sends the error.
bool read_field_deadline(CommandContext& ctx, std::string_view text, TimeUnit unit, TimeBase base,
                         int64_t* deadline_ms) {
  int64_t time;
  if (!ctx.read_int64(text, &time)) return false;
  if (time < 0 && dialect_of(ctx).names_errors)
    return ctx.refuse("ERR invalid expire time, must be >= 0");
  const std::optional<int64_t> deadline = deadline_of(time, unit, base, ctx.now_ms());
  // A master and a file of Valkey have such deadlines.
  const bool takes_any =
      dialect_of(ctx).takes_far_deadlines || ctx.client.has(kClientMaster | kClientInternal);
  if (time < 0 || !deadline || (*deadline > Hash::kMaxDeadline && !takes_any)) {
    reply_invalid_expire_time(ctx);
    return false;
  }
  *deadline_ms = std::clamp<int64_t>(*deadline, 1, Hash::kMaxDeadline);
  return true;
}

struct TimeWord {
  std::string_view name;
  TimeUnit unit;
  TimeBase base;
};
constexpr TimeWord kTimeWords[] = {{"EX", TimeUnit::kSeconds, TimeBase::kFromNow},
                                   {"PX", TimeUnit::kMilliseconds, TimeBase::kFromNow},
                                   {"EXAT", TimeUnit::kSeconds, TimeBase::kUnixTime},
                                   {"PXAT", TimeUnit::kMilliseconds, TimeBase::kUnixTime}};

// Consumes a time word and the time that follows it, and sets *text to the time; null when there is
// no such word.
const TimeWord* read_time_word(ArgReader& options, std::string_view* text) {
  for (const TimeWord& word : kTimeWords) {
    if (options.word(word.name, text)) return &word;
  }
  return nullptr;
}

// --- Changing -----------------------------------------------------------------------------------

// Records that a command has set or removed `count` deadlines of these fields of the hash at `ref`.
void deadlines_changed(CommandContext& ctx, const KeyRef& ref, uint64_t count,
                       std::string_view event, const ChangedFields& fields) {
  if (count == 0) return;
  ctx.changed(ctx.args[1], EventClass::kHash, event);
  fields.tell(ctx, event);
  ctx.events.count(count - 1);
  ctx.db.index_elements(ref);
}

// Sets the deadline of fields of a hash. If it has already passed, the fields are deleted at once
// and count as expired.
class FieldExpirySetter {
 public:
  FieldExpirySetter(CommandContext& ctx, Hash& hash, int64_t deadline_ms)
      : ctx_(ctx),
        dialect_(dialect_of(ctx)),
        hash_(hash),
        deadline_ms_(deadline_ms),
        has_passed_(deadline_ms >= 0 && deletes_at_once(ctx, deadline_ms)),
        names_(ctx) {
    hash_.prepare_deadlines();
  }

  bool deletes() const { return has_passed_; }
  // Whether apply() was called.
  bool any() const { return fields_ != 0; }
  // REQUIRES: the field is stored. Propagates the deletion of a field; the caller propagates
  // deadlines that were set.
  void apply(std::string_view field) {
    ++fields_;
    names_.add(field);
    if (has_passed_) {
      if (dialect_.expires_at_once) {
        deleted_.push_back(field);
      } else {
        ctx_.propagate({"HDEL", ctx_.args[1], field});
      }
      hash_.erase(field);
    } else {
      hash_.set_deadline(field, deadline_ms_);
    }
  }
  // Callers must call this at the end; removes the key at `ref` if no field is left.
  void notify(KeyRef& ref) const {
    if (!has_passed_) return deadlines_changed(ctx_, ref, fields_, "hexpire", names_);
    ctx_.db.environment().figures.expired_elements += fields_;
    if (!deleted_.empty()) ctx_.propagate({"HDEL", ctx_.args[1]}, deleted_);
    fields_deleted(ctx_, ref, fields_, names_, dialect_.event_of_passed_deadline());
  }

 private:
  CommandContext& ctx_;
  const HashFieldDialect& dialect_;
  Hash& hash_;
  int64_t deadline_ms_;
  bool has_passed_;
  uint64_t fields_ = 0;
  std::vector<std::string_view> deleted_;  // those to be propagated together
  ChangedFields names_;
};

bool unknown_argument(CommandContext& ctx, std::string_view name) {
  // The reference prints it up to a zero byte.
  return ctx.refuse("ERR unknown argument: " + std::string(base::up_to_nul(name)));
}

bool refuse_arity(CommandContext& ctx) {
  ctx.wrong_arity();
  return false;
}

bool missing_fields(CommandContext& ctx) {
  return ctx.refuse("ERR missing FIELDS argument");
}

// The options of HEXPIRE and its variants.
struct DeadlineOptions {
  FieldsClause fields{1};
  DeadlineCondition condition;
  std::string_view condition_word;  // empty without a condition

  bool read(CommandContext& ctx) {
    const HashFieldDialect& dialect = dialect_of(ctx);
    if (dialect.fields_come_last)
      return dialect.names_errors ? read_in_order(ctx) : read_before_fields(ctx);
    bool is_ambiguous = false;
    for (ArgReader reader(ctx.args, 3); reader.more();) {
      const std::string_view word = reader.peek();
      if (!fields.given() && reader.left() < kShortestClause && is_word(word, "FIELDS"))
        return ctx.refuse("ERR FIELDS requires at least numfields and one field argument");
      const auto step = fields.take(ctx, reader, kBadNumFields);
      if (step == FieldsClause::Step::kFailed) return false;
      if (step == FieldsClause::Step::kTaken) continue;
      if (!condition.read(reader)) return unknown_argument(ctx, word);
      is_ambiguous |= !condition_word.empty() && !base::equal_ignoring_case(word, condition_word);
      condition_word = word;
    }
    if (!fields.given()) return missing_fields(ctx);
    if (is_ambiguous) ctx.reply.error("ERR Multiple condition flags specified");
    return !is_ambiguous;
  }

 private:
  static constexpr std::string_view kBadNumFields =
      "ERR Parameter `numFields` should be greater than 0";
  static constexpr size_t kShortestClause = 3;  // FIELDS, the number of fields, one field

  bool read_in_order(CommandContext& ctx) {
    ArgReader reader(ctx.args, 3);
    const std::string_view word = reader.peek();
    if (condition.read(reader)) condition_word = word;
    return fields.take_rest(ctx, reader, kBadNumFields);
  }
  bool read_before_fields(CommandContext& ctx) {
    Arguments options;
    if (!fields.find_last(ctx, 3, &options) || !read_conditions(ctx, options, &condition))
      return false;
    if (!options.empty()) condition_word = options.back();
    return fields.read_last(ctx);
  }
};

// Propagates the request with the deadline as a Unix time in milliseconds, for the fields in
// `given`, those of its fields that got the deadline.
void propagate_deadlines(CommandContext& ctx, TimeUnit unit, TimeBase base, int64_t deadline_ms,
                         const DeadlineOptions& options,
                         const std::vector<std::string_view>& given) {
  if (!ctx.propagation.wanted() || given.empty()) return;
  const bool is_exact = unit == TimeUnit::kMilliseconds && base == TimeBase::kUnixTime;
  if (is_exact && options.fields.is_last() && given.size() == options.fields.words().size()) return;
  const std::string count = std::to_string(given.size());
  std::vector<std::string_view> words;
  if (!options.condition_word.empty()) words.push_back(options.condition_word);
  words.push_back("FIELDS");
  words.push_back(count);
  words.insert(words.end(), given.begin(), given.end());
  ctx.propagate({is_exact ? ctx.args[0] : "HPEXPIREAT", ctx.args[1], deadline_ms}, words);
}

void set_deadlines(CommandContext& ctx, TimeUnit unit, TimeBase base) {
  constexpr int64_t kRefused = 0;
  constexpr int64_t kSet = 1;
  constexpr int64_t kDeleted = 2;
  const HashFieldDialect& dialect = dialect_of(ctx);
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  if (!dialect.checks_key_last && !ctx.is_type(ref, Hash::kType)) return;
  int64_t deadline_ms = 0;
  DeadlineOptions options;
  const auto read_time = [&] {
    return read_field_deadline(ctx, ctx.args[2], unit, base, &deadline_ms);
  };
  if (!dialect.reads_time_last && !read_time()) return;
  if (!options.read(ctx) || (dialect.reads_time_last && !read_time())) return;
  if (dialect.checks_key_last && !ctx.is_type(ref, Hash::kType)) return;
  const Arguments fields = options.fields.words();
  ctx.reply.array(fields.size());
  if (!ref) return reply_integers(ctx, fields.size(), kNoSuchField);
  Hash& hash = value_of<Hash>(ref);
  FieldExpirySetter deadlines(ctx, hash, deadline_ms);
  std::vector<std::string_view> given;
  for (const std::string_view field : fields) {
    const std::optional<int64_t> current_ms = hash.deadline_ms(field);
    if (!current_ms || (dialect.leaves_expired_fields && hash.is_due(*current_ms))) {
      ctx.reply.integer(kNoSuchField);
    } else if (!options.condition.holds(*current_ms, deadline_ms)) {
      ctx.reply.integer(kRefused);
    } else {
      deadlines.apply(field);
      given.push_back(field);
      ctx.reply.integer(deadlines.deletes() ? kDeleted : kSet);
    }
  }
  if (!deadlines.deletes()) propagate_deadlines(ctx, unit, base, deadline_ms, options, given);
  deadlines.notify(ref);
}

void hexpire(CommandContext& ctx) {
  set_deadlines(ctx, TimeUnit::kSeconds, TimeBase::kFromNow);
}
void hpexpire(CommandContext& ctx) {
  set_deadlines(ctx, TimeUnit::kMilliseconds, TimeBase::kFromNow);
}
void hexpireat(CommandContext& ctx) {
  set_deadlines(ctx, TimeUnit::kSeconds, TimeBase::kUnixTime);
}
void hpexpireat(CommandContext& ctx) {
  set_deadlines(ctx, TimeUnit::kMilliseconds, TimeBase::kUnixTime);
}

// The deadline of a field for a reply: a Unix time in milliseconds, kNoSuchField or kLivesForEver.
int64_t shown_deadline(const Hash& hash, std::string_view field) {
  const std::optional<int64_t> deadline_ms = hash.deadline_ms(field);
  if (!deadline_ms || hash.is_due(*deadline_ms)) return kNoSuchField;
  return *deadline_ms == Hash::kNoDeadline ? kLivesForEver : *deadline_ms;
}

void hpersist(CommandContext& ctx) {
  constexpr int64_t kDropped = 1;
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  Arguments fields;
  if (!read_fields_of(ctx, ref, &fields)) return;
  ctx.reply.array(fields.size());
  if (!ref) return reply_integers(ctx, fields.size(), kNoSuchField);
  Hash& hash = value_of<Hash>(ref);
  bool any_dropped = false;
  ChangedFields persisted(ctx);
  for (const std::string_view field : fields) {
    const int64_t shown = shown_deadline(hash, field);
    if (shown < 0) {
      ctx.reply.integer(shown);
      continue;
    }
    hash.set_deadline(field, Hash::kNoDeadline);
    any_dropped = true;
    persisted.add(field);
    ctx.reply.integer(kDropped);
  }
  // Counts as one change, however many fields there are, as in the reference.
  if (any_dropped) deadlines_changed(ctx, ref, 1, "hpersist", persisted);
}

// --- Asking -------------------------------------------------------------------------------------

// Rounds up to whole seconds.
int64_t to_seconds(int64_t ms) {
  return (ms + base::kMsPerSecond - 1) / base::kMsPerSecond;
}

template <typename Show>
void reply_deadlines(CommandContext& ctx, Show&& show) {
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  Arguments fields;
  if (!read_fields_of(ctx, ref, &fields)) return;
  ctx.reply.array(fields.size());
  if (!ref) return reply_integers(ctx, fields.size(), kNoSuchField);
  const auto hash = view_of<Hash>(ref);
  for (const std::string_view field : fields) {
    const int64_t shown = shown_deadline(*hash, field);
    ctx.reply.integer(shown < 0 ? shown : show(shown));
  }
}

void httl(CommandContext& ctx) {
  reply_deadlines(ctx, [&](int64_t deadline_ms) { return to_seconds(deadline_ms - ctx.now_ms()); });
}
void hpttl(CommandContext& ctx) {
  reply_deadlines(ctx, [&](int64_t deadline_ms) { return deadline_ms - ctx.now_ms(); });
}
void hexpiretime(CommandContext& ctx) {
  reply_deadlines(ctx, [](int64_t deadline_ms) { return to_seconds(deadline_ms); });
}
void hpexpiretime(CommandContext& ctx) {
  reply_deadlines(ctx, [](int64_t deadline_ms) { return deadline_ms; });
}

// --- Reading and setting ------------------------------------------------------------------------

// The time of HGETEX and HSETEX: EX, PX, EXAT or PXAT with a time, or one word in their place.
class FieldTime {
 public:
  enum class Step : uint8_t { kTaken, kNotMine, kFailed };
  // `word`: PERSIST or KEEPTTL. `other_word`: the other one, which is the other command's.
  FieldTime(std::string_view word, std::string_view other_word)
      : word_(word), other_word_(other_word) {}

  // Consumes the option if it comes next. Sends the error if it returns kFailed.
  Step take(CommandContext& ctx, ArgReader& reader) {
    const bool is_time = std::any_of(std::begin(kTimeWords), std::end(kTimeWords),
                                     [&](auto& each) { return is_word(reader.peek(), each.name); });
    const HashFieldDialect& dialect = dialect_of(ctx);
    const bool is_other = !dialect.fields_come_last && is_word(reader.peek(), other_word_);
    if (!is_time && !is_other && !is_word(reader.peek(), word_)) return Step::kNotMine;
    const bool repeats_word = has_word() && !is_time;
    // The two words do not exclude each other, but one of them is refused anyway.
    const bool is_excluded =
        is_other ? has_other_word_ || gives_deadline() : given_ || (is_time && has_other_word_);
    if (is_excluded && !(dialect.word_may_repeat && repeats_word)) {
      return ctx.refuse(dialect.names_errors
                            ? "ERR Only one of EX, PX, EXAT, PXAT or " + std::string(word_) +
                                  " arguments can be specified"
                            : "ERR syntax error",
                        Step::kFailed);
    }
    if (reader.word(word_)) {
      given_ = true;
      return Step::kTaken;
    }
    if (is_other) {
      reader.next();
      has_other_word_ = true;
      return Step::kTaken;
    }
    given_ = true;
    time_word_ = read_time_word(reader, &time_);
    if (time_word_ == nullptr)
      return ctx.refuse(dialect.names_errors ? "ERR missing expire time" : "ERR syntax error",
                        Step::kFailed);
    return dialect.reads_time_last || read_time(ctx) ? Step::kTaken : Step::kFailed;
  }
  // To be called at the end where the dialect reads the time last. False with the error sent.
  bool read_time(CommandContext& ctx) {
    return time_word_ == nullptr ||
           read_field_deadline(ctx, time_, time_word_->unit, time_word_->base, &deadline_ms_);
  }
  bool gives_deadline() const { return time_word_ != nullptr; }
  int64_t deadline_ms() const { return deadline_ms_; }
  // Whether PERSIST or KEEPTTL was given, the command's own.
  bool has_word() const { return given_ && !gives_deadline(); }
  bool has_other_word() const { return has_other_word_; }

 private:
  std::string_view word_;
  std::string_view other_word_;
  bool given_ = false;  // but for other_word_
  bool has_other_word_ = false;
  const TimeWord* time_word_ = nullptr;
  std::string_view time_;
  int64_t deadline_ms_ = Hash::kKeepDeadline;
};

// FNX or FXX: which of the fields must be there.
enum class IfFields : uint8_t { kAlways, kNoneIsThere, kAllAreThere };

// Reads the words of HGETEX and HSETEX in any order, those that only the other command has as well.
// False with the error sent.
bool read_in_any_order(CommandContext& ctx, FieldsClause& fields, FieldTime& time,
                       IfFields* condition) {
  const bool fields_come_last = dialect_of(ctx).fields_come_last;
  for (ArgReader reader(ctx.args, 2); reader.more();) {
    const auto clause = fields.take(ctx, reader, "ERR invalid number of fields");
    if (clause == FieldsClause::Step::kFailed) return false;
    if (clause == FieldsClause::Step::kTaken) {
      if (fields_come_last && !fields.is_last()) return refuse_arity(ctx);
      continue;
    }
    if (is_word(reader.peek(), "FNX") || is_word(reader.peek(), "FXX")) {
      if (*condition != IfFields::kAlways)
        return ctx.refuse("ERR Only one of FXX or FNX arguments can be specified");
      *condition = is_word(reader.next(), "FNX") ? IfFields::kNoneIsThere : IfFields::kAllAreThere;
      continue;
    }
    const auto option = time.take(ctx, reader);
    if (option == FieldTime::Step::kFailed) return false;
    if (option == FieldTime::Step::kNotMine) return unknown_argument(ctx, reader.peek());
  }
  if (fields.given()) return true;
  return fields_come_last ? refuse_arity(ctx) : missing_fields(ctx);
}

// Whether all words were the command's own: those of the other one are refused last, without their
// names, as in the reference. False with the error sent.
bool has_own_words(CommandContext& ctx, bool has_others) {
  if (has_others) ctx.reply.error("ERR unknown argument");
  return !has_others;
}

// The arguments of HGETEX.
struct GetRequest {
  FieldsClause fields{1};
  FieldTime time{"PERSIST", "KEEPTTL"};

  // False, with the error sent, when the arguments are invalid.
  bool read(CommandContext& ctx) {
    const HashFieldDialect& dialect = dialect_of(ctx);
    if (dialect.fields_come_last)
      return dialect.names_errors ? read_in_order(ctx) : read_before_fields(ctx);
    IfFields condition = IfFields::kAlways;
    return read_in_any_order(ctx, fields, time, &condition) &&
           has_own_words(ctx, time.has_other_word() || condition != IfFields::kAlways);
  }

 private:
  bool read_in_order(CommandContext& ctx) {
    ArgReader reader(ctx.args, 2);
    if (time.take(ctx, reader) == FieldTime::Step::kFailed) return false;
    return fields.take_rest(ctx, reader, "ERR Number of fields must be a positive integer");
  }
  bool read_before_fields(CommandContext& ctx) {
    Arguments options;
    if (!fields.find_last(ctx, 2, &options)) return false;
    for (ArgReader reader(options, 0); reader.more();) {
      const auto step = time.take(ctx, reader);
      if (step == FieldTime::Step::kNotMine) ctx.syntax_error();
      if (step != FieldTime::Step::kTaken) return false;
    }
    return fields.read_last(ctx) && time.read_time(ctx);
  }
};

// Replies with the values, and calls change(field) after each existing field.
template <typename Change>
void reply_values(CommandContext& ctx, Hash& hash, Arguments fields, Change&& change) {
  char scratch[Hash::kScratch];
  for (const std::string_view field : fields) {
    const auto value = hash.get(field, scratch);
    reply_text_or_null(ctx, value);
    if (value) change(field);
  }
}

void hgetex(CommandContext& ctx) {
  const HashFieldDialect& dialect = dialect_of(ctx);
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  if (!dialect.checks_key_last && !ctx.is_type(ref, Hash::kType)) return;
  GetRequest request;
  if (!request.read(ctx)) return;
  if (dialect.checks_key_last && !ctx.is_type(ref, Hash::kType)) return;
  const Arguments fields = request.fields.words();
  std::vector<std::string_view> fields_clause;
  std::string count;
  request.fields.append_to(&fields_clause, &count);
  if (ref) expire_read_fields(ctx, ref, fields);
  ctx.reply.array(fields.size());
  if (!ref) return reply_nulls(ctx, fields.size());
  Hash& hash = value_of<Hash>(ref);
  if (request.time.gives_deadline()) {
    FieldExpirySetter deadlines(ctx, hash, request.time.deadline_ms());
    reply_values(ctx, hash, fields, [&](std::string_view field) { deadlines.apply(field); });
    if (deadlines.any() && !deadlines.deletes())
      ctx.propagate({"HPEXPIREAT", ctx.args[1], request.time.deadline_ms()}, fields_clause);
    return deadlines.notify(ref);
  }
  uint64_t dropped = 0;
  ChangedFields persisted(ctx);
  const bool persists = request.time.has_word();
  if (persists) hash.prepare_deadlines();
  reply_values(ctx, hash, fields, [&](std::string_view field) {
    if (!persists || hash.deadline_ms(field) == Hash::kNoDeadline) return;
    hash.set_deadline(field, Hash::kNoDeadline);
    ++dropped;
    persisted.add(field);
  });
  if (dropped > 0) ctx.propagate({"HPERSIST", ctx.args[1]}, fields_clause);
  deadlines_changed(ctx, ref, dropped, "hpersist", persisted);
}

// The arguments of HSETEX.
struct SetRequest {
  using If = IfFields;
  If condition = If::kAlways;
  // Of the key: NX or XX, which only the dialect knows in which FIELDS comes last.
  If key_condition = If::kAlways;
  FieldTime time{"KEEPTTL", "PERSIST"};
  FieldsClause fields{2};

  // False, with the error sent, when the arguments are invalid.
  bool read(CommandContext& ctx) {
    const HashFieldDialect& dialect = dialect_of(ctx);
    if (dialect.fields_come_last && !dialect.names_errors) return read_before_fields(ctx);
    return read_in_any_order(ctx, fields, time, &condition) &&
           has_own_words(ctx, time.has_other_word());
  }
  Arguments pairs() const { return fields.words(); }
  bool has_conditions() const { return condition != If::kAlways || key_condition != If::kAlways; }

 private:
  bool read_before_fields(CommandContext& ctx) {
    Arguments options;
    if (!fields.find_last(ctx, 2, &options)) return false;
    for (ArgReader reader(options, 0); reader.more();) {
      if (read_word(reader, "FNX", "FXX", &condition) ||
          read_word(reader, "NX", "XX", &key_condition)) {
        continue;
      }
      const auto step = time.take(ctx, reader);
      if (step == FieldTime::Step::kNotMine) ctx.syntax_error();
      if (step != FieldTime::Step::kTaken) return false;
    }
    return fields.read_last(ctx) && time.read_time(ctx);
  }
  // False when neither word comes next, or the other one was given before.
  static bool read_word(ArgReader& reader, std::string_view none, std::string_view all,
                        If* condition) {
    if (*condition != If::kAllAreThere && reader.word(none)) {
      *condition = If::kNoneIsThere;
      return true;
    }
    if (*condition == If::kNoneIsThere || !reader.word(all)) return false;
    *condition = If::kAllAreThere;
    return true;
  }
};

bool all_are_there(CommandContext& ctx, KeyRef& ref, Arguments pairs) {
  for (size_t i = 0; i < pairs.size(); i += 2) {
    if (ref) expire_read_fields(ctx, ref, pairs.subspan(i, 1));
    if (!ref || !value_of<Hash>(ref).contains(pairs[i])) return false;
  }
  return true;
}

// When it is true the key is about to get fields, and stays although the last one has expired.
bool none_is_there(CommandContext& ctx, KeyRef& ref, Arguments pairs) {
  if (!ref) return true;
  Hash& hash = value_of<Hash>(ref);
  if (hash.has_due()) ctx.db.will_change(ref);
  size_t expired = 0;
  bool found = false;
  for (size_t i = 0; i < pairs.size() && !found; i += 2) {
    expired += hash.expire(pairs[i]) ? 1 : 0;
    found = hash.contains(pairs[i]);
  }
  if (expired == 0) return !found;
  if (hash.element_count() == 0) hash.set(pairs[0], pairs[1], Hash::kNoDeadline);
  ctx.db.elements_expired(ref);
  return !found;
}

// Whether all fields exist, or none does, as the request demands. Removes fields past their
// deadline, up to the first field that violates the condition.
bool condition_holds(CommandContext& ctx, KeyRef& ref, const SetRequest& request) {
  if (request.key_condition == SetRequest::If::kNoneIsThere && ref) return false;
  if (request.key_condition == SetRequest::If::kAllAreThere && !ref) return false;
  switch (request.condition) {
    case SetRequest::If::kAlways:
      break;
    case SetRequest::If::kAllAreThere:
      return all_are_there(ctx, ref, request.pairs());
    case SetRequest::If::kNoneIsThere:
      return none_is_there(ctx, ref, request.pairs());
  }
  return true;
}

// Propagates HSETEX in the order of words that older servers require, with the time as a Unix time
// in milliseconds.
void propagate_set_request(CommandContext& ctx, const SetRequest& request) {
  if (!ctx.propagation.wanted()) return;
  const std::string time = std::to_string(request.time.deadline_ms());
  std::string count;
  std::vector<std::string_view> words;
  if (request.condition != SetRequest::If::kAlways && dialect_of(ctx).propagates_conditions)
    words.push_back(request.condition == SetRequest::If::kNoneIsThere ? "FNX" : "FXX");
  if (request.time.gives_deadline()) {
    words.push_back("PXAT");
    words.push_back(time);
  } else if (request.time.has_word()) {
    words.push_back("KEEPTTL");
  }
  request.fields.append_to(&words, &count);
  ctx.propagate({ctx.args[0], ctx.args[1]}, words);
}

void hsetex(CommandContext& ctx) {
  const HashFieldDialect& dialect = dialect_of(ctx);
  SetRequest request;
  if (!request.read(ctx)) return;
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  if (!ctx.is_type(ref, Hash::kType)) return;
  if (!condition_holds(ctx, ref, request)) return ctx.reply.integer(0);
  Hash* hash = value_or_new<Hash>(ctx, ref, ctx.db.environment());
  const Arguments pairs = request.pairs();
  const uint64_t count = pairs.size() / 2;
  if (dialect.leaves_expired_fields) {
    // With KEEPTTL the replicas must lose the old deadlines first.
    if (request.time.has_word()) {
      none_is_there(ctx, ref, pairs);
    } else {
      expire_before_set(ctx, ref, pairs);
    }
  }
  hash->expect(count);
  ctx.reply.integer(1);
  if (!request.time.gives_deadline()) {
    const int64_t deadline_ms = request.time.has_word() ? Hash::kKeepDeadline : Hash::kNoDeadline;
    for (size_t i = 0; i < pairs.size(); i += 2) hash->set(pairs[i], pairs[i + 1], deadline_ms);
    share_names_of_written(ctx, *hash);
    ctx.changed(ctx.args[1], EventClass::kHash, "hset");
    tell_fields_of_pairs(ctx, "hset", pairs);
    ctx.events.count(count - 1);
    const bool leaves_out_conditions = request.has_conditions() && !dialect.propagates_conditions;
    if (!request.fields.is_last() || leaves_out_conditions) propagate_set_request(ctx, request);
    return index_deadlines(ctx, ref, *hash);
  }
  // Setting a field and its deadline is one change, which deadlines.notify() counts.
  ctx.events.happened(ctx.db, ctx.args[1], EventClass::kHash, "hset");
  tell_fields_of_pairs(ctx, "hset", pairs);
  FieldExpirySetter deadlines(ctx, *hash, request.time.deadline_ms());
  // Field by field, so that fields whose deadline has passed do not make the hash a table.
  for (size_t i = 0; i < pairs.size(); i += 2) {
    hash->set(pairs[i], pairs[i + 1], Hash::kNoDeadline);
    deadlines.apply(pairs[i]);
  }
  if (!deadlines.deletes()) {
    propagate_set_request(ctx, request);
  } else if (dialect.expires_at_once) {
    ctx.events.happened(ctx.db, ctx.args[1], EventClass::kHash, "hexpire");
  }
  deadlines.notify(ref);
}

// --- Rows ---------------------------------------------------------------------------------------

constexpr const char* kCostByFields = "O(N) where N is the number of specified fields";

constexpr CommandRow kHashDeadlineRows[] = {
    {"HEXPIRE", hexpire, "key seconds [condition=NX|XX|GT|LT] {FIELDS fields=numfields field...}",
     kWrite | kFast, keys(1).rw().update(), kAclHash, Group::kHash, "7.4.0", kCostByFields,
     "Set expiry for hash field using relative time to expire (seconds)"},
    {"HEXPIREAT", hexpireat,
     "key unix-time-seconds [condition=NX|XX|GT|LT] {FIELDS fields=numfields field...}",
     kWrite | kFast, keys(1).rw().update(), kAclHash, Group::kHash, "7.4.0", kCostByFields,
     "Set expiry for hash field using an absolute Unix timestamp (seconds)"},
    {"HEXPIRETIME", hexpiretime, "key {FIELDS fields=numfields field...}", kReadOnly | kFast,
     keys(1).ro().access(), kAclHash, Group::kHash, "7.4.0", kCostByFields,
     "Returns the expiration time of a hash field as a Unix timestamp, in seconds."},
    {"HGETEX", hgetex,
     "key [expiration=EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT "
     "unix-time-milliseconds|PERSIST] {FIELDS fields=numfields field...}",
     kWrite | kFast,
     keys(1).rw().access().update().note("RW and UPDATE because it changes the TTL"), kAclHash,
     Group::kHash, "8.0.0", kCostByFields,
     "Get the value of one or more fields of a given hash key, and optionally set their "
     "expiration."},
    {"HPERSIST", hpersist, "key {FIELDS fields=numfields field...}", kWrite | kFast,
     keys(1).rw().update(), kAclHash, Group::kHash, "7.4.0", kCostByFields,
     "Removes the expiration time for each specified field"},
    {"HPEXPIRE", hpexpire,
     "key milliseconds [condition=NX|XX|GT|LT] {FIELDS fields=numfields field...}", kWrite | kFast,
     keys(1).rw().update(), kAclHash, Group::kHash, "7.4.0", kCostByFields,
     "Set expiry for hash field using relative time to expire (milliseconds)"},
    {"HPEXPIREAT", hpexpireat,
     "key unix-time-milliseconds [condition=NX|XX|GT|LT] {FIELDS fields=numfields field...}",
     kWrite | kFast, keys(1).rw().update(), kAclHash, Group::kHash, "7.4.0", kCostByFields,
     "Set expiry for hash field using an absolute Unix timestamp (milliseconds)"},
    {"HPEXPIRETIME", hpexpiretime, "key {FIELDS fields=numfields field...}", kReadOnly | kFast,
     keys(1).ro().access(), kAclHash, Group::kHash, "7.4.0", kCostByFields,
     "Returns the expiration time of a hash field as a Unix timestamp, in msec."},
    {"HPTTL",
     hpttl,
     "key {FIELDS fields=numfields field...}",
     kReadOnly | kFast,
     keys(1).ro().access(),
     kAclHash,
     Group::kHash,
     "7.4.0",
     kCostByFields,
     "Returns the TTL in milliseconds of a hash field.",
     {.tips = "nondeterministic_output"}},
    {"HSETEX", hsetex,
     "key [condition=FNX|FXX] [expiration=EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT "
     "unix-time-milliseconds|KEEPTTL] {FIELDS fields=numfields {data=field value}...}",
     kWrite | kDenyOom | kFast, keys(1).rw().update(), kAclHash, Group::kHash, "8.0.0",
     "O(N) where N is the number of fields being set.",
     "Set the value of one or more fields of a given hash key, and optionally set their "
     "expiration."},
    {"HTTL",
     httl,
     "key {FIELDS fields=numfields field...}",
     kReadOnly | kFast,
     keys(1).ro().access(),
     kAclHash,
     Group::kHash,
     "7.4.0",
     kCostByFields,
     "Returns the TTL in seconds of a hash field.",
     {.tips = "nondeterministic_output"}},
};

}  // namespace

std::span<const CommandRow> hash_deadline_rows() {
  return kHashDeadlineRows;
}

}  // namespace latchkey::commands

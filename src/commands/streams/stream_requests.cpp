// Streams that remember the requests of producers: XCFGSET, XIDMPRECORD, and what XADD does for
// IDMP.
#include "commands/streams/stream_requests.h"

#include "base/digest/hash128.h"
#include "commands/groups.h"
#include "commands/keys/typed_key.h"
#include "commands/streams/stream_steps.h"

namespace latchkey::commands {

using namespace server;
using store::KeyRef;
using store::Stream;
using store::StreamId;
using store::StreamProducers;

// --- XADD ---------------------------------------------------------------------------------------

ProducerRequest::Step ProducerRequest::take(CommandContext& ctx, ArgReader& words) {
  constexpr size_t kWordsOfIdmp = 3;
  constexpr size_t kWordsOfIdmpAuto = 2;
  const bool automatic = words.left() >= kWordsOfIdmpAuto && is_word(words.peek(), "IDMPAUTO");
  if (!automatic && !(words.left() >= kWordsOfIdmp && is_word(words.peek(), "IDMP")))
    return Step::kNotMine;
  if (given())
    return ctx.refuse("ERR syntax error, IDMP/IDMPAUTO specified multiple times", Step::kFailed);
  words.next();
  producer_ = words.next();
  if (producer_.empty()) {
    return ctx.refuse(automatic ? "ERR syntax error, IDMPAUTO requires a non-empty producer ID"
                                : "ERR syntax error, IDMP requires a non-empty producer ID",
                      Step::kFailed);
  }
  if (automatic) return Step::kTaken;
  name_ = words.next();
  if (name_.empty())
    return ctx.refuse("ERR syntax error, IDMP requires a non-empty idempotent ID", Step::kFailed);
  return Step::kTaken;
}

void ProducerRequest::name_after(Arguments fields) {
  if (!name_.empty()) return;
  // A sum, so that the order of the fields does not matter.
  uint64_t sums[2] = {};
  std::string pair;
  for (size_t i = 0; i + 1 < fields.size(); i += 2) {
    const uint64_t size = fields[i].size();
    pair.assign(reinterpret_cast<const char*>(&size), sizeof size);
    pair.append(fields[i]).append(fields[i + 1]);
    const base::Hash128 hash = base::hash128(pair);
    sums[0] += hash.low;
    sums[1] += hash.high;
  }
  name_.assign(reinterpret_cast<const char*>(sums), sizeof sums);
}

std::optional<StreamId> ProducerRequest::repeats(const CommandContext& ctx,
                                                 const Stream& stream) const {
  if (stream.producers() == nullptr) return std::nullopt;
  const auto id = stream.producers()->find(producer_, name_, ctx.now_ms());
  if (id) stream.producers()->count_repeated();
  return id;
}

void ProducerRequest::remember(const CommandContext& ctx, Stream& stream, StreamId id) const {
  stream.producers_or_new().add(producer_, name_, id, ctx.now_ms());
}

// --- The commands -------------------------------------------------------------------------------

namespace {

struct Limits {
  std::optional<int64_t> duration_s;
  std::optional<int64_t> most_each;
};

bool read_limit(CommandContext& ctx, std::string_view name, std::string_view text,
                std::string_view range, int64_t most, std::optional<int64_t>* limit) {
  std::string error = "ERR ";
  if (limit->has_value()) return ctx.refuse(error.append(name).append(" specified multiple times"));
  int64_t value = 0;
  if (!ctx.read_int64(text, &value)) return false;
  if (value < 1 || value > most)
    return ctx.refuse(error.append(name).append(" must be between 1 and ").append(range));
  *limit = value;
  return true;
}

bool read_limits(CommandContext& ctx, Limits* limits) {
  for (ArgReader words(ctx.args, 2); words.more();) {
    std::string_view text;
    if (words.word("IDMP-DURATION", &text)) {
      if (!read_limit(ctx, "IDMP-DURATION", text, "86400 seconds",
                      StreamProducers::kLongestDurationS, &limits->duration_s))
        return false;
    } else if (words.word("IDMP-MAXSIZE", &text)) {
      if (!read_limit(ctx, "IDMP-MAXSIZE", text, "10000 entries",
                      StreamProducers::kMaxIdsPerProducer, &limits->most_each))
        return false;
    } else {
      ctx.syntax_error();
      return false;
    }
  }
  if (limits->duration_s || limits->most_each) return true;
  return ctx.refuse("ERR At least one parameter must be specified");
}

void xcfgset(CommandContext& ctx) {
  const std::string_view key = ctx.args[1];
  const KeyRef ref = ctx.db.find_for_write(key);
  if (!ref) return ctx.reply.error("ERR no such key");
  Stream* stream = value_at<Stream>(ctx, ref);
  if (stream == nullptr) return;
  Limits limits;
  if (!read_limits(ctx, &limits)) return;
  StreamProducers& producers = stream->producers_or_new();
  const auto duration_s = static_cast<uint32_t>(limits.duration_s.value_or(producers.duration_s()));
  const auto most_each = static_cast<uint32_t>(limits.most_each.value_or(producers.most_each()));
  if (duration_s != producers.duration_s() || most_each != producers.most_each()) {
    producers.set_limits(duration_s, most_each);
    ctx.events.count(1);  // the reference notifies nobody
  }
  ctx.reply.ok();
}

void xidmprecord(CommandContext& ctx) {
  const std::string_view key = ctx.args[1];
  const std::string_view producer = ctx.args[2];
  const std::string_view request = ctx.args[3];
  StreamId id;
  if (!read_stream_id(ctx, ctx.args[4], 0, &id)) return;
  if (producer.empty()) return ctx.reply.error("ERR producer ID must be non-empty");
  if (request.empty()) return ctx.reply.error("ERR idempotent ID must be non-empty");
  const KeyRef ref = ctx.db.find_for_write(key);
  if (!ref) return ctx.reply.error("ERR no such key");
  Stream* stream = value_at<Stream>(ctx, ref);
  if (stream == nullptr) return;
  if (!stream->contains(id)) return ctx.reply.error("ERR No such message in stream");
  StreamProducers& producers = stream->producers_or_new();
  if (const auto known = producers.find(producer, request, ctx.now_ms())) {
    if (*known == id) return ctx.reply.ok();
    return ctx.reply.error("ERR IID already exists for this producer with a different stream ID");
  }
  producers.add(producer, request, id, ctx.now_ms());
  ctx.events.count(1);
  ctx.reply.ok();
}

constexpr CommandRow kStreamRequestRows[] = {
    {"XCFGSET", xcfgset,
     "key [idmp-duration-block=idmp-duration-token=IDMP-DURATION duration:integer] "
     "[idmp-maxsize-block=idmp-maxsize-token=IDMP-MAXSIZE maxsize:integer]",
     kWrite | kFast, keys(1).rw().update(), kAclStream, Group::kStream, "8.6.0", "O(1)",
     "Sets the IDMP configuration parameters for a stream."},
    {"XIDMPRECORD", xidmprecord, "key pid iid stream-id", kWrite | kDenyOom | kFast,
     keys(1).rw().update(), kAclStream, Group::kStream, "8.6.2", "O(1)",
     "An internal command for setting IDMP metadata on an existing stream message."},
};

}  // namespace

std::span<const CommandRow> stream_request_rows() {
  return kStreamRequestRows;
}

}  // namespace latchkey::commands

#include "commands/streams/stream_steps.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <string>

#include "base/text/number.h"
#include "base/text/up_to_nul.h"
#include "commands/keys/typed_key.h"
#include "server/client/client.h"

namespace latchkey::commands {

using namespace server;
using store::Stream;
using store::StreamEntry;
using store::StreamId;
using store::StreamRange;
using store::StreamReferences;
using store::StreamTrim;

namespace {

constexpr uint64_t kMaxSequence = std::numeric_limits<uint64_t>::max();
constexpr std::string_view kInvalidId =
    "ERR Invalid stream ID specified as stream command argument";

// The numbers of an id may also have any form that the C library accepts: "007" and "+7" are seven.
bool parse_part(std::string_view text, uint64_t* value) {
  if (base::parse_uint64(text, value)) return true;
  int64_t negative = 0;
  if (text.empty() || base::parse_int64(text, &negative)) return false;
  const std::string terminated(text);
  char* end = nullptr;
  errno = 0;
  const unsigned long long number = std::strtoull(terminated.c_str(), &end, 10);
  if (errno != 0 || *end != '\0') return false;
  *value = number;
  return true;
}

bool is_too_long(std::string_view text) {
  constexpr size_t kLongestId = 127;
  return text.size() > kLongestId;
}

// Reads one bound of a range; *excluded is set when it begins with "(".
bool read_bound(CommandContext& ctx, std::string_view text, uint64_t without_sequence, StreamId* id,
                bool* excluded) {
  *excluded = text.size() > 1 && text.front() == '(';
  if (*excluded) return read_stream_id(ctx, text.substr(1), without_sequence, id);
  if (text == "-" || text == "+") {
    *id = text == "-" ? StreamId() : StreamId::max();
    return true;
  }
  return read_stream_id(ctx, text, without_sequence, id);
}

}  // namespace

bool parse_stream_id(std::string_view text, uint64_t without_sequence, StreamId* id) {
  if (is_too_long(text)) return false;
  text = base::up_to_nul(text);
  const size_t dash = text.find('-');
  if (!parse_part(text.substr(0, dash), &id->ms)) return false;
  id->sequence = without_sequence;
  return dash == std::string_view::npos || parse_part(text.substr(dash + 1), &id->sequence);
}

bool read_stream_id(CommandContext& ctx, std::string_view text, uint64_t without_sequence,
                    StreamId* id) {
  if (parse_stream_id(text, without_sequence, id)) return true;
  return ctx.refuse(kInvalidId);
}

bool read_new_stream_id(CommandContext& ctx, std::string_view text, StreamId* id, IdForm* form) {
  const std::string_view told = base::up_to_nul(text);
  constexpr std::string_view kAnySequence = "-*";
  if (!is_too_long(text) && told.ends_with(kAnySequence)) {
    *form = IdForm::kMilliseconds;
    const size_t dash = told.find('-');
    if (dash == told.size() - kAnySequence.size() && parse_part(told.substr(0, dash), &id->ms))
      return true;
    return ctx.refuse(kInvalidId);
  }
  *form = IdForm::kWhole;
  return read_stream_id(ctx, text, 0, id);
}

bool is_stream_id(std::string_view text) {
  constexpr std::string_view kAnySequence = "-*";
  if (text.ends_with(kAnySequence)) text.remove_suffix(kAnySequence.size());
  StreamId id;
  return parse_stream_id(text, 0, &id);
}

bool read_stream_range(CommandContext& ctx, std::string_view first, std::string_view last,
                       StreamRange* range) {
  bool excluded = false;
  if (!read_bound(ctx, first, 0, &range->first, &excluded)) return false;
  if (excluded) {
    if (range->first == StreamId::max()) return ctx.refuse("ERR invalid start ID for the interval");
    range->first = range->first.next();
  }
  if (!read_bound(ctx, last, kMaxSequence, &range->last, &excluded)) return false;
  if (excluded) {
    if (range->last.is_zero()) return ctx.refuse("ERR invalid end ID for the interval");
    range->last = range->last.previous();
  }
  return true;
}

bool read_stream_references(ArgReader& words, StreamReferences* references, bool* told) {
  if (words.word("KEEPREF")) {
    *references = StreamReferences::kKeep;
  } else if (words.word("DELREF")) {
    *references = StreamReferences::kDelete;
  } else if (words.word("ACKED")) {
    *references = StreamReferences::kAcknowledged;
  } else {
    return false;
  }
  *told = true;
  return true;
}

// --- Trimming -----------------------------------------------------------------------------------

StreamTrimReader::Step StreamTrimReader::take_threshold(ArgReader& words, StreamTrim::By by) {
  words.next();
  if (options_.given)
    return ctx_.refuse(
        "ERR syntax error, MAXLEN and MINID options at the same time are not compatible",
        Step::kFailed);
  options_.given = true;
  StreamTrim& trim = options_.trim;
  trim.by = by;
  if (words.left() > 1) {
    trim.approximate = words.word("~");
    if (!trim.approximate) words.word("=");
  }
  options_.threshold_word = words.position();
  const std::string_view threshold = words.next();
  if (by == StreamTrim::By::kMinId)
    return read_stream_id(ctx_, threshold, 0, &trim.min_id) ? Step::kTaken : Step::kFailed;
  int64_t length = 0;
  if (!ctx_.read_int64(threshold, &length)) return Step::kFailed;
  if (length < 0) return ctx_.refuse("ERR The MAXLEN argument must be >= 0.", Step::kFailed);
  trim.max_length = static_cast<uint64_t>(length);
  return Step::kTaken;
}

StreamTrimReader::Step StreamTrimReader::take(ArgReader& words) {
  // A second one is read as what else may stand there: XADD takes it for an id.
  if (!references_told_ &&
      read_stream_references(words, &options_.trim.references, &references_told_))
    return Step::kTaken;
  if (words.left() < 2) return Step::kNotMine;
  if (is_word(words.peek(), "MAXLEN")) return take_threshold(words, StreamTrim::By::kMaxLength);
  if (is_word(words.peek(), "MINID")) return take_threshold(words, StreamTrim::By::kMinId);
  std::string_view text;
  if (!words.word("LIMIT", &text)) return Step::kNotMine;
  int64_t limit = 0;
  if (!ctx_.read_int64(text, &limit)) return Step::kFailed;
  if (limit < 0) return ctx_.refuse("ERR The LIMIT argument must be >= 0.", Step::kFailed);
  options_.trim.limit = static_cast<uint64_t>(limit);
  limited_ = true;
  return Step::kTaken;
}

bool StreamTrimReader::finish(StreamTrimOptions* options, bool must_trim) {
  StreamTrim& trim = options_.trim;
  if (limited_ && !options_.given && trim.limit != 0)
    return ctx_.refuse(
        "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy");
  if (must_trim && !options_.given)
    return ctx_.refuse("ERR syntax error, XTRIM must be called with a trimming strategy");
  // A propagated trim is exact but may keep its LIMIT.
  if (limited_ && !trim.approximate && !ctx_.client.has(kClientInternal | kClientMaster))
    return ctx_.refuse("ERR syntax error, LIMIT cannot be used without the special ~ option");
  if (trim.approximate && !limited_) {
    // The size of a hundred full nodes, at most kMax.
    constexpr uint64_t kNodes = 100;
    constexpr uint64_t kUnlimitedNodes = 10'000;
    constexpr uint64_t kMax = 1'000'000;
    const uint64_t entries = ctx_.db.environment().limits.stream_node_max_entries;
    trim.limit = entries == 0 ? kUnlimitedNodes : std::min(entries, kMax / kNodes) * kNodes;
  }
  *options = options_;
  return true;
}

void make_trim_exact(const StreamTrimOptions& options, const Stream& stream,
                     std::vector<std::string_view>* words, std::string* scratch) {
  if (!options.given || !options.trim.approximate) return;
  if (options.trim.by == StreamTrim::By::kMaxLength) {
    *scratch = std::to_string(stream.size());
  } else {
    // If no entry is left, trimming below the greatest id removes them all.
    *scratch = stream_id_text(stream.size() == 0 ? StreamId::max() : stream.first_id());
  }
  (*words)[options.threshold_word - 1] = "=";
  (*words)[options.threshold_word] = *scratch;
}

Stream* stream_or_new(CommandContext& ctx, store::KeyRef& ref) {
  const bool is_new = !ref;
  Stream* stream = value_or_new<Stream>(ctx, ref);
  if (is_new && stream != nullptr) stream->begin_with(ctx.db.environment().limits);
  return stream;
}

// --- Replying -----------------------------------------------------------------------------------

namespace {

constexpr size_t kMaxIdText = 2 * base::kMaxInt64Text + 1;

size_t format_id(StreamId id, char* out) {
  size_t size = base::format_uint64(id.ms, out);
  out[size++] = '-';
  return size + base::format_uint64(id.sequence, out + size);
}

void reply_element(resp::ReplyBuilder& reply, const store::Listpack::Element& element) {
  element.is_integer ? reply.bulk(element.integer) : reply.bulk(element.bytes);
}

}  // namespace

bool read_counted_ids(CommandContext& ctx, ArgReader& words, Arguments* ids) {
  if (!words.more()) {
    ctx.syntax_error();
    return false;
  }
  constexpr std::string_view kNotPositive = "ERR Number of IDs must be a positive integer";
  int64_t count = 0;
  if (!ctx.read_int64_in(words.next(), 1, INT64_MAX, &count, kNotPositive)) return false;
  if (static_cast<uint64_t>(count) > words.left())
    return ctx.refuse("ERR The `numids` parameter must match the number of arguments");
  *ids = words.rest().first(static_cast<size_t>(count));
  for (size_t i = 0; i < ids->size(); ++i) words.next();
  return true;
}

std::string stream_id_text(StreamId id) {
  char text[kMaxIdText];
  return std::string(text, format_id(id, text));
}

void reply_stream_id(resp::ReplyBuilder& reply, StreamId id) {
  char text[kMaxIdText];
  reply.bulk(std::string_view(text, format_id(id, text)));
}

namespace {

size_t reply_size(size_t text_size) {
  constexpr size_t kFrame = 5;  // "$", and two line ends
  return kFrame + base::count_digits(text_size) + text_size;
}

size_t reply_size(const store::Listpack::Element& element) {
  char text[store::Listpack::kScratch];
  return reply_size(element.text(text).size());
}

// As reply_stream_entry() writes it, without the headers of its arrays.
size_t reply_size(const StreamEntry& entry) {
  size_t size = reply_size(stream_id_text(entry.id()).size());
  entry.for_each_field(
      [&](const auto& field, const auto& value) { size += reply_size(field) + reply_size(value); });
  return size;
}

}  // namespace

bool ReplyBudget::take_limited(const StreamEntry& entry) {
  return take_bytes(bytes_ == 0 ? 0 : reply_size(entry));
}

bool ReplyBudget::take(StreamId id) {
  return !is_limited() || take_bytes(reply_size(stream_id_text(id).size()));
}

bool ReplyBudget::take_bytes(size_t size) {
  if (spent_ || (sent_entries_ > 0 && ((entries_ != 0 && sent_entries_ >= entries_) ||
                                       (bytes_ != 0 && sent_bytes_ + size > bytes_)))) {
    spent_ = true;
    return false;
  }
  ++sent_entries_;
  sent_bytes_ += size;
  return true;
}

void reply_stream_entry(resp::ReplyBuilder& reply, const StreamEntry& entry, size_t more) {
  reply.array(2 + more);
  reply_stream_id(reply, entry.id());
  reply.array(entry.fields() * 2);
  entry.for_each_field([&](const auto& field, const auto& value) {
    reply_element(reply, field);
    reply_element(reply, value);
  });
}

void reply_stream_entries(resp::ReplyBuilder& reply, const Stream& stream, const StreamRange& range,
                          bool reverse, size_t count, ReplyBudget* budget) {
  const resp::ReplyBuilder::Later later = reply.later();
  size_t sent = 0;
  stream.for_each(range, reverse, [&](const StreamEntry& entry) {
    if (budget != nullptr && !budget->take(entry)) return false;
    reply_stream_entry(reply, entry);
    return ++sent != count;
  });
  reply.array_later(later, sent);
}

}  // namespace latchkey::commands

// Steps that the stream commands share: reading ids from requests, and replying with entries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/command/command_context.h"
#include "store/encoding/stream_id.h"
#include "store/value/stream.h"

namespace latchkey::commands {

// --- Reading ------------------------------------------------------------------------------------

// Reads "ms-sequence" or "ms"; the latter gets the sequence `without_sequence`. False when it is
// neither.
bool parse_stream_id(std::string_view text, uint64_t without_sequence, store::StreamId* id);
// As parse_stream_id(), and sends the error on failure.
bool read_stream_id(server::CommandContext& ctx, std::string_view text, uint64_t without_sequence,
                    store::StreamId* id);

// Reads the words behind IDS, "numids id [id ...]", up to the last id, which need not be one yet.
// False, with the error sent, when there are fewer.
bool read_counted_ids(server::CommandContext& ctx, server::ArgReader& words,
                      server::Arguments* ids);

// Whether the text has the form of an id that XADD accepts, other than "*".
bool is_stream_id(std::string_view text);

// Which part of a new entry's id the server chooses.
enum class IdForm : uint8_t { kAutomatic, kMilliseconds, kWhole };
// Reads an id of XADD other than "*": complete, or "ms-*".
bool read_new_stream_id(server::CommandContext& ctx, std::string_view text, store::StreamId* id,
                        IdForm* form);

// Reads the bounds of a range: ids, "-" and "+", and "(" before an id that is excluded.
bool read_stream_range(server::CommandContext& ctx, std::string_view first, std::string_view last,
                       store::StreamRange* range);

// Consumes KEEPREF, DELREF or ACKED and sets `*references` accordingly and `*told` to true. False
// when the next word is none of them.
bool read_stream_references(server::ArgReader& words, store::StreamReferences* references,
                            bool* told);

// A StreamTrim and where its threshold is in the request.
struct StreamTrimOptions {
  bool given = false;
  store::StreamTrim trim;
  // The index of the word with the threshold; the word before it may be "~".
  size_t threshold_word = 0;
};

// Replaces, in the words of a request that has trimmed the stream approximately, the threshold by
// the one that trims exactly as much. The texts are stored in `scratch`.
void make_trim_exact(const StreamTrimOptions& options, const store::Stream& stream,
                     std::vector<std::string_view>* words, std::string* scratch);

// Reads the trimming options of a request, word by word.
class StreamTrimReader {
 public:
  explicit StreamTrimReader(server::CommandContext& ctx) : ctx_(ctx) {}
  enum class Step : uint8_t { kTaken, kNotMine, kFailed };
  // Consumes MAXLEN, MINID and LIMIT with their values, KEEPREF, DELREF and ACKED. Sends the error
  // if it returns kFailed.
  Step take(server::ArgReader& words);
  // Callers must call this after the last word; false with the error sent. `must_trim`: it is an
  // error if no trimming option was given.
  bool finish(StreamTrimOptions* options, bool must_trim = false);

 private:
  Step take_threshold(server::ArgReader& words, store::StreamTrim::By by);

  server::CommandContext& ctx_;
  StreamTrimOptions options_;
  bool limited_ = false;
  bool references_told_ = false;
};

// The stream at `ref`, made with the limits of the configuration when there is no key. Null, with
// the error sent, when the key has another type.
store::Stream* stream_or_new(server::CommandContext& ctx, store::KeyRef& ref);

// --- Replying -----------------------------------------------------------------------------------

// What the entries of one reply may come to together (MAXCOUNT and MAXSIZE of XREAD), counted as
// they are sent. The first entry is always sent.
class ReplyBudget {
 public:
  // 0: no limit. `bytes`: of the entries as they are sent.
  ReplyBudget(size_t entries, size_t bytes) : entries_(entries), bytes_(bytes) {}

  bool is_limited() const { return entries_ != 0 || bytes_ != 0; }
  // Whether an entry of that size may be sent too, which is counted then. Else the budget is spent.
  bool take(const store::StreamEntry& entry) { return !is_limited() || take_limited(entry); }
  // The same for the id of an entry that is gone.
  bool take(store::StreamId id);

 private:
  bool take_limited(const store::StreamEntry& entry);
  bool take_bytes(size_t size);

  size_t entries_;
  size_t bytes_;
  size_t sent_entries_ = 0;
  size_t sent_bytes_ = 0;
  bool spent_ = false;
};

// "ms-sequence".
std::string stream_id_text(store::StreamId id);
void reply_stream_id(resp::ReplyBuilder& reply, store::StreamId id);
// Replies with the id and an array of fields and values, to which the caller adds `more` elements.
void reply_stream_entry(resp::ReplyBuilder& reply, const store::StreamEntry& entry,
                        size_t more = 0);
// Replies with an array of up to `count` entries of a range (all when zero).
// With a `budget`, as far as it goes.
void reply_stream_entries(resp::ReplyBuilder& reply, const store::Stream& stream,
                          const store::StreamRange& range, bool reverse, size_t count,
                          ReplyBudget* budget = nullptr);

}  // namespace latchkey::commands

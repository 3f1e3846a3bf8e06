// Steps that the stream commands share: ids as words of a request, and entries as replies.
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

// Reads "ms-sequence" or "ms", which stands for the sequence `without_sequence`. False when it is
// neither.
bool parse_stream_id(std::string_view text, uint64_t without_sequence, store::StreamId* id);
// As above; false with the error sent.
bool read_stream_id(server::CommandContext& ctx, std::string_view text, uint64_t without_sequence,
                    store::StreamId* id);

// What the id of a new entry leaves to the server.
enum class IdForm : uint8_t { kAutomatic, kMilliseconds, kWhole };
// Reads an id of XADD that is not "*": whole, or "ms-*".
bool read_new_stream_id(server::CommandContext& ctx, std::string_view text, store::StreamId* id,
                        IdForm* form);

// Reads the ends of a range: ids, "-" and "+", and "(" before an id that is left out.
bool read_stream_range(server::CommandContext& ctx, std::string_view first, std::string_view last,
                       store::StreamRange* range);

// Steps over KEEPREF, DELREF or ACKED and sets what it says; `*told` says that there was one. False
// when the next word is none of them.
bool read_stream_references(server::ArgReader& words, store::StreamReferences* references,
                            bool* told);

// The sum of what StreamTrim says and what XADD says besides.
struct StreamTrimOptions {
  bool given = false;
  store::StreamTrim trim;
  // Which word of the request is the threshold; that before it may be "~".
  size_t threshold_word = 0;
};

// Puts into `words`, those of a request that has trimmed the stream about to a threshold, the
// threshold that trims it exactly as far. The texts are kept in `scratch`.
void make_trim_exact(const StreamTrimOptions& options, const store::Stream& stream,
                     std::vector<std::string_view>* words, std::string* scratch);

// Reads how a stream is trimmed, word by word.
class StreamTrimReader {
 public:
  explicit StreamTrimReader(server::CommandContext& ctx) : ctx_(ctx) {}
  enum class Step : uint8_t { kTaken, kNotMine, kFailed };
  // Takes MAXLEN, MINID and LIMIT with what belongs to them, KEEPREF, DELREF and ACKED. kFailed
  // with the error sent.
  Step take(server::ArgReader& words);
  // To be called when all words are read; false with the error sent. `must_trim`: nothing to be
  // trimmed is one.
  bool finish(StreamTrimOptions* options, bool must_trim = false);

 private:
  Step take_threshold(server::ArgReader& words, store::StreamTrim::By by);

  server::CommandContext& ctx_;
  StreamTrimOptions options_;
  bool limited_ = false;
  bool references_told_ = false;
};

// --- Replying -----------------------------------------------------------------------------------

// "ms-sequence".
std::string stream_id_text(store::StreamId id);
void reply_stream_id(resp::ReplyBuilder& reply, store::StreamId id);
// The id and an array of fields and values.
void reply_stream_entry(resp::ReplyBuilder& reply, const store::StreamEntry& entry);
// The entry of that id as above. False, with nothing sent, when there is none.
bool reply_stream_entry_at(resp::ReplyBuilder& reply, const store::Stream& stream,
                           store::StreamId id);
// Up to `count` entries of a range (all when zero) as an array.
void reply_stream_entries(resp::ReplyBuilder& reply, const store::Stream& stream,
                          const store::StreamRange& range, bool reverse, size_t count);

}  // namespace latchkey::commands

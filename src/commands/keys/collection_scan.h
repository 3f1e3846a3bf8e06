// The shared implementation of HSCAN, SSCAN and ZSCAN.
//
// A collection V has `uint64_t scan(uint64_t cursor, fn)`, one step of a scan that calls fn with an
// element's name and further data, and returns the next cursor (see store::HashTable::scan).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/text/glob.h"
#include "commands/keys/scan_cursor.h"
#include "commands/keys/typed_key.h"
#include "resp/output_buffer.h"
#include "resp/reply_builder.h"

namespace latchkey::commands {

struct CollectionScanOptions {
  int64_t count = 10;
  std::string_view pattern = "*";
  bool no_values = false;
  bool no_scores = false;

  // Reads from the request's fourth word on. False, with an error sent, on an invalid option.
  // NOVALUES is valid only for hashes, NOSCORES (of Valkey) for sorted sets.
  bool read(server::CommandContext& ctx, store::Type type);
};

// The elements that a scan has found, as they are sent. They come behind the cursor, which is known
// last.
class ScannedElements {
 public:
  explicit ScannedElements(server::CommandContext& ctx);
  void add(std::string_view text) {
    bulks_.bulk(text);
    ++count_;
  }
  // Replies with the cursor and the elements.
  void send(server::CommandContext& ctx, uint64_t cursor) const;

 private:
  resp::OutputBuffer bytes_;
  resp::ReplyBuilder bulks_;
  size_t count_ = 0;
};

// Executes such a command. `put(found, options, collection, name, rest...)` adds to `found` what is
// sent of an element whose name matches. Costs O(COUNT), or O(size) for a small collection.
template <typename V, typename Put>
void scan_collection(server::CommandContext& ctx, Put&& put) {
  uint64_t cursor;
  if (!read_cursor(ctx, ctx.args[2], &cursor)) return;
  const store::KeyRef ref = ctx.db.find(ctx.args[1]);
  if (!ctx.is_type(ref, V::kType)) return;
  ScannedElements found(ctx);
  if (!ref) {
    cursor = 0;
  } else {
    CollectionScanOptions options;
    if (!options.read(ctx, V::kType)) return;
    const store::View<V> view = view_of<V>(ref);
    const V& collection = *view;
    const base::GlobPattern pattern(options.pattern);
    // Maximum scan steps of one call per requested element.
    constexpr uint64_t kStepsPerElement = 10;
    const auto wanted = static_cast<uint64_t>(options.count);
    uint64_t seen = 0;
    uint64_t steps = 0;
    do {
      cursor = collection.scan(cursor, [&](std::string_view name, const auto&... rest) {
        ++seen;
        if (pattern.covers(name)) put(found, options, collection, name, rest...);
      });
      ++steps;
    } while (cursor != 0 && seen < wanted && steps / kStepsPerElement < wanted);
  }
  found.send(ctx, cursor);
}

}  // namespace latchkey::commands

// The shared implementation of HSCAN, SSCAN and ZSCAN.
//
// A collection V has `uint64_t scan(uint64_t cursor, fn)`, one step of a scan that calls fn with an
// element's name and further data, and returns the next cursor (see store::HashTable::scan).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/glob.h"
#include "commands/keys/scan_cursor.h"
#include "commands/keys/typed_key.h"

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

// Executes such a command. `put(out, options, collection, name, rest...)` appends to `out` the
// reply for an element whose name matches. Costs O(COUNT), or O(size) for a small collection.
template <typename V, typename Put>
void scan_collection(server::CommandContext& ctx, Put&& put) {
  uint64_t cursor;
  if (!parse_cursor(ctx.args[2], &cursor)) return ctx.reply.error("ERR invalid cursor");
  const store::KeyRef ref = ctx.db.find(ctx.args[1]);
  if (!ctx.is_type(ref, V::kType)) return;
  std::vector<std::string> found;
  if (!ref) {
    cursor = 0;
  } else {
    CollectionScanOptions options;
    if (!options.read(ctx, V::kType)) return;
    const V& collection = value_of<V>(ref);
    // Maximum scan steps of one call per requested element.
    constexpr uint64_t kStepsPerElement = 10;
    const auto wanted = static_cast<uint64_t>(options.count);
    uint64_t seen = 0;
    uint64_t steps = 0;
    do {
      cursor = collection.scan(cursor, [&](std::string_view name, const auto&... rest) {
        ++seen;
        if (options.pattern == "*" || base::glob_match(options.pattern, name))
          put(found, options, collection, name, rest...);
      });
      ++steps;
    } while (cursor != 0 && seen < wanted && steps / kStepsPerElement < wanted);
  }
  ctx.reply.array(2);
  ctx.reply.bulk(std::to_string(cursor));
  ctx.reply.array(found.size());
  for (const std::string& element : found) ctx.reply.bulk(std::string_view(element));
}

}  // namespace latchkey::commands

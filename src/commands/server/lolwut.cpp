// LOLWUT: a small random picture, and the version.
#include <algorithm>
#include <string>
#include <vector>

#include "commands/groups.h"
#include "server/command/command_context.h"
#include "server/server.h"

namespace latchkey::commands {

using namespace server;

namespace {

// A wall of locks seen from afar: each row of an elementary cellular automaton follows from the row
// above it, by a rule chosen at random from those with lively patterns.
std::string draw_wall(base::Random& random, size_t columns, size_t rows) {
  constexpr uint8_t kLivelyRules[] = {18, 22, 30, 45, 54, 60, 73, 90, 105, 110, 126, 150};
  constexpr std::string_view kShapes[] = {" ", "\u2591", "\u2592", "\u2593", "\u2588"};
  const uint8_t rule = kLivelyRules[random.below(std::size(kLivelyRules))];
  std::vector<uint8_t> row(columns);
  if (random.below(2) == 0) {
    row[columns / 2] = 1;
  } else {
    for (uint8_t& cell : row) cell = static_cast<uint8_t>(random.below(2));
  }
  std::vector<size_t> age(columns);
  std::string picture;
  for (size_t y = 0; y < rows; ++y) {
    for (size_t x = 0; x < columns; ++x) {
      age[x] = row[x] != 0 ? std::min(age[x] + 1, std::size(kShapes) - 1) : 0;
      picture += kShapes[age[x]];
    }
    picture += '\n';
    std::vector<uint8_t> next(columns);
    for (size_t x = 0; x < columns; ++x) {
      const unsigned left = row[(x + columns - 1) % columns];
      const unsigned right = row[(x + 1) % columns];
      next[x] = (rule >> (left << 2 | static_cast<unsigned>(row[x]) << 1 | right)) & 1;
    }
    row = std::move(next);
  }
  return picture;
}

void lolwut(CommandContext& ctx) {
  constexpr int64_t kMaxColumns = 1000;
  constexpr int64_t kMaxRows = 1000;
  int64_t columns = 64;
  int64_t rows = 16;
  std::string_view word;
  ArgReader options(ctx.args, 1);
  if (options.word("VERSION", &word)) {
    int64_t version;
    if (!ctx.read_int64(word, &version)) return;
    if (options.more() && !ctx.read_int64(options.next(), &columns)) return;
    if (options.more() && !ctx.read_int64(options.next(), &rows)) return;
  }
  columns = std::clamp<int64_t>(columns, 1, kMaxColumns);
  rows = std::clamp<int64_t>(rows, 1, kMaxRows);
  const Edition& edition = ctx.server.edition();
  const bool says_valkey = edition.is_valkey_since({9, 0});
  ctx.reply.verbatim("txt", draw_wall(ctx.server.environment().random, static_cast<size_t>(columns),
                                      static_cast<size_t>(rows)) +
                                (says_valkey ? "\nValkey" : "\nRedis") + " ver. " +
                                edition.version() + "\n");
}

constexpr CommandRow kLolwutRows[] = {
    {"LOLWUT",
     lolwut,
     "[VERSION version:integer]",
     kReadOnly | kFast,
     {},
     0,
     Group::kServer,
     "5.0.0",
     nullptr,
     "Displays computer art and the Redis version"},
};

}  // namespace

std::span<const CommandRow> lolwut_rows() {
  return kLolwutRows;
}

}  // namespace latchkey::commands

// Vectors as requests give them, and numbers as replies give them.
#pragma once

#include <optional>
#include <vector>

#include "server/command/command_context.h"

namespace latchkey::commands {

inline constexpr size_t kMaxDimensions = 65'536;

// Reads `FP32 blob` or `VALUES count number...`. Nothing, with the reader somewhere, when it is
// neither, when it has more than kMaxDimensions components, or when one is no finite number:
// distances would mean nothing.
std::optional<std::vector<float>> read_vector(server::ArgReader& args);

// 1 for vectors of the same direction, 0 for opposite ones.
double similarity(float distance);

inline void invalid_vector(server::CommandContext& ctx) {
  ctx.reply.error("ERR invalid vector specification");
}

// "ERR Vector dimension mismatch - got 2 but set has 3".
void dimension_mismatch(server::CommandContext& ctx, size_t got, size_t has);

// "ERR Input dimension mismatch for projection - got 4 but projection expects 3".
void projection_mismatch(server::CommandContext& ctx, size_t got, size_t expected);

}  // namespace latchkey::commands

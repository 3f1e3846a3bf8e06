#include "commands/vector_sets/vector_argument.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "base/text/number.h"

namespace latchkey::commands {

using server::ArgReader;

namespace {

std::optional<std::vector<float>> vector_of_blob(std::string_view blob) {
  if (blob.empty() || blob.size() % sizeof(float) != 0 ||
      blob.size() / sizeof(float) > kMaxDimensions)
    return std::nullopt;
  std::vector<float> components(blob.size() / sizeof(float));
  std::memcpy(components.data(), blob.data(), blob.size());
  return components;
}

std::optional<std::vector<float>> vector_of_values(ArgReader& args) {
  int64_t count;
  if (!args.more() || !base::parse_int64(args.next(), &count) || count < 1 ||
      static_cast<uint64_t>(count) > args.left() || static_cast<uint64_t>(count) > kMaxDimensions)
    return std::nullopt;
  std::vector<float> components(static_cast<size_t>(count));
  for (float& component : components) {
    double value;
    if (!base::parse_double(args.next(), &value)) return std::nullopt;
    component = static_cast<float>(value);
  }
  return components;
}

}  // namespace

std::optional<std::vector<float>> read_vector(ArgReader& args) {
  std::optional<std::vector<float>> vector;
  std::string_view blob;
  if (args.word("FP32", &blob)) {
    vector = vector_of_blob(blob);
  } else if (args.word("VALUES")) {
    vector = vector_of_values(args);
  }
  if (vector.has_value() && !std::all_of(vector->begin(), vector->end(),
                                         [](float component) { return std::isfinite(component); }))
    return std::nullopt;
  return vector;
}

double similarity(float distance) {
  return 1 - double{distance} / 2;
}

void dimension_mismatch(server::CommandContext& ctx, size_t got, size_t has) {
  ctx.reply.error("ERR Vector dimension mismatch - got " + std::to_string(got) + " but set has " +
                  std::to_string(has));
}

void projection_mismatch(server::CommandContext& ctx, size_t got, size_t expected) {
  ctx.reply.error("ERR Input dimension mismatch for projection - got " + std::to_string(got) +
                  " but projection expects " + std::to_string(expected));
}

}  // namespace latchkey::commands

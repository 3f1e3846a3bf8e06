// JSON documents and paths into them, both from anywhere. Input: the path's length in a byte, the
// path, the document. What is read is written and read again as the same; a walk finds the same
// twice, and each trail leads to what was found there. Bytes that are no text are tried as CBOR.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "store/json/json_cbor.h"
#include "store/json/json_parser.h"
#include "store/json/json_path_walk.h"
#include "store/json/json_writer.h"

namespace {

using latchkey::store::json::Node;
namespace json = latchkey::store::json;

constexpr size_t kMaxDepth = 127;
constexpr uint64_t kSeed = 1;
constexpr size_t kMostVisits = 20'000;

void require(bool holds) {
  if (!holds) std::abort();
}

void walk_twice(const json::Path& path, Node& root) {
  std::vector<const Node*> first;
  std::vector<const Node*> second;
  json::WalkBudget budget(root, kMostVisits);
  const bool is_done = json::walk(path, root, budget, [&](const Node& node, json::Trail trail) {
    first.push_back(&node);
    require(json::node_at(root, trail) == &node);
    return true;
  });
  json::WalkBudget same(root, kMostVisits);
  const bool is_done_again = json::walk(path, root, same, [&](const Node& node, json::Trail) {
    second.push_back(&node);
    return true;
  });
  require(is_done == is_done_again && first == second);
  if (path.is_single()) require(first.size() <= 1);
}

void round_trip(const Node& root) {
  const std::string text = json::written(root);
  const auto again = json::parse(text, Node::kMaxDepth, kSeed);
  require(bool(again));
  require(json::written(again->root) == text);
  require(again->root.equals(root));
  require(again->root.clone().equals(root));
  require(again->depth == root.depth());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string_view path_text = input.substr(0, data[0]);
  const std::string_view document = input.substr(path_text.size());

  auto cbor = json::parse_cbor(document, kMaxDepth, kSeed);
  if (cbor) round_trip(*cbor);
  if (!json::is_valid_utf8(document)) return 0;
  auto parsed = json::parse(document, kMaxDepth, kSeed);
  if (!parsed) return 0;
  round_trip(parsed->root);
  const auto path = json::parse_path(path_text);
  if (path) walk_twice(*path, parsed->root);
  return 0;
}

#include "persist/rdb/rdb_json.h"

#include <memory>
#include <utility>

#include "persist/rdb/module_parts.h"
#include "store/json/json_cbor.h"
#include "store/json/json_document.h"
#include "store/json/json_parser.h"
#include "store/json/json_writer.h"

namespace latchkey::persist {

using store::JsonDocument;
namespace json = store::json;

namespace {

base::Result<json::Node> parse_text(std::string_view text, uint64_t seed) {
  if (!json::is_valid_utf8(text)) return base::fail("it is not UTF-8");
  base::Result<json::Parsed> parsed = json::parse(text, json::Node::kMaxDepth, seed);
  if (!parsed) return parsed.failure();
  return std::move(parsed->root);
}

}  // namespace

void write_json(RdbWriter& writer, const store::Value& value) {
  ModuleWriter(writer).text(json::written(static_cast<const JsonDocument&>(value).root()));
}

ReadResult read_json(RdbReader& reader, store::Environment& environment, unsigned version,
                     LoadedValue* loaded) {
  // Before the first, documents were trees of parts.
  constexpr unsigned kFirstOfText = 2;
  constexpr unsigned kLastOfText = 3;
  constexpr unsigned kCbor = 4;
  ModuleReader parts(reader, "A JSON document");
  const uint64_t seed = JsonDocument::key_seed(environment);
  std::string_view bytes;
  if (version < kFirstOfText || version > kCbor) parts.fail("is of a version that is not known");
  if (version < kFirstOfText || version > kCbor || !parts.text(&bytes)) return ReadResult::kFailed;
  base::Result<json::Node> root = version <= kLastOfText
                                      ? parse_text(bytes, seed)
                                      : json::parse_cbor(bytes, json::Node::kMaxDepth, seed);
  if (!root) {
    parts.fail("is malformed: " + root.error());
    return ReadResult::kFailed;
  }
  loaded->type = JsonDocument::kType;
  loaded->value = std::make_unique<JsonDocument>(std::move(*root));
  return ReadResult::kDone;
}

}  // namespace latchkey::persist

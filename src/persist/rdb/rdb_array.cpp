#include "persist/rdb/rdb_array.h"

#include <memory>
#include <string_view>
#include <utility>

#include "persist/rdb/module_parts.h"
#include "store/value/array.h"

namespace latchkey::persist {

using store::Array;
using store::ArrayCell;

void write_array(RdbWriter& rdb, const store::Value& value) {
  const auto& array = static_cast<const Array&>(value);
  ModuleWriter writer(rdb);
  writer.unsigned_number(array.size());
  writer.unsigned_number(array.cursor());
  char scratch[store::kCellScratch];
  array.for_each(0, Array::kLastIndex, [&](uint64_t index, ArrayCell cell) {
    writer.unsigned_number(index);
    writer.text(store::cell::text(cell, scratch));
    return writer.ok();
  });
}

ReadResult read_array(RdbReader& rdb, store::Environment&, unsigned version, LoadedValue* loaded) {
  ModuleReader reader(rdb, "An array");
  uint64_t elements;
  uint64_t cursor;
  if (version != 0) reader.fail("is of a later version");
  if (version != 0 || !reader.unsigned_number(&elements) || !reader.unsigned_number(&cursor))
    return ReadResult::kFailed;
  auto array = std::make_unique<Array>();
  array->set_cursor(cursor);
  uint64_t least = 0;
  for (; elements > 0; --elements) {
    uint64_t index;
    std::string_view text;
    if (!reader.unsigned_number(&index) || !reader.text(&text)) return ReadResult::kFailed;
    if (index < least || index > Array::kLastIndex) {
      reader.fail("has indexes that do not ascend");
      return ReadResult::kFailed;
    }
    least = index + 1;
    array->set(index, text);
  }
  if (array->size() == 0) return ReadResult::kEmpty;
  loaded->type = Array::kType;
  loaded->value = std::move(array);
  return ReadResult::kDone;
}

}  // namespace latchkey::persist

#include "persist/rdb/rdb_array.h"

#include <memory>
#include <string>

#include "store/value/array.h"

namespace latchkey::persist {

using store::Array;
using store::ArrayCell;

namespace {

void write_number(RdbWriter& writer, uint64_t number) {
  writer.length(static_cast<uint64_t>(ModuleOpcode::kUnsigned));
  writer.length(number);
}

bool opcode(RdbReader& reader, ModuleOpcode wanted) {
  uint64_t read;
  if (!reader.length(&read)) return false;
  return read == static_cast<uint64_t>(wanted) ||
         reader.fail("An array has parts of the wrong kind");
}

bool read_number(RdbReader& reader, uint64_t* number) {
  return opcode(reader, ModuleOpcode::kUnsigned) && reader.length(number);
}

}  // namespace

void write_array(RdbWriter& writer, const Array& array) {
  writer.length(kArrayModule);
  write_number(writer, array.size());
  write_number(writer, array.cursor());
  char scratch[store::kCellScratch];
  array.for_each(0, Array::kLastIndex, [&](uint64_t index, ArrayCell value) {
    write_number(writer, index);
    writer.length(static_cast<uint64_t>(ModuleOpcode::kString));
    writer.string(store::cell::text(value, scratch));
    return writer.ok();
  });
  writer.length(static_cast<uint64_t>(ModuleOpcode::kEnd));
}

ReadResult read_array(RdbReader& reader, LoadedValue* loaded) {
  uint64_t elements;
  uint64_t cursor;
  if (!read_number(reader, &elements) || !read_number(reader, &cursor)) return ReadResult::kFailed;
  auto array = std::make_unique<Array>();
  array->set_cursor(cursor);
  uint64_t least = 0;
  for (; elements > 0; --elements) {
    uint64_t index;
    std::string_view text;
    if (!read_number(reader, &index) || !opcode(reader, ModuleOpcode::kString) ||
        !reader.string(&text))
      return ReadResult::kFailed;
    if (index < least || index > Array::kLastIndex) {
      reader.fail("The indexes of an array do not ascend");
      return ReadResult::kFailed;
    }
    least = index + 1;
    array->set(index, text);
  }
  if (!opcode(reader, ModuleOpcode::kEnd)) return ReadResult::kFailed;
  if (array->size() == 0) return ReadResult::kEmpty;
  loaded->type = Array::kType;
  loaded->value = std::move(array);
  return ReadResult::kDone;
}

}  // namespace latchkey::persist

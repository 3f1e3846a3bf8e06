// Lua values as JSON text.
//
//     nil, null      null                     table with keys 1..n only    [...]
//     boolean        true, false              any other table              {...}, an empty one too
//     number         as %.14g                 other values                 an error
//     string         quoted, '/' and all control characters escaped, other bytes as they are
//
// Ignores metatables, except for the mark of arrays: with it a table is [...] of its keys 1..n,
// whatever else it has. Linear in the size of the text.
#pragma once

#include <string>
#include <string_view>

#include "script/lua/json_options.h"
#include "script/lua/table_order.h"

struct lua_State;

namespace latchkey::script {

class Interpreter;

class JsonEncoder {
 public:
  // All arguments must outlive the encoder.
  JsonEncoder(lua_State* lua, const JsonOptions& options);

  // Appends the value on top of the stack. False, with the reason in error(), when it cannot be
  // encoded or when the script is being stopped. Raises no Lua errors as long as memory is not
  // limited; restores the stack only on success.
  bool encode();

  const std::string& text() const { return text_; }
  const char* error() const { return error_; }

 private:
  void string(std::string_view text);
  // Append what is at that place of the stack, counted from its bottom.
  bool value(int place, int depth);
  bool number(int place);
  bool table(int place, int depth);
  bool array(int place, int depth, int length);
  bool object(int place, int depth);
  bool key(const TableOrder::Pair& pair);
  bool is_marked(int place) const;
  // Gives the length of a table as an array, 0 for an object. False, with error() set, when it is
  // too sparse.
  bool measure_array(int place, int* length);
  bool fail_value(int place, const char* reason);

  lua_State* lua_;
  const JsonOptions& options_;
  Interpreter& interpreter_;
  std::string text_;
  unsigned values_ = 0;
  char error_[128] = "";
};

}  // namespace latchkey::script

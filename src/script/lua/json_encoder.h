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

#include <cstddef>
#include <string>

#include "script/lua/json_options.h"

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
  bool encode() { return value(0); }

  const std::string& text() const { return text_; }
  const char* error() const { return error_; }

 private:
  bool value(int depth);
  // Key or value at a place of the stack.
  bool number(int index);
  void string(int index);
  bool table(int depth);
  bool is_marked() const;
  bool array(int depth, int length);
  bool object(int depth);
  // Appends the key below the value on top of the stack.
  bool key();
  // Gives the length of the table on top of the stack as an array, 0 for an object. False, with
  // error() set, when it is too sparse.
  bool measure_array(int* length);
  bool fail_value(int index, const char* reason);

  lua_State* lua_;
  const JsonOptions& options_;
  Interpreter& interpreter_;
  std::string text_;
  unsigned values_ = 0;
  char error_[128] = "";
};

}  // namespace latchkey::script

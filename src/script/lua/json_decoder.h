// JSON text as Lua values: arrays and objects as tables, null as a light userdata of null.
//
// The text comes from scripts and is not trusted. Accepts JSON, and further numbers of strtod(3)
// ("0x10", "nan", "+1") if decode_invalid_numbers is set. A null character ends the text. Linear in
// its size.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "script/lua/json_options.h"

struct lua_State;

namespace latchkey::script {

class Interpreter;

class JsonDecoder {
 public:
  // REQUIRES: a null character after the text, as Lua's strings have it. All arguments must outlive
  // the decoder.
  JsonDecoder(lua_State* lua, std::string_view text, const JsonOptions& options);

  // Pushes the value. False, with the reason in error() and an unknown number of values pushed,
  // when the text is malformed or takes too much memory. Raises no Lua errors as long as memory is
  // not limited.
  bool decode();

  const char* error() const { return error_; }

 private:
  enum class Kind {
    kObjectBegin,
    kObjectEnd,
    kArrayBegin,
    kArrayEnd,
    kString,
    kNumber,
    kBoolean,
    kNull,
    kColon,
    kComma,
    kEnd,
    kError,
  };
  // Only what belongs to its kind is set.
  struct Token {
    Kind kind = Kind::kEnd;
    size_t offset = 0;
    // kString: a view of the text, or of unescaped_.
    std::string_view string = {};
    double number = 0;
    bool boolean = false;
    const char* problem = nullptr;  // kError
  };

  static const char* name_of(Kind kind);

  // Reads the next token into token_.
  void advance();
  bool starts_with(std::string_view word) const { return text_.substr(next_).starts_with(word); }
  void read_string();
  // Reads the escape after a backslash at next_. False with the error as token_.
  bool read_escape();
  bool read_unicode_escape();
  void read_number();
  void read_word();
  void take(Kind kind, size_t size);
  void fail_token(size_t offset, const char* problem);

  // Reads the value that token_ begins, up to its last token.
  bool value(int depth);
  bool array(int depth);
  bool object(int depth);
  bool enter(int depth, int slots);
  // Sets error(): `what` was expected where token_ is. False.
  bool expected(const char* what);

  lua_State* lua_;
  std::string_view text_;
  const JsonOptions& options_;
  Interpreter& interpreter_;
  size_t next_ = 0;
  Token token_;
  std::string unescaped_;
  char error_[128] = "";
};

}  // namespace latchkey::script

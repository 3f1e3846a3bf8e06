// The first line of a function library: the engine of its code, and its name.
//
//     #!lua name=mylib
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace latchkey::script {

struct LibraryHeader {
  std::string name;
  // The code to compile: from the end of the first line on, that line break included, so that line
  // numbers stay right. A view of the library's text.
  std::string_view code;
};

// Fails when the line is malformed; the error is the reference's, from "ERR " on.
base::Result<LibraryHeader> parse_library_header(std::string_view text);

// Whether `name` is valid for libraries and functions.
bool is_function_name(std::string_view name);
inline constexpr char kBadFunctionName[] =
    "ERR Library names can only contain letters, numbers, or underscores(_) and must be at least "
    "one character long";

}  // namespace latchkey::script

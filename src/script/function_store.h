// The function libraries of the server, by name, and their functions. Independent of Lua: a library
// refers to its compiled code only by a pointer.
//
// Stores share libraries, and a library in a store never changes, so a store is cheap to copy: an
// operation that may fail halfway works on a copy, which then replaces the store.
//
// Function names are case-insensitive but within a library, as in the reference: of two that differ
// in case alone the first is called (there, the one that its hash has first). Library names are
// case-sensitive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace latchkey::script {

struct Function {
  std::string name;
  std::optional<std::string> description;
  // ScriptFlag bits.
  uint32_t flags = 0;
  // The compiled function, in the interpreter's registry.
  int callback = 0;
};

struct FunctionLibrary {
  std::string name;
  // As it was loaded, including the first line.
  std::string code;
  std::vector<Function> functions;
  // Its destructor frees the compiled code.
  std::shared_ptr<const void> compiled;

  size_t memory_usage() const;
};

class FunctionStore {
 public:
  using Library = std::shared_ptr<const FunctionLibrary>;

  // Null when unknown. The names of functions compare without regard to case. O(log names).
  const Function* find_function(std::string_view name) const;
  const FunctionLibrary* find_library(std::string_view name) const;

  // Adds a library. Fails, with nothing changed, when a library of that name exists or a function
  // with the name of one of its own. The error is a reply, from "ERR " on.
  base::Result<> add(Library library);
  // The error of add() for a library whose name is taken.
  static std::string library_exists(std::string_view name);
  // Removes a library and returns it, or null when there is none.
  Library remove(std::string_view name);

  // Sorted by name.
  const std::map<std::string, Library, std::less<>>& libraries() const { return libraries_; }
  size_t library_count() const { return libraries_.size(); }
  size_t function_count() const { return functions_.size(); }
  // Bytes of the libraries and their index, without the compiled code. Linear in their number.
  size_t memory_usage() const;

 private:
  std::map<std::string, Library, std::less<>> libraries_;
  // By function name in lower case.
  std::map<std::string, const Function*, std::less<>> functions_;
};

}  // namespace latchkey::script

// The function libraries that the server knows, by name, and their functions. Knows nothing of Lua:
// what a library's code was compiled to hangs on it by a pointer.
//
// Libraries are shared by stores and never change once they are in one, so that a copy of a store
// is cheap: what may fail half way with several libraries is done to a copy, which then takes the
// store's place.
//
// Names of functions are the same in any case, names of libraries are not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

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
  // As it was loaded, the first line included.
  std::string code;
  std::vector<Function> functions;
  // Frees what the code was compiled to.
  std::shared_ptr<const void> compiled;

  // The function of that name in any case, or null. Linear.
  const Function* find(std::string_view function) const;
  size_t memory_usage() const;
};

class FunctionStore {
 public:
  using Library = std::shared_ptr<const FunctionLibrary>;

  // Null when unknown. O(1).
  const Function* find_function(std::string_view name) const;
  const FunctionLibrary* find_library(std::string_view name) const;

  // Adds a library. False, with nothing changed, when one of its name is there, or a function named
  // as one of its own, whose name then is in *taken.
  bool add(Library library, std::string* taken);
  // Takes a library out and returns it, or null when there is none.
  Library remove(std::string_view name);

  // By name.
  const std::map<std::string, Library, std::less<>>& libraries() const { return libraries_; }
  size_t library_count() const { return libraries_.size(); }
  size_t function_count() const { return functions_.size(); }
  // Bytes of the libraries and of what finds them, without the compiled code. Linear in their
  // number.
  size_t memory_usage() const;

 private:
  struct TextHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  std::map<std::string, Library, std::less<>> libraries_;
  // By their names in lower case.
  std::unordered_map<std::string, const Function*, TextHash, std::equal_to<>> functions_;
};

}  // namespace latchkey::script

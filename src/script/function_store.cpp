#include "script/function_store.h"

#include <utility>

#include "base/text/text.h"

namespace latchkey::script {

size_t FunctionLibrary::memory_usage() const {
  size_t bytes = sizeof *this + name.capacity() + code.capacity();
  for (const Function& function : functions) {
    bytes += sizeof function + function.name.capacity();
    if (function.description) bytes += function.description->capacity();
  }
  return bytes;
}

const Function* FunctionStore::find_function(std::string_view name) const {
  const auto found = functions_.find(base::lower_case(name));
  return found == functions_.end() ? nullptr : found->second;
}

const FunctionLibrary* FunctionStore::find_library(std::string_view name) const {
  const auto found = libraries_.find(name);
  return found == libraries_.end() ? nullptr : found->second.get();
}

base::Result<> FunctionStore::add(Library library) {
  if (find_library(library->name) != nullptr) return base::fail(library_exists(library->name));
  for (const Function& function : library->functions) {
    if (find_function(function.name) != nullptr)
      return base::fail("ERR Function " + function.name + " already exists");
  }
  for (const Function& function : library->functions)
    functions_.emplace(base::lower_case(function.name), &function);
  libraries_.emplace(library->name, std::move(library));
  return {};
}

std::string FunctionStore::library_exists(std::string_view name) {
  return "ERR Library '" + std::string(name) + "' already exists";
}

FunctionStore::Library FunctionStore::remove(std::string_view name) {
  const auto found = libraries_.find(name);
  if (found == libraries_.end()) return nullptr;
  Library removed = std::move(found->second);
  for (const Function& function : removed->functions)
    functions_.erase(base::lower_case(function.name));
  libraries_.erase(found);
  return removed;
}

size_t FunctionStore::memory_usage() const {
  // A node holds its pair, three links and a colour.
  constexpr size_t kLibraryNode = sizeof(*libraries_.begin()) + 4 * sizeof(void*);
  constexpr size_t kFunctionNode = sizeof(*functions_.begin()) + 4 * sizeof(void*);
  size_t bytes = functions_.size() * kFunctionNode;
  for (const auto& [unused, library] : libraries_) bytes += kLibraryNode + library->memory_usage();
  return bytes;
}

}  // namespace latchkey::script

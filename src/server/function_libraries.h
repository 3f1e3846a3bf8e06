// The function libraries of the server, as persistence and replication see them: text that is
// written with the dataset and loaded with it. The layer of scripts implements it
// (Server::set_functions).
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace latchkey::server {

class FunctionLibraries {
 public:
  virtual ~FunctionLibraries() = default;

  // Calls `visit` with the code of each library, its first line included. Only reads: may be called
  // in a forked child.
  virtual void for_each_code(const std::function<void(std::string_view code)>& visit) const = 0;

  // Adds a library that was written before, however long its code takes to run. Fails when its code
  // does, or when there is one of its name already and not `replace`. The error is that of FUNCTION
  // LOAD, from "ERR " on.
  virtual base::Result<> load(std::string_view code, bool replace) = 0;

  virtual void clear() = 0;

  // Has these libraries alone, in place of all that there were. Returns the errors of load(), which
  // are none unless a library's code fails: that library is left out.
  std::vector<std::string> replace_all(std::span<const std::string> codes) {
    clear();
    std::vector<std::string> errors;
    for (const std::string& code : codes) {
      if (const base::Result<> loaded = load(code, /*replace=*/false); !loaded)
        errors.push_back(loaded.error());
    }
    return errors;
  }
};

}  // namespace latchkey::server

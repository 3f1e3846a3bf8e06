// The function libraries of the server, as persistence and replication see them: text that is
// written with the dataset and loaded with it. Told by the layer of scripts
// (Server::set_functions).
#pragma once

#include <functional>
#include <string_view>

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
};

}  // namespace latchkey::server

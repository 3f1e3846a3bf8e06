// What a test cannot go on without.
#pragma once

#include <utility>

#include "base/result.h"
#include "server/config/config.h"
#include "unit/catch.h"

namespace latchkey::tests {

// The value of the result; a result that is an error fails the test with the error's text.
template <typename T>
T required(base::Result<T, server::ConfigError> result) {
  if (!result) FAIL(result.error().report());
  return *std::move(result);
}

}  // namespace latchkey::tests

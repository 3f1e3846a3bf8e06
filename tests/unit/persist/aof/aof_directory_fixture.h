// A server in a directory of its own that goes with the test, for tests of what stands on disk.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "unit/server_fixture.h"
#include "unit/temporary_directory.h"

namespace latchkey::tests {

// Words as a request of the protocol.
inline std::string request(std::initializer_list<std::string_view> words) {
  return bulks(words);
}

}  // namespace latchkey::tests

// Catch2 for the unit tests, of version 3 or 2: the one place that includes it.
//
// Tests are written as for version 3. What version 2 names differently is given the names of
// version 3 here.
#pragma once

#if __has_include(<catch2/catch_test_macros.hpp>)

#include <catch2/catch_approx.hpp>
#include <catch2/catch_session.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <catch2/matchers/catch_matchers_vector.hpp>

#else

#include <catch2/catch.hpp>
#include <string>

namespace Catch {

using Detail::Approx;

namespace Matchers {

inline auto ContainsSubstring(const std::string& text) {
  return Contains(text);
}

}  // namespace Matchers

}  // namespace Catch

#endif

#include "persist/loading.h"

#include <cstdint>

#include "base/time_units.h"
#include "unit/catch.h"

namespace latchkey::persist {

namespace {

int64_t seconds_left(int64_t elapsed_s, uint64_t done, uint64_t total) {
  LoadingFigures loading;
  loading.done_bytes = done;
  loading.total_bytes = total;
  server::PersistenceFigures figures;
  loading.describe(elapsed_s * base::kUsPerSecond, &figures);
  return figures.loading_left_s;
}

}  // namespace

TEST_CASE("The time left of a loading is told from what was loaded") {
  CHECK(seconds_left(10, 100, 300) == 20);
  CHECK(seconds_left(10, 300, 300) == 0);
  // Nothing to tell it from.
  CHECK(seconds_left(0, 100, 300) == 1);
  CHECK(seconds_left(10, 0, 300) == 1);
}

TEST_CASE("A loading of more than was announced has no time left") {
  CHECK(seconds_left(10, 100, 0) == 0);
  CHECK(seconds_left(10, 301, 300) == 0);
}

}  // namespace latchkey::persist

#include "base/timeout.h"

#include "unit/catch.h"

namespace latchkey::base {

TEST_CASE("A deadline is the time after the timeout, and none for a timeout of 0", "[timeout]") {
  CHECK(deadline_after(1'000, 1) == 1'001);
  CHECK(deadline_after(0, 5) == 5);
  CHECK(deadline_after(1'000, 0) == 0);
}

TEST_CASE("A deadline beyond what an int64 can say is the last time that it can", "[timeout]") {
  CHECK(deadline_after(1'000, INT64_MAX) == INT64_MAX);
  CHECK(deadline_after(1'000, INT64_MAX - 1'000) == INT64_MAX);
  CHECK(deadline_after(1'000, INT64_MAX - 1'001) == INT64_MAX - 1);
  CHECK(deadline_after(INT64_MAX, 1) == INT64_MAX);
}

TEST_CASE("A deadline moves with its clock, and does not become none", "[timeout]") {
  CHECK(moved_deadline(1'000, 400) == 600);
  CHECK(moved_deadline(1'000, -400) == 1'400);
  CHECK(moved_deadline(1'000, 999) == 1);
  CHECK(moved_deadline(1'000, 1'000) == 1);
  CHECK(moved_deadline(1'000, 5'000) == 1);
  CHECK(moved_deadline(INT64_MAX, -1) == INT64_MAX);
  CHECK(moved_deadline(INT64_MAX - 1, -1) == INT64_MAX);
  CHECK(moved_deadline(INT64_MAX - 2, -1) == INT64_MAX - 1);
}

TEST_CASE("Seconds for poll() are milliseconds that fit into an int", "[timeout]") {
  CHECK(poll_timeout_ms(0) == 0);
  CHECK(poll_timeout_ms(60) == 60'000);
  CHECK(poll_timeout_ms(2'147'483) == 2'147'483'000);
  CHECK(poll_timeout_ms(2'147'484) == INT_MAX);
  CHECK(poll_timeout_ms(INT_MAX) == INT_MAX);
}

}  // namespace latchkey::base

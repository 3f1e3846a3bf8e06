// What becomes of times when somebody sets the machine's clock.
#include "server/server.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

TEST_CASE("Intervals go by the time that passes, whatever the clock is set to") {
  ServerFixture f({});
  const int64_t began_ms = f.server.machine_ms();
  CHECK(began_ms == f.server.now_ms());
  f.advance_ms(5);
  CHECK(f.server.machine_ms() == began_ms + 5);
  const int64_t step_ms = GENERATE(3'600'000, -3'600'000);
  f.step_ms(step_ms);
  CHECK(f.server.machine_ms() == began_ms + 5);
  CHECK(f.server.now_ms() == began_ms + 5 + step_ms);
  f.advance_ms(5);
  CHECK(f.server.machine_ms() == began_ms + 10);
}

TEST_CASE("What is shown as a time is what the clock, as it is set, would have shown then") {
  ServerFixture f({});
  const int64_t began_ms = f.server.machine_ms();
  CHECK(f.server.shown_ms(began_ms) == began_ms);
  f.advance_ms(5);
  const int64_t step_ms = GENERATE(3'600'000, -3'600'000);
  f.step_ms(step_ms);
  CHECK(f.server.shown_ms(began_ms) == began_ms + step_ms);
  CHECK(f.server.shown_ms(f.server.machine_ms()) == f.server.now_ms());
}

}  // namespace latchkey::tests

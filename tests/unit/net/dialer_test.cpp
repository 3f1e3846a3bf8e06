#include "net/dialer.h"

#include <string>
#include <utility>

#include "net/loop.h"
#include "unit/catch.h"

using namespace latchkey::net;

namespace {

// The lookup of such a name cannot even be started.
Dialer::Target unspeakable() {
  constexpr size_t kTooLong = 300;
  return {.host = std::string(kTooLong, 'a'), .port = 6379, .source = {}, .layer = {}};
}

}  // namespace

TEST_CASE("A lookup that cannot be started fails on the loop, not in the constructor") {
  Loop loop;
  int calls = 0;
  std::string reason;
  Dialer dialer(loop, unspeakable(), [&](Connection* connection, const std::string& error) {
    CHECK(connection == nullptr);
    reason = error;
    ++calls;
    loop.stop();
  });
  CHECK(calls == 0);
  loop.run();
  CHECK(calls == 1);
  CHECK_FALSE(reason.empty());
}

TEST_CASE("A dialer that gives up before its lookup has failed calls nobody") {
  Loop loop;
  bool called = false;
  {
    const Dialer dialer(loop, unspeakable(),
                        [&](Connection*, const std::string&) { called = true; });
  }
  Timer last(loop, [&] { loop.stop(); });
  last.start(1);
  loop.run();
  CHECK_FALSE(called);
}

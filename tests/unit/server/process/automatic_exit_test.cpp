#include "server/process/automatic_exit.h"

#include "server/process/shutdown.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

constexpr int64_t kSecondMs = 1000;

struct Scene {
  explicit Scene(std::string_view settings) : fixture({}, settings) {}

  bool ended_after(int64_t delta_ms) {
    fixture.advance_ms(delta_ms);
    fixture.tick();
    return fixture.server.stop_requested();
  }
  // Makes every shutdown fail, and counts them.
  void refuse_shutdown() {
    fixture.server.shutdown().before_exit([this](unsigned) { return ++attempts < 0; });
  }
  std::string set_idle(const std::string& seconds) {
    const Config::NameAndValue pair = {"exit-when-idle", seconds};
    const auto done = fixture.config.set(std::span(&pair, 1), {});
    return done ? "" : done.error();
  }

  using Config = server::Config;
  ServerFixture fixture;
  server::AutomaticExit::Clients clients;
  bool parent_is_there = true;
  int attempts = 0;
  server::AutomaticExit automatic{fixture.server, [this] { return clients; },
                                  [this] { return !parent_is_there; }};
};

}  // namespace

TEST_CASE("Without exit-when-idle a server nobody uses stays") {
  Scene scene("");
  CHECK_FALSE(scene.ended_after(1'000'000 * kSecondMs));
}

TEST_CASE("A server that nobody has used since its start goes after so many seconds") {
  Scene scene("exit-when-idle 10\n");
  CHECK_FALSE(scene.ended_after(9 * kSecondMs));
  CHECK(scene.ended_after(1 * kSecondMs));
}

TEST_CASE("The time counts from when the last client left") {
  Scene scene("exit-when-idle 10\n");
  scene.clients = {.connected = 2, .connections_received = 2};
  CHECK_FALSE(scene.ended_after(60 * kSecondMs));
  scene.clients.connected = 1;
  CHECK_FALSE(scene.ended_after(60 * kSecondMs));
  scene.clients.connected = 0;
  CHECK_FALSE(scene.ended_after(9 * kSecondMs));
  // One that came and left between two looks.
  scene.clients.connections_received = 3;
  CHECK_FALSE(scene.ended_after(1 * kSecondMs));
  CHECK_FALSE(scene.ended_after(9 * kSecondMs));
  CHECK(scene.ended_after(1 * kSecondMs));
}

TEST_CASE("A server that loads its dataset is in use") {
  Scene scene("exit-when-idle 10\n");
  scene.fixture.server.set_state(server::kStateLoading, true);
  CHECK_FALSE(scene.ended_after(60 * kSecondMs));
  scene.fixture.server.set_state(server::kStateLoading, false);
  CHECK_FALSE(scene.ended_after(9 * kSecondMs));
  CHECK(scene.ended_after(1 * kSecondMs));
}

TEST_CASE("exit-when-idle that is set later counts from then on") {
  Scene scene("");
  CHECK_FALSE(scene.ended_after(60 * kSecondMs));
  CHECK(scene.set_idle("10") == "");
  CHECK_FALSE(scene.ended_after(9 * kSecondMs));
  CHECK(scene.ended_after(1 * kSecondMs));
  CHECK(scene.set_idle("-1") != "");
}

TEST_CASE("The server goes when its parent has gone, clients or not") {
  Scene scene("");
  scene.clients = {.connected = 1, .connections_received = 1};
  CHECK_FALSE(scene.ended_after(60 * kSecondMs));
  scene.parent_is_there = false;
  CHECK(scene.ended_after(1));
}

TEST_CASE("A shutdown that is refused is tried again some seconds later") {
  Scene scene("");
  scene.refuse_shutdown();
  scene.parent_is_there = false;
  CHECK_FALSE(scene.ended_after(1));
  CHECK(scene.attempts == 1);
  CHECK_FALSE(scene.ended_after(1 * kSecondMs));
  CHECK(scene.attempts == 1);
  CHECK_FALSE(scene.ended_after(5 * kSecondMs));
  CHECK(scene.attempts == 2);
}

}  // namespace latchkey::tests

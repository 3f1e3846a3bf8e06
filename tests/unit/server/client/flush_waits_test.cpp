// Clients that wait until what they have flushed is freed in the background.
#include "server/client/flush_waits.h"

#include <memory>
#include <string>
#include <string_view>

#include "commands/groups.h"
#include "net/loop.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

// A server with a loop, without sockets, and a set that takes a while to free.
class FreeingServer {
 public:
  FreeingServer() : config_(std::make_unique<server::PrivateDirectory>()) {
    log_.set_level(base::LogLevel::kNothing);
    REQUIRE(config_.load("", ""));
    server_ = std::make_unique<server::Server>(clock_, config_, log_, &loop_);
    for (const auto& rows :
         {commands::database_rows(), commands::set_rows(), commands::string_rows(),
          commands::client_rows(), commands::transaction_rows()})
      server_->commands().add(rows);
  }
  server::Server& server() { return *server_; }
  void fill() {
    TestClient client(*server_);
    for (int i = 0; i < 2000; ++i) client.run("SADD set member" + std::to_string(i));
    client->close();
  }
  // What the client is sent, once the freeing is over.
  std::string output_of(TestClient& client) {
    server_->environment().reclaimer.drain();
    std::string text;
    for (int turns = 0; turns < 10; ++turns) {
      loop_.run_once();
      text += client.take_output();
    }
    return text;
  }

 private:
  base::VirtualClock clock_;
  base::Logger log_;
  net::Loop loop_;
  server::Config config_;
  std::unique_ptr<server::Server> server_;
};

}  // namespace

TEST_CASE("Whoever flushes gets one reply, when the memory is free", "[flush]") {
  for (const char* const request : {"FLUSHALL", "FLUSHDB", "FLUSHALL SYNC", "FLUSHALL ASYNC"}) {
    INFO(request);
    FreeingServer freeing;
    freeing.fill();
    TestClient client(freeing.server());
    const std::string at_once = client.run(request);
    CHECK(at_once + freeing.output_of(client) == kOk);
    CHECK_FALSE(client->has(server::kClientBlocked));
    CHECK(client.run("DBSIZE") == integer(0));
    // It goes on as before.
    CHECK(client.run("SET a 1") == kOk);
    CHECK(freeing.output_of(client).empty());
  }
}

TEST_CASE("A transaction does not wait for what it flushes", "[flush]") {
  FreeingServer freeing;
  freeing.fill();
  TestClient client(freeing.server());
  client.run("MULTI");
  client.run("FLUSHALL");
  client.run("DBSIZE");
  CHECK(client.run("EXEC") == "*2\r\n" + std::string(kOk) + integer(0));
  CHECK(freeing.output_of(client).empty());
}

TEST_CASE("A client without replies that flushes gets none later", "[flush]") {
  FreeingServer freeing;
  freeing.fill();
  TestClient client(freeing.server());
  CHECK(client.run("CLIENT REPLY OFF").empty());
  CHECK(client.run("FLUSHALL").empty());
  CHECK(freeing.output_of(client).empty());
  CHECK(client.run("CLIENT REPLY ON") == kOk);
}

TEST_CASE("A client that goes while its memory is freed is not missed", "[flush]") {
  FreeingServer freeing;
  freeing.fill();
  TestClient client(freeing.server());
  TestClient other(freeing.server());
  client.run("FLUSHALL");
  client->close();
  CHECK(freeing.output_of(other).empty());
  CHECK(other.run("DBSIZE") == integer(0));
}

}  // namespace latchkey::tests

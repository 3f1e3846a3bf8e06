#include "server/client/client_eviction.h"

#include <memory>

#include "commands/groups.h"
#include "server/client/client_info.h"
#include "server/client/node_link.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"

namespace latchkey::server {
namespace {

using tests::ServerFixture;
using tests::TestClient;

// A server of which clients are told by their ids, because the evicted are gone.
struct Party {
  explicit Party(std::string_view settings)
      : server({commands::config_rows(), commands::client_rows(), commands::transaction_rows(),
                commands::pubsub_rows(), commands::string_rows()},
               settings) {}

  uint64_t come() { return TestClient(server)->id; }
  bool is_here(uint64_t id) { return server.server.clients().find(id) != nullptr; }
  void send(uint64_t id, std::string bytes) {
    server.server.clients().find(id)->on_input(bytes);
    server.tick();
  }
  // Queues a command with a value of so many bytes.
  void queue(uint64_t id, size_t bytes) {
    send(id, "MULTI\r\n");
    send(id, "*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n" + tests::bulk(std::string(bytes, 'v')));
  }
  size_t memory() {
    size_t bytes = 0;
    server.server.clients().for_each([&](Client& client) { bytes += memory_usage(client); });
    return bytes;
  }

  ServerFixture server;
};

constexpr size_t kKiB = 1024;

// To a node from which slots come.
struct Link : NodeLink {
  void closing() override {}
  bool gets_stream() const override { return false; }
  bool is_snapshot_channel() const override { return false; }
};

TEST_CASE("Clients that take too much together lose the largest of them", "[client-eviction]") {
  Party party("maxmemory-clients 100kb");
  const uint64_t small = party.come();
  const uint64_t large = party.come();
  const uint64_t middle = party.come();
  party.queue(small, 20 * kKiB);
  party.queue(large, 40 * kKiB);
  CHECK(party.is_here(large));
  party.queue(middle, 30 * kKiB);
  CHECK_FALSE(party.is_here(large));
  CHECK(party.is_here(small));
  CHECK(party.is_here(middle));
  CHECK(party.memory() <= 100 * kKiB);
  CHECK(party.server.server.stats().evicted_clients == 1);
}

TEST_CASE("Without maxmemory-clients nobody is evicted", "[client-eviction]") {
  Party party("maxmemory 1gb");
  const uint64_t client = party.come();
  party.queue(client, 900 * kKiB);
  CHECK(party.is_here(client));
}

TEST_CASE("A limit that is lowered is kept at once, and one that is lifted forgotten",
          "[client-eviction]") {
  Party party("");
  const uint64_t watcher = party.come();
  const uint64_t first = party.come();
  const uint64_t second = party.come();
  party.queue(first, 60 * kKiB);
  party.queue(second, 60 * kKiB);
  party.send(watcher, "CONFIG SET maxmemory-clients 100kb\r\n");
  CHECK(party.is_here(first) != party.is_here(second));
  party.send(watcher, "CONFIG SET maxmemory-clients 0\r\n");
  const uint64_t third = party.come();
  party.queue(third, 200 * kKiB);
  CHECK(party.is_here(third));
  party.send(watcher, "CONFIG SET maxmemory-clients 100kb\r\n");
  CHECK_FALSE(party.is_here(third));
  CHECK(party.is_here(watcher));
}

TEST_CASE("Where memory is short clients go before a request is served, its own among them",
          "[client-eviction]") {
  Party party("maxmemory 1\nmaxmemory-clients 100kb");
  const uint64_t first = party.come();
  const uint64_t second = party.come();
  ClientRegistry& clients = party.server.server.clients();
  clients.find(first)->out().append(std::string(200 * kKiB, 'x'));
  std::string request = "GET key\r\n";
  clients.find(second)->on_input(request);
  CHECK_FALSE(party.is_here(first));
  REQUIRE(party.is_here(second));
  CHECK(clients.find(second)->out().copy_since(0, 100) == "$-1\r\n");
  clients.find(second)->out().append(std::string(200 * kKiB, 'x'));
  clients.find(second)->on_input(request);
  CHECK_FALSE(party.is_here(second));
  CHECK(party.server.server.stats().evicted_clients == 2);
  CHECK(party.server.server.stats().output_buffer_limit_disconnections == 0);
}

TEST_CASE("A percentage is one of maxmemory", "[client-eviction]") {
  // Far more than the whole process takes, which counts for the commands.
  Party party("maxmemory 1gb\nmaxmemory-clients 1%");
  const uint64_t client = party.come();
  party.queue(client, 8000 * kKiB);
  CHECK(party.is_here(client));
  const uint64_t other = party.come();
  party.queue(other, 7000 * kKiB);
  CHECK_FALSE(party.is_here(client));
  CHECK(party.is_here(other));
}

TEST_CASE("A client with NO-EVICT counts and stays", "[client-eviction]") {
  Party party("maxmemory-clients 100kb");
  const uint64_t exempt = party.come();
  party.send(exempt, "CLIENT NO-EVICT ON\r\n");
  party.queue(exempt, 120 * kKiB);
  CHECK(party.is_here(exempt));
  const uint64_t other = party.come();
  party.queue(other, 40 * kKiB);
  CHECK_FALSE(party.is_here(other));
  party.send(exempt, "DISCARD\r\n");
  party.send(exempt, "CLIENT NO-EVICT OFF\r\n");
  party.queue(exempt, 120 * kKiB);
  CHECK_FALSE(party.is_here(exempt));
}

TEST_CASE("What other servers send and are sent neither counts nor is limited",
          "[client-eviction]") {
  Party party("maxmemory-clients 100kb");
  const uint64_t other_server = party.come();
  party.server.server.clients().find(other_server)->node = std::make_unique<Link>();
  party.queue(other_server, 200 * kKiB);
  CHECK(party.is_here(other_server));
  const uint64_t user = party.come();
  party.queue(user, 50 * kKiB);
  CHECK(party.is_here(user));
  party.queue(party.come(), 60 * kKiB);
  CHECK(party.server.server.stats().evicted_clients == 1);
  CHECK(party.is_here(other_server));
}

TEST_CASE("Small clients are never evicted", "[client-eviction]") {
  Party party("maxmemory-clients 1");
  const uint64_t small = party.come();
  const uint64_t large = party.come();
  party.queue(small, 8 * kKiB);
  party.queue(large, 40 * kKiB);
  CHECK(party.is_here(small));
  CHECK_FALSE(party.is_here(large));
}

TEST_CASE("Watched keys and subscriptions count", "[client-eviction]") {
  Party party("maxmemory-clients 100kb");
  const std::string_view command = GENERATE("WATCH", "SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE");
  const uint64_t client = party.come();
  size_t sent = 0;
  for (; sent < 100 * kKiB && party.is_here(client); ++sent) {
    party.send(client, std::string(command) + " name" + std::to_string(sent) + "\r\n");
    if (party.is_here(client)) party.server.server.clients().find(client)->out().clear();
  }
  CHECK_FALSE(party.is_here(client));
  CHECK(sent > 100);
}

}  // namespace
}  // namespace latchkey::server

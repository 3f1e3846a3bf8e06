// A server with replicas, which the test plays.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "commands/groups.h"
#include "replication/replication.h"
#include "replication/rows.h"
#include "server/info.h"
#include "unit/replication/fake_snapshots.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

struct Master : ServerFixture {
  explicit Master(std::string_view settings = {})
      : ServerFixture({commands::string_rows(), commands::database_rows(), commands::client_rows(),
                       commands::info_rows(), commands::transaction_rows(), commands::pubsub_rows(),
                       commands::connection_rows(), commands::config_rows(), commands::debug_rows(),
                       commands::server_rows(), replication::sync_rows(), replication::role_rows()},
                      settings) {
    auto maker = std::make_unique<FakeSnapshots>();
    snapshots = maker.get();
    replication = std::make_shared<replication::Replication>(server, std::move(maker));
    server.set_replication(replication);
  }

  // Has the snapshot of a replica made, and gives what the replica gets.
  std::string finish_sync(TestClient& replica, std::string_view dataset) {
    snapshots->write(dataset);
    if (snapshots->end_writing()) tick();
    snapshots->end();
    tick();
    return replica.take_output();
  }
  std::string info(std::string_view field) {
    const std::string_view section = "replication";
    const std::string text = server.info().text(std::span(&section, 1));
    const size_t at = text.find("\n" + std::string(field) + ":");
    if (at == std::string::npos) return {};
    const size_t start = at + field.size() + 2;
    return text.substr(start, text.find('\r', start) - start);
  }
  void advance_seconds(int64_t seconds) {
    for (int64_t i = 0; i < seconds; ++i) {
      advance_ms(1000);
      tick();
    }
  }

  FakeSnapshots* snapshots = nullptr;
  std::shared_ptr<replication::Replication> replication;
};

// An online replica of the PSYNC kind, with a connection's worth of silence behind it.
struct Follower : TestClient {
  explicit Follower(Master& master) : TestClient(master) {
    run("REPLCONF listening-port 7777 capa psync2");
    run("PSYNC ? -1");
    master.finish_sync(*this, "D");
  }
};

}  // namespace latchkey::tests

// A server with replicas, which the test plays.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "commands/groups.h"
#include "replication/rows.h"
#include "testing/faults.h"
#include "testing/rows.h"
#include "unit/replication/replication_fixture.h"

namespace latchkey::tests {

struct Master : ReplicationFixture {
  explicit Master(std::string_view settings = {})
      : ReplicationFixture(
            {commands::string_rows(), commands::database_rows(), commands::client_rows(),
             commands::info_rows(), commands::transaction_rows(), commands::pubsub_rows(),
             commands::connection_rows(), commands::config_rows(), commands::debug_rows(),
             commands::server_rows(), replication::sync_rows(), replication::role_rows(),
             testing::fault_rows(), testing::clock_rows()},
            settings) {
    const auto faults = std::make_shared<testing::Faults>(server);
    server.add_layer(faults);
    server.set_fault_injector(faults.get());
  }

  // Has the snapshot of a replica made, and gives what the replica gets.
  std::string finish_sync(TestClient& replica, std::string_view dataset) {
    snapshots->write(dataset);
    if (snapshots->end_writing()) tick();
    snapshots->end();
    tick();
    return replica.take_output();
  }
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

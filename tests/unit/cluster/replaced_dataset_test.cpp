// What of slots is going on when a master sends its replica another dataset.
#include <string_view>

#include "cluster/slot_migration/slot_migration.h"
#include "replication/dataset_installer.h"
#include "replication/dataset_receiver.h"
#include "server/tasks.h"
#include "unit/catch.h"
#include "unit/cluster/played_node.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

TEST_CASE("What is being trimmed stays when another dataset takes its place", "[slot-migration]") {
  NodeWithPeer node("save \"\"\n");
  TestClient user(node.server);
  CHECK(user.run("SET foo old") == kOk);
  cluster::Trimmer& trimmer = node.migration().trimmer();
  trimmer.set_method(cluster::Trimmer::Method::kActive, -1);
  // The slot of "foo".
  trimmer.schedule(slots_of({12182}), /*propagates=*/false);
  CHECK(trimmer.figures().running == 1);
  CHECK(user.run("DBSIZE") == integer(0));

  // Without keys, and with a checksum that is not to be looked at.
  std::string_view dataset("REDIS0011\xff\0\0\0\0\0\0\0\0", 18);
  const auto received = replication::DatasetReceiver::create(
      {.mark = "", .size = dataset.size()}, node.directory.path() / "received", node.log,
      node.server.files(), node.server.clock());
  REQUIRE(received->take(&dataset) == replication::DatasetReceiver::Result::kDone);
  bool installed = false;
  node.server.tasks().run(
      [&] { installed = replication::DatasetInstaller(node.server).install(*received).ok; });
  turn(node.loop);
  CHECK(installed);
  CHECK(trimmer.figures().running == 0);
  CHECK(trimmer.figures().cancelled == 1);
  CHECK(user.run("SET foo new") == kOk);
  turn(node.loop);
  CHECK(user.run("GET foo") == bulk("new"));
}

}  // namespace latchkey::tests

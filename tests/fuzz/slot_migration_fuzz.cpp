// A hostile source of slots (CLUSTER MIGRATESLOTS of another node): sends requests of the protocol,
// writes to any slot and database and damaged bytes in any pieces to the node that imports slot 0,
// and to a replica the messages by which masters tell of migrations. Nothing but keys of slot 0 may
// come, and what ends the import is told once.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>

#include "cluster/cluster.h"
#include "cluster/slot_jobs/receiver.h"
#include "input.h"
#include "store/slot_index.h"
#include "unit/cluster/several_nodes.h"

namespace {

using namespace latchkey;
using fuzz::Input;
using fuzz::require;

// "<raw>" is bytes of the input as they are, "<word>" a bulk string of them.
constexpr std::string_view kRequests[] = {
    "*3\r\n$7\r\nCLUSTER\r\n$9\r\nSYNCSLOTS\r\n$3\r\nACK\r\n",
    "*3\r\n$7\r\nCLUSTER\r\n$9\r\nSYNCSLOTS\r\n$12\r\nSNAPSHOT-EOF\r\n",
    "*3\r\n$7\r\nCLUSTER\r\n$9\r\nSYNCSLOTS\r\n$6\r\nPAUSED\r\n",
    "*3\r\n$7\r\nCLUSTER\r\n$9\r\nSYNCSLOTS\r\n$16\r\nFAILOVER-GRANTED\r\n",
    "*3\r\n$7\r\nCLUSTER\r\n$9\r\nSYNCSLOTS\r\n<word>",
    "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n",
    "*2\r\n$6\r\nSELECT\r\n$1\r\n2\r\n",
    "*2\r\n$6\r\nSELECT\r\n<word>",
    "*3\r\n$3\r\nSET\r\n$6\r\n{06S}a\r\n$1\r\n1\r\n",
    "*3\r\n$5\r\nRPUSH\r\n$6\r\n{06S}l\r\n<word>",
    "*2\r\n$3\r\nDEL\r\n$6\r\n{06S}a\r\n",
    "*3\r\n$4\r\nMOVE\r\n$6\r\n{06S}a\r\n$1\r\n1\r\n",
    "*3\r\n$3\r\nSET\r\n$5\r\n{Qi}a\r\n$1\r\n1\r\n",
    "*3\r\n$3\r\nSET\r\n<word>$1\r\n1\r\n",
    "*1\r\n$8\r\nFLUSHALL\r\n",
    "*1\r\n$5\r\nMULTI\r\n",
    "*1\r\n$4\r\nPING\r\n",
    "\r\n",
    "<raw>",
};

class Host final : public cluster::JobReceiver::Host {
 public:
  int failed = 0;
  int granted = 0;

 private:
  void receiving_failed(cluster::SlotJob&, const std::string&) override { ++failed; }
  void slots_granted(cluster::SlotJob&) override { ++granted; }
  bool may_take_slots() const override { return true; }
};

std::string some_bytes(Input& input) {
  std::string bytes;
  for (int left = input.byte() % 16; left > 0; --left) bytes += static_cast<char>(input.byte());
  return bytes;
}

std::string text(Input& input, std::string_view pattern) {
  std::string result(pattern);
  if (const size_t at = result.find("<raw>"); at != result.npos)
    result.replace(at, 5, some_bytes(input));
  if (const size_t at = result.find("<word>"); at != result.npos) {
    const std::string word = some_bytes(input);
    result.replace(at, 6, "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n");
  }
  return result;
}

void send_slots(Input& input, tests::ClusterNode& node) {
  server::Server& server = node.server.server;
  server::Client& runner = server.clients().add_internal();
  tests::TestClient source(node.server);
  cluster::SlotJob job{.name = std::string(40, 'j'), .slots = {}};
  job.slots.add(0);
  job.state = cluster::JobState::kWaitingForAck;
  Host host;
  cluster::JobReceiver receiver(server, host, job, *source, runner);
  constexpr int kMaxSteps = 100;
  std::string kept;
  size_t offered = 0;
  for (int step = 0; step < kMaxSteps && !input.empty() && host.failed + host.granted == 0;
       ++step) {
    kept += text(input, kRequests[input.byte() % std::size(kRequests)]);
    // Never less than was offered before.
    const size_t cut = std::min<size_t>(kept.size() - offered, input.byte() % 8);
    const size_t size = kept.size() - cut;
    // In memory of its own, so that reading beyond it is noticed.
    const auto bytes = std::make_unique<char[]>(size);
    std::memcpy(bytes.get(), kept.data(), size);
    const size_t used = receiver.on_input({bytes.get(), size});
    require(used <= size);
    offered = size - used;
    // What is decoded in place stays decoded.
    kept = std::string(bytes.get() + used, size - used) + kept.substr(size);
  }
  require(host.failed + host.granted <= 1);
  for (const auto& database : server.databases()) {
    require(database->size() == database->slot_index()->in(0));
    database->clear(/*lazily=*/false);
  }
  receiver.stop();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kLongestInput = 4096;
  if (size == 0 || size > kLongestInput) return 0;
  tests::Nodes nodes(2, "cluster-databases 3\n");
  nodes.make_cluster(2);
  Input input(data, size);
  if ((input.byte() & 7) != 0) {
    send_slots(input, nodes[1]);
  } else {
    nodes[1].cluster->slot_migration().master_task_received(input.rest());
  }
  return 0;
}

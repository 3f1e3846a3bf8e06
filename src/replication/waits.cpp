#include "replication/waits.h"

#include <utility>

#include "replication/replication.h"
#include "server/client/client.h"
#include "server/command/dispatcher.h"
#include "server/server.h"

namespace latchkey::replication {

using server::BlockEnd;
using server::Client;

void ReplicaWaits::wait(Client& client, int64_t replicas, int64_t deadline_ms) {
  block(client, replicas, deadline_ms, [&client](size_t acknowledged) {
    client.reply.integer(static_cast<int64_t>(acknowledged));
  });
}

void ReplicaWaits::wait_for_stream(Client& client, size_t replicas, int64_t deadline_ms,
                                   std::function<void(bool acknowledged)> done) {
  const auto reply = [replicas, done = std::move(done)](size_t acknowledged) {
    done(acknowledged >= replicas);
  };
  block(client, static_cast<int64_t>(replicas), deadline_ms, reply);
}

void ReplicaWaits::block(Client& client, int64_t replicas, int64_t deadline_ms,
                         std::function<void(size_t acknowledged)> reply) {
  const auto ended = [this, &client, reply](BlockEnd end) {
    forget(client.id);
    if (end != BlockEnd::kTimeout && end != BlockEnd::kUnblocked) return;
    reply(replication_.count_acknowledged(client.written_offset));
  };
  waiting_.push_back({client.id, replicas, std::move(reply)});
  client.wait({.deadline_ms = deadline_ms, .may_unblock = true, .ended = ended});
  replication_.request_acknowledgements();
}

void ReplicaWaits::forget(uint64_t client_id) {
  std::erase_if(waiting_, [&](const Waiting& each) { return each.client_id == client_id; });
}

void ReplicaWaits::serve() {
  // A client that is served may send a request that waits again.
  std::vector<Waiting> served;
  std::erase_if(waiting_, [&](Waiting& each) {
    const Client& client = *replication_.server().clients().find(each.client_id);
    const size_t count = replication_.count_acknowledged(client.written_offset);
    if (static_cast<int64_t>(count) < each.replicas) return false;
    served.push_back(std::move(each));
    return true;
  });
  for (const Waiting& each : served) {
    replication_.server().dispatcher().answer_waiting(each.client_id, [&](const Client& client) {
      each.reply(replication_.count_acknowledged(client.written_offset));
    });
  }
}

}  // namespace latchkey::replication

#include "replication/waits.h"

#include "replication/replication.h"
#include "server/client/client.h"
#include "server/command/dispatcher.h"
#include "server/server.h"

namespace latchkey::replication {

using server::BlockEnd;
using server::Client;

void ReplicaWaits::wait(Client& client, int64_t replicas, int64_t deadline_ms) {
  const uint64_t offset = client.written_offset;
  waiting_.push_back({client.id, offset, replicas});
  const auto ended = [this, &client, offset](BlockEnd end) {
    forget(client.id);
    if (end != BlockEnd::kTimeout && end != BlockEnd::kUnblocked) return;
    client.reply.integer(static_cast<int64_t>(replication_.count_acknowledged(offset)));
  };
  client.wait({.deadline_ms = deadline_ms, .may_unblock = true, .ended = ended});
  replication_.ask_for_acknowledgements();
}

void ReplicaWaits::forget(uint64_t client_id) {
  std::erase_if(waiting_, [&](const Waiting& each) { return each.client_id == client_id; });
}

void ReplicaWaits::serve() {
  std::erase_if(waiting_, [&](const Waiting& each) {
    const size_t count = replication_.count_acknowledged(each.offset);
    if (static_cast<int64_t>(count) < each.replicas) return false;
    Client* client = replication_.server().clients().find(each.client_id);
    const size_t mark = client->out().mark();
    if (!client->has(server::kClientReplyOff | server::kClientReplySkip))
      client->reply.integer(static_cast<int64_t>(count));
    replication_.server().dispatcher().note_late_reply(*client, mark);
    client->unblock(BlockEnd::kUnblocked, /*served=*/true);
    return true;
  });
}

}  // namespace latchkey::replication

#include "persist/aof/aof_waits.h"

#include <algorithm>

#include "persist/aof/aof.h"
#include "server/client/client.h"
#include "server/command/dispatcher.h"
#include "server/server.h"

namespace latchkey::persist {

using namespace server;

namespace {

constexpr char kNeedsAof[] =
    "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.";

}  // namespace

int64_t AofWaits::copies_here(int64_t offset) const {
  return aof_.is_on_disk(offset) ? 1 : 0;
}

int64_t AofWaits::copies_on_replicas(int64_t offset) const {
  return replica_disks_.count ? static_cast<int64_t>(replica_disks_.count(offset)) : 0;
}

bool AofWaits::is_served(const Waiting& waiting) const {
  return copies_here(waiting.offset) >= waiting.here &&
         copies_on_replicas(waiting.offset) >= waiting.replicas;
}

void AofWaits::command(CommandContext& ctx) {
  if (server_.is_replica()) {
    return ctx.reply.error(
        "ERR WAITAOF cannot be used with replica instances. Please also note that writes to "
        "replicas are just local and are not propagated.");
  }
  int64_t local = 0;
  int64_t replicas = 0;
  int64_t deadline_ms = 0;
  if (!ctx.read_int64_in(ctx.args[1], 0, 1, &local) ||
      !ctx.read_int64_in(ctx.args[2], 0, INT64_MAX, &replicas,
                         "ERR value is out of range, must be positive") ||
      !ctx.read_wait_ms(ctx.args[3], &deadline_ms))
    return;
  if (local > 0 && !aof_.enabled()) return ctx.reply.error(kNeedsAof);
  Client& client = ctx.client;
  const auto offset = static_cast<int64_t>(client.written_offset);
  const auto reply = [this, &client, offset] {
    client.reply.array(2);
    client.reply.integer(copies_here(offset));
    client.reply.integer(copies_on_replicas(offset));
  };
  const Waiting waiting{client.id, offset, local, replicas};
  if (is_served(waiting) || client.has(kClientDenyBlocking)) return reply();
  waiting_.push_back(waiting);
  if (replicas > 0 && replica_disks_.ask) replica_disks_.ask();
  client.wait({.deadline_ms = deadline_ms,
               .may_unblock = true,
               .ended = [this, reply, id = client.id](BlockEnd end) {
                 std::erase_if(waiting_,
                               [id](const Waiting& each) { return each.client_id == id; });
                 if (end == BlockEnd::kTimeout || end == BlockEnd::kUnblocked) reply();
               }});
}

void AofWaits::serve() {
  const auto ready = std::stable_partition(
      waiting_.begin(), waiting_.end(), [this](const Waiting& each) { return !is_served(each); });
  const std::vector<Waiting> served(ready, waiting_.end());
  waiting_.erase(ready, waiting_.end());
  for (const Waiting& each : served) {
    Client* client = server_.clients().find(each.client_id);
    if (client == nullptr) continue;
    // Unblocked like a client whose timeout has passed: the reply has the present counts.
    client->unblock(BlockEnd::kUnblocked);
  }
}

void AofWaits::refuse() {
  const auto refused = std::stable_partition(waiting_.begin(), waiting_.end(),
                                             [](const Waiting& each) { return each.here == 0; });
  const std::vector<Waiting> gone(refused, waiting_.end());
  waiting_.erase(refused, waiting_.end());
  for (const Waiting& each : gone) {
    server_.dispatcher().answer_waiting(each.client_id,
                                        [](Client& client) { client.reply.error(kNeedsAof); });
  }
}

}  // namespace latchkey::persist

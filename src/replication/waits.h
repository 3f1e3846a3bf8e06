// Clients that wait for replicas to acknowledge their writes (WAIT), or to acknowledge a request
// that this server runs only afterwards (CLUSTER SETSLOT as in Valkey).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace latchkey::server {
class Client;
}

namespace latchkey::replication {

class Replication;

class ReplicaWaits {
 public:
  explicit ReplicaWaits(Replication& replication) : replication_(replication) {}

  // Blocks the client until `replicas` replicas have acknowledged its last write, or until the
  // deadline (Unix time in milliseconds; 0: none); the reply is the number that have. To be called
  // last by a handler that has replied nothing.
  void wait(server::Client& client, int64_t replicas, int64_t deadline_ms);
  // Blocks the client until `replicas` replicas have acknowledged what its present request writes
  // to the stream, or until the deadline. `done` gets whether they have, and replies; it is not
  // called when the client disconnects before. To be called last by a handler that has replied
  // nothing.
  void wait_for_stream(server::Client& client, size_t replicas, int64_t deadline_ms,
                       std::function<void(bool acknowledged)> done);
  // Replies to clients whose wait is over; to be called when acknowledgements have come.
  void serve();

 private:
  struct Waiting {
    uint64_t client_id;
    int64_t replicas;
    std::function<void(size_t acknowledged)> reply;
  };
  void block(server::Client& client, int64_t replicas, int64_t deadline_ms,
             std::function<void(size_t acknowledged)> reply);
  void forget(uint64_t client_id);

  Replication& replication_;
  std::vector<Waiting> waiting_;
};

}  // namespace latchkey::replication

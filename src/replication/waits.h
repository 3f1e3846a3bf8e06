// Clients that wait for replicas to acknowledge their writes (WAIT).
#pragma once

#include <cstddef>
#include <cstdint>
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
  // Replies to clients whose wait is over; to be called when acknowledgements have come.
  void serve();

 private:
  struct Waiting {
    uint64_t client_id;
    uint64_t offset;
    int64_t replicas;
  };
  void forget(uint64_t client_id);

  Replication& replication_;
  std::vector<Waiting> waiting_;
};

}  // namespace latchkey::replication

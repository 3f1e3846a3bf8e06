// Clients that wait until replicas have what they wrote (WAIT), or have it in their append-only
// files.
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

  // Suspends the client until `replicas` of them have acknowledged what it wrote last, or the
  // deadline (Unix time; 0: none) is over; the reply is how many have. To be called last by a
  // handler that has replied nothing.
  void wait(server::Client& client, int64_t replicas, int64_t deadline_ms);
  // Serves those who have waited enough; to be called when acknowledgements have come.
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

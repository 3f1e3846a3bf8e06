// Keeps the connections to every instance, sends PING and hello messages to it, and INFO to masters
// and replicas; handles the replies to PING.
#pragma once

#include <memory>

#include "sentinel/instance.h"

namespace latchkey::sentinel {

class Sentinel;

class Probes {
 public:
  explicit Probes(Sentinel& sentinel) : sentinel_(sentinel) {}

  // Opens the connections that are missing, once each Periods::ping at most.
  void reconnect(Instance& instance);
  // Sends what is due.
  void send_due(Instance& instance);
  // Sends a hello message: this Sentinel, and the master that the instance belongs to.
  void send_hello(Instance& instance);
  // Has hello messages sent at the next tick through all instances of the master.
  static void hello_soon(Master& master);
  // SLAVEOF with what belongs to it, as one transaction. A null address: NO ONE. REQUIRES:
  // link->is_connected().
  void send_replicaof(Instance& instance, const Address* address);
  // Has the master hand over to that replica within this time, during which it takes no writes; if
  // it does not, Failover::refused() is called. REQUIRES: link->is_connected().
  void send_failover(Master& master, const Replica& to, int64_t timeout_ms);
  // Ends a coordinated failover on either server: unpauses writes, and disconnects clients so that
  // they ask for the master's address.
  void send_failover_end(Instance& instance);
  // The master keeps its role, if it has it still, and writes go on.
  void send_failover_abort(Master& master);

 private:
  void send_ping(Instance& instance);
  void send_info(Instance& instance);
  void process_ping_reply(Instance& instance, const Reply& reply);
  void introduce(Instance& instance, bool for_messages);
  void send_kill_clients(Instance& instance);
  // A pointer for callbacks, which may come when the instance is gone.
  std::weak_ptr<Instance> weak(Instance& instance);

  Sentinel& sentinel_;
};

}  // namespace latchkey::sentinel

// What a Sentinel sends to every instance: it connects again and again, sends PING, to masters and
// replicas INFO, and hello messages; and what follows from the replies to PING.
#pragma once

#include <memory>
#include <string>
#include <string_view>

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
  // Tells an instance of this Sentinel and of the master that it belongs to.
  void send_hello(Instance& instance);
  // Has hello messages sent at the next tick through all instances of the master.
  static void hello_soon(Master& master);
  // SLAVEOF with what belongs to it, as one transaction. A null address: NO ONE. REQUIRES:
  // link->is_connected().
  void send_replicaof(Instance& instance, const Address* address);

 private:
  void send_ping(Instance& instance);
  void send_info(Instance& instance);
  void took_ping_reply(Instance& instance, const Reply& reply);
  void introduce(Instance& instance, bool for_messages);
  // A pointer for callbacks, which may come when the instance is gone.
  std::weak_ptr<Instance> weak(Instance& instance);

  Sentinel& sentinel_;
};

}  // namespace latchkey::sentinel

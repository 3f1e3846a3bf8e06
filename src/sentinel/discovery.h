// Processes what instances say. INFO has a server's role, its replicas and the state of their
// links; hello messages have the other Sentinels, and newer addresses of masters.
#pragma once

#include <string>
#include <string_view>

#include "sentinel/hello.h"
#include "sentinel/instance.h"

namespace latchkey::sentinel {

class Sentinel;

class Discovery {
 public:
  explicit Discovery(Sentinel& sentinel) : sentinel_(sentinel) {}

  // Processes a reply to INFO.
  void process_info(Instance& instance, const std::string& text);
  // Processes a hello message, from a subscription or from PUBLISH. Malformed ones, and those about
  // unknown masters, are ignored.
  void process_hello(std::string_view text);

 private:
  void note_process(Instance& instance, const std::string& run_id);
  void note_replicas(Master& master, const InfoReply& info);
  void note_replica(Replica& replica, const InfoReply& info);
  void note_role(Instance& instance, Role role);
  // Sends SLAVEOF to a replica whose role or master is not what the configuration says.
  void reconfigure(Replica& replica);
  void follow_reconfiguration(Replica& replica);
  bool is_sane(const Master& master);
  bool was_up_for(const Instance& instance, int64_t period_ms);
  bool follows(const Replica& replica, const Address& address) const;

  PeerSentinel* note_sentinel(Master& master, const Hello& hello);
  // A Sentinel may have got a new id: the old one is not there any more.
  void forget_sentinel_at(Master& master, const Address& address);
  void share_address(const PeerSentinel& sentinel);
  void adopt_configuration(Master& master, PeerSentinel& from, const Hello& hello);

  Sentinel& sentinel_;
};

}  // namespace latchkey::sentinel

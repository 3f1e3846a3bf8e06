// What a Sentinel learns: from INFO, a server's role, its replicas and how they follow; from hello
// messages, the other Sentinels, and where a master is by now.
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

  // A reply to INFO.
  void take_info(Instance& instance, const std::string& text);
  // A hello message, by whatever way; what cannot be read, and what is said of unknown masters, is
  // ignored.
  void take_hello(std::string_view text);

 private:
  void note_process(Instance& instance, const std::string& run_id);
  void note_replicas(Master& master, const InfoReply& info);
  void note_replica(Replica& replica, const InfoReply& info);
  void note_role(Instance& instance, Role role);
  // What a replica should be told that does not do what it should.
  void correct(Replica& replica);
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

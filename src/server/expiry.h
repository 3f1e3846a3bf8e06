// Expiry: removes keys whose deadline has passed, also those that no command looks up. Each removal
// is propagated as a deletion, whether Expiry or a lookup has found the key.
//
// The store's wheels of deadlines list the keys that are due, so work() costs a few loads when
// there are none, and a server without deadlines sleeps. Work is done in slices between other work.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "net/loop.h"
#include "store/keyspace.h"

namespace latchkey::server {

class Server;

class Expiry final : public store::ExpiryObserver {
 public:
  // Without a loop nothing expires by itself but in work().
  explicit Expiry(Server& server);

  // DEBUG SET-ACTIVE-EXPIRE.
  void enable(bool on) { enabled_ = on; }
  bool is_enabled() const { return enabled_; }
  // DEBUG SET-ALLOW-ACCESS-EXPIRED: whether commands see keys that have expired until work()
  // removes them.
  void show_expired(bool on);
  bool shows_expired() const { return shows_expired_; }

  // Removes what is due, for about a quarter of a millisecond, or for one when keys have been
  // waiting for longer than they should. False when there is more to do.
  bool work();

  // At the end of a turn of the loop: starts the timer when there are deadlines. Costs a comparison
  // when nothing has changed.
  void turn_ended();
  // Has turn_ended() look for deadlines again although no change was counted: a dataset was loaded.
  void rescan() { changes_seen_ = kNothingSeen; }

  // store::ExpiryObserver
  void key_expiring(store::Keyspace& keyspace, std::string_view key) override;
  void elements_expired(store::Keyspace& keyspace, std::string_view key,
                        std::span<const std::string> names, bool last) override;

 private:
  static constexpr uint64_t kNothingSeen = UINT64_MAX;  // no count of changes
  class HideScope;

  void propagate_expired_key(const store::Keyspace& keyspace, std::string_view key);
  void propagate_expired_fields(const store::Keyspace& keyspace, std::string_view key,
                                std::span<const std::string> names);
  void work_on_timer();
  bool work_on_due();
  bool work_within_budget();
  bool any_deadlines() const;

  Server& server_;
  std::unique_ptr<net::Timer> timer_;  // null without a loop
  bool enabled_ = true;
  bool shows_expired_ = false;
  bool timer_runs_ = false;
  uint64_t changes_seen_ = 0;  // KeyspaceEvents::total() when turn_ended() last looked
  int next_database_ = 0;
  int64_t caught_up_us_ = 0;  // monotonic, when nothing was left to do
};

}  // namespace latchkey::server

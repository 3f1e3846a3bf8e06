#include "server/process/automatic_exit.h"

#include <utility>

#include "base/time_units.h"
#include "server/process/shutdown.h"
#include "server/server.h"

namespace latchkey::server {

AutomaticExit::AutomaticExit(Server& server, std::function<Clients()> clients,
                             std::function<bool()> parent_has_gone)
    : server_(server),
      clients_(std::move(clients)),
      parent_has_gone_(std::move(parent_has_gone)),
      idle_since_us_(server.clock().monotonic_us()) {
  server_.hooks().tick.add([this] { check(); });
  server_.config().on_change({"exit-when-idle"},
                             [this] { idle_since_us_ = server_.clock().monotonic_us(); });
}

void AutomaticExit::check() {
  const int64_t now_us = server_.clock().monotonic_us();
  if (parent_has_gone_ && parent_has_gone_())
    return exit(now_us, "The process that started this server has gone.");
  if (server_.settings().exit_when_idle != 0 && is_idle(now_us))
    exit(now_us, "There has been no client for as long as exit-when-idle says.");
}

bool AutomaticExit::is_idle(int64_t now_us) {
  const Clients clients = clients_();
  const uint64_t before = std::exchange(connections_seen_, clients.connections_received);
  const bool used = clients.connected != 0 || clients.connections_received != before ||
                    (server_.state() & kStateLoading) != 0;
  if (used) idle_since_us_ = now_us;
  return now_us - idle_since_us_ >= server_.settings().exit_when_idle * base::kUsPerSecond;
}

void AutomaticExit::exit(int64_t now_us, const char* reason) {
  if (now_us < next_attempt_us_) return;
  next_attempt_us_ = now_us + kRetryUs;
  server_.log().notice(reason);
  server_.shutdown().schedule();
}

}  // namespace latchkey::server

#include "composition/idle_memory.h"

#include "server/observe/memory.h"
#include "server/process/process.h"
#include "server/server.h"

namespace latchkey::composition {

namespace {

// The first client has been greeted by then.
constexpr uint64_t kFirstMs = 100;
constexpr uint64_t kIntervalMs = 5000;

}  // namespace

IdleMemory::IdleMemory(server::Server& server, net::Loop& loop)
    : server_(server), timer_(loop, [this] { check(); }) {
  timer_.start(kFirstMs, kIntervalMs);
}

void IdleMemory::check() {
  const uint64_t commands = server_.stats().commands_processed;
  const bool is_first = !commands_seen_;
  const bool is_idle = commands_seen_ == commands;
  commands_seen_ = commands;
  // Start is not over by then: another release follows in any case.
  if (is_first) return release();
  if (!is_idle || commands_at_release_ == commands) return;
  commands_at_release_ = commands;
  release();
}

void IdleMemory::release() {
  server::purge_allocator();
  server::release_program_pages();
}

}  // namespace latchkey::composition

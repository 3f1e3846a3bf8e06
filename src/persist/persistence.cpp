#include "persist/persistence.h"

#include <utility>

#include "persist/rows.h"
#include "server/server.h"

namespace latchkey::persist {

Persistence::Persistence(server::Server& server, ChildProcessParts parts)
    : server_(server),
      child_(server, std::move(parts)),
      snapshots_(server, child_),
      aof_(server, child_),
      backup_(server, aof_),
      loading_(server) {
  server.hooks().tick.add([this] { tick(); });
  server.figures().persistence.set([this] { return figures(); });
  server.hooks().stats_reset.add([this] {
    child_.reset_forks();
    snapshots_.reset_figures();
    aof_.reset_figures();
  });
  server.add_debug_subcommands(snapshot_debug_subcommands());
  server.add_debug_subcommands(aof_debug_subcommands());
}

void Persistence::tick() {
  // No snapshot while a script runs or a dataset is partly loaded.
  if ((server_.state() & (server::kStateBusy | server::kStateLoading)) != 0) return;
  child_.poll();
  snapshots_.tick();
  aof_.tick();
  backup_.tick();
}

server::PersistenceFigures Persistence::figures() const {
  server::PersistenceFigures figures;
  const BackgroundChild::Figures child = child_.figures();
  figures.copied_bytes = child.copied_bytes;
  figures.most_copied_bytes = child.most_copied_bytes;
  figures.copied_bytes_age_s = child.age_s;
  figures.keys_written = child.keys_written;
  figures.keys_total = child.keys_total;
  figures.latest_fork_us = child_.latest_fork_us();
  figures.forks = child_.forks();
  snapshots_.describe(&figures);
  aof_.describe(&figures.aof);
  loading_.figures().describe(server_.clock().wall_us(), &figures);
  return figures;
}

}  // namespace latchkey::persist

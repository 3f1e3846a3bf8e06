// WholeServer: one server with all of its layers: databases, commands, users, scripts and
// functions, persistence, replication, and the cluster where the configuration asks for it.
//
// What a process has once (signals, the pid file, the title, limits) is no part of it: see
// Application, which runs one whole server. Any number of them live side by side in a process, on
// one loop, with a clock and a logger in common. They share what never changes (the commands, the
// table of directives) and nothing else. An empty one costs about 30 KB, and less than a fifth of a
// millisecond to make; each has a callback in every turn of the loop, and ticks `hz` times a
// second.
//
//     auto made = WholeServer::make_space("databases 1\n", {clock, log, &loop});
//     if (!made) return made.error().report();
//     WholeServer& space = **made;
//     server::Client& client = space.server().clients().add(nullptr);
//
// It serves requests as soon as it is made. Optional steps (listening, loading a dataset, the
// append-only file) are calls of their own, to be made in the order in which they are declared.
//
// It may be destroyed at any time except by a callback or a command of its own: its connections are
// closed, its tasks ended, its child is killed. Its handles are closed in the next turn of the
// loop, or when the loop is destroyed. Nothing is saved. Not thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/result.h"
#include "net/loop.h"
#include "persist/background_child.h"
#include "persist/loading.h"
#include "replication/snapshot_maker.h"
#include "server/config/config.h"
#include "server/server.h"

namespace latchkey::composition {

class WholeServer {
 public:
  // What a server is given. All must outlive it.
  struct Dependencies {
    base::Clock& clock;
    base::Logger& log;
    net::Loop* loop = nullptr;  // null: nothing happens by itself (server::Server)
    persist::ChildProcessParts child = {};
    // Makes the snapshots for replicas; empty: a forked child writes them.
    std::function<std::unique_ptr<replication::SnapshotMaker>(server::Server&)> snapshots = {};
  };

  // The server of a configuration that has been loaded. Fails when the configuration cannot be
  // followed: a locale, a renamed command, a user, a cluster's file.
  static base::Result<std::unique_ptr<WholeServer>, server::ConfigError> make(
      std::unique_ptr<server::Config> config, const Dependencies& dependencies);

  // What make() would refuse, as much of it as can be found without touching a file or another
  // server: the reasons in the order of its steps.
  static std::vector<server::ConfigError> check(std::unique_ptr<server::Config> config,
                                                const Dependencies& dependencies);

  // One more server in a process that has one. `settings`: lines of a configuration file. What they
  // leave out is as in make(), but that there is no port, nothing is saved by itself, and `dir`
  // does not move the process; or as Config::inherit() takes it from `parent`.
  static base::Result<std::unique_ptr<WholeServer>, server::ConfigError> make_space(
      std::string_view settings, const Dependencies& dependencies,
      const server::Config* parent = nullptr);

  ~WholeServer();
  WholeServer(const WholeServer&) = delete;
  WholeServer& operator=(const WholeServer&) = delete;

  server::Server& server() { return server_; }
  server::Config& config() { return *config_; }

  // Opens the sockets for clients, and a node's bus. False, with the reason logged, when a required
  // one cannot be had.
  bool listen();

  // Loads what the configuration says is on disk. Meanwhile it turns the loop, so that clients get
  // the LOADING error; called while the loop turns already, it loads in one piece.
  persist::Loading::Result load_dataset();
  // What follows from the dataset that was loaded: a node claims the slots of its keys, and
  // replication goes on in the stream where the dataset stands. False, with the reason logged, when
  // the node's file cannot be written.
  bool adopt_dataset();
  // Opens the append-only file, where appendonly asks for it. False, with the reason logged, when
  // the server cannot go on without it.
  bool open_append_only_file();

 private:
  WholeServer(std::unique_ptr<server::Config> config, const Dependencies& dependencies);

  void add_layers(const Dependencies& dependencies);
  base::Result<void, server::ConfigError> configure();
  // Has the clock show what the configuration says. Fails when that says nothing.
  base::Result<void, server::ConfigError> set_clock();
  // Fails when the locale that was asked for is not known.
  base::Result<void, server::ConfigError> choose_collation();
  bool join_cluster();
  bool report_startup_problems();

  std::unique_ptr<server::Config> config_;
  server::Server server_;
};

}  // namespace latchkey::composition

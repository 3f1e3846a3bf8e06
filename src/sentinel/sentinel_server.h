// A server as a Sentinel: the Sentinel's ticks, sockets, scripts and file, its part of INFO, and
// what its commands work on.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "net/loop.h"
#include "sentinel/host.h"
#include "sentinel/script_queue.h"
#include "sentinel/sentinel.h"
#include "sentinel/socket_channel.h"

namespace latchkey::server {
struct ConfigError;
class InfoText;
class Server;
}  // namespace latchkey::server

namespace latchkey::sentinel {

class SentinelServer final : private Host, private ScriptQueue::Launcher {
 public:
  explicit SentinelServer(server::Server& server);
  ~SentinelServer() override;

  // Applies the directives of the configuration. Fails when one of them is wrong, or the file
  // cannot be written. To be called once all layers are there.
  base::Result<void, server::ConfigError> start();
  // Begins to monitor the masters.
  void run();

  Sentinel& sentinel() { return sentinel_; }
  const ScriptQueue& scripts() const { return scripts_; }
  // Writes the file, as a command asks. False when that failed, which is logged.
  bool save() override;

 private:
  struct Process;

  // Host
  int64_t now_ms() override;
  uint64_t random_below(uint64_t bound) override;
  Network& network() override { return network_; }
  int port() override;
  std::string password() override;
  std::string resolve(const std::string& hostname) override;
  void log(base::LogLevel level, std::string_view text) override;
  void publish(std::string_view channel, std::string_view message) override;
  void run_script(std::vector<std::string> words) override { scripts_.add(std::move(words)); }
  void crash() override;
  // ScriptQueue::Launcher
  int64_t start(const std::vector<std::string>& words) override;
  void kill(int64_t pid) override;

  void tick();
  void write_info(server::InfoText& text);

  server::Server& server_;
  SocketNetwork network_;
  Sentinel sentinel_;
  ScriptQueue scripts_;
  std::map<int64_t, Process*> processes_;  // by pid
  std::unique_ptr<net::Timer> timer_;
};

}  // namespace latchkey::sentinel

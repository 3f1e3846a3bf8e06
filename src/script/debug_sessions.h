// SCRIPT DEBUG: the clients whose next EVAL is debugged, and their sessions.
//
// A session owns the client's socket. In a forked session a child of the server runs the script, on
// a copy of the dataset that is dropped with it, while the server closes its end of the socket and
// goes on. In a synchronous session the server itself runs the script, serves nobody else
// meanwhile, and keeps what the script writes. Either way the connection is closed after the
// script's reply.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "server/client/client.h"
#include "server/command/command_context.h"

namespace latchkey::script {

class DebugConsole;
class ScriptRunner;

class DebugSessions {
 public:
  enum class Kind : uint8_t { kForked, kSynchronous };

  DebugSessions(server::Server& server, ScriptRunner& runner);
  // Kills the remaining children.
  ~DebugSessions();
  DebugSessions(const DebugSessions&) = delete;
  DebugSessions& operator=(const DebugSessions&) = delete;

  // The client's next EVAL is debugged.
  void want(const server::Client& client, Kind kind);
  void want_none(const server::Client& client) { wanted_.erase(client.id); }
  // False for a client that is closing while its transaction goes on: it would not answer the
  // debugger.
  bool wanted_by(const server::Client& client) const {
    return !wanted_.empty() && wanted_.contains(client.id) && !client.has(server::kClientClosing);
  }

  // Runs `evaluate`, which runs the script of the request and replies, under the debugger.
  // REQUIRES: wanted_by() the client, which has a connection.
  void run(server::CommandContext& ctx, std::string_view source,
           const std::function<void()>& evaluate);

 private:
  void run_here(server::CommandContext& ctx, std::string_view source,
                const std::function<void()>& evaluate);
  void run_in_child(server::CommandContext& ctx, std::string_view source,
                    const std::function<void()>& evaluate);
  void run_session(DebugConsole& console, std::string_view source,
                   const std::function<void()>& evaluate);
  void reap();

  server::Server& server_;
  ScriptRunner& runner_;
  std::unordered_map<uint64_t, Kind> wanted_;  // by client id
  std::vector<pid_t> children_;
};

}  // namespace latchkey::script

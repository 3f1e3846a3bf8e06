#include "script/debug_sessions.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>

#include "base/file.h"
#include "base/fork.h"
#include "script/debug_console.h"
#include "script/debugger.h"
#include "script/script_runner.h"
#include "server/server.h"

namespace latchkey::script {

using namespace server;

namespace {

// Blocks signals around fork(): a signal that reached the child before it has its own handlers
// would run the server's.
pid_t fork_quietly() {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t child = base::fork_process();
  if (child == 0) {
    for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) std::signal(signal, SIG_DFL);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return child;
}

// In the child: lets go of what belongs to the server and to other clients.
void leave_server(Server& server, Client& client) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  base::close_all_but({client.connection()->descriptor()});
  server.log().set_role('C');
  server.propagation().set_muted(true);
}

// In the parent: the session of a layer goes on in the child, so its end is not announced from
// here. The layer takes it that the peer has gone.
void leave_layer(Client& client) {
  net::TransportLayer* const layer = client.connection()->layer();
  if (layer == nullptr) return;
  char rest[1];
  layer->receive_end();
  while (layer->read(rest, sizeof rest) > 0) continue;
}

}  // namespace

DebugSessions::DebugSessions(Server& server, ScriptRunner& runner)
    : server_(server), runner_(runner) {
  server_.hooks().tick.add([this] { reap(); });
}

DebugSessions::~DebugSessions() {
  for (const pid_t child : children_) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
}

void DebugSessions::reap() {
  std::erase_if(children_, [](pid_t child) { return waitpid(child, nullptr, WNOHANG) == child; });
}

void DebugSessions::want(const Client& client, Kind kind) {
  // Drops clients that have disconnected without an EVAL.
  std::erase_if(wanted_,
                [this](const auto& each) { return server_.clients().find(each.first) == nullptr; });
  wanted_[client.id] = kind;
}

void DebugSessions::run(CommandContext& ctx, std::string_view source,
                        const std::function<void()>& evaluate) {
  const auto wanted = wanted_.extract(ctx.client.id);
  ctx.client.connection()->flush();
  if (wanted.mapped() == Kind::kForked) return run_in_child(ctx, source, evaluate);
  run_here(ctx, source, evaluate);
}

void DebugSessions::run_here(CommandContext& ctx, std::string_view source,
                             const std::function<void()>& evaluate) {
  server_.log().notice("Redis synchronous debugging eval session started");
  {
    net::Connection& connection = *ctx.client.connection();
    DebugConsole console(connection.descriptor(), connection.layer());
    run_session(console, source, evaluate);
  }
  server_.log().notice("Redis synchronous debugging eval session ended");
  ctx.client.close_after_reply();
}

void DebugSessions::run_in_child(CommandContext& ctx, std::string_view source,
                                 const std::function<void()>& evaluate) {
  const pid_t child = fork_quietly();
  if (child < 0) {
    return ctx.reply.error(std::string("ERR Error: can't fork for the debugging session: ") +
                           strerror(errno));
  }
  if (child > 0) {
    children_.push_back(child);
    leave_layer(ctx.client);
    return ctx.client.close();
  }
  leave_server(server_, ctx.client);
  server_.log().notice("Redis forked for debugging eval");
  net::Connection& connection = *ctx.client.connection();
  DebugConsole console(connection.descriptor(), connection.layer());
  run_session(console, source, evaluate);
  console.write(ctx.client.out());
  server_.log().notice("Lua debugging session child exiting");
  _exit(0);
}

void DebugSessions::run_session(DebugConsole& console, std::string_view source,
                                const std::function<void()>& evaluate) {
  Debugger debugger(runner_, console, source);
  evaluate();
  console.say("<endsession>");
  console.send();
}

}  // namespace latchkey::script

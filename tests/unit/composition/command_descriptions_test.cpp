// COMMAND and COMMAND DOCS lend bytes that are kept for all servers of a release. The oracle is the
// plain way: each command of the server's own table, written anew.
#include "server/command/command_descriptions.h"

#include <memory>
#include <string>
#include <string_view>

#include "base/buffer_pool.h"
#include "commands/groups.h"
#include "composition/whole_server.h"
#include "server/command/command_docs.h"
#include "unit/catch.h"
#include "unit/required.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

using composition::WholeServer;

std::string written_anew(server::Server& server, int protocol, bool docs) {
  base::BufferPool pool;
  resp::OutputBuffer out(pool);
  resp::ReplyBuilder reply(out);
  reply.set_protocol(protocol);
  const auto& commands = server.commands().commands();
  docs ? reply.map(commands.size()) : reply.array(commands.size());
  for (const server::Command* command : commands) {
    if (docs) {
      reply.bulk(command->full_name);
      server::write_command_docs(*command, server.edition(), reply);
    } else {
      server::write_command_info(*command, server.edition(), reply);
    }
  }
  return std::string(out.since(0));
}

struct Process {
  Process() { log.set_level(base::LogLevel::kNothing); }

  std::unique_ptr<WholeServer> make(const std::string& settings) {
    return required(WholeServer::make_space(settings, {.clock = clock, .log = log, .loop = &loop}));
  }

  base::VirtualClock clock;
  base::Logger log;
  net::Loop loop;
};

void check_replies(server::Server& server) {
  for (const int protocol : {2, 3}) {
    CAPTURE(protocol);
    TestClient client(server, protocol);
    const std::string infos = written_anew(server, protocol, false);
    const std::string docs = written_anew(server, protocol, true);
    // Comparisons of these sizes are not for a report to show.
    CHECK((client.run("COMMAND") == infos));
    CHECK((client.run("COMMAND INFO") == infos));
    // It came with Redis 7.0.
    if (server.edition().has({7, 0})) CHECK((client.run("COMMAND DOCS") == docs));
    CHECK((client.run("COMMAND") == infos));
  }
}

}  // namespace

TEST_CASE("Servers of any release and with any renaming share what COMMAND lends", "[command]") {
  const char* const settings[] = {
      "",
      "rename-command GET \"\"\n",
      "",
      "rename-command APPEND \"\"\nrename-command SET put\nrename-command ZUNION \"\"\n",
      "emulate \"redis 6.2\"\n",
      "emulate \"redis 7.0\"\n",
      "emulate \"valkey 8.1\"\nrename-command GET \"\"\nrename-command DEL remove\n",
      "emulate \"valkey 8.1\"\n",
      "",
  };
  Process process;
  std::vector<std::unique_ptr<WholeServer>> servers;
  for (const char* one : settings) servers.push_back(process.make(one));
  for (int round = 0; round < 2; ++round) {
    CAPTURE(round);
    for (size_t i = 0; i < servers.size(); ++i) {
      CAPTURE(settings[i]);
      check_replies(servers[i]->server());
    }
  }
  // The renaming is seen: it is not that all of them say the same.
  CHECK(written_anew(servers[0]->server(), 2, false) !=
        written_anew(servers[1]->server(), 2, false));
  CHECK(written_anew(servers[1]->server(), 2, false) !=
        written_anew(servers[3]->server(), 2, false));
  CHECK(written_anew(servers[0]->server(), 2, true) != written_anew(servers[4]->server(), 2, true));
}

TEST_CASE("What COMMAND lends outlives the server that asked first", "[command]") {
  Process process;
  auto first = process.make("");
  const std::string said = TestClient(first->server()).run("COMMAND");
  first.reset();
  auto second = process.make("");
  CHECK((TestClient(second->server()).run("COMMAND") == said));
  check_replies(second->server());
}

TEST_CASE("COMMAND says the same after CONFIG SET, ACL SETUSER and CONFIG RESETSTAT", "[command]") {
  Process process;
  auto whole = process.make("");
  TestClient client(whole->server());
  const std::string infos = client.run("COMMAND");
  CHECK(client.run("CONFIG SET maxmemory-samples 7") == kOk);
  CHECK(client.run("CONFIG RESETSTAT") == kOk);
  CHECK(client.run("ACL SETUSER other on nopass -@all +command") == kOk);
  CHECK(client.run("AUTH other any") == kOk);
  CHECK((client.run("COMMAND") == infos));
  check_replies(whole->server());
}

TEST_CASE("COMMAND is whole within EXEC, behind other replies, and when all is copied",
          "[command]") {
  Process process;
  auto whole = process.make("enable-debug-command yes\n");
  TestClient client(whole->server());
  const std::string infos = written_anew(whole->server(), 2, false);
  const std::string docs = written_anew(whole->server(), 2, true);
  CHECK(client.run("MULTI") == kOk);
  for (const char* request : {"COMMAND", "PING", "COMMAND DOCS", "NOSUCH", "COMMAND"}) {
    client.run(request);
  }
  CHECK(client.run("EXEC").starts_with("-EXECABORT"));
  CHECK(client.run("MULTI") == kOk);
  for (const char* request : {"COMMAND", "PING", "COMMAND DOCS", "COMMAND"}) {
    CHECK(client.run(request) == kQueued);
  }
  CHECK((client.run("EXEC") == "*4\r\n" + infos + "+PONG\r\n" + docs + infos));
  CHECK((client.send("PING\r\nCOMMAND\r\nCOMMAND\r\nINCR n x\r\nCOMMAND DOCS\r\nPING\r\n") ==
         "+PONG\r\n" + infos + infos + error("ERR wrong number of arguments for 'incr' command") +
             docs + "+PONG\r\n"));
  CHECK(client.run("DEBUG REPLY-COPY-AVOIDANCE 0") == kOk);
  CHECK((client.run("COMMAND") == infos));
  CHECK((client.run("COMMAND DOCS") == docs));
}

TEST_CASE("A script sees all that COMMAND says", "[command]") {
  Process process;
  auto whole = process.make("");
  TestClient client(whole->server());
  const std::string count = client.run("COMMAND COUNT");
  for (const char* script :
       {"return #redis.call('COMMAND')", "return #redis.call('COMMAND', 'INFO')",
        "return #redis.call('COMMAND', 'DOCS') / 2"}) {
    CHECK(client.run_words({"EVAL", script, "0"}) == count);
  }
  CHECK((client.run_words({"EVAL", "return redis.call('COMMAND')", "0"}) ==
         written_anew(whole->server(), 2, false)));
}

TEST_CASE("A script is told that a command which needs a subcommand lacks it", "[command]") {
  Process process;
  auto whole = process.make("");
  TestClient client(whole->server());
  for (const char* script : {"return redis.call('CONFIG')", "return redis.call('XGROUP')"}) {
    CHECK(client.run_words({"EVAL", script, "0"})
              .starts_with("-ERR Wrong number of args calling Redis command from script"));
  }
}

TEST_CASE("Commands added to a table after COMMAND was asked are told of", "[command]") {
  ServerFixture server({commands::command_rows()});
  check_replies(server.server);
  server.server.commands().add(commands::string_rows());
  server.server.commands().add(commands::key_rows());
  check_replies(server.server);
}

}  // namespace latchkey::tests

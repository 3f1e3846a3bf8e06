#include <algorithm>
#include <string>

#include "commands/groups.h"
#include "server/observe/large_calls.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"

using namespace latchkey;
using tests::ServerFixture;
using tests::TestClient;

namespace {

// Notes every call.
struct LoggingServer : ServerFixture {
  explicit LoggingServer(std::string_view settings = "slowlog-log-slower-than 0\n")
      : ServerFixture(
            {commands::slowlog_rows(), commands::string_rows(), commands::set_rows(),
             commands::connection_rows(), commands::config_rows(), commands::transaction_rows(),
             commands::list_rows(), commands::list_wait_rows(), commands::client_rows(),
             commands::info_rows(), commands::stream_read_rows(), commands::stream_rows()},
            settings) {}

  std::vector<std::string> latest() { return server.slow_log().entries().front().words; }
  size_t size() { return server.slow_log().entries().size(); }
};

using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("SLOWLOG GET tells the latest calls first, with who made them") {
  LoggingServer server;
  TestClient client(server);
  client.run("CLIENT SETNAME somebody");
  client.run("SLOWLOG RESET");
  CHECK(client.run("SLOWLOG LEN") == tests::integer(1));  // the reset itself
  const auto& entry = server.server.slow_log().entries().front();
  CHECK(entry.words == Words{"SLOWLOG", "LEN"});
  CHECK(entry.id == 2);
  CHECK(entry.call.client_name == "somebody");
  CHECK(entry.call.client_address == "?:0");
  CHECK(entry.call.time_s == server.now_ms() / 1000);
  CHECK(entry.call.amount >= 0);
  const std::string reply = client.run("SLOWLOG GET 1");
  CHECK(
      reply.starts_with("*1\r\n*6\r\n:2\r\n:" + std::to_string(server.now_ms() / 1000) + "\r\n:"));
  CHECK(reply.ends_with(tests::bulks({"SLOWLOG", "LEN"}) + tests::bulk("?:0") +
                        tests::bulk("somebody")));
}

TEST_CASE("A read of streams that waited stands in the log as it came") {
  LoggingServer server;
  TestClient client(server);
  TestClient other(server);
  client.run("XREAD BLOCK 20 STREAMS s t 0 5");
  other.run("XADD s 1 f v");
  const auto& entries = server.server.slow_log().entries();
  CHECK(std::any_of(entries.begin(), entries.end(), [](const auto& entry) {
    return entry.words == Words{"XREAD", "BLOCK", "20", "STREAMS", "s", "t", "0", "5"};
  }));
}

TEST_CASE("SLOWLOG GET shows ten calls, or as many as are asked for") {
  LoggingServer server;
  TestClient client(server);
  for (int i = 0; i < 20; ++i) client.run("PING");
  CHECK(client.run("SLOWLOG GET").starts_with("*10\r\n"));
  CHECK(client.run("SLOWLOG GET 0") == "*0\r\n");
  CHECK(client.run("SLOWLOG GET 3").starts_with("*3\r\n"));
  CHECK(client.run("SLOWLOG GET -1").starts_with("*23\r\n"));
  CHECK(client.run("SLOWLOG GET 1000").starts_with("*24\r\n"));
  CHECK(client.run("SLOWLOG GET -2") ==
        tests::error("ERR count should be greater than or equal to -1"));
  CHECK(client.run("SLOWLOG GET 1 2") ==
        tests::error("ERR unknown subcommand or wrong number of arguments for 'GET'. Try SLOWLOG "
                     "HELP."));
}

TEST_CASE("A call that has waited in vain is noted when its wait ends") {
  LoggingServer server;
  TestClient client(server);
  TestClient waiting(server);
  waiting.run("BLPOP list 0.1");
  client.run("SLOWLOG RESET");
  const uint64_t calls = server.server.stats().commands_processed;
  server.advance_ms(100);
  server.tick();
  CHECK(waiting.take_output() == tests::kNullArray);
  CHECK(server.latest() == Words{"BLPOP", "list", "0.1"});
  CHECK(server.server.stats().commands_processed == calls + 1);
  CHECK(waiting->total_commands == 1);
}

TEST_CASE("The slow log holds slowlog-max-len calls, and none when it is zero or switched off") {
  LoggingServer server("slowlog-log-slower-than 0\nslowlog-max-len 3\n");
  TestClient client(server);
  for (int i = 0; i < 5; ++i) client.run("PING");
  CHECK(server.size() == 3);
  client.run("CONFIG SET slowlog-max-len 0");
  client.run("SLOWLOG RESET");
  client.run("PING");
  CHECK(server.size() == 0);
  client.run("CONFIG SET slowlog-max-len 3 slowlog-log-slower-than -1");
  client.run("PING");
  CHECK(server.size() == 0);
  client.run("CONFIG SET slowlog-log-slower-than 1000000000");
  client.run("PING");
  CHECK(server.size() == 0);
}

TEST_CASE("The slow log cuts long requests, and long words") {
  LoggingServer server;
  TestClient client(server);
  std::string request = "SADD set";
  for (int i = 0; i < 31; ++i) request += " " + std::to_string(i);
  client.run(request);
  CHECK(server.latest().size() == 32);
  CHECK(server.latest()[30] == "28");
  CHECK(server.latest()[31] == "... (2 more arguments)");
  client.run("SADD set " + std::string(128, 'a') + " " + std::string(130, 'b'));
  CHECK(server.latest()[2] == std::string(128, 'a'));
  CHECK(server.latest()[3] == std::string(128, 'b') + "... (2 more bytes)");
}

TEST_CASE("The slow log keeps as many words and bytes as the directives say") {
  LoggingServer server("slowlog-log-slower-than 0\nslowlog-entry-max-argc 4\n");
  TestClient client(server);
  client.run("SADD set a b");
  CHECK(server.latest() == Words{"SADD", "set", "a", "b"});
  client.run("SADD set a b c");
  CHECK(server.latest() == Words{"SADD", "set", "a", "... (2 more arguments)"});
  client.run("CONFIG SET slowlog-entry-max-argc 2 slowlog-entry-max-string-len 5");
  client.run("SCARD set");
  CHECK(server.latest() == Words{"SCARD", "set"});
  client.run("SETEX k 10 value");
  CHECK(server.latest() == Words{"SETEX", "... (3 more arguments)"});
  client.run("SMEMBERS k");
  CHECK(server.latest() == Words{"SMEMB... (3 more bytes)", "k"});
  for (const char* pair : {"slowlog-entry-max-argc 1", "slowlog-entry-max-string-len 0"}) {
    CHECK(client.run("CONFIG SET " + std::string(pair)).find("argument must be between") !=
          std::string::npos);
  }
}

TEST_CASE("INFO counts slow calls, also when the log is emptied") {
  LoggingServer server("slowlog-log-slower-than -1\n");
  TestClient client(server);
  client.run("PING");
  CHECK(server.server.stats().slow_calls.calls == 0);
  CHECK(client.run("INFO stats")
            .find("slowlog_commands_count:0\r\nslowlog_commands_time_ms_sum:"
                  "0.00\r\nslowlog_commands_time_ms_max:0.00\r\n") != std::string::npos);
  client.run("CONFIG SET slowlog-log-slower-than 0");
  client.run("PING");
  client.run("PING");
  client.run("CONFIG SET slowlog-log-slower-than -1");
  client.run("SLOWLOG RESET");
  CHECK(client.run("INFO stats").find("slowlog_commands_count:3\r\n") != std::string::npos);
  const std::string told = client.run("INFO commandstats");
  const size_t ping = told.find("cmdstat_ping:");
  REQUIRE(ping != std::string::npos);
  CHECK(told.substr(ping, told.find('\r', ping) - ping).find(",slowlog_count=2,") !=
        std::string::npos);
  const size_t info = told.find("cmdstat_info:");
  CHECK(told.substr(info, told.find('\r', info) - info).find("slowlog") == std::string::npos);
  client.run("CONFIG RESETSTAT");
  CHECK(server.server.stats().slow_calls.calls == 0);
}

TEST_CASE("The slow log shows a transaction's calls and not EXEC, and hides passwords") {
  LoggingServer server;
  TestClient client(server);
  client.run("MULTI");
  client.run("SET a 1");
  client.run("EXEC");
  CHECK(server.latest() == Words{"SET", "a", "1"});
  client.run("CONFIG SET maxmemory 0 requirepass \"\" masterauth secret");
  CHECK(server.latest() == Words{"CONFIG", "SET", "maxmemory", "0", "requirepass", "(redacted)",
                                 "masterauth", "(redacted)"});
}

TEST_CASE("The slow log shows a call that waited when it has been served") {
  LoggingServer server;
  TestClient waiting(server);
  TestClient client(server);
  waiting.run("BLPOP list 0");
  CHECK(server.size() == 0);
  client.run("RPUSH list a");
  CHECK(server.size() == 2);
  CHECK(server.latest() == Words{"BLPOP", "list", "0"});
}

TEST_CASE("COMMANDLOG has calls by the size of their request or reply, while these logs are on") {
  LoggingServer server;
  TestClient client(server);
  CHECK(client.run("COMMANDLOG GET -1 large-reply") == "*0\r\n");
  client.run("SET key " + std::string(100, 'a'));
  CHECK(client.run("COMMANDLOG LEN large-request") == tests::integer(0));
  client.run("CONFIG SET commandlog-request-larger-than 128 commandlog-reply-larger-than 107");
  client.run("SET key " + std::string(100, 'a'));  // of 130 bytes
  client.run("SET key " + std::string(97, 'a'));   // of 126 bytes
  client.run("SET key " + std::string(100, 'a'));
  client.run("GET key");
  client.run("SETRANGE key 0 short");
  auto& large = server.server.dispatcher().meters().large_calls();
  REQUIRE(large.requests().entries().size() == 2);
  CHECK(large.requests().entries()[0].call.amount == 130);
  CHECK(large.requests().entries()[0].words == Words{"SET", "key", std::string(100, 'a')});
  REQUIRE(large.replies().entries().size() == 1);
  CHECK(large.replies().entries()[0].call.amount == 108);
  CHECK(large.replies().entries()[0].words == Words{"GET", "key"});
  CHECK(client.run("COMMANDLOG GET 1 LARGE-REPLY")
            .ends_with(tests::bulks({"GET", "key"}) + tests::bulk("?:0") + tests::bulk("")));
  CHECK(client.run("COMMANDLOG RESET large-reply") == tests::kOk);
  CHECK(client.run("COMMANDLOG LEN large-reply") == tests::integer(0));
  CHECK(client.run("COMMANDLOG LEN large-request") == tests::integer(2));
  client.run("CONFIG SET commandlog-request-larger-than -1 commandlog-reply-larger-than -1");
  client.run("SET key " + std::string(1000, 'a'));
  CHECK(large.requests().entries().size() == 2);
  CHECK((server.server.state() & server::kStateMetered) == 0);
}

TEST_CASE("COMMANDLOG's slow log is SLOWLOG") {
  LoggingServer server("commandlog-execution-slower-than 0\n");
  TestClient client(server);
  client.run("PING");
  CHECK(client.run("SLOWLOG LEN") == tests::integer(1));
  CHECK(client.run("COMMANDLOG LEN slow") == tests::integer(2));
  CHECK(client.run("COMMANDLOG GET 1 slow").starts_with("*1\r\n*6\r\n:2\r\n"));
  CHECK(client.run("COMMANDLOG RESET slow") == tests::kOk);
  CHECK(server.size() == 1);
  CHECK(client.run("COMMANDLOG GET -2 slow") ==
        tests::error("ERR count should be greater than or equal to -1"));
  CHECK(client.run("COMMANDLOG LEN fast") ==
        tests::error("ERR type should be one of the following: slow, large-request, large-reply"));
}

TEST_CASE("COMMANDLOG judges replies within a transaction, but no requests") {
  LoggingServer server(
      "commandlog-request-larger-than 100\ncommandlog-reply-larger-than 100\n"
      "slowlog-log-slower-than -1\n");
  TestClient client(server);
  client.run("MULTI");
  client.run("SET key " + std::string(100, 'a'));
  client.run("GET key");
  client.run("EXEC");
  auto& large = server.server.dispatcher().meters().large_calls();
  CHECK(large.requests().entries().empty());
  REQUIRE(!large.replies().entries().empty());
  CHECK(large.replies().entries().back().words == Words{"GET", "key"});
}

// A debugging session as its user meets it. All that the user types is in the socket before the
// script begins.
#include "script/debugger.h"

#include <string>
#include <string_view>
#include <vector>

#include "server/client/authentication.h"
#include "unit/catch.h"
#include "unit/net/wire.h"
#include "unit/script/script_fixture.h"

namespace latchkey::tests {

namespace {

using Lines = std::vector<std::string>;

struct Session {
  Session()
      : wire(loop),
        client(scripts.server.server.clients().add(wire.connection)),
        client_id(client.id) {
    server::assume_default_user(client);
    wire.connection->start(client, 0);
  }
  ~Session() {
    if (is_open()) client.close();
  }
  bool is_open() { return scripts.server.server.clients().find(client_id) != nullptr; }

  // Debugs a script of one key and one argument. The user leaves behind the last command.
  void debug(std::string_view script, const std::vector<std::vector<std::string_view>>& commands) {
    for (const auto& words : commands) {
      wire.peer.send("*" + std::to_string(words.size()) + "\r\n");
      for (const std::string_view word : words) wire.peer.send(bulk(word));
    }
    wire.peer.send_no_more();
    std::string requests =
        bulks({"SCRIPT", "DEBUG", "SYNC"}) + bulks({"EVAL", script, "1", "key", "argument"});
    client.on_input(requests);
    read(wire.peer.receive());
  }

  net::Loop loop;
  ScriptServer scripts;
  Wire wire;
  server::Client& client;
  uint64_t client_id;
  Lines shown;        // by the debugger
  std::string reply;  // of the script

 private:
  void read(const std::string& text) {
    const std::string start(kOk);
    REQUIRE(text.starts_with(start));
    size_t at = start.size();
    while (at < text.size() && (shown.empty() || shown.back() != "<endsession>")) {
      const size_t end = text.find("\r\n", at);
      REQUIRE(end != std::string::npos);
      if (text[at] == '+') shown.push_back(text.substr(at + 1, end - at - 1));
      at = end + 2;
    }
    reply = text.substr(at);
  }
};

const Lines kStart = {"* Stopped at 1, stop reason = step over"};

Lines operator+(Lines first, const Lines& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace

TEST_CASE("The debugger runs code, an expression or a statement, and shows its value",
          "[debugger]") {
  Session session;
  session.debug("return 1", {{"e", "1", "+", "1"},
                             {"eval", "return 7"},
                             {"eval", "local a = 5 return a * 2"},
                             {"eval", "local a = 5"},
                             {"e", "KEYS[1] .. ARGV[1]"},
                             {"e", "a b"},
                             {"e", "1 +"},
                             {"e", "error('x')"},
                             {"e", "error({err = 'My error'})"},
                             {"e"},
                             {"c"}});
  CHECK(session.shown ==
        kStart + Lines{"-> 1   return 1", "<retval> 2", "<retval> 7", "<retval> 10", "<retval> nil",
                       "<retval> \"keyargument\"", "<error> ldb_eval:1: '=' expected near 'b'",
                       "<error> ldb_eval:1: unexpected symbol near '1'", "<error> ldb_eval:1: x",
                       "<error> My error",
                       "<error> Unknown Redis Lua debugger command or wrong number of arguments.",
                       "<endsession>"});
  CHECK(session.reply == integer(1));
  CHECK_FALSE(session.is_open());
}

TEST_CASE("The debugger stops before each line, or where it is told to", "[debugger]") {
  Session session;
  session.debug("local a = 1\nlocal b = 2\na = a + b\nreturn a", {{"b", "4", "9", "-2"},
                                                                  {"b"},
                                                                  {"s"},
                                                                  {"N"},
                                                                  {"p"},
                                                                  {"print", "b"},
                                                                  {"p", "KEYS"},
                                                                  {"p", "c"},
                                                                  {"continue"},
                                                                  {"p", "a"},
                                                                  {"b", "-4"},
                                                                  {"b"},
                                                                  {"c"}});
  CHECK(session.shown == kStart + Lines{"-> 1   local a = 1",
                                        "   3   a = a + b",
                                        "  #4   return a",
                                        "Wrong line number.",
                                        "No breakpoint in the specified line.",
                                        "1 breakpoints set:",
                                        "  #4   return a",
                                        "* Stopped at 2, stop reason = step over",
                                        "-> 2   local b = 2",
                                        "* Stopped at 3, stop reason = step over",
                                        "-> 3   a = a + b",
                                        "<value> a = 1",
                                        "<value> b = 2",
                                        "<value> 2",
                                        "<value> {\"key\"}",
                                        "No such variable.",
                                        "* Stopped at 4, stop reason = break point",
                                        "->#4   return a",
                                        "<value> 3",
                                        "Breakpoint removed.",
                                        "No breakpoints set. Use 'b <line>' to add one.",
                                        "<endsession>"});
  CHECK(session.reply == integer(3));
}

TEST_CASE("The debugger shows the source around a line", "[debugger]") {
  Session session;
  session.debug("local a = 1\nlocal b = 2\nlocal c = 3\nreturn c",
                {{"l", "2", "1"}, {"list", "4", "0"}, {"list", "3", "-1"}, {"w"}, {"abort"}});
  const Lines first = {"-> 1   local a = 1", "   2   local b = 2", "   3   local c = 3",
                       "   4   return c"};
  CHECK(session.shown == kStart + Lines{first[0]} + Lines{first[0], first[1], first[2]} +
                             Lines{first[3]} + Lines{first[2]} + first + Lines{"<endsession>"});
  CHECK(session.reply.starts_with("-ERR script aborted for user request"));
}

TEST_CASE("The debugger runs commands of the server and shows those of the script", "[debugger]") {
  Session session;
  session.debug("redis.call('SET', KEYS[1], ARGV[1])\nreturn redis.call('GET', KEYS[1])",
                {{"r", "RPUSH", "list", "a", "b"},
                 {"redis", "LRANGE", "list", "0", "-1"},
                 {"r", "INCR", "list"},
                 {"r", "nosuch"},
                 {"s"},
                 {"c"}});
  CHECK(session.shown ==
        kStart +
            Lines{"-> 1   redis.call('SET', KEYS[1], ARGV[1])", "<redis> RPUSH list a b",
                  "<reply> 2", "<redis> LRANGE list 0 -1", "<reply> [\"a\",\"b\"]",
                  "<redis> INCR list",
                  "<error> -WRONGTYPE Operation against a key holding the wrong kind of value",
                  "<reply> \"-WRONGTYPE Operation against a key holding the wrong kind of value\"",
                  "<redis> nosuch", "<error> Unknown Redis command called from script",
                  "<redis> SET key argument", "<reply> \"+OK\"",
                  "* Stopped at 2, stop reason = step over",
                  "-> 2   return redis.call('GET', KEYS[1])", "<endsession>"});
  CHECK(session.reply == bulk("argument"));
  CHECK(session.scripts.client->run("GET key") == bulk("argument"));
}

TEST_CASE("The debugger cuts long lines, once with a hint, unless it is told not to",
          "[debugger]") {
  Session session;
  session.debug("return 1", {{"maxlen", "5"},
                             {"e", "string.rep('x', 100)"},
                             {"e", "string.rep('y', 100)"},
                             {"m", "0"},
                             {"e", "string.rep('z', 300)"},
                             {"m", "-1"},
                             {"c"}});
  CHECK(session.shown ==
        kStart + Lines{"-> 1   return 1", "<value> replies are truncated at 60 bytes.",
                       "<retval> \"" + std::string(50, 'x') + " ...",
                       "<hint> The above reply was trimmed. Use 'maxlen 0' to disable trimming.",
                       "<retval> \"" + std::string(50, 'y') + " ...",
                       "<value> replies are unlimited.",
                       "<retval> \"" + std::string(300, 'z') + "\"",
                       "<value> replies are unlimited.", "<endsession>"});
}

TEST_CASE("A script stops where it asks to, and tells what it wants to be seen", "[debugger]") {
  Session session;
  session.debug("local a = 2\nredis.breakpoint()\nredis.debug('a', a)\nreturn a",
                {{"c"}, {"t"}, {"c"}});
  CHECK(session.shown == kStart + Lines{"-> 1   local a = 2",
                                        "* Stopped at 3, stop reason = redis.breakpoint() called",
                                        "-> 3   redis.debug('a', a)",
                                        "In top level:", "-> 3   redis.debug('a', a)",
                                        "<debug> line 3: \"a\", 2", "<endsession>"});
  CHECK(session.reply == integer(2));
}

TEST_CASE("A script whose debugging user leaves goes on to its end", "[debugger]") {
  Session session;
  session.debug("local a = 1\nredis.call('SET', KEYS[1], ARGV[1])\nreturn a", {{"s"}});
  CHECK(session.scripts.client->run("GET key") == bulk("argument"));
  CHECK_FALSE(session.is_open());
}

TEST_CASE("The debugger explains its commands", "[debugger]") {
  Session session;
  session.debug("return 1", {{"h"}, {"help"}, {"c"}});
  REQUIRE(session.shown.size() == 2 + 2 * 24 + 1);
  CHECK(session.shown[2] == "Redis Lua debugger help:");
  CHECK(session.shown[3] == "[h]elp               Show this help.");
  CHECK(session.shown[25] == "redis.breakpoint()   Stops before the next line.");
  CHECK(session.shown[26] == "Redis Lua debugger help:");
}

TEST_CASE("The debugger removes all breakpoints by 0, and takes numbers alone", "[debugger]") {
  Session session;
  session.debug("local a = 1\nlocal b = 2\nreturn a",
                {{"b", "2", "x", "3"}, {"b", "0"}, {"b"}, {"c"}});
  CHECK(session.shown ==
        kStart + Lines{"-> 1   local a = 1", "-> 1   local a = 1", "  #2   local b = 2",
                       "   3   return a", "Invalid argument:'x'", "  #2   local b = 2",
                       "  #3   return a", "All breakpoints removed.",
                       "No breakpoints set. Use 'b <line>' to add one.", "<endsession>"});
  CHECK(session.reply == integer(1));
}

TEST_CASE("What is no request ends a script that is debugged", "[debugger]") {
  Session session;
  session.wire.peer.send("step\r\n");
  session.debug("return 1", {});
  CHECK(session.reply.starts_with("-ERR protocol error"));
}

}  // namespace latchkey::tests

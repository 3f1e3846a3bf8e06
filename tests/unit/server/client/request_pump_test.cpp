// What a client's bytes become when they come in pieces, late, or not to their end. Whatever the
// network does to a stream, its requests are the same and run once.
#include "server/client/request_pump.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "commands/groups.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"
#include "unit/temporary_directory.h"

namespace latchkey::tests {

namespace {

// One end of a client's connection, which keeps what the server leaves of its bytes.
class Line {
 public:
  explicit Line(ServerFixture& fixture) : fixture_(fixture), client_(fixture), id_(client_->id) {}

  void send(std::string_view bytes) {
    kept_ += bytes;
    go_on();
  }
  void go_on() {
    while (is_open() && !kept_.empty() && !client_->has(server::kClientBlocked)) {
      // Of its own size and at another place each time, as buffers of connections are.
      const auto offered = std::make_unique<char[]>(kept_.size());
      std::copy(kept_.begin(), kept_.end(), offered.get());
      const size_t consumed = client_->on_input({offered.get(), kept_.size()});
      REQUIRE(consumed <= kept_.size());
      kept_.erase(0, consumed);
      flush();
      if (consumed == 0) return;
    }
  }
  void send_no_more() {
    if (is_open()) client_->on_end_of_input();
    flush();
  }
  void flush() {
    if (!is_open()) return;
    replies_ += client_.take_output();
    client_->on_flushed();
  }
  void close() {
    if (is_open()) client_->close();
  }
  bool is_open() const { return fixture_.server.clients().find(id_) != nullptr; }
  server::Client& client() { return *client_; }
  const std::string& kept() const { return kept_; }
  const std::string& replies() const { return replies_; }

 private:
  ServerFixture& fixture_;
  TestClient client_;
  uint64_t id_;
  std::string kept_;
  std::string replies_;
};

class PumpServer : public ServerFixture {
 public:
  explicit PumpServer(std::string_view settings = {})
      : ServerFixture(
            {commands::string_rows(), commands::string_range_rows(), commands::counter_rows(),
             commands::list_rows(), commands::list_wait_rows(), commands::transaction_rows(),
             commands::connection_rows(), commands::database_rows(), commands::server_rows()},
            settings) {}

  // As if nobody had been here.
  void clear() {
    TestClient client(*this);
    client.run("FLUSHALL");
    client->close();
    tick();
  }
  std::string value(std::string_view key) {
    TestClient client(*this);
    std::string reply = client.run_words({"GET", key});
    client->close();
    return reply;
  }
};

struct Pipeline {
  std::string bytes;
  std::string replies;
  std::vector<size_t> ends;     // offsets behind requests
  std::vector<size_t> replied;  // bytes of replies up to there

  void add(std::string_view request, std::string_view reply) {
    bytes += request;
    replies += reply;
    ends.push_back(bytes.size());
    replied.push_back(replies.size());
  }
  // How many requests are whole in the first `size` bytes.
  size_t whole(size_t size) const {
    return static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), size) - ends.begin());
  }
  std::string replies_of(size_t count) const {
    return count == 0 ? "" : replies.substr(0, replied[count - 1]);
  }
};

// Requests of all forms: arrays, inline, quoted; with line ends and nothing in arguments.
Pipeline every_form() {
  Pipeline all;
  all.add(bulks({"SET", "a", "1"}), kOk);
  all.add("APPEND a 2\r\n", integer(2));
  all.add("GET a\n", bulk("12"));
  all.add("SET \"b b\" 'it\\'s'\r\n", kOk);
  all.add("GET \"b\\x20b\"\r\n", bulk("it's"));
  all.add(bulks({"SET", "c", "x\r\n*1\r\n$4\r\nPING\r\n"}), kOk);
  all.add(bulks({"STRLEN", "c"}), integer(17));
  all.add(bulks({"SET", "", ""}), kOk);
  all.add(bulks({"GET", ""}), bulk(""));
  all.add("MULTI\r\n", kOk);
  all.add(bulks({"INCR", "n"}), kQueued);
  all.add("INCR n\r\n", kQueued);
  all.add("EXEC\r\n", array({integer(1), integer(2)}));
  all.add("GET\r\n", error("ERR wrong number of arguments for 'get' command"));
  all.add(bulks({"NOTHING", "x"}),
          error("ERR unknown command 'NOTHING', with args beginning with: 'x' "));
  all.add(bulks({"INCR", "n"}), integer(3));
  return all;
}

}  // namespace

TEST_CASE("Batches of requests whose keys are prefetched together are counted", "[pump]") {
  PumpServer server;
  Line line(server);
  const server::Stats& stats = server.server.stats();
  line.send("SET a 1\r\n");
  CHECK(stats.prefetched_batches == 0);
  line.send("GET a\r\nSTRLEN a\r\nPING\r\n");
  CHECK(stats.prefetched_batches == 1);
  CHECK(stats.prefetched_keys == 2);
  line.send("PING\r\nPING\r\n");
  CHECK(stats.prefetched_batches == 1);
}

TEST_CASE("A pipeline is answered alike wherever it is split", "[pump]") {
  const Pipeline pipeline = every_form();
  PumpServer server;
  const bool waits = GENERATE(false, true);
  for (size_t split = 0; split <= pipeline.bytes.size(); ++split) {
    CAPTURE(split, waits);
    server.clear();
    Line line(server);
    line.send(std::string_view(pipeline.bytes).substr(0, split));
    REQUIRE(line.replies() == pipeline.replies_of(pipeline.whole(split)));
    if (waits) {
      server.advance_ms(5'000);
      server.tick();
    }
    line.send(std::string_view(pipeline.bytes).substr(split));
    REQUIRE(line.replies() == pipeline.replies);
    REQUIRE(line.kept().empty());
    line.close();
  }
}

TEST_CASE("A pipeline that comes in equal pieces is answered as one that comes whole", "[pump]") {
  const Pipeline pipeline = every_form();
  PumpServer server;
  for (const size_t piece : {1, 2, 3, 7, 64}) {
    CAPTURE(piece);
    server.clear();
    Line line(server);
    for (size_t at = 0; at < pipeline.bytes.size(); at += piece) {
      line.send(std::string_view(pipeline.bytes).substr(at, piece));
      const size_t sent = std::min(at + piece, pipeline.bytes.size());
      REQUIRE(line.replies() == pipeline.replies_of(pipeline.whole(sent)));
    }
    CHECK(line.replies() == pipeline.replies);
    line.close();
  }
}

TEST_CASE("Of a stream that is cut only whole requests run", "[pump]") {
  PumpServer server;
  Pipeline pipeline;
  for (int i = 1; i <= 5; ++i) pipeline.add(bulks({"INCR", "count"}), integer(i));
  for (size_t cut = 0; cut <= pipeline.bytes.size(); ++cut) {
    CAPTURE(cut);
    server.clear();
    const size_t whole = pipeline.whole(cut);
    Line line(server);
    line.send(std::string_view(pipeline.bytes).substr(0, cut));
    line.send_no_more();
    CHECK(line.replies() == pipeline.replies_of(whole));
    CHECK_FALSE(line.is_open());
    CHECK(server.value("count") == (whole == 0 ? std::string(kNull) : bulk(std::to_string(whole))));
  }
}

TEST_CASE("A transaction that is cut before EXEC changes nothing", "[pump]") {
  PumpServer server;
  const std::string bytes = "MULTI\r\n" + bulks({"SET", "a", "1"}) + bulks({"EXEC"});
  for (size_t cut = 0; cut < bytes.size(); ++cut) {
    CAPTURE(cut);
    Line line(server);
    line.send(std::string_view(bytes).substr(0, cut));
    line.send_no_more();
    REQUIRE(server.value("a") == kNull);
  }
}

TEST_CASE("More requests than a batch holds are answered in order", "[pump]") {
  PumpServer server;
  // Around the number of requests that are parsed together.
  for (const int count : {31, 32, 33, 64, 65, 1'000}) {
    CAPTURE(count);
    server.clear();
    std::string requests;
    std::string replies;
    for (int i = 1; i <= count; ++i) {
      requests += "INCR n\r\n";
      if (i % 10 == 0) requests += "\r\n";
      replies += integer(i);
    }
    Line line(server);
    line.send(requests);
    CHECK(line.replies() == replies);
    CHECK(line.kept().empty());
    line.close();
  }
}

TEST_CASE("Lines without a word are no requests", "[pump]") {
  PumpServer server;
  Line line(server);
  line.send("\r\n\n   \r\n*0\r\n*-1\r\nPING\r\n\r\n");
  CHECK(line.replies() == status("PONG"));
  CHECK(line.kept().empty());
  CHECK(line.is_open());
}

TEST_CASE("What is no request is refused once, wherever it is split, and nothing behind it runs",
          "[pump]") {
  PumpServer server;
  const std::string bytes =
      bulks({"SET", "a", "1"}) + "*2\r\n$3\r\nGET\r\n!a\r\n" + bulks({"SET", "a", "2"});
  const std::string expected =
      std::string(kOk) + error("ERR Protocol error: expected '$', got '!'");
  for (size_t split = 0; split <= bytes.size(); ++split) {
    CAPTURE(split);
    server.clear();
    Line line(server);
    line.send(std::string_view(bytes).substr(0, split));
    line.send(std::string_view(bytes).substr(split));
    REQUIRE(line.replies() == expected);
    REQUIRE_FALSE(line.is_open());
    REQUIRE(server.value("a") == bulk("1"));
  }
}

TEST_CASE("What a client sends behind a request that waits is run when the wait is over",
          "[pump]") {
  PumpServer server;
  TestClient other(server);
  const std::string waiting = bulks({"BLPOP", "list", "0"});
  const std::string bytes = "PING\r\n" + waiting + bulks({"INCR", "n"}) + "INCR n\r\n";
  for (size_t split = 0; split <= bytes.size(); ++split) {
    CAPTURE(split);
    server.clear();
    Line line(server);
    line.send(std::string_view(bytes).substr(0, split));
    line.send(std::string_view(bytes).substr(split));
    REQUIRE(line.replies() == status("PONG"));
    REQUIRE(server.value("n") == kNull);
    other.run("RPUSH list element");
    line.flush();
    line.go_on();
    REQUIRE(line.replies() ==
            status("PONG") + bulks({"list", "element"}) + integer(1) + integer(2));
    line.close();
  }
}

TEST_CASE("A client that is gone while it waits gets nothing, and nothing behind its request runs",
          "[pump]") {
  PumpServer server;
  TestClient other(server);
  Line line(server);
  line.send(bulks({"BLPOP", "list", "0"}) + "INCR n\r\n");
  line.send_no_more();
  CHECK_FALSE(line.is_open());
  CHECK(other.run("RPUSH list element") == integer(1));
  CHECK(other.run("LLEN list") == integer(1));
  CHECK(server.value("n") == kNull);
}

TEST_CASE("Behind QUIT nothing runs", "[pump]") {
  PumpServer server;
  Line line(server);
  line.send("SET a 1\r\nQUIT\r\nSET a 2\r\n");
  CHECK(line.replies() == std::string(kOk) + std::string(kOk));
  CHECK_FALSE(line.is_open());
  CHECK(server.value("a") == bulk("1"));
}

TEST_CASE("The start of an HTTP request ends a client without a reply", "[pump]") {
  PumpServer server;
  for (const std::string_view start : {"POST / HTTP/1.1\r\n", "Host: here\r\n", "hOsT: a\r\n"}) {
    CAPTURE(start);
    Line line(server);
    line.send("SET a 1\r\n" + std::string(start) + "SET a 2\r\n");
    CHECK_FALSE(line.is_open());
    CHECK(server.value("a") == bulk("1"));
  }
}

TEST_CASE("A client tells how much of a large argument is missing", "[pump]") {
  PumpServer server;
  Line line(server);
  CHECK(line.client().wanted_input() == 0);
  const std::string value(100'000, 'v');
  const std::string request = bulks({"SET", "a", value});
  line.send(std::string_view(request).substr(0, 50));
  CHECK(line.client().wanted_input() == request.size());
  line.send(std::string_view(request).substr(50));
  CHECK(line.replies() == kOk);
  CHECK(line.client().wanted_input() == 0);
  CHECK(server.value("a") == bulk(value));
}

TEST_CASE("A client that has not logged in may not announce much", "[pump]") {
  PumpServer server("requirepass secret");
  const auto answer_to = [&](std::string_view bytes) {
    Line line(server);
    line.client().set(server::kClientNeedsAuth);
    line.send(bytes);
    std::string replies = line.replies();
    line.close();
    return replies;
  };
  CHECK(answer_to("*11\r\n") == error("ERR Protocol error: unauthenticated multibulk length"));
  CHECK(answer_to("*1\r\n$16385\r\n") == error("ERR Protocol error: unauthenticated bulk length"));
  CHECK(answer_to("*10\r\n$16384\r\n").empty());
}

TEST_CASE("The log shows what was no request, its start and its end, or nothing of it", "[pump]") {
  const TemporaryDirectory directory;
  const auto logged = [&](PumpServer& server, std::string_view bytes) {
    const std::string path = directory.path() / "log";
    std::filesystem::remove(path);
    server.log.set_file(path);
    server.log.set_level(base::LogLevel::kVerbose);
    Line line(server);
    line.send(bytes);
    line.flush();
    server.log.set_level(base::LogLevel::kNothing);
    return directory.read("log");
  };
  PumpServer server;
  const std::string bad = "*1\r\n!\x01\r\n";
  const std::string log = logged(server, bad);
  INFO(log);
  CHECK(log.ends_with(". Query buffer during protocol error: '*1..!...'\n"));
  CHECK(log.find("Protocol error (expected '$', got '!') from client: ") != std::string::npos);
  // Up to 128 bytes are shown.
  const auto shown = [&](size_t size) {
    return logged(server, "*1\r\n!" + std::string(size, 'x') + "\r\n");
  };
  CHECK(shown(121).ends_with("'*1..!" + std::string(121, 'x') + "..'\n"));
  CHECK(shown(122).ends_with("'*1..!" + std::string(59, 'x') + "' (... more 1 bytes ...) '" +
                             std::string(62, 'x') + "..'\n"));
  PumpServer careful("hide-user-data-from-log yes\n");
  CHECK(logged(careful, bad).ends_with(" error: '*redacted*'\n"));
  PumpServer valkey("emulate \"valkey 9.1\"\nhide-user-data-from-log no\n");
  CHECK(logged(valkey, bad).ends_with(". Query buffer: '*1..!...'\n"));
}

TEST_CASE("The log tells of unknown commands, and what was probably meant", "[pump]") {
  const TemporaryDirectory directory;
  PumpServer server;
  TestClient client(server);
  const std::string id = std::to_string(client->id);
  server.log.set_file(directory.path() / "log");
  server.log.set_level(base::LogLevel::kVerbose);
  client.run("GETT a");
  server.log.set_level(base::LogLevel::kNothing);
  INFO(directory.read("log"));
  CHECK(directory.read("log").ends_with(" - Client id=" + id +
                                        " sent an unknown command 'GETT'. Did it mean get?\n"));
}

}  // namespace latchkey::tests

// A client's stream over real sockets: what arrives when the other end is slow, sends in pieces,
// stops or fails.
#include "net/connection.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <uv.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/blob.h"
#include "unit/catch.h"
#include "unit/net/listening_socket.h"
#include "unit/net/wire.h"

namespace latchkey::tests {

namespace {

using net::Connection;
using net::Loop;

// Takes whole lines, or everything, and records what happens.
struct Handler : net::ConnectionHandler {
  explicit Handler(Connection*& owner) : connection(owner) {}
  ~Handler() override { close(); }

  size_t on_input(std::span<char> bytes) override {
    const std::string_view text(bytes.data(), bytes.size());
    if (text.size() < 100) offers.emplace_back(text);
    const size_t end = takes_lines ? text.rfind('\n') + 1 : text.size();
    taken += text.substr(0, end);
    if (closes_on_input) close();
    return end;
  }
  size_t wanted_input() const override { return wanted; }
  void on_end_of_input() override { ++ends; }
  void on_disconnect() override {
    ++failures;
    close();
  }
  void on_flushed() override { ++flushed; }

  void close() {
    if (connection != nullptr) std::exchange(connection, nullptr)->close();
  }

  Connection*& connection;
  std::vector<std::string> offers;  // the short ones
  std::string taken;
  bool takes_lines = false;
  bool closes_on_input = false;
  size_t wanted = 0;
  int ends = 0;
  int failures = 0;
  int flushed = 0;
};

// Waits for `wanted` bytes, and takes most of them as a blob.
struct Taker final : Handler {
  using Handler::Handler;
  ~Taker() override {
    if (blob != nullptr) blob->release();
  }

  size_t on_input(std::span<char> bytes) override {
    if (bytes.size() < wanted) return 0;
    ++offered;
    const std::string_view text(bytes.data(), bytes.size());
    base::Blob* const given =
        connection->give_input(text.substr(front, text.size() - front - back));
    head = text.substr(0, front);
    if (given == nullptr) return text.size();
    if (blob != nullptr) blob->release();
    blob = given;
    wanted = offered < takes_at ? wanted : 0;
    return offered < takes_at ? 0 : text.size();
  }

  base::Blob* blob = nullptr;
  std::string head;
  size_t front = 0;
  size_t back = 2;
  int offered = 0;
  int takes_at = 1;  // the offer that it consumes
};

// A connection that is started.
template <typename Handler>
struct StreamOf {
  StreamOf() : wire(loop), handler(wire.connection) { wire.connection->start(handler, 0); }

  Connection& connection() { return *wire.connection; }
  bool is_open() const { return wire.connection != nullptr; }
  void turn(int times = 3) { tests::turn(loop, times); }
  // Has the peer send it all, which may be more than the socket takes at once.
  void deliver(std::string_view bytes) {
    while (!bytes.empty()) {
      bytes.remove_prefix(wire.peer.send_some(bytes));
      turn();
    }
  }
  // Leaves little room for what the peer has not received.
  void narrow() {
    const int size = 1;  // the system makes it the least there is
    REQUIRE(setsockopt(connection().descriptor(), SOL_SOCKET, SO_SNDBUF, &size, sizeof size) == 0);
  }
  void send(std::string_view bytes) {
    connection().out().append(bytes);
    connection().flush();
  }
  // What arrives until nothing more does.
  std::string receive_all() {
    std::string text;
    for (int idle = 0; idle < 3;) {
      const std::string piece = wire.peer.receive();
      text += piece;
      idle = piece.empty() ? idle + 1 : 0;
      turn(1);
    }
    return text;
  }

  Loop loop;
  Wire wire;
  Handler handler;
};
using Stream = StreamOf<Handler>;

std::string pattern(size_t size) {
  std::string text;
  text.reserve(size + 8);
  for (size_t i = 0; text.size() < size; ++i) text += std::to_string(i) + ",";
  text.resize(size);
  return text;
}

// More than any socket buffer that narrow() leaves.
constexpr size_t kMuch = 1'000'000;
// More than what is to be sent ever takes.
constexpr int kManyTurns = 20'000;

}  // namespace

// --- Both directions -----------------------------------------------------------------------------

TEST_CASE("A connection hands over what comes and sends what is queued", "[connection]") {
  Stream stream;
  stream.wire.peer.send("ping");
  stream.turn();
  CHECK(stream.handler.taken == "ping");
  CHECK(stream.connection().bytes_received() == 4);
  CHECK(stream.connection().input_size() == 0);
  stream.send("pong!");
  CHECK(stream.wire.peer.receive() == "pong!");
  CHECK(stream.connection().bytes_sent() == 5);
  CHECK(stream.connection().pending_output() == 0);
  CHECK(stream.handler.flushed == 1);
  CHECK(stream.loop.counters().bytes_read == 4);
  CHECK(stream.loop.counters().bytes_written == 5);
}

TEST_CASE("A connection by a Unix socket is named after the socket", "[connection]") {
  Stream stream;
  CHECK(stream.connection().kind() == Connection::Kind::kUnix);
  CHECK(stream.connection().peer_address() == stream.wire.path() + ":0");
  CHECK(stream.connection().local_address() == stream.wire.path() + ":0");
  CHECK(stream.connection().peer_is_local());
}

TEST_CASE("A connection by TCP is named after its ends", "[connection]") {
  Loop loop;
  const ListeningSocket listening(1);

  Connection* connection = Connection::make(loop);
  Handler handler(connection);
  uv_connect_t request;
  int status = 1;
  request.data = &status;
  REQUIRE(connection->connect(&request, listening.address(), [](uv_connect_t* done, int result) {
    *static_cast<int*>(done->data) = result;
  }) == 0);
  turn(loop);
  REQUIRE(status == 0);
  sockaddr_in own{};
  Peer peer(listening.accept(&own));
  connection->start(handler, 300);
  CHECK(connection->kind() == Connection::Kind::kTcp);
  const std::string host = "127.0.0.1:";
  CHECK(connection->peer_address() == host + listening.port());
  CHECK(connection->local_address() == host + std::to_string(ntohs(own.sin_port)));
  CHECK(connection->peer_is_local());
  peer.send("ping");
  turn(loop);
  CHECK(handler.taken == "ping");
  connection->out().append("pong");
  connection->flush();
  turn(loop);
  CHECK(peer.receive() == "pong");
}

// --- Input ---------------------------------------------------------------------------------------

TEST_CASE("Input that the handler leaves is offered again with what follows", "[connection]") {
  Stream stream;
  stream.handler.takes_lines = true;
  for (const std::string_view piece : {"on", "e\ntw", "o", "\n"}) {
    stream.wire.peer.send(piece);
    stream.turn();
  }
  CHECK(stream.handler.offers == std::vector<std::string>{"on", "one\ntw", "two", "two\n"});
  CHECK(stream.handler.taken == "one\ntwo\n");
  CHECK(stream.connection().input_size() == 0);
}

TEST_CASE("Large input becomes a blob without being copied", "[connection]") {
  StreamOf<Taker> stream;
  const std::string head = GENERATE(std::string(), std::string("head"), pattern(3'000));
  // The room for the larger one is not kept for the next.
  const std::string value = pattern(GENERATE(300'000, 1'300'000));
  const std::string all = head + value + "\r\n";
  stream.handler.front = head.size();
  stream.handler.takes_at = GENERATE(1, 2);
  stream.handler.wanted = all.size();
  stream.deliver(all);
  REQUIRE(stream.handler.blob != nullptr);
  CHECK(stream.handler.blob->view() == value);
  CHECK(stream.handler.head == head);
  CHECK_FALSE(stream.handler.blob->shared());
  CHECK(stream.handler.blob->memory_usage() == sizeof(base::Blob) + head.size() + value.size());
  if (stream.handler.takes_at == 1) {
    CHECK(stream.connection().input_size() == 0);
  } else {
    // What it did not consume is offered again with what follows.
    CHECK(stream.connection().input_size() == all.size());
    stream.wire.peer.send("\r\n");
    stream.handler.wanted = all.size() + 2;
    stream.handler.back = 4;
    stream.turn();
    CHECK(stream.handler.blob->view() == value);
    CHECK(stream.handler.offered == 2);
    CHECK(stream.connection().input_size() == 0);
  }
}

TEST_CASE("Input that other input follows, or a small part of it, is not given away",
          "[connection]") {
  StreamOf<Taker> stream;
  std::tie(stream.handler.front, stream.handler.back) =
      GENERATE(std::pair<size_t, size_t>(0, 3), std::pair<size_t, size_t>(100'000, 2));
  const std::string all = pattern(150'000);
  stream.handler.wanted = all.size();
  stream.deliver(all);
  CHECK(stream.handler.offered == 1);
  CHECK(stream.handler.blob == nullptr);
  CHECK(stream.connection().input_size() == 0);
}

TEST_CASE("Input is kept whole however much comes before the handler takes it", "[connection]") {
  Stream stream;
  stream.handler.takes_lines = true;
  const size_t size = GENERATE(3'000, 5'000, 20'000, 70'000, 400'000, 1'200'000);
  const std::string line = pattern(size) + "\n";
  CAPTURE(size);
  const bool is_announced = GENERATE(false, true);
  if (is_announced) stream.handler.wanted = line.size();
  const size_t piece = std::max<size_t>(1'777, size / 100);
  std::string_view left = line;
  for (int i = 0; i < kManyTurns && !left.empty(); ++i) {
    left.remove_prefix(stream.wire.peer.send_some(left.substr(0, piece)));
    stream.turn(1);
    REQUIRE(stream.is_open());
    REQUIRE(stream.connection().input_size() <= stream.connection().input_capacity());
  }
  stream.turn();
  CHECK(stream.handler.taken == line);
  CHECK(stream.handler.failures == 0);
  stream.handler.wanted = 0;
  // An idle connection holds no buffer.
  stream.connection().trim_input(/*idle=*/true);
  CHECK(stream.connection().input_memory() == 0);
}

TEST_CASE("A wrong announcement costs little more memory than what has come", "[connection]") {
  Stream stream;
  stream.handler.takes_lines = true;
  stream.handler.wanted = size_t{1} << 40;
  stream.wire.peer.send(pattern(10'000));
  stream.turn();
  CHECK(stream.connection().input_size() == 10'000);
  CHECK(stream.connection().input_memory() < 10'000'000);
}

TEST_CASE("Trimming keeps the input, and leaves room while the connection is in use",
          "[connection]") {
  Stream stream;
  stream.handler.takes_lines = true;
  const std::string large = pattern(200'000) + "\n";
  std::string_view left = large;
  for (int i = 0; i < kManyTurns && !left.empty(); ++i) {
    left.remove_prefix(stream.wire.peer.send_some(left));
    stream.turn(1);
  }
  stream.turn();
  REQUIRE(stream.handler.taken == large);
  stream.wire.peer.send("rest");
  stream.turn();
  const size_t before = stream.connection().input_memory();
  CHECK(before >= 200'000);
  // The large input came after the last trimming; before the next there was a small one only.
  stream.connection().trim_input(/*idle=*/false);
  CHECK(stream.connection().input_memory() == before);
  stream.connection().trim_input(/*idle=*/false);
  CHECK(stream.connection().input_memory() < before / 4);
  stream.connection().trim_input(/*idle=*/true);
  CHECK(stream.connection().input_memory() == 4);
  stream.wire.peer.send("!\n");
  stream.turn();
  CHECK(stream.handler.taken == large + "rest!\n");
}

TEST_CASE("A connection that does not read leaves its peer's bytes in the socket", "[connection]") {
  Stream stream;
  stream.connection().pause_reading();
  stream.wire.peer.send("late");
  stream.turn();
  CHECK(stream.handler.offers.empty());
  stream.connection().resume_reading();
  stream.turn();
  CHECK(stream.handler.taken == "late");
}

TEST_CASE("Kept input is offered again when the handler is ready for it", "[connection]") {
  Stream stream;
  stream.handler.takes_lines = true;
  stream.wire.peer.send("abcdef");
  stream.turn();
  const auto kept = stream.connection().kept_input();
  CHECK(std::string(kept.begin(), kept.end()) == "abcdef");
  stream.connection().drop_input(2);
  stream.connection().resume_input();
  CHECK(stream.handler.offers.back() == "cdef");
  stream.handler.takes_lines = false;
  stream.connection().resume_input();
  CHECK(stream.handler.taken == "cdef");
  CHECK(stream.connection().kept_input().empty());
  const size_t offers = stream.handler.offers.size();
  stream.connection().resume_input();
  CHECK(stream.handler.offers.size() == offers);
}

TEST_CASE("A peer that sends no more may still read", "[connection]") {
  Stream stream;
  stream.wire.peer.send("last");
  stream.wire.peer.send_no_more();
  stream.turn();
  CHECK(stream.handler.taken == "last");
  CHECK(stream.handler.ends == 1);
  CHECK(stream.handler.failures == 0);
  stream.send("answer");
  CHECK(stream.wire.peer.receive() == "answer");
}

TEST_CASE("A handler may close its connection while it is given input", "[connection]") {
  Stream stream;
  stream.handler.closes_on_input = true;
  stream.wire.peer.send("one");
  stream.turn();
  CHECK_FALSE(stream.is_open());
  CHECK(stream.handler.offers == std::vector<std::string>{"one"});
  stream.wire.peer.receive();
  CHECK(stream.wire.peer.is_at_end());
}

// --- Output --------------------------------------------------------------------------------------

TEST_CASE("A peer that reads slowly gets everything in order", "[connection]") {
  Stream stream;
  stream.narrow();
  const std::string first = pattern(kMuch);
  stream.send(first);
  REQUIRE(stream.connection().waits_to_write());
  CHECK(stream.handler.flushed == 0);
  std::string expected = first;
  std::string received;
  for (int round = 0; stream.connection().pending_output() > 0; ++round) {
    REQUIRE(round < kManyTurns);
    received += stream.wire.peer.receive(1'000);
    REQUIRE(received.size() + stream.wire.peer.waiting() + stream.connection().pending_output() ==
            expected.size());
    // That some of a write has gone is seen before all of it has.
    REQUIRE(stream.connection().bytes_sent() + stream.connection().pending_output() ==
            expected.size());
    // More comes behind it meanwhile, some of it not copied.
    if (round % 100 == 0 && round < 1'000) {
      const std::string more = pattern(2'000 + static_cast<size_t>(round));
      base::Blob* blob = base::Blob::create(more);
      stream.connection().out().append_shared(blob);
      blob->release();
      stream.send("tail");
      expected += more + "tail";
    }
    stream.turn(1);
  }
  received += stream.receive_all();
  CHECK(received == expected);
  CHECK(stream.connection().bytes_sent() == expected.size());
  CHECK(stream.connection().output_memory() == 0);
  CHECK_FALSE(stream.connection().waits_to_write());
  CHECK(stream.handler.flushed == 1);
}

TEST_CASE("More pieces than one write takes arrive in order", "[connection]") {
  Stream stream;
  const bool is_narrow = GENERATE(false, true);
  if (is_narrow) stream.narrow();
  std::string expected;
  for (int i = 0; i < 200; ++i) {
    const std::string text = pattern(100 + static_cast<size_t>(i));
    base::Blob* blob = base::Blob::create(text);
    stream.connection().out().append_shared(blob);
    blob->release();
    stream.connection().out().append(std::to_string(i));
    expected += text + std::to_string(i);
  }
  stream.connection().flush();
  CHECK(stream.receive_all() == expected);
  CHECK(stream.connection().bytes_sent() == expected.size());
}

TEST_CASE("A peer that goes away fails the connection once", "[connection]") {
  Stream stream;
  SECTION("while the connection waits to write") {
    stream.narrow();
    stream.send(pattern(kMuch));
    REQUIRE(stream.connection().waits_to_write());
    stream.wire.peer.close();
  }
  SECTION("before the connection writes") {
    stream.wire.peer.close();
    stream.send("too late");
    // Who has sent it may go on with the connection; the loop tells of its end.
    CHECK(stream.handler.failures == 0);
    REQUIRE(stream.is_open());
    stream.send("and more");
    CHECK(stream.is_open());
  }
  SECTION("with bytes that it has not read") {
    stream.send("unread");
    stream.wire.peer.close();
  }
  stream.turn(5);
  CHECK(stream.handler.failures == 1);
  CHECK_FALSE(stream.is_open());
  CHECK(stream.handler.ends == 0);
}

TEST_CASE("A connection that is closed drops what was not sent, and calls nobody", "[connection]") {
  Stream stream;
  stream.narrow();
  const std::string text = pattern(kMuch);
  stream.send(text);
  stream.wire.peer.send("unheard");
  stream.handler.close();
  std::string received;
  for (int i = 0; i < 1'000 && !stream.wire.peer.is_at_end(); ++i) {
    received += stream.wire.peer.receive();
    stream.turn(1);
  }
  CHECK(received.size() < text.size());
  CHECK(text.starts_with(received));
  CHECK(stream.handler.offers.empty());
  CHECK(stream.handler.flushed + stream.handler.failures + stream.handler.ends == 0);
}

TEST_CASE("A paused connection neither reads nor sends until it is resumed", "[connection]") {
  Stream stream;
  stream.connection().pause();
  stream.wire.peer.send("question");
  stream.send("answer");
  stream.turn();
  CHECK(stream.handler.offers.empty());
  CHECK(stream.wire.peer.receive().empty());
  CHECK(stream.connection().pending_output() == 6);
  stream.connection().resume();
  stream.connection().flush();
  stream.turn();
  CHECK(stream.handler.taken == "question");
  CHECK(stream.wire.peer.receive() == "answer");
}

TEST_CASE("Output that the loop holds leaves when it is released", "[connection]") {
  Stream stream;
  Wire other(stream.loop);
  Handler other_handler(other.connection);
  other.connection->start(other_handler, 0);
  stream.loop.hold_output();
  stream.loop.hold_output();
  stream.send("one");
  stream.send("two");
  other.connection->out().append("lost");
  other.connection->flush();
  stream.turn();
  CHECK(stream.wire.peer.receive().empty());
  stream.loop.release_output();
  CHECK(stream.wire.peer.receive().empty());
  other_handler.close();
  stream.loop.release_output();
  CHECK(stream.wire.peer.receive() == "onetwo");
  CHECK(stream.handler.flushed == 1);
  CHECK(other.peer.receive().empty());
  stream.send("three");
  CHECK(stream.wire.peer.receive() == "three");
}

TEST_CASE("A connection that was never started may say a last word", "[connection]") {
  Loop loop;
  Wire wire(loop);
  wire.connection->out().append("-ERR max number of clients reached\r\n");
  wire.connection->flush_and_close();
  turn(loop);
  CHECK(wire.peer.receive() == "-ERR max number of clients reached\r\n");
  CHECK(wire.peer.is_at_end());
}

}  // namespace latchkey::tests

// A connection with a layer between its bytes and its socket. The layer here turns over the bits of
// every byte, has a handshake of one word each way, and ends with a byte of its own.
#include "net/transport_layer.h"

#include <uv.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "net/connection.h"
#include "unit/catch.h"
#include "unit/net/listening_socket.h"
#include "unit/net/wire.h"

namespace latchkey::tests {

namespace {

constexpr std::string_view kHello = "hello";
constexpr char kEnd = '\x01';
constexpr char kBad = '\x02';

std::string turned(std::string_view bytes) {
  std::string text(bytes);
  for (char& each : text) each = static_cast<char>(~each);
  return text;
}

class TurningLayer final : public net::TransportLayer {
 public:
  explicit TurningLayer(base::BufferPool& pool) : wire_(pool) {}
  State state() const override { return state_; }
  void begin() override {}
  void receive(std::span<const char> bytes) override {
    received_.append(bytes.data(), bytes.size());
  }
  void receive_end() override { fail("ended early"); }
  size_t read(char* room, size_t size) override {
    if (state_ == State::kHandshake) shake();
    if (state_ != State::kOpen) return 0;
    size_t count = 0;
    while (count < size && !received_.empty() && state_ == State::kOpen) {
      const char each = received_[0];
      received_.erase(0, 1);
      if (each == kBad) fail("bad byte");
      if (each == kEnd) state_ = State::kEnded;
      if (state_ == State::kOpen) room[count++] = static_cast<char>(~each);
    }
    return count;
  }
  void write(std::string_view bytes) override { wire_.append(turned(bytes)); }
  void end() override {
    if (state_ == State::kOpen || state_ == State::kEnded) wire_.append(std::string_view(&kEnd, 1));
  }
  resp::OutputBuffer& wire() override { return wire_; }
  const std::string& reason() const override { return reason_; }
  std::string peer_name() const override { return {}; }
  std::vector<std::string> peer_uris() const override { return {}; }
  size_t memory() const override { return sizeof *this; }

 private:
  void shake() {
    if (received_.size() < kHello.size()) return;
    if (!received_.starts_with(kHello)) return fail("no hello");
    received_.erase(0, kHello.size());
    wire_.append(kHello);
    state_ = State::kOpen;
  }
  void fail(const std::string& reason) {
    if (state_ == State::kEnded) return;
    reason_ = reason;
    state_ = State::kFailed;
    wire_.append("!");
  }

  State state_ = State::kHandshake;
  std::string received_;
  resp::OutputBuffer wire_;
  std::string reason_;
};

struct Handler final : net::ConnectionHandler {
  size_t on_input(std::span<char> bytes) override {
    const size_t used = std::min(bytes.size(), most);
    input.append(bytes.data(), used);
    seen = std::max(seen, bytes.size());
    return used;
  }
  size_t wanted_input() const override { return wanted; }
  void on_end_of_input() override { events += "end "; }
  void on_disconnect() override {
    events += "disconnected ";
    close();
  }
  void on_flushed() override {}
  void on_secured() override { events += "secured "; }
  void on_handshake_failed(const std::string& reason) override {
    events += "failed: " + reason + " ";
    close();
  }
  void close() {
    if (connection != nullptr) std::exchange(connection, nullptr)->close();
  }

  net::Connection* connection = nullptr;
  std::string input;
  std::string events;
  size_t most = SIZE_MAX;  // consumed by one call
  size_t seen = 0;         // most bytes at a time
  size_t wanted = 0;
};

struct Fixture {
  net::Loop loop;
  Wire wire{loop};
  Handler handler;

  Fixture() {
    handler.connection = wire.connection;
    wire.connection->secure(std::make_unique<TurningLayer>(loop.buffer_pool()));
    wire.connection->start(handler, 0);
    CHECK(wire.connection->in_handshake());
  }
  ~Fixture() {
    handler.close();
    turn(loop);
  }
  void say(std::string_view bytes) {
    wire.peer.send(bytes);
    turn(loop);
  }
};

}  // namespace

TEST_CASE("A handler sees plain bytes, and the peer those of the layer", "[net][layer]") {
  Fixture f;
  f.handler.connection->out().append("waits for the handshake");
  f.handler.connection->flush();
  turn(f.loop);
  CHECK(f.wire.peer.receive().empty());
  f.say("hel");
  CHECK(f.handler.events.empty());
  f.say("lo" + turned("PING"));
  CHECK(f.handler.events == "secured ");
  CHECK_FALSE(f.handler.connection->in_handshake());
  CHECK(f.handler.input == "PING");
  CHECK(f.wire.peer.receive() == "hello" + turned("waits for the handshake"));
  CHECK(f.handler.connection->bytes_received() == 4);
  CHECK(f.handler.connection->bytes_sent() == 23);
  CHECK(f.handler.connection->pending_output() == 0);
}

TEST_CASE("Input that a handler leaves comes again with more", "[net][layer]") {
  Fixture f;
  f.say("hello");
  f.handler.most = 0;
  const std::string text(GENERATE(as<size_t>(), 10, 5'000, 70'000), 'x');
  f.handler.wanted = GENERATE(as<size_t>(), 0, 200'000);
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t taken = f.wire.peer.send_some(turned(rest.substr(0, 30'000)));
    rest.remove_prefix(taken);
    turn(f.loop);
  }
  CHECK(f.handler.seen == text.size());
  f.handler.most = SIZE_MAX;
  f.say(turned("y"));
  CHECK(f.handler.input == text + "y");
  CHECK(f.handler.connection->input_size() == 0);
}

TEST_CASE("A large argument has a buffer of its own size", "[net][layer]") {
  Fixture f;
  f.say("hello");
  f.handler.most = 0;
  constexpr size_t kArgument = 200'000;
  f.handler.wanted = kArgument + 2;  // with the end of its line
  const size_t piece = GENERATE(as<size_t>(), 1'000, 30'000);
  for (size_t sent = 0; sent < kArgument; sent += piece)
    f.say(turned(std::string(std::min(piece, kArgument - sent), 'x')));
  CHECK(f.handler.seen == kArgument);
  CHECK(f.handler.connection->input_memory() == f.handler.wanted);
}

TEST_CASE("No more is turned than the socket takes soon", "[net][layer]") {
  Fixture f;
  f.say("hello");
  const std::string text(2'000'000, 'x');
  f.handler.connection->out().append(text);
  f.handler.connection->flush();
  CHECK(f.handler.connection->waits_to_write());
  CHECK(f.handler.connection->pending_output() > 1'000'000);
  std::string received;
  while (received.size() < kHello.size() + text.size()) {
    const std::string more = f.wire.peer.receive();
    turn(f.loop);
    received += more;
  }
  CHECK(received == "hello" + turned(text));
  CHECK(f.handler.connection->pending_output() == 0);
  CHECK(f.handler.connection->bytes_sent() == text.size());
}

TEST_CASE("The layer's end is the end of input, once", "[net][layer]") {
  Fixture f;
  f.say("hello" + turned("QUIT") + kEnd);
  CHECK(f.handler.input == "QUIT");
  CHECK(f.handler.events == "secured end ");
  f.wire.peer.send_no_more();
  turn(f.loop);
  CHECK(f.handler.events == "secured end ");
  f.handler.connection->out().append("bye");
  f.handler.connection->flush();
  CHECK(f.wire.peer.receive() == "hello" + turned("bye"));
}

TEST_CASE("A stream that ends in the handshake has failed, and later has ended", "[net][layer]") {
  Fixture f;
  const bool open = GENERATE(true, false);
  f.say(open ? "hello" : "hel");
  f.wire.peer.send_no_more();
  turn(f.loop);
  CHECK(f.handler.events == (open ? "secured end " : "failed: ended early "));
}

TEST_CASE("A layer that fails ends the connection when the peer was told", "[net][layer]") {
  Fixture f;
  SECTION("in the handshake") {
    f.say("other words");
    CHECK(f.handler.events == "failed: no hello ");
    CHECK(f.wire.peer.receive() == "!");
  }
  SECTION("later, behind bytes that were good") {
    f.say("hello" + turned("PING") + kBad);
    CHECK(f.handler.input == "PING");
    CHECK(f.handler.events == "secured disconnected ");
    CHECK(f.wire.peer.receive() == "hello!");
  }
  CHECK(f.wire.peer.is_at_end());
}

TEST_CASE("Who closes says so through the layer, unless output is left", "[net][layer]") {
  Fixture f;
  f.say("hello");
  CHECK(f.wire.peer.receive() == "hello");
  const bool all_sent = GENERATE(true, false);
  if (!all_sent) {
    f.handler.connection->out().append(std::string(5'000'000, 'x'));
    f.handler.connection->flush();
  }
  f.handler.close();
  turn(f.loop);
  const std::string last = f.wire.peer.receive();
  CHECK((last == std::string(1, kEnd)) == all_sent);
  CHECK(f.wire.peer.is_at_end());
}

TEST_CASE("A connection that is reset says nothing through the layer", "[net][layer]") {
  net::Loop loop;
  const ListeningSocket listening(1);
  Handler handler;
  handler.connection = net::Connection::make(loop);
  uv_connect_t request;
  REQUIRE(handler.connection->connect(&request, listening.address(), [](uv_connect_t*, int) {}) ==
          0);
  turn(loop);
  Peer peer(listening.accept());
  handler.connection->secure(std::make_unique<TurningLayer>(loop.buffer_pool()));
  handler.connection->start(handler, 0);
  peer.send("hello");
  turn(loop);
  CHECK(peer.receive() == "hello");
  const bool reset = GENERATE(true, false);
  if (reset) handler.connection->reset_on_close();
  handler.close();
  turn(loop);
  CHECK(peer.receive() == (reset ? "" : std::string(1, kEnd)));
  CHECK(peer.is_at_end() != reset);
}

TEST_CASE("A connection that was refused before its handshake is told nothing", "[net][layer]") {
  net::Loop loop;
  Wire wire(loop);
  wire.connection->secure(std::make_unique<TurningLayer>(loop.buffer_pool()));
  wire.connection->out().append("-ERR no\r\n");
  wire.connection->flush_and_close();
  turn(loop);
  CHECK(wire.peer.receive().empty());
  CHECK(wire.peer.is_at_end());
}

}  // namespace latchkey::tests

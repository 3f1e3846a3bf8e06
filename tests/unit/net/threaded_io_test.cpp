// Connections whose socket calls are done by I/O threads: what arrives, and when, when several are
// served in one turn and disturb each other.
#include "net/threaded_io.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "unit/catch.h"
#include "unit/net/wire.h"

namespace latchkey::tests {

namespace {

using net::Connection;
using net::Loop;

// Sends back what comes, or records it.
struct Echo final : net::ConnectionHandler {
  explicit Echo(Loop& loop) : wire(loop) {}
  ~Echo() override { close(); }

  size_t on_input(std::span<char> bytes) override {
    if (before) before();
    if (wire.connection == nullptr) return bytes.size();
    // A large argument is taken as a whole.
    if (bytes.size() < wanted) return 0;
    taken.append(bytes.data(), bytes.size());
    if (echoes) {
      wire.connection->out().append({bytes.data(), bytes.size()});
      wire.connection->flush();
    }
    return bytes.size();
  }
  size_t wanted_input() const override { return wanted; }
  void on_end_of_input() override { ++ends; }
  void on_disconnect() override {
    ++failures;
    close();
  }
  void on_flushed() override {
    ++flushed;
    if (after_flush) after_flush();
  }
  void close() {
    if (wire.connection != nullptr) std::exchange(wire.connection, nullptr)->close();
  }
  Connection& connection() { return *wire.connection; }
  Peer& peer() { return wire.peer; }

  Wire wire;
  std::function<void()> before;
  std::function<void()> after_flush;
  std::string taken;
  size_t wanted = 0;
  bool echoes = true;
  int ends = 0;
  int failures = 0;
  int flushed = 0;
};

struct Crowd {
  explicit Crowd(size_t count, int threads = 2) {
    loop.use_io_threads(threads);
    for (size_t i = 0; i < count; ++i) {
      all.push_back(std::make_unique<Echo>(loop));
      all.back()->connection().use_io_thread(true);
      all.back()->connection().start(*all.back(), 0);
    }
  }
  Echo& operator[](size_t i) { return *all[i]; }
  // What comes in one turn is answered at the beginning of the next, before it waits.
  void turn(int times = 1) { tests::turn(loop, times); }
  void send_all(std::string_view text) {
    for (const auto& each : all) each->peer().send(text);
  }

  Loop loop;
  std::vector<std::unique_ptr<Echo>> all;
};

std::string pattern(size_t size, size_t seed) {
  std::string text;
  for (size_t i = seed; text.size() < size; ++i) text += std::to_string(i) + ",";
  text.resize(size);
  return text;
}

}  // namespace

TEST_CASE("With I/O threads every connection gets its own bytes back", "[threaded_io]") {
  for (const int threads : {2, 4}) {
    Crowd crowd(100, threads);
    for (size_t round = 0; round < 20; ++round) {
      const auto text = [&](size_t i) { return pattern(1 + i * round * 13 % 5000, i * 1000); };
      for (size_t i = 0; i < crowd.all.size(); ++i) crowd[i].peer().send(text(i));
      crowd.turn(2);
      for (size_t i = 0; i < crowd.all.size(); ++i) {
        CHECK(crowd[i].peer().receive() == text(i));
        CHECK(std::exchange(crowd[i].flushed, 0) == 1);
      }
    }
    CHECK(crowd.loop.counters().reads == 2000);
    CHECK(crowd.loop.counters().writes == 2000);
    const net::ThreadedIo::Figures others = crowd.loop.threaded_io()->total();
    const net::ThreadedIo::Figures own = crowd.loop.threaded_io()->figures(0);
    CHECK(others.reads + own.reads == 2000);
    CHECK(others.writes + own.writes == 2000);
    crowd.loop.threaded_io()->reset_figures();
    CHECK(crowd.loop.threaded_io()->total().reads == 0);
  }
}

TEST_CASE("Connections are given to the I/O threads evenly", "[threaded_io]") {
  Crowd crowd(6, 4);
  const auto threads = [&] {
    std::string text;
    for (const auto& each : crowd.all)
      text +=
          each->wire.connection != nullptr ? std::to_string(each->connection().io_thread()) : "-";
    return text;
  };
  CHECK(threads() == "123123");
  crowd[1].connection().use_io_thread(false);
  crowd[4].close();
  CHECK(threads() == "1031-3");
  crowd[1].connection().use_io_thread(true);
  CHECK(threads() == "1231-3");
  crowd[1].connection().use_io_thread(true);
  CHECK(threads() == "1231-3");
}

TEST_CASE("There can be more I/O threads and fewer at any time", "[threaded_io]") {
  Crowd crowd(6, 4);
  const auto threads = [&] {
    std::string text;
    for (const auto& each : crowd.all) text += std::to_string(each->connection().io_thread());
    return text;
  };
  // In the middle of a batch, as a request does it.
  int wanted = 0;
  crowd[2].before = [&] { crowd.loop.use_io_threads(wanted); };
  for (const auto& [number, spread] : {std::pair(2, "111111"), std::pair(1, "000000"),
                                       std::pair(3, "121121"), std::pair(4, "123123")}) {
    wanted = number;
    crowd.send_all("hello");
    crowd.turn(2);
    CHECK(crowd.loop.threaded_io()->threads() == number);
    CHECK(threads() == spread);
    for (const auto& each : crowd.all) CHECK(each->peer().receive() == "hello");
  }
  CHECK(crowd.loop.counters().reads == 24);
}

TEST_CASE("Without I/O threads connections stay with the loop's", "[threaded_io]") {
  Loop loop;
  Echo echo(loop);
  echo.connection().use_io_thread(true);
  CHECK(echo.connection().io_thread() == 0);
}

TEST_CASE("With I/O threads large arguments and large output arrive whole", "[threaded_io]") {
  Crowd crowd(8);
  constexpr size_t kSize = 6'000'000;
  std::vector<std::string> sent(8), received(8);
  for (size_t i = 0; i < 8; ++i) {
    crowd[i].wanted = kSize;
    sent[i] = pattern(kSize, i * 77'777);
  }
  std::vector<size_t> places(8);
  for (int turns = 0; turns < 20'000 && received != sent; ++turns) {
    for (size_t i = 0; i < 8; ++i) {
      places[i] += crowd[i].peer().send_some(std::string_view(sent[i]).substr(places[i]));
      received[i] += crowd[i].peer().receive();
    }
    crowd.turn();
  }
  CHECK((received == sent));
  for (size_t i = 0; i < 8; ++i) {
    CHECK(crowd[i].connection().pending_output() == 0);
    CHECK(crowd[i].connection().bytes_received() == kSize);
    CHECK(crowd[i].connection().bytes_sent() == kSize);
    CHECK(crowd[i].flushed >= 1);
  }
}

TEST_CASE("What is not taken is offered again with what follows", "[threaded_io]") {
  Crowd crowd(4);
  for (size_t i = 0; i < 4; ++i) crowd[i].wanted = 9;
  for (const char* piece : {"one", "two", "three"}) {
    CHECK(crowd[3].taken.empty());
    crowd.send_all(piece);
    crowd.turn();
  }
  for (size_t i = 0; i < 4; ++i) CHECK(crowd[i].taken == "onetwothree");
  CHECK(crowd[0].connection().input_size() == 0);
}

TEST_CASE("A connection that another of its batch closes hears nothing more", "[threaded_io]") {
  Crowd crowd(6);
  crowd[0].before = [&] { crowd[3].close(); };
  crowd.send_all("ping");
  crowd.turn(2);
  CHECK(crowd[3].taken.empty());
  crowd[3].peer().receive();
  CHECK(crowd[3].peer().is_at_end());
  for (const size_t i : {0, 1, 2, 4, 5}) CHECK(crowd[i].peer().receive() == "ping");
}

TEST_CASE("Bytes of a connection that another of its batch pauses are kept", "[threaded_io]") {
  Crowd crowd(6);
  crowd[0].before = [&] { crowd[3].connection().pause_reading(); };
  crowd.send_all("ping");
  crowd.turn(2);
  CHECK(crowd[3].taken.empty());
  CHECK(crowd[3].connection().input_size() == 4);
  CHECK(crowd[4].taken == "ping");
  crowd[0].before = {};
  crowd[3].peer().send("pong");
  crowd[3].peer().send_no_more();
  crowd.turn(2);
  CHECK(crowd[3].ends == 0);
  crowd[3].connection().resume_input();
  CHECK(crowd[3].taken == "ping");
  crowd[3].connection().resume_reading();
  crowd.turn(3);
  CHECK(crowd[3].taken == "pingpong");
  CHECK(crowd[3].ends == 1);
}

TEST_CASE("With I/O threads the end of a stream is told once", "[threaded_io]") {
  Crowd crowd(5);
  for (const auto& each : crowd.all) {
    each->peer().send("bye");
    each->peer().send_no_more();
  }
  crowd.turn(5);
  for (const auto& each : crowd.all) {
    CHECK(each->taken == "bye");
    CHECK(each->ends == 1);
    CHECK(each->peer().receive() == "bye");
  }
}

TEST_CASE("With I/O threads a peer that has gone is noticed", "[threaded_io]") {
  Crowd crowd(5);
  for (const auto& each : crowd.all) {
    each->connection().out().append("nobody reads this");
    each->connection().flush();
    each->peer().close();
  }
  crowd.turn(3);
  for (const auto& each : crowd.all) CHECK((each->failures == 1 || each->ends == 1));
}

TEST_CASE("Held output waits with I/O threads too, whenever it was flushed", "[threaded_io]") {
  Crowd crowd(6);
  crowd[0].connection().out().append("before");
  crowd[0].connection().flush();
  crowd.loop.hold_output();
  crowd[0].connection().out().append("after");
  crowd[0].connection().flush();
  crowd.send_all("ping");
  crowd.turn(3);
  for (const auto& each : crowd.all) CHECK(each->peer().receive().empty());
  crowd.loop.release_output();
  crowd.turn();
  CHECK(crowd[0].peer().receive() == "beforeafterping");
  for (size_t i = 1; i < 6; ++i) CHECK(crowd[i].peer().receive() == "ping");
}

TEST_CASE("What was flushed before the end of the turn is not lost by closing", "[threaded_io]") {
  Crowd crowd(2);
  crowd[0].connection().out().append("farewell");
  crowd[0].connection().flush();
  crowd[0].close();
  CHECK(crowd[0].peer().receive() == "farewell");
  // Nor by stopping the loop.
  crowd[1].before = [&] { crowd.loop.stop(); };
  crowd[1].peer().send("last words");
  crowd.loop.run();
  CHECK(crowd[1].peer().receive() == "last words");
}

TEST_CASE("What a callback sends leaves before the loop waits", "[threaded_io]") {
  Crowd crowd(5);
  crowd[2].after_flush = [&] {
    if (crowd[2].flushed > 3) return;
    crowd[2].connection().out().append("!");
    crowd[2].connection().flush();
  };
  crowd.send_all("ping");
  crowd.turn(2);
  CHECK(crowd[2].peer().receive() == "ping!!!");
  CHECK(crowd[2].flushed == 4);
}

TEST_CASE("A callback may close others whose output was sent with its own", "[threaded_io]") {
  Crowd crowd(5);
  crowd[1].after_flush = [&] { crowd[3].close(); };
  crowd.send_all("ping");
  crowd.turn(2);
  CHECK(crowd[3].peer().receive() == "ping");
  CHECK(crowd[3].flushed == 0);
  CHECK(crowd[4].flushed == 1);
}

TEST_CASE("A connection that leaves its I/O thread goes on by itself", "[threaded_io]") {
  Crowd crowd(5);
  crowd[0].before = [&] { crowd[2].connection().use_io_thread(false); };
  crowd.send_all("ping");
  crowd.turn(2);
  CHECK(crowd[2].peer().receive() == "ping");
  crowd[0].before = {};
  crowd.send_all("pong");
  crowd.turn(2);
  CHECK(crowd[2].peer().receive() == "pong");
  CHECK(crowd[1].peer().receive() == "pingpong");
}

}  // namespace latchkey::tests

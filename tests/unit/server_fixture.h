// A whole server without sockets, for tests of commands: on virtual time, fed with words, read as
// protocol text.
//
//     ServerFixture server({commands::string_rows()});
//     TestClient client(server);
//     CHECK(client.run("SET name value PX 100") == kOk);
//     server.advance_ms(100);
//     CHECK(client.run("GET name") == kNull);
//     CHECK(server.events() == "set name, expire name, expired name");
//
// Time moves only with advance_ms(). Replies are the exact bytes a client would get.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "server/client/authentication.h"
#include "server/client/client.h"
#include "server/command/command.h"
#include "server/command/dispatcher.h"
#include "server/command/keyspace_events.h"
#include "server/config/config.h"
#include "server/server.h"

namespace latchkey::tests {

// --- Replies as protocol text -------------------------------------------------------------------

inline constexpr std::string_view kOk = "+OK\r\n";
inline constexpr std::string_view kQueued = "+QUEUED\r\n";
inline constexpr std::string_view kNull = "$-1\r\n";
inline constexpr std::string_view kNullArray = "*-1\r\n";
inline constexpr std::string_view kNull3 = "_\r\n";
inline constexpr std::string_view kWrongType =
    "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";

inline std::string bulk(std::string_view bytes) {
  return "$" + std::to_string(bytes.size()) + "\r\n" + std::string(bytes) + "\r\n";
}
inline std::string status(std::string_view text) {
  return "+" + std::string(text) + "\r\n";
}
inline std::string integer(int64_t value) {
  return ":" + std::to_string(value) + "\r\n";
}
inline std::string error(std::string_view text) {
  return "-" + std::string(text) + "\r\n";
}
// Elements are replies themselves.
inline std::string array(std::initializer_list<std::string> elements) {
  std::string text = "*" + std::to_string(elements.size()) + "\r\n";
  for (const std::string& element : elements) text += element;
  return text;
}
inline std::string bulks(std::initializer_list<std::string_view> elements) {
  std::string text = "*" + std::to_string(elements.size()) + "\r\n";
  for (const std::string_view element : elements) text += bulk(element);
  return text;
}

// --- The server ---------------------------------------------------------------------------------

class ServerFixture {
 public:
  // `settings`: lines of a configuration file. `files`: where its durable files are.
  explicit ServerFixture(std::initializer_list<std::span<const server::CommandRow>> groups,
                         std::string_view settings = {}, base::FileSystem& files = base::disk())
      : config(std::make_unique<server::PrivateDirectory>(), files),
        server(clock, quiet_config(settings), log, nullptr) {
    for (const auto& rows : groups) server.commands().add(rows);
    server.events().add(recorder_);
  }
  ~ServerFixture() { server.events().remove(recorder_); }

  // Moves the time that the next command sees; nothing happens by itself until tick().
  void advance_ms(int64_t delta_ms) {
    clock.advance_ms(delta_ms);
    server.refresh_clock();
  }
  // The machine's clock is set.
  void step_ms(int64_t delta_ms) {
    clock.step_ms(delta_ms);
    server.refresh_clock();
  }
  void tick() { server.tick(); }
  int64_t now_ms() const { return clock.wall_us() / 1000; }
  store::Keyspace& database(int index = 0) { return server.database(index); }

  // The key events since the last call: "set name, expire name".
  std::string events() { return std::exchange(recorder_.text, {}); }
  // Changes counted since the last call.
  uint64_t changes() {
    const uint64_t before = std::exchange(counted_, server.events().total());
    return counted_ - before;
  }

  base::VirtualClock clock;
  base::Logger log;
  server::Config config;
  server::Server server;

 private:
  struct Recorder final : server::KeyspaceEventListener {
    void key_changed(store::Keyspace&, std::string_view key, server::EventClass,
                     std::string_view event) override {
      if (!text.empty()) text += ", ";
      text.append(event).append(" ").append(key);
    }
    void keyspace_clearing(store::Keyspace& keyspace) override {
      database_event("cleared", keyspace);
    }
    void keyspaces_swapping(store::Keyspace& first, store::Keyspace& second) override {
      database_event("swapped", first);
      database_event("swapped", second);
    }
    void database_event(std::string_view event, const store::Keyspace& keyspace) {
      if (!text.empty()) text += ", ";
      text.append(event).append(" db").append(std::to_string(keyspace.index()));
    }
    std::string text;
  };

  server::Config& quiet_config(std::string_view settings) {
    log.set_level(base::LogLevel::kNothing);
    if (const auto loaded = config.load("", settings); !loaded)
      throw std::runtime_error(loaded.error().report());
    return config;
  }

  Recorder recorder_;
  uint64_t counted_ = 0;
};

// --- A client of it -----------------------------------------------------------------------------

class TestClient {
 public:
  explicit TestClient(ServerFixture& fixture, int protocol = 2)
      : TestClient(fixture.server, protocol) {}
  explicit TestClient(server::Server& server, int protocol = 2)
      : client_(server.clients().add(nullptr)), server_(server) {
    server::assume_default_user(client_);
    client_.reply.set_protocol(protocol);
  }

  // Runs a request of words separated by single spaces and returns the reply.
  std::string run(std::string_view line) {
    std::vector<std::string_view> words;
    for (size_t start = 0; start <= line.size();) {
      const size_t end = std::min(line.find(' ', start), line.size());
      words.push_back(line.substr(start, end - start));
      start = end + 1;
    }
    return run_words(words);
  }
  // Runs a request of any words.
  std::string run_words(std::initializer_list<std::string_view> words) {
    return run_words(std::span(words.begin(), words.size()));
  }
  std::string run_words(std::span<const std::string_view> words) {
    server_.refresh_clock();
    // Commands find collections packed and with an object.
    if (++requests_ % 2 == 0) server_.pack_collections(1);
    server_.dispatcher().begin_batch();
    server_.dispatcher().execute(client_, words);
    return take_output();
  }
  // Hands bytes to the server as if they had come from a connection.
  std::string send(std::string bytes) {
    client_.on_input(bytes);
    return take_output();
  }
  // What has been sent to the client since, and is not yet taken.
  std::string take_output() { return client_.out().take_all(); }

  server::Client& operator*() { return client_; }
  server::Client* operator->() { return &client_; }

 private:
  server::Client& client_;
  server::Server& server_;
  uint64_t requests_ = 0;
};

}  // namespace latchkey::tests

// Applies the part of the master's stream that arrived while an RDB channel brought the dataset.
//
// It may be large: it is applied in pieces of loading-process-events-interval-bytes, one each turn
// of the loop, so that other clients are served in between. Nothing more is read from the master
// until all is applied; then the client continues as usual. O(1) memory besides the bytes kept by
// the connection.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "net/connection.h"
#include "net/loop.h"

namespace latchkey::server {
class Client;
class Server;
}  // namespace latchkey::server

namespace latchkey::replication {

class StreamReplay final : public net::ConnectionHandler {
 public:
  // Applies the kept bytes of the client's connection. All must outlive it. `done` is called once,
  // as the last action, when all is applied; not when the client is closed before.
  StreamReplay(server::Server& server, server::Client& client, std::function<void()> done);
  StreamReplay(const StreamReplay&) = delete;
  StreamReplay& operator=(const StreamReplay&) = delete;

  size_t bytes_left() const;
  // Nothing is applied any more. To be called when the client closes before `done`.
  void cancel() { timer_.stop(); }

  // net::ConnectionHandler
  size_t on_input(std::span<char> bytes) override;
  size_t wanted_input() const override { return 0; }
  void on_end_of_input() override;
  void on_disconnect() override;
  void on_flushed() override {}

 private:
  void apply_piece();
  void finish();

  server::Server& server_;
  server::Client& client_;
  std::function<void()> done_;
  net::Timer timer_;
  size_t total_;
  // Doubled while a request is larger.
  size_t piece_;
  bool begun_ = false;
  bool reached_end_ = false;
};

}  // namespace latchkey::replication

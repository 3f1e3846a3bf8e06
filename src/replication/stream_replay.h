// Applies what has come of the master's stream while the dataset came by an RDB channel.
//
// That may be much: it is applied in pieces of loading-process-events-interval-bytes, one a turn of
// the loop, so that other clients are served between them. Nothing more is read from the master
// until all is applied; then the client goes on by itself. O(1) memory besides what the connection
// keeps.
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
  // Of what the client's connection keeps. All must outlive it. `done` is called once, last of all,
  // when all is applied; not when the client has been closed before.
  StreamReplay(server::Server& server, server::Client& client, std::function<void()> done);
  StreamReplay(const StreamReplay&) = delete;
  StreamReplay& operator=(const StreamReplay&) = delete;

  size_t bytes_left() const;

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
  // Grows while a request is larger.
  size_t piece_;
  bool begun_ = false;
  bool reached_end_ = false;
};

}  // namespace latchkey::replication

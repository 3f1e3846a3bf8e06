// A connection that this node opens to another node to receive slots: connects, sends requests, and
// hands what comes to its owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "net/connection.h"
#include "net/dialer.h"

namespace latchkey::server {
class Server;
}

namespace latchkey::cluster {

class NodeChannel final : public net::ConnectionHandler {
 public:
  // The owner must not destroy the channel within a call; it calls close(), and destroys it later.
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void channel_connected(NodeChannel& channel) = 0;
    // All bytes that were not consumed. Returns how many are consumed now.
    virtual size_t channel_input(NodeChannel& channel, std::span<char> bytes) = 0;
    virtual void channel_lost(NodeChannel& channel, const std::string& reason) = 0;
  };

  // REQUIRES: the server has a loop.
  NodeChannel(server::Server& server, Owner& owner, const std::string& host, int port);
  ~NodeChannel() override { close(); }
  NodeChannel(const NodeChannel&) = delete;
  NodeChannel& operator=(const NodeChannel&) = delete;

  void send(std::initializer_list<std::string_view> words) {
    send(std::span<const std::string_view>(words.begin(), words.size()));
  }
  void send(std::span<const std::string_view> words);
  // The owner is not called any more.
  void close();

  // Stops reading from the socket, and starts again. What was received is offered by offer().
  void pause_reading();
  void resume_reading();
  // Offers the input that was not consumed again.
  void offer();
  // Null until connected, and when closed.
  net::Connection* connection() const { return connection_; }
  // Bytes received and not consumed.
  size_t kept_bytes() const { return connection_ != nullptr ? connection_->input_size() : 0; }
  // When bytes came last, or the connection began (Unix time).
  int64_t last_input_ms() const { return last_input_ms_; }

  // net::ConnectionHandler
  size_t on_input(std::span<char> bytes) override;
  size_t wanted_input() const override { return 0; }
  void on_end_of_input() override { lost("Connection closed by the other node"); }
  void on_disconnect() override { lost("Connection lost"); }
  void on_flushed() override {}

  // False when it was lost before there was a connection; the reason says why there was none.
  bool was_connected() const { return was_connected_; }

 private:
  void lost(const std::string& reason);

  server::Server& server_;
  Owner& owner_;
  std::unique_ptr<net::Dialer> dialer_;
  net::Connection* connection_ = nullptr;
  bool closed_ = false;
  bool was_connected_ = false;
  bool paused_ = false;
  int64_t last_input_ms_;
};

}  // namespace latchkey::cluster

// A connection to the master up to the point where the stream flows: connecting, the handshake, the
// dataset. After that the owner gives the connection to a client with a MasterSession.
//
//     connecting -> handshake -> dataset is announced -> receives it -> streams -> over
//                                                     -> it is loaded -> over
//                             -> streams -> over
//
// A partial resynchronisation goes from the handshake directly to the end. When an RDB channel
// brings the dataset, this connection keeps the stream that arrives meanwhile; the channel is a
// MasterConnection too. Tests without a loop and a connection call connected() and on_input(), and
// read out().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "net/connection.h"
#include "net/dialer.h"
#include "replication/dataset_receiver.h"
#include "replication/handshake.h"
#include "resp/output_buffer.h"

namespace latchkey::server {
class Server;
}

namespace latchkey::replication {

class MasterConnection final : public net::ConnectionHandler {
 public:
  // How the announced dataset is received.
  struct Reception {
    // Receives it; may be null.
    std::unique_ptr<DatasetReceiver> receiver;
    // It stays with the connection, for a ConnectionSource that reads it from there.
    bool stays = false;
  };
  // This object calls each function but dataset_announced() as its last action. The owner must not
  // destroy it within a call: it calls abandon(), and destroys it later.
  class Owner {
   public:
    virtual ~Owner() = default;
    // The stream continues, from the history `id`.
    virtual void continues(const std::string& id) = 0;
    // The dataset is to be fetched by an RDB channel, which names `main_client_id` to the master;
    // in Valkey's form it is empty.
    virtual void rdb_channel_offered(const std::string& main_client_id) = 0;
    // Valkey's form: the RDB channel `which` has received the offset at which its dataset ends in
    // the stream.
    virtual void end_offset_received(MasterConnection& which) = 0;
    // Valkey's form: the master has answered join(); the stream comes from here on, and is kept.
    virtual void stream_joined() = 0;
    // More of the stream has arrived and is kept.
    virtual void stream_kept() = 0;
    // The other server refuses to take over; the reason is logged.
    virtual void declined() = 0;
    // A dataset follows. An empty Reception: it cannot be received.
    virtual Reception dataset_announced(MasterConnection& which, const DatasetShape& shape) = 0;
    virtual void dataset_received(std::unique_ptr<DatasetReceiver> receiver) = 0;
    // In stage kLoads: more of it has arrived at the connection, or no more will.
    virtual void dataset_input_arrived() = 0;
    // The reason is logged. `in_transfer`: the connection broke during a full resynchronisation,
    // after the master had begun to send a dataset or the stream behind it.
    virtual void failed(MasterConnection& which, bool in_transfer) = 0;
  };
  enum class Stage : uint8_t {
    kConnecting,
    kHandshake,
    kAwaitsDataset,
    kReceives,
    kLoads,
    kStreams,
    kOver
  };

  MasterConnection(server::Server& server, Owner& owner, const std::string& host, int port,
                   Introduction introduction);
  // Closes the connection unless it was released.
  ~MasterConnection() override;
  MasterConnection(const MasterConnection&) = delete;
  MasterConnection& operator=(const MasterConnection&) = delete;

  Stage stage() const { return stage_; }
  // Whether a full resynchronisation is in progress.
  bool syncs() const {
    return stage_ == Stage::kAwaitsDataset || stage_ == Stage::kReceives || stage_ == Stage::kLoads;
  }
  // In stage kLoads: the master has closed the connection. The bytes received are still there.
  bool ended() const { return ended_; }
  // The replication id and offset of the dataset; empty and -1 when the master does not send them.
  const std::string& id() const { return handshake_->id(); }
  int64_t offset() const { return handshake_->offset(); }
  // Whether it is an RDB channel of Valkey's form.
  bool is_dual_channel() const { return handshake_->is_dual_channel(); }
  // In Valkey's form, of the channel: the database selected in the stream at offset().
  int database() const { return handshake_->database(); }
  // In Valkey's form: whether it waits for its channel; continues where the channel's dataset ends.
  bool waits_for_channel() const {
    return stage_ == Stage::kHandshake && handshake_->waits_for_channel();
  }
  void join(const MasterConnection& channel);
  // Receives the dataset to a file; null otherwise.
  const DatasetReceiver* receiver() const { return receiver_.get(); }
  int64_t last_io_ms() const { return last_io_ms_; }  // Unix time
  uint64_t bytes_received() const;
  // Bytes of the stream that were received and not applied.
  size_t kept_bytes() const;

  net::Connection* connection() const { return connection_; }
  resp::OutputBuffer& out() { return connection_ != nullptr ? connection_->out() : local_out_; }
  // Gives up the connection; the caller sets its handler. Null in tests.
  net::Connection* release();
  // Closes the connection; the owner is not called any more.
  void abandon();
  // Shows the master that the replica is alive.
  void send_newline();

  // `connection` may be null, in tests.
  void connected(net::Connection* connection);

  // net::ConnectionHandler
  size_t on_input(std::span<char> bytes) override;
  size_t wanted_input() const override { return 0; }
  void on_end_of_input() override;
  void on_disconnect() override;
  void on_flushed() override {}

 private:
  void read_line(std::string_view line);
  void read_handshake(std::string_view line);
  void read_announcement(std::string_view line);
  void lost(const char* how);
  void receive(std::string_view* rest);
  void send(std::string_view bytes);
  void fail(const std::string& reason, bool in_transfer = false);

  server::Server& server_;
  Owner& owner_;
  Stage stage_ = Stage::kConnecting;
  bool ended_ = false;
  std::unique_ptr<net::Dialer> dialer_;
  net::Connection* connection_ = nullptr;
  resp::OutputBuffer local_out_;
  std::unique_ptr<Handshake> handshake_;
  std::unique_ptr<DatasetReceiver> receiver_;
  int64_t last_io_ms_;
};

}  // namespace latchkey::replication

// A connection to the master from its beginning to the point where the stream flows: connecting,
// the handshake, the dataset. What follows is a client's business (MasterSession), to whom the
// owner hands the connection on.
//
//     connecting -> handshake -> dataset is announced -> receives it -> streams -> over
//                                                     -> it is loaded -> over
//                             -> streams -> over
//
// A partial resynchronisation leads from the handshake to the end at once. Where the dataset comes
// by a connection of its own, the RDB channel, this one keeps what comes of the stream meanwhile,
// and the channel is one of these too. In tests there is no loop and no connection: they call
// connected() and on_input(), and read out().
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
  // What becomes of the dataset that was announced.
  struct Reception {
    // Takes it; or null.
    std::unique_ptr<DatasetReceiver> receiver;
    // It stays with the connection, for somebody who reads it from there.
    bool stays = false;
  };
  // Each call but dataset_announced() comes last in what this does. An owner must not destroy this
  // within one: it calls abandon(), and lets go of it later.
  class Owner {
   public:
    virtual ~Owner() = default;
    // The stream goes on, from the history of that name.
    virtual void continues(const std::string& id) = 0;
    // The dataset is to be fetched by an RDB channel, in the name of that client of the master's.
    virtual void rdb_channel_offered(const std::string& main_client_id) = 0;
    // More of the stream has come and is kept.
    virtual void stream_kept() = 0;
    // The other does not take over; the log says why.
    virtual void declined() = 0;
    // A dataset follows. Nothing of a Reception: it cannot be taken.
    virtual Reception dataset_announced(MasterConnection& which, const DatasetShape& shape) = 0;
    virtual void dataset_received(std::unique_ptr<DatasetReceiver> receiver) = 0;
    // In stage kLoads: more of it stands with the connection, or no more will come.
    virtual void dataset_came() = 0;
    // The log says why.
    virtual void failed(MasterConnection& which) = 0;
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
  // Closes the connection if it was not handed on.
  ~MasterConnection() override;
  MasterConnection(const MasterConnection&) = delete;
  MasterConnection& operator=(const MasterConnection&) = delete;

  Stage stage() const { return stage_; }
  // Whether a full resynchronisation goes on.
  bool syncs() const {
    return stage_ == Stage::kAwaitsDataset || stage_ == Stage::kReceives || stage_ == Stage::kLoads;
  }
  // In stage kLoads: the master will send no more. What has come is still there.
  bool ended() const { return ended_; }
  // Of the history whose dataset comes; empty when the master does not say.
  const std::string& id() const { return handshake_->id(); }
  int64_t offset() const { return handshake_->offset(); }
  // Of the dataset that is being received, or null.
  const DatasetReceiver* receiver() const { return receiver_.get(); }
  int64_t last_io_ms() const { return last_io_ms_; }  // Unix time
  uint64_t bytes_received() const;
  // Bytes of the stream that are kept.
  size_t kept_bytes() const;

  net::Connection* connection() const { return connection_; }
  resp::OutputBuffer& out() { return connection_ != nullptr ? connection_->out() : local_out_; }
  // Gives the connection to somebody else, who hears of it from now on. Null in tests.
  net::Connection* release();
  // Closes it without a word; nothing is called any more.
  void abandon();
  // Lets the master see that the replica is alive.
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
  void fail(const std::string& reason);

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

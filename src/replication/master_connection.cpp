#include "replication/master_connection.h"

#include <optional>
#include <utility>

#include "base/text/number.h"
#include "resp/take_line.h"
#include "server/process/secure_transport.h"
#include "server/server.h"

namespace latchkey::replication {

namespace {

// Maximum length of a line of the master's reply.
constexpr size_t kMaxLine = 64 * 1024;
constexpr size_t kMarkSize = 40;
constexpr std::string_view kMarkAnnounced = "$EOF:";

}  // namespace

MasterConnection::MasterConnection(server::Server& server, Owner& owner, const std::string& host,
                                   int port, Introduction introduction)
    : server_(server),
      owner_(owner),
      local_out_(server.buffer_pool()),
      handshake_(std::make_unique<Handshake>(std::move(introduction), server.log())),
      last_io_ms_(server.machine_ms()) {
  if (server.loop() == nullptr) return;
  dialer_ = std::make_unique<net::Dialer>(
      *server.loop(),
      net::Dialer::Target{.host = host,
                          .port = port,
                          .source = server.settings().bind_source_addr,
                          .layer = server.secure_transport().for_replication()},
      [this](net::Connection* made, const std::string& error) {
        server_.refresh_clock();
        if (made != nullptr) return connected(made);
        fail("Error condition on socket for SYNC: " + error);
      });
}

MasterConnection::~MasterConnection() {
  if (connection_ != nullptr) connection_->close();
}

uint64_t MasterConnection::bytes_received() const {
  return connection_ != nullptr ? connection_->bytes_received() : 0;
}

size_t MasterConnection::kept_bytes() const {
  return stage_ == Stage::kStreams && connection_ != nullptr ? connection_->input_size() : 0;
}

void MasterConnection::connected(net::Connection* connection) {
  connection_ = connection;
  stage_ = Stage::kHandshake;
  last_io_ms_ = server_.machine_ms();
  if (connection_ != nullptr) connection_->start(*this, server_.settings().tcp_keepalive);
  if (!handshake_->is_rdb_channel())
    server_.log().notice("Non blocking connect for SYNC fired the event.");
  send(handshake_->begin());
}

net::Connection* MasterConnection::release() {
  stage_ = Stage::kOver;
  return std::exchange(connection_, nullptr);
}

void MasterConnection::abandon() {
  stage_ = Stage::kOver;
  // With its file, whose name the next one may need.
  receiver_.reset();
  if (dialer_ != nullptr && connection_ == nullptr) dialer_->give_up();
  if (connection_ != nullptr) std::exchange(connection_, nullptr)->close();
}

void MasterConnection::send(std::string_view bytes) {
  if (bytes.empty()) return;
  out().append(bytes);
  if (connection_ != nullptr) connection_->flush();
}

void MasterConnection::send_newline() {
  if (!ended_) send("\n");
}

void MasterConnection::fail(const std::string& reason, bool in_transfer) {
  if (stage_ == Stage::kOver) return;
  if (!reason.empty()) server_.log().warning(reason);
  stage_ = Stage::kOver;
  if (connection_ != nullptr) std::exchange(connection_, nullptr)->close();
  owner_.failed(*this, in_transfer);
}

size_t MasterConnection::on_input(std::span<char> bytes) {
  server_.refresh_clock();
  last_io_ms_ = server_.machine_ms();
  std::string_view rest(bytes.data(), bytes.size());
  while (stage_ == Stage::kHandshake || stage_ == Stage::kAwaitsDataset) {
    const std::optional<std::string_view> line = resp::take_line(&rest);
    if (!line) {
      if (rest.size() > kMaxLine) fail("The master's answer is no line of any sensible length");
      break;
    }
    read_line(*line);
  }
  if (stage_ == Stage::kReceives) receive(&rest);
  if (stage_ == Stage::kStreams) owner_.stream_kept();
  if (stage_ == Stage::kLoads) owner_.dataset_input_arrived();
  return bytes.size() - rest.size();
}

void MasterConnection::read_line(std::string_view line) {
  if (line.empty()) return;
  if (stage_ == Stage::kHandshake) return read_handshake(line);
  read_announcement(line);
}

void MasterConnection::read_handshake(std::string_view line) {
  std::string answer;
  const Handshake::Result result = handshake_->read(line, &answer);
  send(answer);
  if (stage_ == Stage::kOver) return;
  switch (result) {
    case Handshake::Result::kGoesOn:
      return;
    case Handshake::Result::kContinue:
      return owner_.continues(handshake_->id());
    case Handshake::Result::kFullResync:
    case Handshake::Result::kSync:
      stage_ = Stage::kAwaitsDataset;
      if (handshake_->is_dual_channel()) owner_.end_offset_received(*this);
      return;
    case Handshake::Result::kRdbChannel:
      stage_ = Stage::kStreams;
      return owner_.rdb_channel_offered(handshake_->main_client_id());
    case Handshake::Result::kDualChannel:
      return owner_.rdb_channel_offered({});
    case Handshake::Result::kJoined:
      stage_ = Stage::kStreams;
      return owner_.stream_joined();
    case Handshake::Result::kDeclined:
      return owner_.declined();
    case Handshake::Result::kFailed:
      return fail({});
  }
}

void MasterConnection::join(const MasterConnection& channel) {
  last_io_ms_ = server_.machine_ms();
  std::string request;
  handshake_->join(*channel.handshake_, &request);
  send(request);
}

void MasterConnection::read_announcement(std::string_view line) {
  if (line.starts_with('-'))
    return fail("MASTER aborted replication with an error: " + std::string(line.substr(1)));
  DatasetShape shape;
  int64_t size = 0;
  if (line.starts_with(kMarkAnnounced) && line.size() == kMarkAnnounced.size() + kMarkSize) {
    shape.mark = line.substr(kMarkAnnounced.size());
  } else if (line.starts_with('$') && base::parse_int64(line.substr(1), &size) && size >= 0) {
    shape.size = static_cast<uint64_t>(size);
  } else {
    return fail("Bad protocol from MASTER, the first byte is not '$' (we received '" +
                std::string(line) + "'), are you sure the host and port are right?");
  }
  Reception reception = owner_.dataset_announced(*this, shape);
  if (reception.stays) {
    stage_ = Stage::kLoads;
  } else if (reception.receiver != nullptr) {
    receiver_ = std::move(reception.receiver);
    stage_ = Stage::kReceives;
  } else {
    fail({});
  }
}

void MasterConnection::receive(std::string_view* rest) {
  switch (receiver_->take(rest)) {
    case DatasetReceiver::Result::kWantsMore:
      return;
    case DatasetReceiver::Result::kDone:
      // The bytes after the dataset belong to the stream, and are kept until it is installed.
      stage_ = Stage::kStreams;
      return owner_.dataset_received(std::move(receiver_));
    case DatasetReceiver::Result::kFailed:
      return fail({});
  }
}

void MasterConnection::on_end_of_input() {
  lost("Failed to read response from the server: the master has closed the connection");
}

void MasterConnection::on_disconnect() {
  lost("Failed to read response from the server: the connection has failed");
}

void MasterConnection::lost(const char* how) {
  if (stage_ != Stage::kLoads)
    return fail(syncs() ? "I/O error trying to sync with MASTER: connection lost" : how,
                stage_ == Stage::kReceives || stage_ == Stage::kStreams);
  // Bytes received before are still loaded.
  ended_ = true;
  connection_->pause_reading();
  owner_.dataset_input_arrived();
}

}  // namespace latchkey::replication

// The destination's side of a slot migration: fetches the slots of one task from their owner.
//
//     main channel: connecting -> auth-reply -> handshake-reply -> syncslots-reply
//         -> accumulate-buffer -> streaming-buffer -> wait-stream-eof -> (STREAM-EOF)
//     snapshot channel, from accumulate-buffer on: connecting -> auth-reply -> rdbchannel-reply
//         -> rdbchannel-transfer -> completed
//
// The protocol is the reference's. On both channels this node says
//     AUTH "internal connection" <secret>
// and then on the main one
//     CLUSTER SYNCSLOTS CONF NODE-ID <id>, CLUSTER SYNCSLOTS SYNC <task> <first> <last> ...
// to which the source answers +RDBCHANNELSYNCSLOTS, and on the other
//     CLUSTER SYNCSLOTS RDBCHANNEL <task>
// answered by +SLOTSSNAPSHOT and the keys as requests, up to CLUSTER SYNCSLOTS SNAPSHOT-EOF. The
// main channel brings the writes to these slots since the snapshot, up to CLUSTER SYNCSLOTS
// STREAM-EOF; this node tells by CLUSTER SYNCSLOTS ACK <state> <offset> how many bytes of them it
// has applied.
//
// Requests are run in pieces between which other clients are served.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "cluster/slot_migration/node_channel.h"
#include "cluster/slot_migration/stream_reader.h"
#include "cluster/slot_migration/stream_runner.h"
#include "cluster/slot_migration/task.h"
#include "net/loop.h"

namespace latchkey::cluster {

class Importer final : private NodeChannel::Owner {
 public:
  // Each function is called as the importer's last action; the importer must not be destroyed
  // within it.
  class Host {
   public:
    virtual ~Host() = default;
    virtual void import_failed(const std::string& error) = 0;
    // The source cannot begin yet.
    virtual void import_refused_for_now() = 0;
    // Everything is here, and the source has paused writes: the slots can be taken over.
    virtual void import_ready() = 0;
    // DEBUG ASM-FAILPOINT: whether to fail there.
    virtual bool fails_at(std::string_view channel, std::string_view state) const = 0;
  };
  struct Origin {
    std::string host;
    int port;
    std::string secret;   // of the cluster's nodes
    std::string node_id;  // this node's
  };

  // REQUIRES: the server has a loop. What is received runs as `client`. `task` must outlive the
  // importer, or stop() be called before.
  Importer(server::Server& server, Host& host, server::Client& client, SlotTask& task,
           Origin origin);

  // Closes the channels; nothing is called any more.
  void stop();
  // To be called ten times a second.
  void tick();

  // Bytes of the stream that are kept until they are applied, now and at most.
  size_t buffered() const { return main_ != nullptr ? main_->kept_bytes() : 0; }
  size_t most_buffered() const { return most_buffered_; }

 private:
  // NodeChannel::Owner
  void channel_connected(NodeChannel& channel) override;
  size_t channel_input(NodeChannel& channel, std::span<char> bytes) override;
  void channel_lost(NodeChannel& channel, const std::string& reason) override;

  bool is_main(const NodeChannel& channel) const { return &channel == main_.get(); }
  // Whether lines are expected on the channel, not requests.
  bool awaits_reply(const NodeChannel& channel) const;
  void enter(TaskState state);
  void enter(SnapshotState state);
  void read_reply(NodeChannel& channel, std::string_view line);
  void read_main_reply(std::string_view line);
  void read_snapshot_reply(std::string_view line);
  void open_snapshot_channel();
  void keep(size_t bytes);
  // Runs requests. Returns how many bytes it has consumed.
  size_t apply(NodeChannel& channel, std::span<char> bytes);
  void run(NodeChannel& channel, std::span<const std::string_view> words, size_t size);
  // A request of the protocol. False when it is none.
  bool run_protocol(NodeChannel& channel, std::span<const std::string_view> words);
  void apply_more();
  void snapshot_ended();
  void acknowledge();
  bool timed_out(const NodeChannel& channel) const;
  void fail(const NodeChannel& channel, const std::string& what);
  void fail_main(const std::string& what);
  void fail_snapshot(const std::string& what);
  void end(const std::string& error);

  server::Server& server_;
  Host& host_;
  SlotTask& task_;
  Origin origin_;
  std::unique_ptr<NodeChannel> main_;
  std::unique_ptr<NodeChannel> snapshot_;
  StreamRunner runner_;
  StreamReader main_reader_;
  StreamReader snapshot_reader_;
  net::Timer timer_;
  bool over_ = false;
  bool logged_full_ = false;
  uint64_t applied_ = 0;  // bytes of the main channel's requests
  uint64_t acknowledged_ = 0;
  int64_t acknowledged_ms_ = 0;
  size_t most_buffered_ = 0;
};

}  // namespace latchkey::cluster

// Interface through which replication, a layer above, follows a client that is a replica or has
// announced that it will be one. The client owns it.
#pragma once

#include <cstddef>
#include <string_view>

namespace latchkey::server {

class ReplicaLink {
 public:
  virtual ~ReplicaLink() = default;
  // The client is being closed; its connection is still there. Nothing is sent to it any more.
  virtual void closing() = 0;
  // Bytes that wait for the client besides those in its output buffer: the writes since its
  // snapshot began. They count for its output limit.
  virtual size_t held_bytes() const = 0;
  // Whether the peer has nothing to say for as long as it takes: it waits for the dataset.
  virtual bool may_be_idle() const = 0;
  // The peer has ended its side. Whether the client stays for what it holds; nothing is read from
  // it any more.
  virtual bool survives_end_of_input() = 0;
  // Whether this connection carries the dataset, and another of that replica the stream.
  virtual bool is_rdb_channel() const = 0;
  // The peer has sent an empty request: it loads the dataset, and cannot acknowledge meanwhile.
  virtual void is_alive() = 0;
  // A request of the replica was answered with an error, `text` without its dash. The error would
  // end up in the middle of the stream.
  virtual void failed(std::string_view text) = 0;
};

}  // namespace latchkey::server

// What replication, a layer above, keeps with a client that is a replica or has announced to become
// one. The client owns it.
#pragma once

#include <cstddef>
#include <string_view>

namespace latchkey::server {

class ReplicaLink {
 public:
  virtual ~ReplicaLink() = default;
  // The client is being closed; its connection is still there. Nothing is sent to it any more.
  virtual void closing() = 0;
  // Bytes that wait for it besides those in its output buffer: what happened while it gets the
  // dataset. They count for its output limit.
  virtual size_t held_bytes() const = 0;
  // Whether the dataset goes over this connection, and the stream over another of that replica.
  virtual bool is_rdb_channel() const = 0;
  // A request of the replica's has been answered with an error, `text` without its dash, which
  // would stand in the middle of the stream.
  virtual void failed(std::string_view text) = 0;
};

}  // namespace latchkey::server

// Interface through which the cluster, a layer above, follows a client that is another node of the
// cluster: one that has proved by AUTH "internal connection" that it knows the nodes' secret. The
// client owns it.
#pragma once

namespace latchkey::server {

class NodeLink {
 public:
  virtual ~NodeLink() = default;
  // The client is being closed; its connection is still there. Nothing is sent to it any more.
  virtual void closing() = 0;
  // Whether a stream of writes is sent to it, so that its output limit is that of replicas.
  virtual bool gets_stream() const = 0;
  // Whether this connection carries the snapshot of slots, and another of that node the stream.
  virtual bool is_snapshot_channel() const = 0;
  // Whether slots go to that node, rather than come from it.
  virtual bool exports() const { return false; }
};

}  // namespace latchkey::server

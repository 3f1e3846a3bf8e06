// What replication, a layer above, keeps with the client that stands for the master this server
// follows. The client owns it.
#pragma once

#include <span>
#include <string_view>

namespace latchkey::server {

class MasterLink {
 public:
  virtual ~MasterLink() = default;
  // Those bytes of the master's stream have been run; they end where a request ends.
  virtual void applied(std::string_view bytes) = 0;
  // A request of the stream has been answered with an error, `text` without its dash. Nobody reads
  // the answer, and the dataset may no longer be the master's.
  virtual void failed(std::string_view text) = 0;
  // What the master sent is no request, and `reason` tells why: nothing that follows can be made
  // sense of. The client is closed next.
  virtual void desynchronized(std::string_view reason) = 0;
  // The client is being closed; its connection is still there.
  virtual void closing() = 0;
};

}  // namespace latchkey::server

// Interface through which replication, a layer above, follows the client that stands for this
// server's master. The client owns it.
#pragma once

#include <string_view>

namespace latchkey::server {

class MasterLink {
 public:
  virtual ~MasterLink() = default;
  // `bytes` of the master's stream have been executed; they end at the end of a request.
  virtual void applied(std::string_view bytes) = 0;
  // A request of the stream was answered with an error, `text` without its dash. Nobody reads the
  // reply, and the dataset may differ from the master's.
  virtual void failed(std::string_view text) = 0;
  // The master sent something that is not a request; `reason` says what. The rest of the stream
  // cannot be parsed. The client is closed next.
  virtual void desynchronized(std::string_view reason) = 0;
  // The client is being closed; its connection is still there.
  virtual void closing() = 0;
};

}  // namespace latchkey::server

// The writes to some slots, as they are propagated: what the node that imports the slots must run
// besides the snapshot.
//
// Costs the parsing of each propagated request while a migration is going on; nothing else.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/slot_set.h"
#include "resp/request_parser.h"
#include "server/command/key_spec.h"
#include "server/command/propagation.h"

namespace latchkey::server {
class Server;
}

namespace latchkey::cluster {

class SlotStream final : public server::PropagationSink {
 public:
  using Take = std::function<void(int database, std::string_view request)>;

  // Hears of propagated requests until it is destroyed. `take` gets each that concerns the slots
  // alone, encoded, and its database; `crosses` is told once if one concerns other slots too, after
  // which nothing more is taken. Neither may remove the stream.
  SlotStream(server::Server& server, const SlotSet& slots, Take take,
             std::function<void()> crosses);
  ~SlotStream() override;

  void on_propagated(std::span<const server::PropagatedCommand> unit) override;

 private:
  void process_command(const server::PropagatedCommand& propagated);

  server::Server& server_;
  SlotSet slots_;
  Take take_;
  std::function<void()> crosses_;
  bool crossed_ = false;
  std::string bytes_;
  resp::RequestParser parser_;
  resp::ArgumentVector words_;
  std::vector<server::KeyReference> found_;
};

}  // namespace latchkey::cluster

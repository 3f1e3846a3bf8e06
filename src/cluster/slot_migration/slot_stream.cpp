#include "cluster/slot_migration/slot_stream.h"

#include <utility>

#include "server/command/command_table.h"
#include "server/command/dispatcher.h"
#include "server/command/slot_gate.h"
#include "server/server.h"

namespace latchkey::cluster {

SlotStream::SlotStream(server::Server& server, const SlotSet& slots, Take take,
                       std::function<void()> crosses)
    : server_(server), slots_(slots), take_(std::move(take)), crosses_(std::move(crosses)) {
  server_.propagation().add_sink(*this);
}

SlotStream::~SlotStream() {
  server_.propagation().remove_sink(*this);
}

void SlotStream::on_propagated(std::span<const server::PropagatedCommand> unit) {
  for (const server::PropagatedCommand& command : unit) {
    if ((command.targets & server::kPropagateToReplicas) != 0 && !crossed_)
      process_command(command);
  }
}

void SlotStream::process_command(const server::PropagatedCommand& propagated) {
  // The parser decodes in place.
  bytes_.assign(propagated.request);
  words_.clear();
  parser_.reset();
  size_t size = 0;
  if (parser_.parse(bytes_, {.max_bulk_size = SIZE_MAX}, words_, &size) !=
      resp::RequestParser::Status::kRequest)
    return;
  const server::Command* const command = server_.dispatcher().lookup(words_);
  if (command == nullptr) return;
  found_.clear();
  server::find_slotted_words({*command, words_}, &found_);
  size_t inside = 0;
  for (const server::KeyReference& word : found_)
    inside += slots_.has(store::key_slot(words_[word.position])) ? 1 : 0;
  if (inside == 0) return;
  if (inside == found_.size()) return take_(propagated.database, propagated.request);
  crossed_ = true;
  crosses_();
}

}  // namespace latchkey::cluster

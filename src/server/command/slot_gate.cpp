#include "server/command/slot_gate.h"

#include "server/client/client.h"
#include "server/command/command_table.h"
#include "store/key_slot.h"

namespace latchkey::server {

void find_slotted_words(const SlotGate::Request& request, std::vector<KeyReference>* found) {
  const size_t before = found->size();
  if (!get_keys(request.command, request.words, found)) found->resize(before);
  for (KeySpec spec : request.command.row->keys) {
    if ((spec.flags & kKeyNotKey) == 0) continue;
    spec.flags &= ~static_cast<uint32_t>(kKeyNotKey);
    find_keys(spec, request.words, found);
  }
}

int common_slot(std::span<const SlotGate::Request> requests) {
  int common = kNoSlot;
  std::vector<KeyReference> found;
  for (const SlotGate::Request& request : requests) {
    found.clear();
    find_slotted_words(request, &found);
    for (const KeyReference& word : found) {
      const int slot = store::key_slot(request.words[word.position]);
      if (common != kNoSlot && common != slot) return kSeveralSlots;
      common = slot;
    }
  }
  return common;
}

SlotGate::Caller caller_of(const Client& client) {
  return {.database = client.database,
          .reads_anywhere = client.has(kClientReadsAnywhere),
          .asking = client.has(kClientAsking),
          .client = &client};
}

std::string refusal_of(const SlotGate::Answer& answer) {
  using enum SlotGate::Verdict;
  switch (answer.verdict) {
    case kCrossSlot:
      return "CROSSSLOT Keys in request don't hash to the same slot";
    case kTryAgain:
      return "TRYAGAIN Multiple keys request during rehashing of slot";
    case kNotServed:
      return "CLUSTERDOWN Hash slot not served";
    case kDown:
      return "CLUSTERDOWN The cluster is down";
    case kDownForWrites:
      return "CLUSTERDOWN The cluster is down and only accepts read commands";
    case kElsewhere:
      return "MOVED " + std::to_string(answer.slot) + " " + answer.where;
    case kAskElsewhere:
      return "ASK " + std::to_string(answer.slot) + " " + answer.where;
    case kServed:
      break;
  }
  return {};
}

}  // namespace latchkey::server

#include "server/slot_gate.h"

namespace latchkey::server {

std::string_view refusal_of(SlotGate::Verdict verdict) {
  using enum SlotGate::Verdict;
  switch (verdict) {
    case kCrossSlot:
      return "CROSSSLOT Keys in request don't hash to the same slot";
    case kNotServed:
      return "CLUSTERDOWN Hash slot not served";
    case kDown:
      return "CLUSTERDOWN The cluster is down";
    case kDownForWrites:
      return "CLUSTERDOWN The cluster is down and only accepts read commands";
    case kServed:
      break;
  }
  return {};
}

}  // namespace latchkey::server

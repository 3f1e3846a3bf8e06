// What decides in cluster mode whether a request may run on this node: by the slots of its keys
// (store/key_slot.h) and of its shard channels. Asked by the dispatcher and by scripts only while
// the server is a node (kStateCluster).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "server/command_context.h"
#include "server/key_spec.h"

namespace latchkey::server {

class SlotGate {
 public:
  enum class Verdict : uint8_t {
    kServed,
    kCrossSlot,      // the keys are in several slots
    kNotServed,      // nobody serves the slot
    kDown,           // slots are missing, and so nothing is served
    kDownForWrites,  // nor are writes
  };
  struct Answer {
    Verdict verdict = Verdict::kServed;
    // Of all keys; -1 when there are none.
    int slot = -1;
  };
  struct Request {
    const Command& command;
    Arguments words;
  };

  virtual ~SlotGate() = default;
  // Judges requests that run as one: one, or those of a transaction. Linear in their words.
  virtual Answer judge(std::span<const Request> requests) = 0;
};

// Appends the words of the request that have slots: keys and shard channels.
void find_slotted_words(const SlotGate::Request& request, std::vector<KeyReference>* found);

inline constexpr int kNoSlot = -1;
inline constexpr int kSeveralSlots = -2;
// The slot of all that the requests name, or one of these.
int common_slot(std::span<const SlotGate::Request> requests);

// What a client is told; empty for kServed.
std::string_view refusal_of(SlotGate::Verdict verdict);

}  // namespace latchkey::server

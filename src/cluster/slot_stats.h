// What the requests of each slot have cost this node: CLUSTER SLOT-STATS.
//
// Counts while cluster-slot-stats-enabled asks for CPU time or network bytes. A transaction or a
// script counts as a whole, and only if all keys that it has used are in one slot. What goes to
// replicas counts for each of them, but not which database it is for. Slots that this node's shard
// loses or gets begin anew.
//
// Memory is not counted but measured when it is asked for: that looks at every key of the database.
#pragma once

#include <cstdint>
#include <vector>

#include "cluster/slot_set.h"
#include "server/command/call_meter.h"
#include "server/command/key_spec.h"
#include "store/key_slot.h"

namespace latchkey::server {
class Server;
}

namespace latchkey::cluster {

class SlotStats final : public server::CallMeter {
 public:
  struct Figures {
    uint64_t ticks = 0;  // base::CycleClock
    uint64_t bytes_in = 0;
    uint64_t bytes_out = 0;
  };

  explicit SlotStats(server::Server& server);

  // REQUIRES: 0 <= slot < store::kKeySlots.
  const Figures& of(int slot) const { return figures_[static_cast<size_t>(slot)]; }
  // Bytes that the keys of each slot take, values included. O(keys and elements).
  std::vector<uint64_t> measure_memory() const;
  void reset() { figures_.assign(store::kKeySlots, {}); }
  // This node's shard has these slots now.
  void slots_changed(const SlotSet& slots);

  // server::CallMeter
  void called(const server::MeteredCall& call) override;

 private:
  static constexpr int kNoSlot = -1;
  static constexpr int kSeveral = -2;

  void follow_settings();
  // The slot of the call's keys and channels, or kNoSlot or kSeveral.
  int slot_of(const server::MeteredCall& call);
  static int joined(int one, int other);
  void count(const server::MeteredCall& call, int slot, uint64_t bytes_in);

  server::Server& server_;
  std::vector<Figures> figures_;
  SlotSet slots_;  // of the shard
  bool counts_ = false;
  bool memory_allowed_;  // only since the start
  // Of the calls within the transaction or script that goes on.
  int nested_slot_ = kNoSlot;
  uint64_t nested_bytes_ = 0;
  std::vector<server::KeyReference> found_;
};

}  // namespace latchkey::cluster

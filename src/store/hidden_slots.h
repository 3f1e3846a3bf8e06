// Slots whose keys are here but are not part of what clients see: those that are being imported
// from another node of the cluster, and those whose keys are being deleted because another node has
// them.
//
// Keys of hidden slots do not expire and are not evicted; commands that list or count keys leave
// them out.
#pragma once

#include <bitset>
#include <cstddef>
#include <string_view>

#include "store/key_slot.h"

namespace latchkey::store {

class HiddenSlots {
 public:
  // REQUIRES of all `slot`: 0 <= slot < kKeySlots.
  void set_importing(int slot, bool on) { importing_.set(static_cast<size_t>(slot), on); }
  void set_leaving(int slot, bool on) { leaving_.set(static_cast<size_t>(slot), on); }
  // To be called after changes.
  void update() {
    any_leaving_ = leaving_.any();
    any_ = any_leaving_ || importing_.any();
  }

  bool any() const { return any_; }
  bool has(int slot) const { return is_importing(slot) || is_leaving(slot); }
  bool is_importing(int slot) const { return importing_.test(static_cast<size_t>(slot)); }
  bool is_leaving(int slot) const { return leaving_.test(static_cast<size_t>(slot)); }

  // Of a key: O(key size) while there are any such slots, else a test.
  bool hides(std::string_view key) const { return any_ && has(key_slot(key)); }
  // Whether the key is being deleted, so that files need not keep it.
  bool drops(std::string_view key) const { return any_leaving_ && is_leaving(key_slot(key)); }

 private:
  std::bitset<kKeySlots> importing_;
  std::bitset<kKeySlots> leaving_;
  bool any_ = false;
  bool any_leaving_ = false;
};

}  // namespace latchkey::store

// A set of slots: as bits in the order of cluster messages, and as text of its runs: "0-100 200
// 300-400".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "store/key_slot.h"

namespace latchkey::cluster {

class SlotSet {
 public:
  static constexpr size_t kBytes = store::kKeySlots / 8;

  // REQUIRES everywhere: 0 <= slot < store::kKeySlots.
  bool has(int slot) const { return (byte_of(slot) >> (slot & 7) & 1) != 0; }
  void add(int slot) {
    size_ += has(slot) ? 0 : 1;
    byte_of(slot) |= static_cast<uint8_t>(1u << (slot & 7));
  }
  void remove(int slot) {
    size_ -= has(slot) ? 1 : 0;
    byte_of(slot) &= static_cast<uint8_t>(~(1u << (slot & 7)));
  }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  bool complete() const { return size_ == store::kKeySlots; }
  // Whether all slots of the other set, or at least one of them, are in this one.
  bool has_all(const SlotSet& others) const;
  bool has_any(const SlotSet& others) const;
  // The slots of this set that are not in the other one.
  SlotSet without(const SlotSet& others) const;
  bool operator==(const SlotSet&) const = default;

  // Calls fn(int slot) for each, in order.
  template <typename Fn>
  void for_each(Fn&& fn) const {
    for (int slot = 0; slot < store::kKeySlots; ++slot) {
      if ((slot & 7) == 0 && byte_of(slot) == 0) {
        slot += 7;
      } else if (has(slot)) {
        fn(slot);
      }
    }
  }
  // Calls fn(int first, int last) for every run, in order.
  template <typename Fn>
  void for_each_run(Fn&& fn) const {
    for (int first = 0; first < store::kKeySlots; ++first) {
      if (!has(first)) continue;
      int last = first;
      while (last + 1 < store::kKeySlots && has(last + 1)) ++last;
      fn(first, last);
      first = last;
    }
  }
  size_t runs() const;

  // Slot n is bit n % 8 of byte n / 8.
  std::string_view bytes() const {
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }
  // REQUIRES: bytes.size() == kBytes.
  static SlotSet of_bytes(std::string_view bytes);

  // Each run is preceded by a blank.
  std::string text() const;
  // Adds the run "7" or "7-9". False when the text is neither.
  bool add_run(std::string_view text);

 private:
  uint8_t& byte_of(int slot) { return bytes_[static_cast<size_t>(slot) / 8]; }
  uint8_t byte_of(int slot) const { return bytes_[static_cast<size_t>(slot) / 8]; }
  size_t size_ = 0;
  std::array<uint8_t, kBytes> bytes_{};
};

// Parses a slot's number. False when there is no such slot.
bool parse_slot(std::string_view text, int* slot);

}  // namespace latchkey::cluster

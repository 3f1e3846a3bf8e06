// A set of slots, and its runs as text: "0-100 200 300-400".
#pragma once

#include <bitset>
#include <cstddef>
#include <string>
#include <string_view>

#include "store/key_slot.h"

namespace latchkey::cluster {

class SlotSet {
 public:
  // REQUIRES everywhere: 0 <= slot < store::kKeySlots.
  bool has(int slot) const { return slots_[static_cast<size_t>(slot)]; }
  void add(int slot) { slots_.set(static_cast<size_t>(slot)); }
  void remove(int slot) { slots_.reset(static_cast<size_t>(slot)); }
  void clear() { slots_.reset(); }
  size_t size() const { return slots_.count(); }
  bool empty() const { return slots_.none(); }
  bool complete() const { return slots_.all(); }

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

  // With a blank before each run.
  std::string text() const;
  // Adds "7" or "7-9". False when it is neither.
  bool add_run(std::string_view text);

 private:
  std::bitset<store::kKeySlots> slots_;
};

// Reads a slot's number. False when there is no such slot.
bool parse_slot(std::string_view text, int* slot);

}  // namespace latchkey::cluster

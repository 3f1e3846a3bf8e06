// Two things, as the first byte chooses: bytes from outside as an intset, read when they are
// accepted; and operations on an intset beside a std::set.
#include <set>
#include <string_view>

#include "input.h"
#include "store/encoding/intset.h"

namespace {

using latchkey::fuzz::Input;
using latchkey::fuzz::require;
using latchkey::store::Intset;

void read(std::string_view bytes) {
  if (!Intset::is_valid(bytes)) return;
  const Intset numbers = Intset::from_bytes(bytes);
  for (size_t i = 0; i < numbers.size(); ++i) {
    require(i == 0 || numbers.at(i - 1) < numbers.at(i));
    require(numbers.contains(numbers.at(i)));
  }
}

void check(const Intset& numbers, const std::set<int64_t>& model) {
  // An empty one is never stored.
  require(Intset::is_valid(numbers.bytes()) == !model.empty());
  require(numbers.size() == model.size());
  size_t i = 0;
  for (const int64_t number : model) require(numbers.at(i++) == number);
}

// Numbers of all widths, and small ones that come again.
int64_t number(Input& input) {
  const uint8_t choice = input.byte();
  if (choice < 128) return static_cast<int8_t>(input.byte());
  return static_cast<int64_t>(input.word()) >> (choice % 64);
}

void operate(Input& input) {
  Intset numbers;
  std::set<int64_t> model;
  while (!input.empty()) {
    const uint8_t choice = input.byte() % 8;
    const int64_t value = number(input);
    if (choice < 4) {
      require(numbers.add(value) == model.insert(value).second);
    } else if (choice < 6) {
      require(numbers.erase(value) == (model.erase(value) == 1));
    } else if (choice == 6) {
      require(numbers.contains(value) == model.contains(value));
    } else {
      check(numbers, model);
    }
  }
  check(numbers, model);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kLongestInput = 8'192;
  if (size == 0 || size > kLongestInput) return 0;
  Input input(data, size);
  if ((input.byte() & 1) != 0) {
    read(input.rest());
  } else {
    operate(input);
  }
  return 0;
}

// HyperLogLogs of any bytes, through every operation; sound ones beside an array of registers.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "input.h"
#include "store/encoding/hyperloglog.h"

namespace {

using namespace latchkey;
using fuzz::Input;
using fuzz::require;
using store::HyperLogLog;
using Change = HyperLogLog::Change;
using Registers = HyperLogLog::Registers;

// The input with a header before it that makes most of it be read.
std::string outside_bytes(Input& input) {
  const uint8_t how = input.byte();
  std::string bytes(input.rest());
  if (how < 128) {
    bytes.insert(0, std::string_view("HYLL\1\0\0\0\0\0\0\0\0\0\0\x80", 16));
  } else if (how < 192) {
    bytes.insert(0, std::string_view("HYLL\0\0\0\0\0\0\0\0\0\0\0\x80", 16));
    bytes.resize(HyperLogLog::kDenseSize, static_cast<char>(how * 37));
  }
  return bytes;
}

// Whatever is said of the bytes, all operations say it.
void read_outside(const std::string& bytes) {
  const bool is_dense = HyperLogLog::is_dense(bytes);
  const auto count = HyperLogLog::count(bytes);
  auto registers = std::make_unique<Registers>();
  auto one_by_one = std::make_unique<Registers>();
  const bool merged = HyperLogLog::merge(bytes, registers.get(), true);
  require(merged == HyperLogLog::merge(bytes, one_by_one.get(), false));
  require(merged == count.has_value());
  if (merged) {
    require(*registers == *one_by_one);
    require(HyperLogLog::count(*registers) == *count);
  }
  if (!is_dense && !HyperLogLog::describe(bytes)) require(!merged);

  HyperLogLog dense{bytes};
  require(dense.make_dense() == merged);
  if (!merged) require(dense.bytes() == bytes);
  if (merged) require(HyperLogLog::count(dense.bytes()) == count);
}

void change_outside(const std::string& bytes, size_t limit) {
  HyperLogLog sketch{bytes};
  const bool sound = HyperLogLog::count(bytes).has_value();
  for (int i = 0; i < 40; ++i) {
    const Change change = sketch.add(std::to_string(i), limit);
    require(HyperLogLog::is_one(sketch.bytes()));
    if (change == Change::kCorrupt) {
      require(!sound);
      break;
    }
  }
  if (sound) require(HyperLogLog::count(sketch.bytes()).has_value());
  sketch.forget_count();
  require(!HyperLogLog::cached_count(sketch.bytes()));
}

// What is added to a sparse one is added to a dense one too.
void grow(Input input) {
  const size_t limit = input.byte() * size_t{20};
  HyperLogLog sketch;
  HyperLogLog dense;
  require(dense.make_dense());
  while (!input.empty()) {
    const uint64_t base = input.word() >> (input.byte() % 64);
    for (int left = input.byte() % 64; left > 0; --left) {
      const std::string element = std::to_string(base + static_cast<uint64_t>(left));
      const Change change = sketch.add(element, limit);
      require(change != Change::kCorrupt && change == dense.add(element, limit));
      require(sketch.is_dense() ||
              sketch.bytes().size() <= std::max(limit, HyperLogLog().bytes().size()));
    }
  }
  require(HyperLogLog::count(sketch.bytes()) == HyperLogLog::count(dense.bytes()));
  require(sketch.make_dense() && sketch.bytes() == dense.bytes());

  auto registers = std::make_unique<Registers>();
  require(HyperLogLog::merge(dense.bytes(), registers.get()));
  HyperLogLog raised;
  require(raised.raise(*registers, limit) && raised.make_dense());
  require(raised.bytes() == dense.bytes());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kLongestInput = 2'048;
  if (size > kLongestInput) return 0;
  Input input(data, size);
  const uint8_t limit = input.byte();
  grow(input);
  const std::string bytes = outside_bytes(input);
  if (!HyperLogLog::is_one(bytes)) return 0;
  read_outside(bytes);
  change_outside(bytes, limit * size_t{20});
  return 0;
}

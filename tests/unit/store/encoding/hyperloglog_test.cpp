#include "store/encoding/hyperloglog.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "unit/catch.h"

namespace latchkey::store {

namespace {

using Change = HyperLogLog::Change;
using Registers = HyperLogLog::Registers;

constexpr size_t kLimit = 3'000;
constexpr std::string_view kHeader("HYLL\1\0\0\0\0\0\0\0\0\0\0\x80", 16);

HyperLogLog with_elements(size_t count, size_t limit = kLimit) {
  HyperLogLog sketch;
  for (size_t i = 0; i < count; ++i) sketch.add("element " + std::to_string(i), limit);
  return sketch;
}

Registers registers_of(const HyperLogLog& sketch) {
  Registers registers{};
  CHECK(HyperLogLog::merge(sketch.bytes(), &registers));
  return registers;
}

std::string sparse(std::string_view runs) {
  return std::string(kHeader) + std::string(runs);
}

}  // namespace

TEST_CASE("A new HyperLogLog is one run of zeros, and counts none", "[hyperloglog]") {
  const HyperLogLog sketch;
  CHECK(sketch.bytes() == std::string_view("HYLL\1\0\0\0\0\0\0\0\0\0\0\0\x7f\xff", 18));
  CHECK(HyperLogLog::is_one(sketch.bytes()));
  CHECK(HyperLogLog::cached_count(sketch.bytes()) == 0);
  CHECK(HyperLogLog::count(sketch.bytes()) == 0);
}

TEST_CASE("Elements are in the registers that the reference has them in", "[hyperloglog]") {
  HyperLogLog sketch;
  for (const std::string_view element : {"a", "b", "c"})
    CHECK(sketch.add(element, kLimit) == Change::kMade);
  CHECK(sketch.add("a", kLimit) == Change::kNone);
  sketch.forget_count();
  CHECK(sketch.bytes() == sparse("`\xf3\x80P\xb1\x84K\xfb\x80"
                                 "BZ"));
  CHECK(HyperLogLog::describe(sketch.bytes()) == "Z:8436 v:1,1 Z:4274 v:2,1 Z:3068 v:1,1 Z:603");
  CHECK_FALSE(HyperLogLog::cached_count(sketch.bytes()));
  CHECK(HyperLogLog::count(sketch.bytes()) == 3);
}

TEST_CASE("The estimate stays within six standard errors", "[hyperloglog]") {
  for (const size_t count : {10, 100, 1'000, 10'000, 100'000}) {
    const auto estimate = HyperLogLog::count(with_elements(count).bytes());
    REQUIRE(estimate);
    const double error = static_cast<double>(*estimate) - static_cast<double>(count);
    CHECK(std::abs(error) <= std::ceil(static_cast<double>(count) * 6 * 1.04 / 128));
  }
}

TEST_CASE("Sparse and dense hold the same registers", "[hyperloglog]") {
  HyperLogLog sparse_one = with_elements(500, 1'000'000);
  HyperLogLog dense = with_elements(500, 0);
  CHECK_FALSE(sparse_one.is_dense());
  CHECK(dense.is_dense());
  CHECK(dense.bytes().size() == HyperLogLog::kDenseSize);
  CHECK(registers_of(sparse_one) == registers_of(dense));
  CHECK(HyperLogLog::count(sparse_one.bytes()) == HyperLogLog::count(dense.bytes()));
  CHECK(sparse_one.make_dense());
  CHECK(sparse_one.bytes() == dense.bytes());
}

TEST_CASE("A sparse one becomes dense when it has outgrown the limit", "[hyperloglog]") {
  HyperLogLog sketch;
  size_t longest = 0;
  for (int i = 0; !sketch.is_dense(); ++i) {
    longest = std::max(longest, sketch.bytes().size());
    sketch.add(std::to_string(i), 100);
  }
  CHECK(longest > 90);
  CHECK(longest <= 100);
}

TEST_CASE("Dense ones merged together are those merged one after the other", "[hyperloglog]") {
  std::vector<HyperLogLog> sketches;
  std::vector<std::string_view> dense;
  Registers one_by_one{};
  for (int i = 0; i < 70; ++i) {
    HyperLogLog& sketch = sketches.emplace_back();
    for (int j = 0; j < 500; ++j) sketch.add(std::to_string(i * 1000 + j), kLimit);
    sketch.make_dense();
    HyperLogLog::merge(sketch.bytes(), &one_by_one, false);
  }
  for (const HyperLogLog& sketch : sketches) dense.push_back(sketch.bytes());
  Registers together{};
  HyperLogLog::merge_dense(dense, &together);
  CHECK(together == one_by_one);

  std::string bytes(sketches.front().bytes());
  HyperLogLog::set_registers(bytes, together);
  Registers again{};
  HyperLogLog::merge(bytes, &again, false);
  CHECK(again == together);
}

TEST_CASE("Merging takes the higher of two registers, eight at a time or one by one",
          "[hyperloglog]") {
  const HyperLogLog first = with_elements(20'000);
  HyperLogLog second;
  for (int i = 0; i < 300; ++i) second.add("other " + std::to_string(i), kLimit);
  const Registers a = registers_of(first);
  const Registers b = registers_of(second);
  Registers both{};
  for (size_t i = 0; i < both.size(); ++i) both[i] = std::max(a[i], b[i]);
  for (const bool eight : {true, false}) {
    Registers merged{};
    CHECK(HyperLogLog::merge(first.bytes(), &merged, eight));
    CHECK(HyperLogLog::merge(second.bytes(), &merged, eight));
    CHECK(merged == both);
  }
  HyperLogLog united;
  CHECK(united.raise(both, kLimit));
  CHECK(registers_of(united) == both);
}

TEST_CASE("Elements can be added to a dense one where it lies", "[hyperloglog]") {
  HyperLogLog dense;
  dense.make_dense();
  std::string bytes(dense.bytes());
  for (int i = 0; i < 50'000; ++i) {
    const std::string element = std::to_string(i);
    CHECK(HyperLogLog::add_to_dense(bytes, element) ==
          (dense.add(element, kLimit) == Change::kMade));
  }
  CHECK(bytes == dense.bytes());
}

TEST_CASE("A cached count is kept until it is forgotten", "[hyperloglog]") {
  std::string bytes(HyperLogLog().bytes());
  HyperLogLog::cache_count(bytes, 0x123456789a);
  CHECK(HyperLogLog::cached_count(bytes) == 0x123456789a);
  HyperLogLog::forget_count(bytes);
  CHECK_FALSE(HyperLogLog::cached_count(bytes));
  CHECK(bytes.substr(8, 8) == std::string_view("\x9a\x78\x56\x34\x12\0\0\x80", 8));
}

TEST_CASE("What has no such header is none", "[hyperloglog]") {
  CHECK_FALSE(HyperLogLog::is_one(""));
  CHECK_FALSE(HyperLogLog::is_one("HYLL"));
  CHECK_FALSE(HyperLogLog::is_one("HYLX\1\0\0\0\0\0\0\0\0\0\0\0\x7f\xff"));
  std::string bytes(HyperLogLog().bytes());
  bytes[4] = 2;
  CHECK_FALSE(HyperLogLog::is_one(bytes));
  bytes[4] = 0;
  CHECK_FALSE(HyperLogLog::is_one(bytes));
  CHECK(HyperLogLog::is_one(bytes + std::string(HyperLogLog::kDenseSize - bytes.size(), '\0')));
}

TEST_CASE("Runs that do not make up the registers are corrupt", "[hyperloglog]") {
  const std::string corrupt[] = {sparse(""),
                                 sparse("\x7f"),
                                 sparse("\x7f\xfe"),
                                 sparse("\x7f\xff\x80"),
                                 sparse("\x7f\xff\x40"),
                                 sparse("\x7f\xff\x7f\xff")};
  for (const std::string& bytes : corrupt) {
    CHECK(HyperLogLog::is_one(bytes));
    CHECK_FALSE(HyperLogLog::count(bytes));
    Registers registers{};
    CHECK_FALSE(HyperLogLog::merge(bytes, &registers));
    HyperLogLog sketch{bytes};
    CHECK_FALSE(sketch.make_dense());
    CHECK(sketch.bytes() == bytes);
  }
  CHECK(HyperLogLog::describe(sparse("\x7f\xfe\x81")) == "Z:16383 v:1,2");
  CHECK_FALSE(HyperLogLog::describe(sparse("\x7f")));
  HyperLogLog empty{sparse("")};
  CHECK(empty.add("a", kLimit) == Change::kCorrupt);
}

TEST_CASE("A dense one may have registers that no hash gives", "[hyperloglog]") {
  std::string bytes = std::string(HyperLogLog::kDenseSize, '\xff');
  bytes.replace(0, kHeader.size(), kHeader);
  bytes[4] = 0;
  CHECK(HyperLogLog::is_one(bytes));
  CHECK(HyperLogLog::count(bytes).has_value());
  CHECK_FALSE(HyperLogLog::add_to_dense(bytes, "a"));
}

TEST_CASE("Registers of the highest rank count by the formula of Ertl", "[hyperloglog]") {
  // The first so many have that rank, and the others the second one. The counts are of the
  // reference's formula.
  const auto count = [](size_t first, uint8_t rank, uint8_t other) {
    Registers registers{};
    for (size_t i = 0; i < registers.size(); ++i) registers[i] = i < first ? rank : other;
    return HyperLogLog::count(registers);
  };
  CHECK(count(8192, 51, 0) == 13'268);
  CHECK(count(8192, 51, 10) == 24'204'406);
  CHECK(count(8192, 50, 10) == 24'204'406);
  CHECK(count(12'288, 51, 10) == 48'408'813);
  CHECK(count(8192, 51, 40) == 25'981'675'153'099'444);
}

}  // namespace latchkey::store

#include "store/probabilistic/cuckoo_filter.h"

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "unit/catch.h"

namespace latchkey::tests {

namespace {

using store::CuckooFilter;
using Outcome = CuckooFilter::Outcome;

std::unique_ptr<CuckooFilter> made(uint64_t capacity, uint16_t bucket_size = 2,
                                   uint16_t iterations = 20, uint16_t expansion = 1) {
  auto filter = CuckooFilter::make(capacity, bucket_size, iterations, expansion);
  REQUIRE(filter != nullptr);
  return filter;
}

std::string item(uint64_t number) {
  return "item" + std::to_string(number);
}

Outcome add_new(CuckooFilter& filter, std::string_view item) {
  uint64_t moves = filter.shape().max_iterations;
  return filter.add_new(item, &moves);
}

std::string digest(const CuckooFilter& filter) {
  std::string all;
  filter.for_each_digest_part([&](std::string_view part) { all += part; });
  return all;
}

size_t fingerprints(const CuckooFilter& filter) {
  size_t count = 0;
  for (const auto& layer : filter.layers()) {
    for (const char slot : layer.slots.bytes()) count += slot != 0 ? 1 : 0;
  }
  return count;
}

template <typename Number>
std::string changed(std::string header, size_t at, Number number) {
  std::memcpy(header.data() + at, &number, sizeof number);
  return header;
}

}  // namespace

TEST_CASE("An item's slot and fingerprint are the reference's", "[cuckoo]") {
  auto filter = made(4096);
  filter->add("x");
  filter->add("hello world!");
  const std::string_view slots = filter->chunk(1).bytes;
  CHECK(slots.size() == 4096);
  CHECK(slots[1234] == 15);
  CHECK(static_cast<uint8_t>(slots[674]) == 131);
  CHECK(fingerprints(*filter) == 2);
}

TEST_CASE("Capacities and expansions become powers of two", "[cuckoo]") {
  CHECK(made(4)->shape().buckets == 2);
  CHECK(made(5)->shape().buckets == 2);
  CHECK(made(100)->shape().buckets == 64);
  CHECK(made(1000, 3)->shape().buckets == 512);
  CHECK(made(16, 2, 20, 5)->shape().expansion == 8);
  CHECK(made(16, 2, 20, 0)->shape().expansion == 0);
  CHECK(made(16, 2, 20, 32768)->shape().expansion == 32768);
}

TEST_CASE("What was added is found, counted and erased", "[cuckoo]") {
  const uint16_t bucket_size = GENERATE(as<uint16_t>{}, 1, 2, 3, 8);
  const uint16_t expansion = GENERATE(as<uint16_t>{}, 1, 2, 4);
  auto filter = made(64, bucket_size, 20, expansion);
  std::map<std::string, uint64_t> model;
  base::Random random(bucket_size * 10 + expansion);
  for (int step = 0; step < 4000; ++step) {
    const std::string chosen = item(random.below(300));
    if (random.below(3) != 0) {
      CHECK(filter->add(chosen) == Outcome::kAdded);
      ++model[chosen];
    } else if (model[chosen] > 0) {
      REQUIRE(filter->erase(chosen));
      --model[chosen];
    }
    if (random.below(200) == 0) filter->compact();
  }
  uint64_t items = 0;
  for (const auto& [name, count] : model) {
    items += count;
    CHECK(filter->contains(name) >= (count > 0));
    CHECK(filter->count(name) >= count);
  }
  CHECK(filter->items() == items);
  CHECK(fingerprints(*filter) == items);
}

TEST_CASE("An item is added once by add_new", "[cuckoo]") {
  auto filter = made(64);
  CHECK(add_new(*filter, "a") == Outcome::kAdded);
  CHECK(add_new(*filter, "a") == Outcome::kPresent);
  CHECK(filter->count("a") == 1);
  CHECK(filter->erase("a"));
  CHECK_FALSE(filter->erase("a"));
  CHECK(add_new(*filter, "a") == Outcome::kAdded);
}

TEST_CASE("A filter that does not grow is left as it was when it is full", "[cuckoo]") {
  auto filter = made(16, 2, 500, 0);
  uint64_t number = 0;
  while (filter->add(item(number)) == Outcome::kAdded) ++number;
  CHECK(number > 8);
  size_t refused = 0;
  for (uint64_t i = 0; i < 100; ++i) {
    const std::string before = digest(*filter);
    if (add_new(*filter, item(number + i)) != Outcome::kFull) continue;
    ++refused;
    CHECK(digest(*filter) == before);
  }
  CHECK(refused > 50);
  for (uint64_t i = 0; i < number; ++i) CHECK(filter->contains(item(i)));
}

TEST_CASE("Fingerprints are not moved more often than a request may", "[cuckoo]") {
  auto filter = made(16, 2, 65535, 0);
  uint64_t number = 0;
  while (filter->add(item(number)) == Outcome::kAdded) ++number;
  const std::string before = digest(*filter);
  uint64_t moves = 100'000;
  CHECK(filter->add(item(number), &moves) == Outcome::kFull);
  CHECK(moves == 100'000 - 65535);
  CHECK(filter->add(item(number), &moves) == Outcome::kFull);
  CHECK(moves == 0);
  CHECK(filter->add(item(number), &moves) == Outcome::kFull);
  CHECK(moves == 0);
  CHECK(digest(*filter) == before);
  for (uint64_t i = 0; i < number; ++i) CHECK(filter->contains(item(i)));
}

TEST_CASE("A filter that grows gets a layer when no more fingerprints may be moved", "[cuckoo]") {
  auto filter = made(16, 2, 65535, 1);
  uint64_t moves = 0;
  for (uint64_t i = 0; i < 1000; ++i) CHECK(filter->add(item(i), &moves) == Outcome::kAdded);
  CHECK(filter->items() == 1000);
  CHECK(fingerprints(*filter) == 1000);
  for (uint64_t i = 0; i < 1000; ++i) CHECK(filter->contains(item(i)));
}

TEST_CASE("An item that fills its buckets is refused without a move", "[cuckoo]") {
  const uint16_t bucket_size = GENERATE(as<uint16_t>{}, 1, 2, 3);
  auto filter = made(1000, bucket_size, 65535, 0);
  uint64_t moves = 1'000'000;
  uint64_t added = 0;
  while (filter->add("x", &moves) == Outcome::kAdded) ++added;
  CHECK(added == 2U * bucket_size);
  CHECK(moves == 1'000'000);
  // Another item in its place is not refused.
  CHECK(filter->erase("x"));
  CHECK(filter->add("x", &moves) == Outcome::kAdded);
}

TEST_CASE("Layers that have become empty go", "[cuckoo]") {
  auto filter = made(16, 2, 20, 2);
  for (uint64_t i = 0; i < 400; ++i) filter->add(item(i));
  const size_t layers = filter->layers().size();
  CHECK(layers > 3);
  for (uint64_t i = 0; i < 390; ++i) CHECK(filter->erase(item(i)));
  filter->compact();
  CHECK(filter->layers().size() < layers);
  CHECK(filter->erased() == 0);
  CHECK(filter->items() == 10);
  for (uint64_t i = 390; i < 400; ++i) CHECK(filter->contains(item(i)));
}

TEST_CASE("A layer that would be too large is not made", "[cuckoo]") {
  auto filter = made(CuckooFilter::kMaxCapacity / 1024, 1, 1, 32768);
  for (int i = 0; i < 2; ++i) CHECK(filter->add("x") == Outcome::kAdded);
  CHECK(filter->add("x") == Outcome::kNoMemory);
  CHECK(filter->items() == 2);
  CHECK(CuckooFilter::make(CuckooFilter::kMaxCapacity, 255, 1, 1) != nullptr);
}

TEST_CASE("A dump makes the same cuckoo filter", "[cuckoo]") {
  auto filter = made(16, 3, 20, 2);
  for (uint64_t i = 0; i < 300; ++i) filter->add(item(i));
  const auto copy = CuckooFilter::from_header(filter->header());
  REQUIRE(copy != nullptr);
  for (int64_t position = 1; position != 0;) {
    const auto chunk = filter->chunk(static_cast<uint64_t>(position));
    position = chunk.next;
    if (position != 0) CHECK(copy->load_chunk(position, chunk.bytes));
  }
  CHECK(digest(*copy) == digest(*filter));
  const std::unique_ptr<store::Value> cloned(filter->clone());
  CHECK(digest(static_cast<const CuckooFilter&>(*cloned)) == digest(*filter));
}

TEST_CASE("A part that is not of the cuckoo filter is refused", "[cuckoo]") {
  auto filter = made(16, 2, 20, 2);
  for (uint64_t i = 0; filter->layers().size() < 2; ++i) filter->add(item(i));
  // 16 and 32 bytes.
  const std::string before = digest(*filter);
  CHECK_FALSE(filter->load_chunk(18, std::string(16, 'x')));
  CHECK_FALSE(filter->load_chunk(49, std::string(33, 'x')));
  CHECK_FALSE(filter->load_chunk(50, "x"));
  CHECK_FALSE(filter->load_chunk(INT64_MAX, "x"));
  CHECK_FALSE(filter->load_chunk(5, "12345"));
  CHECK_FALSE(filter->load_chunk(5, ""));
  CHECK_FALSE(filter->load_chunk(0, "x"));
  CHECK_FALSE(filter->load_chunk(-1, "x"));
  CHECK(digest(*filter) == before);
  CHECK(filter->load_chunk(49, std::string(32, 'x')));
  CHECK(filter->load_chunk(17, "x"));
}

TEST_CASE("A header of a cuckoo filter that lies is refused", "[cuckoo]") {
  auto filter = made(16, 2, 20, 2);
  const std::string header = filter->header();
  REQUIRE(header.size() == CuckooFilter::kHeaderSize);
  REQUIRE(CuckooFilter::from_header(header) != nullptr);
  const auto refused = [&](size_t at, auto number) {
    return CuckooFilter::from_header(changed(header, at, number)) == nullptr;
  };
  CHECK(CuckooFilter::from_header(header.substr(1)) == nullptr);
  CHECK(CuckooFilter::from_header(header + "x") == nullptr);
  CHECK(refused(8, uint64_t{0}));  // buckets
  CHECK(refused(8, uint64_t{7}));
  CHECK(refused(8, uint64_t{1} << 63));
  CHECK(refused(8, uint64_t{1} << 33));
  CHECK(refused(24, uint64_t{0}));  // layers
  CHECK(refused(24, uint64_t{64}));
  CHECK(refused(24, uint64_t{65536}));
  CHECK(refused(32, uint16_t{0}));  // slots of a bucket
  CHECK(refused(32, uint16_t{256}));
  CHECK(refused(34, uint16_t{0}));      // iterations
  CHECK(refused(36, uint16_t{32769}));  // expansion
  const std::string two = changed(header, 24, uint64_t{2});
  CHECK(CuckooFilter::from_header(two) != nullptr);
  CHECK(CuckooFilter::from_header(changed(two, 36, uint16_t{0})) == nullptr);
}

TEST_CASE("A cuckoo filter whose header counted too little is not counted below zero", "[cuckoo]") {
  auto filter = CuckooFilter::from_header(made(16)->header());
  CHECK(filter->load_chunk(17, std::string(16, '\x0f')));
  CHECK(filter->erase("x"));
  CHECK(filter->items() == 0);
}

TEST_CASE("A cuckoo filter of any header can be used", "[cuckoo]") {
  base::Random random(11);
  const std::string header = made(16, 2, 20, 2)->header();
  size_t accepted = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string other = header;
    for (uint64_t changes = 1 + random.below(3); changes > 0; --changes)
      other[random.below(other.size())] = static_cast<char>(random.below(256));
    // Large ones would take the test's time.
    uint64_t buckets;
    uint64_t layers;
    std::memcpy(&buckets, other.data() + 8, sizeof buckets);
    std::memcpy(&layers, other.data() + 24, sizeof layers);
    if (buckets > 4096 || layers > 16) continue;
    const auto filter = CuckooFilter::from_header(other);
    if (filter == nullptr || filter->reported_size() > 1 << 16) continue;
    ++accepted;
    for (uint64_t i = 0; i < 10; ++i) filter->add(item(i));
    filter->count("item3");
    filter->erase("item3");
    if (filter->reported_size() < 1 << 16) filter->compact();
  }
  CHECK(accepted > 500);
}

}  // namespace latchkey::tests

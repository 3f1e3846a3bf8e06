#include "store/probabilistic/bloom_filter.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/digest/murmur.h"
#include "base/random.h"
#include "unit/catch.h"

namespace latchkey::tests {

namespace {

using store::BloomFilter;
using Failure = BloomFilter::Failure;
using Load = BloomFilter::Load;
using Outcome = BloomFilter::Outcome;

constexpr size_t kHeaderSize = 20;
constexpr size_t kLayerSize = 53;

std::unique_ptr<BloomFilter> made(uint64_t capacity, double error_rate, uint32_t expansion = 2,
                                  bool is_fixed = false) {
  Failure failure;
  auto filter = BloomFilter::make(capacity, error_rate, expansion, is_fixed, &failure);
  REQUIRE(filter != nullptr);
  REQUIRE(failure == Failure::kNone);
  return filter;
}

Failure failure_of(uint64_t capacity, double error_rate) {
  Failure failure;
  CHECK(BloomFilter::make(capacity, error_rate, 2, false, &failure) == nullptr);
  return failure;
}

std::vector<uint64_t> bits_of(std::string_view bytes) {
  std::vector<uint64_t> bits;
  for (uint64_t bit = 0; bit < bytes.size() * 8; ++bit) {
    if ((bytes[bit / 8] >> bit % 8 & 1) != 0) bits.push_back(bit);
  }
  return bits;
}

std::string item(uint64_t number) {
  return "item" + std::to_string(number);
}

// All parts of a dump, with their positions as BF.LOADCHUNK takes them.
struct Part {
  int64_t position;
  std::string bytes;
};
std::vector<Part> parts_of(const BloomFilter& filter) {
  std::vector<Part> parts;
  for (int64_t position = 1; position != 0;) {
    const auto chunk = filter.chunk(static_cast<uint64_t>(position));
    position = chunk.next;
    if (position != 0) parts.push_back({position, std::string(chunk.bytes)});
  }
  return parts;
}

template <typename Number>
void overwrite(std::string& header, size_t at, Number number) {
  std::memcpy(header.data() + at, &number, sizeof number);
}

std::string digest(const BloomFilter& filter) {
  std::string all;
  filter.for_each_digest_part([&](std::string_view part) { all += part; });
  return all;
}

}  // namespace

TEST_CASE("The hashes of filters are those that other programs have", "[bloom]") {
  CHECK(base::murmur_hash_64a("", 0) == 0);
  CHECK(base::murmur_hash_64a("hello world!", 0) % 255 + 1 == 131);
  CHECK(base::murmur_hash_64a("x", 0) % 2048 == 617);
  CHECK(base::murmur_hash_2("", 0) == 0);
}

TEST_CASE("An item's bits are those that the reference sets", "[bloom]") {
  auto filter = made(1000, 0.01);
  CHECK(filter->add("x") == Outcome::kAdded);
  CHECK(filter->layers()[0].shape.bits == 11072);
  CHECK(bits_of(filter->chunk(1).bytes) ==
        std::vector<uint64_t>{2086, 2782, 4926, 5622, 6318, 9622, 10318, 11014});
  filter = made(1000, 0.01);
  filter->add("hello world!");
  CHECK(bits_of(filter->chunk(1).bytes) ==
        std::vector<uint64_t>{12, 52, 486, 9742, 10176, 10216, 10650, 10690});
}

TEST_CASE("Bits are found without a division for each", "[bloom]") {
  // The sizes of the layers are such that they divide 2^64, and that they do not.
  constexpr uint64_t kSeed = 0xc6a4a7935bd1e995;
  const double error_rate = GENERATE(0.2, 0.01, 1e-9, 1e-40);
  const uint64_t capacity = GENERATE(1, 2, 9, 100, 1001);
  for (uint64_t i = 0; i < 50; ++i) {
    auto filter = made(capacity, error_rate);
    filter->add(item(i));
    const uint64_t first = base::murmur_hash_64a(item(i), kSeed);
    const uint64_t step = base::murmur_hash_64a(item(i), first);
    const auto& shape = filter->layers()[0].shape;
    std::vector<bool> wanted(shape.bits);
    for (uint64_t n = 0; n < shape.hashes; ++n) wanted[(first + n * step) % shape.bits] = true;
    std::vector<bool> found(shape.bits);
    for (const uint64_t bit : bits_of(filter->chunk(1).bytes)) found[bit] = true;
    REQUIRE(found == wanted);
  }
}

TEST_CASE("Layers have the size and the hashes that the error rate needs", "[bloom]") {
  const auto shape = [](uint64_t capacity, double error_rate, uint32_t expansion, bool is_fixed) {
    return made(capacity, error_rate, expansion, is_fixed)->layers()[0].shape;
  };
  CHECK(shape(100, 0.01, 2, false).bytes == 144);
  CHECK(shape(100, 0.01, 2, false).hashes == 8);
  CHECK(shape(100, 0.01, 2, false).error_rate == 0.005);
  CHECK(shape(100, 0.01, 2, false).bits_per_item == 11.027753418256411);
  CHECK(shape(100, 0.01, 2, true).bytes == 120);
  CHECK(shape(100, 0.01, 0, false).error_rate == 0.01);
  // One eighth takes four hashes, not three.
  CHECK(shape(100, 0.25, 2, false).hashes == 4);
  CHECK(shape(100, 0.9, 2, false).error_rate == 0.125);
  CHECK(shape(1, 0.01, 2, false).bytes == 8);
}

TEST_CASE("A filter that cannot be is not made", "[bloom]") {
  CHECK(failure_of(100, 5e-324) == Failure::kImpossible);
  CHECK(failure_of(BloomFilter::kMaxCapacity, 1e-300) == Failure::kNoMemory);
  CHECK(failure_of(0, 0.01) == Failure::kImpossible);
}

TEST_CASE("What was added is found, and little else", "[bloom]") {
  auto filter = made(100, 0.01, GENERATE(1, 2, 4));
  uint64_t added = 0;
  for (uint64_t i = 0; i < 5000; ++i) added += filter->add(item(i)) == Outcome::kAdded ? 1 : 0;
  CHECK(filter->items() == added);
  CHECK(added > 4900);
  CHECK(filter->layers().size() > 1);
  uint64_t false_positives = 0;
  for (uint64_t i = 0; i < 5000; ++i) {
    REQUIRE(filter->contains(item(i)));
    REQUIRE(filter->add(item(i)) == Outcome::kPresent);
    false_positives += filter->contains(item(i + 10'000)) ? 1 : 0;
  }
  CHECK(false_positives < 100);
}

TEST_CASE("A filter that does not grow is full some time", "[bloom]") {
  auto filter = made(3, 0.01, 2, true);
  for (uint64_t i = 0; i < 3; ++i) CHECK(filter->add(item(i)) == Outcome::kAdded);
  CHECK(filter->add(item(3)) == Outcome::kFull);
  CHECK(filter->add(item(0)) == Outcome::kPresent);
  CHECK(filter->layers().size() == 1);
}

TEST_CASE("A filter grows until there is no better layer", "[bloom]") {
  auto filter = made(1, 1e-322, 1);
  for (uint64_t i = 0; i < 4; ++i) CHECK(filter->add(item(i)) == Outcome::kAdded);
  CHECK(filter->layers().size() == 4);
  CHECK(filter->add(item(4)) == Outcome::kNoLayer);
  CHECK(filter->add(item(3)) == Outcome::kPresent);
}

TEST_CASE("A dump makes the same filter", "[bloom]") {
  auto filter = made(5, 0.01, 3);
  for (uint64_t i = 0; i < 300; ++i) filter->add(item(i));
  REQUIRE(filter->layers().size() > 3);
  const auto copy = BloomFilter::from_header(filter->header());
  REQUIRE(copy != nullptr);
  CHECK_FALSE(copy->contains(item(0)));
  CHECK(digest(*copy) != digest(*filter));
  for (const Part& part : parts_of(*filter))
    CHECK(copy->load_chunk(part.position, part.bytes) == Load::kDone);
  CHECK(digest(*copy) == digest(*filter));
  const std::unique_ptr<store::Value> cloned(filter->clone());
  CHECK(digest(static_cast<const BloomFilter&>(*cloned)) == digest(*filter));
}

TEST_CASE("The dump of a large filter comes in parts", "[bloom]") {
  auto filter = made(20'000'000, 0.01);
  const auto parts = parts_of(*filter);
  REQUIRE(parts.size() == 2);
  CHECK(parts[0].bytes.size() == BloomFilter::kMaxChunk);
  CHECK(parts[1].position == 1 + static_cast<int64_t>(filter->layers()[0].shape.bytes));
}

TEST_CASE("A part that is not of the filter is refused", "[bloom]") {
  auto filter = made(3, 0.01, 1);
  for (uint64_t i = 0; filter->layers().size() < 4; ++i) filter->add(item(i));
  // Four layers of 8 bytes.
  const std::string before = digest(*filter);
  CHECK(filter->load_chunk(34, "12345678") == Load::kTooLarge);
  CHECK(filter->load_chunk(13, "12345678") == Load::kTooLarge);
  CHECK(filter->load_chunk(1000, "1") == Load::kNoLayer);
  CHECK(filter->load_chunk(INT64_MAX, "1") == Load::kNoLayer);
  CHECK(filter->load_chunk(8, "12345678") == Load::kNoLayer);
  CHECK(filter->load_chunk(7, "12345678") == Load::kBadData);
  CHECK(filter->load_chunk(0, "") == Load::kBadData);
  CHECK(filter->load_chunk(-5, "1") == Load::kBadData);
  CHECK(filter->load_chunk(2, "") == Load::kDone);
  CHECK(filter->load_chunk(33, std::string(32, '1')) == Load::kTooLarge);
  CHECK(digest(*filter) == before);
}

TEST_CASE("A header that lies is refused", "[bloom]") {
  auto filter = made(3, 0.01, 2);
  for (uint64_t i = 0; filter->layers().size() < 3; ++i) filter->add(item(i));
  const std::string header = filter->header();
  REQUIRE(BloomFilter::from_header(header) != nullptr);
  for (size_t size = 0; size < header.size(); ++size)
    CHECK(BloomFilter::from_header(header.substr(0, size)) == nullptr);
  CHECK(BloomFilter::from_header(header + "x") == nullptr);

  const auto changed = [&](size_t at, auto number) {
    std::string other = header;
    overwrite(other, at, number);
    return BloomFilter::from_header(other) == nullptr;
  };
  CHECK(changed(0, uint64_t{99}));  // items that are not those of the layers
  CHECK(changed(8, uint32_t{0}));   // layers
  CHECK(changed(8, uint32_t{2}));
  CHECK(changed(8, UINT32_MAX));
  CHECK(changed(12, uint32_t{16}));          // options
  CHECK(changed(kHeaderSize, uint64_t{0}));  // bytes
  CHECK(changed(kHeaderSize, uint64_t{1} << 61));
  CHECK(changed(kHeaderSize + 8, uint64_t{65}));  // bits
  CHECK(changed(kHeaderSize + 24, 0.0));          // error rate
  CHECK(changed(kHeaderSize + 24, std::nan("")));
  CHECK(changed(kHeaderSize + 32, std::nan("")));  // bits per item
  CHECK(changed(kHeaderSize + 32, 1e300));
  CHECK(changed(kHeaderSize + 40, uint32_t{9}));  // hashes
  CHECK(changed(kHeaderSize + 40, UINT32_MAX));
  CHECK(changed(kHeaderSize + 52, uint8_t{7}));  // power: 128 of 64 bits
  CHECK(changed(kHeaderSize + 52, uint8_t{64}));
  CHECK_FALSE(changed(kHeaderSize + 52, uint8_t{6}));

  // Several layers ask for too much though none does.
  std::string large = header;
  for (size_t layer = 0; layer < 3; ++layer) {
    overwrite(large, kHeaderSize + layer * kLayerSize, BloomFilter::kMaxBytes / 2);
    overwrite(large, kHeaderSize + layer * kLayerSize + 8, BloomFilter::kMaxBytes * 4);
  }
  CHECK(BloomFilter::from_header(large) == nullptr);
}

TEST_CASE("A filter of any header can be used", "[bloom]") {
  base::Random random(7);
  auto filter = made(3, 0.01, 2);
  for (uint64_t i = 0; filter->layers().size() < 3; ++i) filter->add(item(i));
  const std::string header = filter->header();
  size_t accepted = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string other = header;
    for (uint64_t changes = 1 + random.below(3); changes > 0; --changes)
      other[random.below(other.size())] = static_cast<char>(random.below(256));
    // Large ones would take the test's time.
    uint64_t bytes;
    std::memcpy(&bytes, other.data() + kHeaderSize, sizeof bytes);
    if (bytes > 1 << 20) continue;
    const auto copy = BloomFilter::from_header(other);
    if (copy == nullptr || copy->reported_size() > 1 << 22) continue;
    ++accepted;
    for (uint64_t i = 0; i < 20; ++i) copy->add(item(i));
    if (copy->reported_size() < 1 << 22) {
      CHECK(BloomFilter::from_header(copy->header()) != nullptr);
    }
  }
  CHECK(accepted > 100);
}

}  // namespace latchkey::tests

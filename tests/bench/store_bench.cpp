// How long the keyspace takes for what most servers do all day, and what a key costs in memory.
//
//   store-bench [KEYS]      1,000,000 keys of 16 bytes with values of 64 unless told otherwise
//
// Keys come in random order, so that nearly every one is a cache miss. "batch" does what the server
// does for a pipeline: the lines of several keys are brought near before the first is looked up.
// Figures are the best of five rounds.
#include <malloc.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "store/keyspace.h"

// There when the allocator is jemalloc.
extern "C" __attribute__((weak)) int mallctl(const char* name, void* old, size_t* old_size,
                                             void* changed, size_t new_size);

namespace {

using latchkey::base::Random;
using latchkey::store::Environment;
using latchkey::store::KeyRef;
using latchkey::store::Keyspace;

constexpr size_t kKeySize = 16;
constexpr size_t kValueSize = 64;
constexpr int kRounds = 5;

size_t allocated_bytes() {
  if (mallctl == nullptr) return mallinfo2().uordblks + mallinfo2().hblkhd;
  uint64_t epoch = 1;
  mallctl("epoch", nullptr, nullptr, &epoch, sizeof(epoch));
  size_t bytes = 0;
  size_t size = sizeof(bytes);
  mallctl("stats.allocated", &bytes, &size, nullptr, 0);
  return bytes;
}

// Keys one behind the other, in the order in which they are asked for, as in a connection's buffer.
class Requests {
 public:
  Requests(size_t count, uint64_t seed) : count_(count), bytes_(count * kKeySize, '\0') {
    std::vector<uint32_t> order(count);
    std::iota(order.begin(), order.end(), 0);
    Random random(seed);
    for (size_t i = count; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    for (size_t i = 0; i < count; ++i) {
      char text[kKeySize + 1];
      std::snprintf(text, sizeof(text), "key:%012u", order[i]);
      std::memcpy(bytes_.data() + i * kKeySize, text, kKeySize);
    }
  }
  size_t count() const { return count_; }
  std::string_view operator[](size_t i) const { return {bytes_.data() + i * kKeySize, kKeySize}; }

 private:
  size_t count_;
  std::string bytes_;
};

struct Bench {
  explicit Bench(size_t count) : inserts(count, 1), lookups(count, 2), value(kValueSize, 'v') {
    environment.now_ms = 1'700'000'000'000;
    environment.access_clock = 1;
  }

  void insert(std::string_view key, int64_t deadline_ms) {
    KeyRef ref = keys.find_for_write(key);
    keys.set_string(ref, value, deadline_ms);
  }
  // As GET does: the value goes into the reply.
  void get(std::string_view key) {
    const KeyRef ref = keys.find(key);
    const std::string_view text = ref->text();
    std::memcpy(reply, text.data(), text.size());
    checksum += static_cast<unsigned char>(reply[kValueSize - 1]);
  }
  void set(std::string_view key) { insert(key, Keyspace::kNoDeadline); }

  Environment environment;
  Keyspace keys{0, environment};
  Requests inserts;
  Requests lookups;
  std::string value;
  char reply[256];
  uint64_t checksum = 0;
};

// Processor time, which other programs on the machine disturb less than the clock on the wall.
double processor_nanoseconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

template <typename Work>
double nanoseconds_per(size_t count, Work&& work) {
  const double start = processor_nanoseconds();
  work();
  return (processor_nanoseconds() - start) / static_cast<double>(count);
}

// Runs `one` for every lookup, `batch` keys at a time.
template <typename One>
void measure(Bench& bench, const char* name, size_t batch, One&& one) {
  double best = 1e18;
  const Requests& requests = bench.lookups;
  for (int round = 0; round < kRounds; ++round) {
    best = std::min(best, nanoseconds_per(requests.count(), [&] {
                      uint64_t hashes[64];
                      for (size_t first = 0; first < requests.count(); first += batch) {
                        const size_t size = std::min(batch, requests.count() - first);
                        if (size > 1) {
                          for (size_t i = 0; i < size; ++i)
                            hashes[i] = bench.keys.prefetch_bucket(requests[first + i]);
                          for (size_t i = 0; i < size; ++i) bench.keys.prefetch_entry(hashes[i]);
                          for (size_t i = 0; i < size; ++i)
                            bench.keys.prefetch_chained_entry(hashes[i]);
                        }
                        for (size_t i = 0; i < size; ++i) one(requests[first + i]);
                      }
                    }));
  }
  std::printf("%-10s batch %2zu  %7.1f ns\n", name, batch, best);
}

void measure_insertion(Bench& bench, const char* name, int64_t deadline_ms) {
  double best = 1e18;
  double bytes = 0;
  for (int round = 0; round < kRounds; ++round) {
    bench.keys.clear(false);
    const size_t before = allocated_bytes();
    best = std::min(best, nanoseconds_per(bench.inserts.count(), [&] {
                      for (size_t i = 0; i < bench.inserts.count(); ++i)
                        bench.insert(bench.inserts[i], deadline_ms);
                    }));
    bytes = static_cast<double>(allocated_bytes() - before) /
            static_cast<double>(bench.inserts.count());
  }
  std::printf("%-10s           %7.1f ns   %6.1f bytes a key\n", name, best, bytes);
}

}  // namespace

int main(int argc, char** argv) {
  const size_t count = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1'000'000;
  if (count == 0 || count > 1'000'000'000) {
    std::fprintf(stderr, "usage: store-bench [KEYS]\n");
    return 2;
  }
  Bench bench(count);
  std::printf("%zu keys of %zu bytes with values of %zu\n", count, kKeySize, kValueSize);
  measure_insertion(bench, "insert", Keyspace::kNoDeadline);
  for (const size_t batch : {1, 16, 32, 64})
    measure(bench, "get", batch, [&](std::string_view key) { bench.get(key); });
  for (const size_t batch : {1, 16, 32, 64})
    measure(bench, "set", batch, [&](std::string_view key) { bench.set(key); });
  std::printf("%-10s           %7zu buckets, %zu of them chained, %.1f bytes a key\n", "table",
              bench.keys.table().bucket_count() + bench.keys.table().chained_bucket_count(),
              bench.keys.table().chained_bucket_count(),
              static_cast<double>(bench.keys.table().memory_usage()) / static_cast<double>(count));
  measure_insertion(bench, "insert+ttl", bench.environment.now_ms + 86'400'000);
  std::printf("(checksum %llu)\n", static_cast<unsigned long long>(bench.checksum));
  return 0;
}

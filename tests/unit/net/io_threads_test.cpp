// Batches that threads share: every item is done once, by those who may, before run() returns.
#include "net/io_threads.h"

#include <pthread.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "unit/catch.h"

namespace latchkey::net {

namespace {

struct Batch {
  explicit Batch(size_t items, int threads) : counts(items), by(items), names(items) {
    for (size_t i = 0; i < items; ++i)
      owners.push_back(static_cast<uint8_t>(1 + i % static_cast<size_t>(threads - 1)));
  }
  static void job(void* context, size_t item, int thread) {
    auto& batch = *static_cast<Batch*>(context);
    ++batch.counts[item];
    batch.by[item] = thread;
    pthread_getname_np(pthread_self(), batch.names[item].data(), batch.names[item].size());
  }

  std::vector<uint8_t> owners;
  std::vector<int> counts;
  std::vector<int> by;
  std::vector<std::array<char, 16>> names;
};

}  // namespace

TEST_CASE("Every item of a batch is done once, by its thread or by the caller", "[io_threads]") {
  for (const int count : {2, 3, 8}) {
    IoThreads threads(count);
    REQUIRE(threads.size() == count);
    REQUIRE(threads.missing() == 0);
    for (int round = 0; round < 300; ++round) {
      const auto items = static_cast<size_t>(round * 7 % 130);
      Batch batch(items, count);
      threads.run(batch.owners, Batch::job, &batch);
      for (size_t i = 0; i < items; ++i) {
        CHECK(batch.counts[i] == 1);
        CHECK((batch.by[i] == 0 || batch.by[i] == batch.owners[i]));
        if (batch.by[i] != 0)
          CHECK(std::string(batch.names[i].data()) == "io_thd_" + std::to_string(batch.by[i]));
      }
    }
  }
}

TEST_CASE("A batch with fewer than two items for each thread is done by the caller",
          "[io_threads]") {
  IoThreads threads(4);
  Batch batch(7, 4);
  threads.run(batch.owners, Batch::job, &batch);
  CHECK(batch.counts == std::vector<int>(7, 1));
  CHECK(batch.by == std::vector<int>(7, 0));
}

TEST_CASE("Threads take part in batches", "[io_threads]") {
  IoThreads threads(2);
  // The caller does a thread's items if that one comes too late, so it takes several batches.
  bool took_part = false;
  for (int round = 0; round < 100'000 && !took_part; ++round) {
    Batch batch(64, 2);
    threads.run(batch.owners, Batch::job, &batch);
    for (const int thread : batch.by) took_part |= thread == 1;
  }
  CHECK(took_part);
}

TEST_CASE("The largest batch is done", "[io_threads]") {
  IoThreads threads(2);
  Batch batch(IoThreads::kMaxItems, 2);
  threads.run(batch.owners, Batch::job, &batch);
  CHECK(batch.counts == std::vector<int>(IoThreads::kMaxItems, 1));
  Batch none(0, 2);
  threads.run(none.owners, Batch::job, &none);
}

}  // namespace latchkey::net

// How near counting and combining the bits of long strings come to what memory gives: each beside a
// plain loop over the same bytes.
//
//   bits-bench [MEGABYTES]      64 unless told otherwise
//
// Figures are the best of rounds in turn, in processor time.
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bits.h"
#include "base/random.h"

namespace {

using latchkey::base::BitOperation;
using latchkey::base::Random;

constexpr int kRounds = 15;

double processor_milliseconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

uint64_t word_at(const std::string& bytes, size_t offset) {
  uint64_t word;
  std::memcpy(&word, bytes.data() + offset, sizeof(word));
  return word;
}

// Reads every word.
uint64_t read_all(const std::string& bytes) {
  uint64_t sums[4] = {};
  for (size_t i = 0; i + sizeof(sums) <= bytes.size(); i += sizeof(sums)) {
    for (size_t j = 0; j < 4; ++j) sums[j] += word_at(bytes, i + j * sizeof(uint64_t));
  }
  return sums[0] + sums[1] + sums[2] + sums[3];
}

// Reads every word of the sources and writes one of the result.
void add_all(const std::vector<std::string>& sources, size_t count, std::string& result) {
  for (size_t i = 0; i + sizeof(uint64_t) <= result.size(); i += sizeof(uint64_t)) {
    uint64_t word = word_at(sources[0], i);
    for (size_t j = 1; j < count; ++j) word += word_at(sources[j], i);
    std::memcpy(result.data() + i, &word, sizeof(word));
  }
}

struct Work {
  const char* name;
  std::function<void()> run;
  double best = 1e18;
};

}  // namespace

int main(int argc, char** argv) {
  const size_t megabytes = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 64;
  if (megabytes == 0 || megabytes > 4096) {
    std::fprintf(stderr, "usage: bits-bench [MEGABYTES]\n");
    return 2;
  }
  const size_t size = megabytes << 20;
  Random random(1);
  std::vector<std::string> sources(3, std::string(size, '\0'));
  for (std::string& source : sources) {
    for (size_t i = 0; i < size; i += sizeof(uint64_t)) {
      const uint64_t word = random.next();
      std::memcpy(source.data() + i, &word, sizeof(word));
    }
  }
  std::string result(size, '\0');
  const std::vector<std::string_view> views(sources.begin(), sources.end());
  const auto combine = [&](BitOperation operation, size_t count) {
    latchkey::base::combine_bits(operation, std::span(views).first(count), result);
  };
  uint64_t checksum = 0;

  // The first of each group is what the others of it are compared with.
  std::vector<std::vector<Work>> groups = {
      {{"read", [&] { checksum += read_all(sources[0]); }},
       {"count", [&] { checksum += latchkey::base::count_ones(views[0], 0, size * 8); }}},
      {{"read 1, write", [&] { add_all(sources, 1, result); }},
       {"not", [&] { combine(BitOperation::kNot, 1); }}},
      {{"read 2, write", [&] { add_all(sources, 2, result); }},
       {"and", [&] { combine(BitOperation::kAnd, 2); }},
       {"or", [&] { combine(BitOperation::kOr, 2); }},
       {"xor", [&] { combine(BitOperation::kXor, 2); }},
       {"diff", [&] { combine(BitOperation::kDiff, 2); }},
       {"diff1", [&] { combine(BitOperation::kDiff1, 2); }},
       {"andor", [&] { combine(BitOperation::kAndOr, 2); }},
       {"one", [&] { combine(BitOperation::kOne, 2); }}},
      {{"read 3, write", [&] { add_all(sources, 3, result); }},
       {"and of 3", [&] { combine(BitOperation::kAnd, 3); }},
       {"one of 3", [&] { combine(BitOperation::kOne, 3); }}},
  };
  for (int round = 0; round < kRounds; ++round) {
    for (auto& group : groups) {
      for (Work& work : group) {
        const double start = processor_milliseconds();
        work.run();
        work.best = std::min(work.best, processor_milliseconds() - start);
        checksum += static_cast<unsigned char>(result[size / 2]);
      }
    }
  }
  for (const auto& group : groups) {
    for (const Work& work : group)
      std::printf("%-14s %8.2f ms  %5.2f\n", work.name, work.best, work.best / group[0].best);
  }
  std::printf("(checksum %llu)\n", static_cast<unsigned long long>(checksum));
  return 0;
}

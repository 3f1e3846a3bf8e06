// What has happened in a run, step by step: the last of it is printed when a check fails or the
// process dies, all of it when a seed is replayed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <stdexcept>
#include <string>

namespace latchkey::simulation {

// A check that did not hold.
class CheckFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Steps {
 public:
  // `aloud`: every line is printed when it is noted.
  explicit Steps(bool aloud) : aloud_(aloud) {}

  void note(std::string line);
  // The last ones, a line each.
  std::string last() const;
  size_t count() const { return count_; }
  // Of all lines: equal for equal runs.
  uint64_t digest() const { return digest_; }

 private:
  static constexpr size_t kKept = 40;
  bool aloud_;
  std::deque<std::string> lines_;
  size_t count_ = 0;
  uint64_t digest_ = 14695981039346656037u;  // FNV-1a
};

// `text` with control bytes as dots, and no more than so many bytes of it.
std::string shown(const std::string& text, size_t most = 120);

}  // namespace latchkey::simulation

// Progress: reports once a second how far long work has come.
//
//   Loading the dataset: 43 %, 1.20G of 2.80G, 310.00M/s, 5 s left
//
// as lines of the log; on a terminal as one line that is written over and over, and removed at the
// end:
//
//   Loading the dataset [###########               ] 43 %  310.00M/s  5 s left
//
// Work that takes less than a second is not mentioned. Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/log.h"

namespace latchkey::server {

enum class ProgressUnit : uint8_t { kBytes, kKeys };

// How far work has come. `total`: 0 when not known.
struct ProgressFigures {
  std::string_view what;
  ProgressUnit unit = ProgressUnit::kBytes;
  uint64_t done = 0;
  uint64_t total = 0;
  int64_t elapsed_us = 0;
};

// The line for the log, and the line of a terminal that is `columns` wide.
std::string progress_line(const ProgressFigures& figures);
std::string progress_bar(const ProgressFigures& figures, size_t columns);

// Standard error if it is a terminal, or -1.
int progress_terminal();

class Progress {
 public:
  // `log`: may be null. `terminal`: a descriptor, or -1. Lines that would only appear on that very
  // terminal, too, are not logged. Times are of a monotonic clock, in microseconds.
  Progress(base::Logger* log, int terminal, std::string what, ProgressUnit unit, uint64_t total,
           int64_t now_us);
  // Removes the line from the terminal.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // To be called as often as is convenient; costs two comparisons until a second has passed.
  void at(uint64_t done, int64_t now_us) {
    if (now_us >= next_us_) [[unlikely]]
      show(done, now_us);
  }

 private:
  void show(uint64_t done, int64_t now_us);

  base::Logger* log_;
  int terminal_;
  std::string what_;
  ProgressUnit unit_;
  uint64_t total_;
  int64_t started_us_;
  int64_t next_us_;
  bool drawn_ = false;
};

}  // namespace latchkey::server

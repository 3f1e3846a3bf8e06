// How the end of a dataset from a master is recognized: by its size, or by a mark after it.
//
//     $178\r\n<178 bytes>           $EOF:<40 characters>\r\n<bytes><the 40 characters>
#pragma once

#include <cstdint>
#include <string>

namespace latchkey::replication {

struct DatasetShape {
  std::string mark;   // empty: the size is known
  uint64_t size = 0;  // of the dataset
  bool has_mark() const { return !mark.empty(); }
};

}  // namespace latchkey::replication

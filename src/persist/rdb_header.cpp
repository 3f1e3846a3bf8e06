#include "persist/rdb_header.h"

#include <cstdlib>
#include <string_view>

namespace latchkey::persist {

bool read_rdb_header(RdbReader& reader, int* version, std::string* problem) {
  constexpr std::string_view kSignature = "REDIS";
  char header[10] = {};
  if (!reader.raw(header, sizeof header - 1)) return false;
  if (!std::string_view(header).starts_with(kSignature)) {
    *problem = "Wrong signature trying to load DB from file";
    return false;
  }
  *version = std::atoi(header + kSignature.size());
  if (*version >= 1 && *version <= kNewestRdbVersion) return true;
  *problem = "Can't handle RDB format version " + std::to_string(*version);
  return false;
}

}  // namespace latchkey::persist

#include "persist/rdb/rdb_header.h"

#include <cstdlib>
#include <string>
#include <string_view>

namespace latchkey::persist {

namespace {

constexpr std::string_view kSignature = "REDIS";
constexpr std::string_view kValkeySignature = "VALKEY";

}  // namespace

bool begins_like_rdb(std::string_view first_bytes) {
  return first_bytes.starts_with(kSignature) || first_bytes.starts_with(kValkeySignature);
}

base::Result<> read_rdb_header(RdbReader& reader, int newest, bool any_later) {
  char bytes[10] = {};
  if (!reader.raw(bytes, sizeof bytes - 1)) return base::fail("");
  const std::string_view header(bytes);
  const bool is_valkey = header.starts_with(kValkeySignature);
  if (!is_valkey && !header.starts_with(kSignature))
    return base::fail("Wrong signature trying to load DB from file");
  const int version = std::atoi(bytes + (is_valkey ? kValkeySignature.size() : kSignature.size()));
  reader.set_version(version);
  // Neither product writes the other's signature with a version of its own.
  const bool is_known =
      is_valkey ? version == kValkeyRdbVersion : version >= 1 && version <= newest;
  if (is_known || (any_later && version >= 1)) return {};
  return base::fail("Can't handle RDB format version " + std::to_string(version));
}

}  // namespace latchkey::persist

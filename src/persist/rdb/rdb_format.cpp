#include "persist/rdb/rdb_format.h"

#include <iterator>

namespace latchkey::persist {

std::string_view rdb_type_name(uint8_t type) {
  static constexpr std::string_view kNames[] = {"string",
                                                "list-linked",
                                                "set-hashtable",
                                                "zset-v1",
                                                "hash-hashtable",
                                                "zset-v2",
                                                "module-pre-release",
                                                "module-value",
                                                "",
                                                "hash-zipmap",
                                                "list-ziplist",
                                                "set-intset",
                                                "zset-ziplist",
                                                "hash-ziplist",
                                                "quicklist",
                                                "stream",
                                                "hash-listpack",
                                                "zset-listpack",
                                                "quicklist-v2",
                                                "stream-v2",
                                                "set-listpack",
                                                "stream-v3",
                                                "hash-hashtable-md-pre-release",
                                                "hash-listpack-md-pre-release",
                                                "hash-hashtable-md",
                                                "hash-listpack-md",
                                                "stream-v4"};
  static_assert(std::size(kNames) == kLastRdbType + 1);
  return type < std::size(kNames) ? kNames[type] : std::string_view();
}

}  // namespace latchkey::persist

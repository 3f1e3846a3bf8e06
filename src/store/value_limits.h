// The sizes up to which values keep their compact encodings. The directives of the same names
// describe them; the server updates them, and a change applies to later writes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace latchkey::store {

struct ValueLimits {
  size_t hash_max_listpack_entries = 512;
  size_t hash_max_listpack_value = 64;
  // From and up to how many fields a hash that is written shares the names of its fields; 0: none,
  // and without a limit. The other two are for those that are loaded.
  size_t hash_min_template_entries = 0;
  size_t hash_max_template_entries = 0;
  size_t hash_rdb_load_min_template_entries = 0;
  size_t hash_rdb_load_max_template_entries = 0;
  size_t set_max_intset_entries = 512;
  size_t set_max_listpack_entries = 128;
  size_t set_max_listpack_value = 64;
  size_t zset_max_listpack_entries = 128;
  size_t zset_max_listpack_value = 64;
  // A list node's maximum: a number of elements when positive, one of five sizes in bytes when -1
  // .. -5.
  int list_max_listpack_size = -2;
  // Nodes at each end of a list that are never compressed; 0: no node is compressed.
  int list_compress_depth = 0;
  // Maximum size of a stream's node; 0: the largest possible size, or no limit of entries.
  size_t stream_node_max_bytes = 4096;
  size_t stream_node_max_entries = 100;
  // What a new stream remembers of the requests of each producer (store/value/stream_producers.h).
  uint32_t stream_idmp_duration_s = 100;
  uint32_t stream_idmp_maxsize = 100;
  // Elements of a quicklist of at least this many bytes get their own node; 0: elements larger than
  // a node do. Not a directive; DEBUG sets it.
  size_t quicklist_packed_threshold = 0;
};

}  // namespace latchkey::store

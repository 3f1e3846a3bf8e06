// Up to which sizes values are kept in their compact encodings. The directives of the same names
// describe them; the server keeps them up to date, and a change concerns what is written from then
// on.
#pragma once

#include <cstddef>

namespace latchkey::store {

struct ValueLimits {
  size_t hash_max_listpack_entries = 512;
  size_t hash_max_listpack_value = 64;
  size_t set_max_intset_entries = 512;
  size_t set_max_listpack_entries = 128;
  size_t set_max_listpack_value = 64;
  size_t zset_max_listpack_entries = 128;
  size_t zset_max_listpack_value = 64;
  // Entries of a list's node when positive, one of five sizes in bytes when -1 .. -5.
  int list_max_listpack_size = -2;
  // Nodes at each end of a list that are never compressed; 0: none is.
  int list_compress_depth = 0;
  // Of a stream's node; 0: as large as it may be, or as many as fit.
  size_t stream_node_max_bytes = 4096;
  size_t stream_node_max_entries = 100;
  // From how many bytes on an element of a quicklist has a node of its own; 0: when it is larger
  // than a node. No directive, but DEBUG sets it.
  size_t quicklist_packed_threshold = 0;
};

}  // namespace latchkey::store

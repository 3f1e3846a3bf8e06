// A node of a stream: some dozens of entries with neighbouring ids in one listpack, laid out as in
// RDB files
// (https://github.com/sripathikrishnan/redis-rdb-tools/wiki/Redis-RDB-Dump-File-Format and the
// reference's documentation of streams):
//
//     master:  count | deleted | fields n | field 1 .. field n | 0
//     entry:   flags | ms - id.ms | sequence - id.sequence |
//              [value 1 .. value n]                     kSameFields: the fields are the master's
//              [fields m | field 1 | value 1 ..]        otherwise
//              | number of elements of this entry before this one
//     entry:   ...
//
// `id` is the id of the first entry of the node; ids ascend. The master holds the fields of that
// entry, and entries with the same fields do not repeat them. A deleted entry keeps its place and
// is marked; `count` counts the others.
//
// Costs: appending O(fields), walking O(elements passed), everything else O(1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "store/encoding/listpack.h"
#include "store/encoding/stream_id.h"

namespace latchkey::store {

// Field, value, field, value ...
using StreamFields = std::span<const std::string_view>;

class StreamNode {
 public:
  using Position = Listpack::Position;

  // The position of an entry and the contents of its header. Valid until the node is changed.
  struct Entry {
    explicit operator bool() const { return at != Listpack::kNone; }
    Position at = Listpack::kNone;       // position of the flags
    Position payload = Listpack::kNone;  // position of the first value, or first field
    size_t fields = 0;
    StreamId id;
    bool deleted = false;
    bool same_fields = false;
  };

  // An empty node whose id and master fields are those of its first entry, appended next.
  StreamNode(StreamId first, StreamFields fields);

  // Whether untrusted bytes are a valid node for that id in every detail: a listpack, the counts,
  // the structure of each entry, ids that ascend from `first` on, at least one entry, deleted or
  // not. O(bytes).
  static bool is_valid(StreamId first, std::span<const char> bytes);
  // REQUIRES: is_valid() has accepted them.
  StreamNode(StreamId first, std::span<const char> bytes);

  const StreamId id;

  // Numbers of entries that are not deleted, and of entries that are.
  size_t count() const;
  size_t deleted() const;
  size_t byte_size() const { return pack_.byte_size(); }
  // Bytes held, this object included.
  size_t memory_usage() const { return sizeof(*this) + pack_.memory_usage(); }
  const Listpack& pack() const { return pack_; }

  // Bytes of the fields and values: about what the node grows by.
  static size_t text_size(StreamFields fields);
  // Whether a node of `bytes` bytes (0: a new node) has room for an entry with these fields.
  static bool can_hold(StreamFields fields, size_t bytes = 0);
  // REQUIRES: entry_id is above the ids in the node, and can_hold(fields, byte_size()).
  void append(StreamId entry_id, StreamFields fields);

  // --- Walking, deleted entries included -------------------------------------------------------

  Entry first() const;
  Entry last() const;
  Entry next(const Entry& entry) const;
  Entry previous(const Entry& entry) const;

  // Calls fn(field, value), both Listpack::Element.
  template <typename Fn>
  void for_each_field(const Entry& entry, Fn&& fn) const {
    Position at = entry.payload;
    Position name = entry.same_fields ? first_master_field() : Listpack::kNone;
    for (size_t i = 0; i < entry.fields; ++i) {
      if (entry.same_fields) {
        fn(pack_.get(name), pack_.get(at));
        name = pack_.next(name);
      } else {
        const Position value = pack_.next(at);
        fn(pack_.get(at), pack_.get(value));
        at = value;
      }
      at = pack_.next(at);
    }
  }

  // --- Deleting ---------------------------------------------------------------------------------

  // Marks the entry as deleted. REQUIRES: it is not marked.
  void erase(const Entry& entry);
  enum class Erase : uint8_t { kYes, kNo, kStop };
  // Calls fn(const Entry&) for each entry that is not deleted, from the first on, and marks those
  // for which it returns kYes, until it returns kStop. Returns how many it marked.
  template <typename Fn>
  size_t erase_where(Fn&& fn) {
    size_t erased = 0;
    for (Entry entry = first(); entry; entry = next(entry)) {
      if (entry.deleted) continue;
      const Erase what = fn(entry);
      if (what == Erase::kStop) break;
      if (what == Erase::kNo) continue;
      mark(entry);
      entry = entry_at(entry.at);
      ++erased;
    }
    if (erased != 0) count_erased(erased);
    return erased;
  }

 private:
  enum Flag : int64_t { kDeleted = 1, kSameFields = 2 };

  int64_t integer_at(Position position) const { return pack_.get(position).integer; }
  Position master_fields() const;
  Position first_master_field() const { return pack_.next(master_fields()); }
  // The entry whose flags are at `position`; empty when it is kNone.
  Entry entry_at(Position position) const;
  bool has_fields_of_master(StreamFields fields) const;
  void mark(const Entry& entry);
  void count_erased(size_t erased);

  Listpack pack_;
};

}  // namespace latchkey::store

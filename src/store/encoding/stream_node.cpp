#include "store/encoding/stream_node.h"

namespace latchkey::store {

namespace {

// Maximum bytes of an entry, or of the master, besides fields and values.
constexpr size_t kMaxEntryOverhead = 64;

// Steps over the elements of an untrusted listpack, which may end anywhere.
class Reader {
 public:
  explicit Reader(const Listpack& pack) : pack_(pack), at_(pack.first()) {}

  bool at_end() const { return at_ == Listpack::kNone; }
  // Reads a non-negative integer.
  bool count(uint64_t* value) {
    int64_t number = 0;
    if (!integer(&number) || number < 0) return false;
    *value = static_cast<uint64_t>(number);
    return true;
  }
  bool integer(int64_t* value) {
    if (at_end()) return false;
    const Listpack::Element element = pack_.get(at_);
    if (!element.is_integer) return false;
    *value = element.integer;
    step();
    return true;
  }
  bool skip(uint64_t elements) {
    for (; elements > 0; --elements) {
      if (at_end()) return false;
      step();
    }
    return true;
  }
  // Number of elements read.
  uint64_t passed() const { return passed_; }

 private:
  void step() {
    at_ = pack_.next(at_);
    ++passed_;
  }

  const Listpack& pack_;
  Listpack::Position at_;
  uint64_t passed_ = 0;
};

StreamId add(StreamId first, int64_t ms, int64_t sequence) {
  return {first.ms + static_cast<uint64_t>(ms), first.sequence + static_cast<uint64_t>(sequence)};
}

}  // namespace

StreamNode::StreamNode(StreamId first, StreamFields fields) : id(first) {
  pack_.append(int64_t{0});
  pack_.append(int64_t{0});
  pack_.append(static_cast<int64_t>(fields.size() / 2));
  for (size_t i = 0; i < fields.size(); i += 2) pack_.append(fields[i]);
  pack_.append(int64_t{0});
}

StreamNode::StreamNode(StreamId first, std::span<const char> bytes)
    : id(first), pack_(Listpack::from_bytes(bytes)) {}

bool StreamNode::is_valid(StreamId first, std::span<const char> bytes) {
  if (!Listpack::is_valid(bytes)) return false;
  const Listpack pack = Listpack::from_bytes(bytes);
  Reader reader(pack);
  uint64_t count = 0;
  uint64_t deleted = 0;
  uint64_t master_fields = 0;
  int64_t end = 0;
  if (!reader.count(&count) || !reader.count(&deleted) || !reader.count(&master_fields) ||
      !reader.skip(master_fields) || !reader.integer(&end) || end != 0)
    return false;

  StreamId previous;
  uint64_t entries = 0;
  uint64_t marked = 0;
  for (; !reader.at_end(); ++entries) {
    const uint64_t start = reader.passed();
    int64_t flags = 0;
    int64_t ms = 0;
    int64_t sequence = 0;
    if (!reader.integer(&flags) || !reader.integer(&ms) || !reader.integer(&sequence)) return false;
    if ((flags & ~int64_t{kDeleted | kSameFields}) != 0) return false;
    if ((flags & kDeleted) != 0) ++marked;
    const StreamId entry_id = add(first, ms, sequence);
    if (entry_id < first || (entries != 0 && entry_id <= previous)) return false;
    previous = entry_id;
    uint64_t fields = master_fields;
    if ((flags & kSameFields) != 0) {
      if (!reader.skip(fields)) return false;
    } else if (!reader.count(&fields) || fields > bytes.size() || !reader.skip(fields * 2)) {
      return false;
    }
    const uint64_t elements = reader.passed() - start;
    uint64_t told = 0;
    if (!reader.count(&told) || told != elements) return false;
  }
  return entries > 0 && marked == deleted && entries == count + deleted;
}

size_t StreamNode::count() const {
  return static_cast<size_t>(integer_at(pack_.first()));
}

size_t StreamNode::deleted() const {
  return static_cast<size_t>(integer_at(pack_.next(pack_.first())));
}

size_t StreamNode::text_size(StreamFields fields) {
  size_t bytes = 0;
  for (const std::string_view text : fields) bytes += text.size();
  return bytes;
}

bool StreamNode::can_hold(StreamFields fields, size_t bytes) {
  // An upper bound: counts fields that the master may already have.
  constexpr size_t kMaxPerElement = 16;
  bytes += 2 * kMaxEntryOverhead;
  for (const std::string_view text : fields) bytes += text.size() + kMaxPerElement;
  return bytes <= Listpack::kMaxBytes;
}

// --- Walking ------------------------------------------------------------------------------------

StreamNode::Position StreamNode::master_fields() const {
  return pack_.next(pack_.next(pack_.first()));
}

StreamNode::Entry StreamNode::entry_at(Position position) const {
  Entry entry;
  if (position == Listpack::kNone) return entry;
  entry.at = position;
  const int64_t flags = integer_at(position);
  entry.deleted = (flags & kDeleted) != 0;
  entry.same_fields = (flags & kSameFields) != 0;
  const Position ms = pack_.next(position);
  const Position sequence = pack_.next(ms);
  entry.id = add(id, integer_at(ms), integer_at(sequence));
  entry.payload = pack_.next(sequence);
  if (entry.same_fields) {
    entry.fields = static_cast<size_t>(integer_at(master_fields()));
  } else {
    entry.fields = static_cast<size_t>(integer_at(entry.payload));
    entry.payload = pack_.next(entry.payload);
  }
  return entry;
}

StreamNode::Entry StreamNode::first() const {
  Position at = master_fields();
  for (auto left = integer_at(at) + 2; left > 0; --left) at = pack_.next(at);
  return entry_at(at);
}

StreamNode::Entry StreamNode::last() const {
  Position at = pack_.last();
  // The master ends with a zero, an entry with the number of its elements.
  const auto elements = integer_at(at);
  if (elements == 0) return {};
  for (auto left = elements; left > 0; --left) at = pack_.previous(at);
  return entry_at(at);
}

StreamNode::Entry StreamNode::next(const Entry& entry) const {
  Position at = entry.payload;
  for (size_t left = entry.same_fields ? entry.fields : entry.fields * 2; left > 0; --left)
    at = pack_.next(at);
  return entry_at(pack_.next(at));
}

StreamNode::Entry StreamNode::previous(const Entry& entry) const {
  Position at = pack_.previous(entry.at);
  const auto elements = integer_at(at);
  if (elements == 0) return {};
  for (auto left = elements; left > 0; --left) at = pack_.previous(at);
  return entry_at(at);
}

// --- Changing -----------------------------------------------------------------------------------

bool StreamNode::has_fields_of_master(StreamFields fields) const {
  Position at = master_fields();
  if (static_cast<size_t>(integer_at(at)) != fields.size() / 2) return false;
  for (size_t i = 0; i < fields.size(); i += 2) {
    at = pack_.next(at);
    if (!pack_.get(at).equals(fields[i])) return false;
  }
  return true;
}

void StreamNode::append(StreamId entry_id, StreamFields fields) {
  const size_t pairs = fields.size() / 2;
  const bool same = has_fields_of_master(fields);
  pack_.replace(pack_.first(), static_cast<int64_t>(count() + 1));
  pack_.append(same ? int64_t{kSameFields} : int64_t{0});
  pack_.append(static_cast<int64_t>(entry_id.ms - id.ms));
  pack_.append(static_cast<int64_t>(entry_id.sequence - id.sequence));
  if (!same) pack_.append(static_cast<int64_t>(pairs));
  for (size_t i = 0; i < fields.size(); ++i) {
    if (i % 2 == 1 || !same) pack_.append(fields[i]);
  }
  constexpr size_t kHead = 3;
  pack_.append(static_cast<int64_t>(kHead + (same ? pairs : 2 * pairs + 1)));
}

void StreamNode::mark(const Entry& entry) {
  pack_.replace(entry.at, integer_at(entry.at) | kDeleted);
}

void StreamNode::count_erased(size_t erased) {
  pack_.replace(pack_.first(), static_cast<int64_t>(count() - erased));
  pack_.replace(pack_.next(pack_.first()), static_cast<int64_t>(deleted() + erased));
}

void StreamNode::erase(const Entry& entry) {
  mark(entry);
  count_erased(1);
}

}  // namespace latchkey::store

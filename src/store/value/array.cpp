#include "store/value/array.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace latchkey::store {

// --- Cells ---------------------------------------------------------------------------------------

namespace cell {

ArrayCell make(std::string_view text) {
  constexpr int64_t kLimit = int64_t{1} << (63 - kTagBits);
  if (text.size() <= kLongestShort) {
    uint64_t bytes = 0;
    std::memcpy(&bytes, text.data(), text.size());
    return bytes << 8 | text.size() << kTagBits | kShort;
  }
  int64_t integer;
  if (text.size() <= base::kMaxInt64Text && base::parse_int64(text, &integer) && integer < kLimit &&
      integer >= -kLimit)
    return static_cast<uint64_t>(integer) << kTagBits | kInteger;
  return reinterpret_cast<ArrayCell>(base::Blob::create(text));
}

std::string_view text(ArrayCell value, char* scratch) {
  switch (value & kTagMask) {
    case kShort: {
      const uint64_t bytes = value >> 8;
      std::memcpy(scratch, &bytes, kLongestShort);
      return {scratch, value >> kTagBits & kTagMask};
    }
    case kInteger:
      return {scratch, base::format_int64(static_cast<int64_t>(value) >> kTagBits, scratch)};
    default:
      return blob(value)->view();
  }
}

}  // namespace cell

// --- Nodes ---------------------------------------------------------------------------------------

namespace {

constexpr size_t kNodeHeader = 24;

size_t node_bytes(unsigned room) {
  return kNodeHeader + room * sizeof(uint64_t);
}

}  // namespace

Array::Node* Array::make_node(uint64_t index, unsigned level, unsigned room) {
  static_assert(sizeof(Node) == kNodeHeader);
  void* memory = std::malloc(node_bytes(room));
  if (memory == nullptr) throw std::bad_alloc();
  ++nodes_;
  bytes_ += node_bytes(room);
  return new (memory)
      Node{0, first_of(index, level), static_cast<uint8_t>(level), static_cast<uint8_t>(room)};
}

void Array::free_node(Node* node) {
  --nodes_;
  bytes_ -= node_bytes(node->room);
  std::free(node);
}

void Array::count_cell(ArrayCell value) {
  ++count_;
  if (!cell::is_blob(value)) return;
  ++blobs_;
  bytes_ += cell::memory_usage(value);
}

void Array::drop_cell(ArrayCell value) {
  --count_;
  if (!cell::is_blob(value)) return;
  --blobs_;
  bytes_ -= cell::memory_usage(value);
  cell::release(value);
}

Array::Node* Array::make_leaf(uint64_t index, ArrayCell value) {
  constexpr unsigned kFirstRoom = 1;
  Node* leaf = make_node(index, 0, kFirstRoom);
  leaf->bitmap = uint64_t{1} << leaf->digit_of(index);
  leaf->words()[0] = value;
  count_cell(value);
  return leaf;
}

void Array::insert_word(Node** node, unsigned digit, uint64_t word) {
  const unsigned size = (*node)->size();
  if (size == (*node)->room) {
    // Doubles: a leaf that is filled from one end moves six times.
    const unsigned room = std::min(kFanOut, size * 2);
    Node* larger = make_node((*node)->first, (*node)->level, room);
    larger->bitmap = (*node)->bitmap;
    std::memcpy(larger->words(), (*node)->words(), size * sizeof(uint64_t));
    free_node(*node);
    *node = larger;
  }
  const unsigned place = (*node)->place_of(digit);
  uint64_t* words = (*node)->words();
  std::memmove(words + place + 1, words + place, (size - place) * sizeof(uint64_t));
  words[place] = word;
  (*node)->bitmap |= uint64_t{1} << digit;
}

void Array::remove_word(Node* node, unsigned digit) {
  const unsigned place = node->place_of(digit);
  uint64_t* words = node->words();
  std::memmove(words + place, words + place + 1, (node->size() - place - 1) * sizeof(uint64_t));
  node->bitmap &= ~(uint64_t{1} << digit);
}

void Array::split(Node** node, uint64_t index, ArrayCell value) {
  // The highest six bits in which the two differ make the level.
  const uint64_t difference = (*node)->first ^ index;
  const auto level = static_cast<unsigned>(63 - __builtin_clzll(difference)) / kBits;
  Node* above = make_node(index, level, 2);
  Node* leaf = make_leaf(index, value);
  const unsigned digits[] = {above->digit_of((*node)->first), above->digit_of(index)};
  above->bitmap = uint64_t{1} << digits[0] | uint64_t{1} << digits[1];
  above->words()[digits[0] < digits[1] ? 0 : 1] = reinterpret_cast<uint64_t>(*node);
  above->words()[digits[0] < digits[1] ? 1 : 0] = reinterpret_cast<uint64_t>(leaf);
  *node = above;
}

// --- The value -----------------------------------------------------------------------------------

Array::Node* Array::copy_node(const Node& node) {
  const unsigned size = node.size();
  Node* copy = make_node(node.first, node.level, size);
  copy->bitmap = node.bitmap;
  for (unsigned i = 0; i < size; ++i) {
    if (node.level == 0) {
      copy->words()[i] = cell::share(node.words()[i]);
      count_cell(copy->words()[i]);
    } else {
      copy->words()[i] = reinterpret_cast<uint64_t>(copy_node(*node.child(i)));
    }
  }
  return copy;
}

Array::Array(const Array& other) : Value(other), cursor_(other.cursor_) {
  if (other.root_ != nullptr) root_ = copy_node(*other.root_);
}

void Array::swap(Array& other) {
  std::swap(root_, other.root_);
  std::swap(count_, other.count_);
  std::swap(nodes_, other.nodes_);
  std::swap(blobs_, other.blobs_);
  std::swap(bytes_, other.bytes_);
  std::swap(cursor_, other.cursor_);
}

void Array::destroy(Node* node) {
  const unsigned size = node->size();
  for (unsigned i = 0; i < size; ++i)
    node->level == 0 ? drop_cell(node->words()[i]) : destroy(node->child(i));
  free_node(node);
}

Array::~Array() {
  if (root_ != nullptr) destroy(root_);
}

uint64_t Array::length() const {
  if (root_ == nullptr) return 0;
  const Node* node = root_;
  while (node->level != 0) node = node->child(node->size() - 1);
  return node->lowest_of(static_cast<unsigned>(63 - __builtin_clzll(node->bitmap))) + 1;
}

ArrayCell Array::get(uint64_t index) const {
  const Node* node = root_;
  while (node != nullptr && node->covers(index)) {
    const unsigned digit = node->digit_of(index);
    if (!node->has(digit)) return kNoCell;
    const unsigned place = node->place_of(digit);
    if (node->level == 0) return node->words()[place];
    node = node->child(place);
  }
  return kNoCell;
}

bool Array::set(uint64_t index, std::string_view text) {
  return set_cell(index, cell::make(text));
}

bool Array::set_cell(uint64_t index, ArrayCell value) {
  if (root_ == nullptr) {
    root_ = make_leaf(index, value);
    return true;
  }
  Node** node = &root_;
  while (true) {
    if (!(*node)->covers(index)) {
      split(node, index, value);
      return true;
    }
    const unsigned digit = (*node)->digit_of(index);
    const unsigned place = (*node)->place_of(digit);
    if (!(*node)->has(digit)) {
      if ((*node)->level == 0) {
        insert_word(node, digit, value);
        count_cell(value);
      } else {
        insert_word(node, digit, reinterpret_cast<uint64_t>(make_leaf(index, value)));
      }
      return true;
    }
    if ((*node)->level == 0) {
      drop_cell((*node)->words()[place]);
      (*node)->words()[place] = value;
      count_cell(value);
      return false;
    }
    node = reinterpret_cast<Node**>(&(*node)->words()[place]);
  }
}

// Frees a node without children, replaces an inner one by its only child, and gives back room.
void Array::shrink(Node** node) {
  constexpr unsigned kSpare = 4;
  const unsigned size = (*node)->size();
  if (size == 0) {
    free_node(*node);
    *node = nullptr;
  } else if (size == 1 && (*node)->level != 0) {
    Node* only = (*node)->child(0);
    free_node(*node);
    *node = only;
  } else if (size <= (*node)->room / kSpare) {
    Node* smaller = make_node((*node)->first, (*node)->level, size * 2);
    smaller->bitmap = (*node)->bitmap;
    std::memcpy(smaller->words(), (*node)->words(), size * sizeof(uint64_t));
    free_node(*node);
    *node = smaller;
  }
}

size_t Array::erase_below(Node** node, uint64_t first, uint64_t last) {
  if (last_of((*node)->first, (*node)->level) < first || (*node)->first > last) return 0;
  size_t erased = 0;
  const unsigned from = first <= (*node)->first ? 0 : (*node)->digit_of(first);
  for (uint64_t left = (*node)->bitmap >> from << from; left != 0; left &= left - 1) {
    const auto digit = static_cast<unsigned>(__builtin_ctzll(left));
    const unsigned place = (*node)->place_of(digit);
    if ((*node)->lowest_of(digit) > last) break;
    uint64_t* word = &(*node)->words()[place];
    if ((*node)->level == 0) {
      const uint64_t index = (*node)->lowest_of(digit);
      if (index < first) continue;
      drop_cell(*word);
      *word = kNoCell;
      ++erased;
    } else {
      erased += erase_below(reinterpret_cast<Node**>(word), first, last);
    }
    if (*word == 0) remove_word(*node, digit);
  }
  if (erased > 0) shrink(node);
  return erased;
}

bool Array::erase(uint64_t index) {
  return erase_range(index, index) != 0;
}

size_t Array::erase_range(uint64_t first, uint64_t last) {
  return root_ == nullptr ? 0 : erase_below(&root_, first, last);
}

// --- For ARINFO ----------------------------------------------------------------------------------

// Told of texts in the order of their indexes.
class Array::SliceCounter {
 public:
  explicit SliceCounter(Slicing slicing) : slicing_(slicing) {}

  // So many texts from `lowest` to `highest`, all within one slice.
  void add(uint64_t lowest, uint64_t highest, unsigned count) {
    if (count_ == 0 || lowest >> slicing_.bits != lowest_ >> slicing_.bits) {
      close();
      lowest_ = lowest;
      count_ = 0;
    }
    highest_ = highest;
    count_ += count;
  }
  void add_inner_node() { ++shape_.inner_nodes; }
  unsigned slice_size_in_leaf() const { return 1u << std::min(slicing_.bits, kBits); }
  Shape finish() {
    close();
    return shape_;
  }

 private:
  void close() {
    if (count_ == 0) return;
    if (count_ < slicing_.least_dense) {
      ++shape_.sparse_slices;
      shape_.sparse_elements += count_;
      return;
    }
    constexpr uint64_t kSmallestWindow = 8;
    const uint64_t window = std::max(std::bit_ceil(highest_ - lowest_ + 1), kSmallestWindow);
    ++shape_.dense_slices;
    shape_.dense_slots += std::min(window, uint64_t{1} << slicing_.bits);
    shape_.dense_elements += count_;
  }

  const Slicing slicing_;
  Shape shape_;
  // Of the slice that is being counted, if count_ is not 0.
  uint64_t lowest_ = 0;
  uint64_t highest_ = 0;
  size_t count_ = 0;
};

void Array::take_shape(const Node& node, SliceCounter& counter) const {
  if (node.level != 0) {
    counter.add_inner_node();
    for (unsigned i = 0; i < node.size(); ++i) take_shape(*node.child(i), counter);
    return;
  }
  const unsigned step = counter.slice_size_in_leaf();
  const uint64_t mask = ~uint64_t{0} >> (kFanOut - step);
  for (unsigned start = 0; start < kFanOut; start += step) {
    const uint64_t bits = node.bitmap >> start & mask;
    if (bits == 0) continue;
    const uint64_t first = node.first + start;
    counter.add(first + static_cast<unsigned>(std::countr_zero(bits)),
                first + static_cast<unsigned>(std::bit_width(bits)) - 1,
                static_cast<unsigned>(std::popcount(bits)));
  }
}

Array::Shape Array::shape(Slicing slicing) const {
  SliceCounter counter(slicing);
  if (root_ != nullptr) take_shape(*root_, counter);
  return counter.finish();
}

}  // namespace latchkey::store

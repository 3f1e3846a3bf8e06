#include "store/probabilistic/top_k.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include "base/assert.h"
#include "base/digest/murmur.h"

namespace latchkey::store {

namespace {

constexpr uint32_t kMaxCount = std::numeric_limits<uint32_t>::max();

uint32_t fingerprint_of(std::string_view item) {
  constexpr uint32_t kSeed = 1919;
  return base::murmur_hash_2(item, kSeed);
}

void add_saturated(uint32_t* count, uint32_t increment) {
  *count += std::min(increment, kMaxCount - *count);
}

// How many trials fail before the first that succeeds, each with that probability; at most `most`.
// The inverse of the geometric distribution.
uint32_t failures(double probability, uint32_t most, base::Random& random) {
  if (probability >= 1) return 0;
  if (most <= 1) return random.unit() < probability ? 0 : most;
  if (probability <= 0) return most;
  const double count = std::log1p(-random.unit()) / std::log1p(-probability);
  return count < most ? static_cast<uint32_t>(count) : most;
}

}  // namespace

bool TopK::is_sound(const Shape& shape) {
  return shape.k != 0 && shape.k <= kMaxSlots && shape.width != 0 && shape.depth != 0 &&
         shape.width <= kMaxBuckets / shape.depth && shape.decay > 0 && shape.decay <= 1;
}

std::unique_ptr<TopK> TopK::make(Environment& environment, const Shape& shape) {
  LK_ASSERT(is_sound(shape));
  ZeroedArray<Bucket> buckets(shape.width * shape.depth, std::nothrow);
  ZeroedArray<Slot> slots(shape.k, std::nothrow);
  if (!buckets.is_made() || !slots.is_made()) return nullptr;
  return std::unique_ptr<TopK>(new TopK(environment, shape, std::move(buckets), std::move(slots)));
}

TopK::TopK(Environment& environment, const Shape& shape, ZeroedArray<Bucket> buckets,
           ZeroedArray<Slot> slots)
    : environment_(environment),
      shape_(shape),
      log_decay_(std::log(shape.decay)),
      buckets_(std::move(buckets)),
      slots_(std::move(slots)),
      table_(environment.secret) {}

TopK::TopK(const TopK& other)
    : ModuleValue(),
      environment_(other.environment_),
      shape_(other.shape_),
      log_decay_(other.log_decay_),
      buckets_(other.buckets_),
      slots_(other.slots_),
      table_(other.environment_.secret) {
  for (size_t slot = 0; slot < slots_.size(); ++slot) {
    const Item* const original = other.slots_[slot].item;
    if (original == nullptr) continue;
    put_item(slot, original->text(), table_.hash(original->text()));
  }
}

TopK::~TopK() {
  table_.for_each([](Item* item) { ::operator delete(item); });
}

// --- The list ------------------------------------------------------------------------------------

void TopK::put_item(size_t slot, std::string_view text, uint64_t hash) {
  void* memory = ::operator new(sizeof(Item) + text.size());
  auto* item = new (memory) Item{static_cast<uint32_t>(slot), static_cast<uint32_t>(text.size())};
  if (!text.empty()) std::memcpy(static_cast<void*>(item + 1), text.data(), text.size());
  slots_[slot].item = item;
  table_.insert(item, hash);
  item_bytes_ += sizeof(Item) + text.size();
}

void TopK::free_item(Item* item) {
  const uint64_t hash = table_.hash(item->text());
  table_.erase(table_.find(item->text(), hash), hash);
  item_bytes_ -= sizeof(Item) + item->text_size;
  ::operator delete(item);
}

void TopK::swap_slots(size_t one, size_t other) {
  std::swap(slots_[one], slots_[other]);
  if (slots_[one].item != nullptr) slots_[one].item->slot = static_cast<uint32_t>(one);
  if (slots_[other].item != nullptr) slots_[other].item->slot = static_cast<uint32_t>(other);
}

// A slot sinks below one of an equal count once, and no further.
void TopK::sift_down(size_t slot) {
  const uint32_t count = slots_[slot].count;
  for (bool is_first = true; 2 * slot + 1 < slots_.size(); is_first = false) {
    size_t child = 2 * slot + 1;
    if (child + 1 < slots_.size() && slots_[child + 1].count < slots_[child].count) ++child;
    const uint32_t least = slots_[child].count;
    if (least > count || (least == count && !is_first)) return;
    swap_slots(slot, child);
    slot = child;
  }
}

// --- Counting ------------------------------------------------------------------------------------

size_t TopK::place(std::string_view item, uint64_t row) const {
  static_assert(kMaxBuckets <= std::numeric_limits<uint32_t>::max());
  return row * shape_.width + base::murmur_hash_2(item, static_cast<uint32_t>(row)) %
                                  static_cast<uint32_t>(shape_.width);
}

uint32_t TopK::compete(Bucket& bucket, uint32_t fingerprint, uint32_t increment,
                       base::Random& random) {
  for (uint32_t left = increment; left > 0; --left) {
    left -= failures(std::exp(bucket.count * log_decay_), left, random);
    if (left == 0) return 0;
    if (--bucket.count == 0) {
      bucket = {fingerprint, left};
      return left;
    }
  }
  return 0;
}

std::optional<std::string> TopK::add(std::string_view item, uint32_t increment,
                                     base::Random& random) {
  const uint32_t fingerprint = fingerprint_of(item);
  uint32_t count = 0;
  for (uint64_t row = 0; row < shape_.depth; ++row) {
    Bucket& bucket = buckets_[place(item, row)];
    if (bucket.count == 0 || bucket.fingerprint == fingerprint) {
      bucket.fingerprint = fingerprint;
      add_saturated(&bucket.count, increment);
      count = std::max(count, bucket.count);
    } else {
      count = std::max(count, compete(bucket, fingerprint, increment, random));
    }
  }
  Slot& least = slots_[0];
  if (count < least.count) return std::nullopt;
  const uint64_t hash = table_.hash(item);
  if (Item** const found = table_.find(item, hash); found != nullptr) {
    const size_t slot = (*found)->slot;
    slots_[slot].count = count;
    sift_down(slot);
    return std::nullopt;
  }
  std::optional<std::string> expelled;
  if (least.item != nullptr) {
    expelled.emplace(least.item->text());
    free_item(least.item);
  }
  least = {nullptr, fingerprint, count};
  put_item(0, item, hash);
  sift_down(0);
  return expelled;
}

uint32_t TopK::count(std::string_view item) const {
  const uint32_t fingerprint = fingerprint_of(item);
  uint32_t count = 0;
  for (uint64_t row = 0; row < shape_.depth; ++row) {
    const Bucket& bucket = buckets_[place(item, row)];
    if (bucket.fingerprint == fingerprint) count = std::max(count, bucket.count);
  }
  return count;
}

std::vector<const TopK::Slot*> TopK::list() const {
  std::vector<const Slot*> listed;
  for (const Slot& slot : slots_.span()) {
    if (slot.item != nullptr && slot.count != 0) listed.push_back(&slot);
  }
  std::stable_sort(listed.begin(), listed.end(),
                   [](const Slot* left, const Slot* right) { return left->count > right->count; });
  return listed;
}

// --- Loading -------------------------------------------------------------------------------------

void TopK::set_slot(size_t slot, uint32_t fingerprint, uint32_t count) {
  slots_[slot] = {nullptr, fingerprint, count};
}

bool TopK::set_item(size_t slot, std::string_view text) {
  LK_ASSERT(slots_[slot].item == nullptr);
  const uint64_t hash = table_.hash(text);
  if (table_.find(text, hash) != nullptr) return false;
  put_item(slot, text, hash);
  return true;
}

// --- Value ---------------------------------------------------------------------------------------

size_t TopK::memory_usage() const {
  return sizeof *this + buckets_.size() * sizeof(Bucket) + slots_.size() * sizeof(Slot) +
         table_.memory_usage() + item_bytes_;
}

void TopK::for_each_digest_part(const DigestPart& part) const {
  const uint64_t head[] = {shape_.k, shape_.width, shape_.depth};
  part({reinterpret_cast<const char*>(head), sizeof head});
  part({reinterpret_cast<const char*>(&shape_.decay), sizeof shape_.decay});
  part(buckets_.bytes());
  for (const Slot& slot : slots_.span()) {
    const uint32_t numbers[] = {slot.fingerprint, slot.count, slot.item != nullptr};
    part({reinterpret_cast<const char*>(numbers), sizeof numbers});
    part(slot.item == nullptr ? std::string_view() : slot.item->text());
  }
}

}  // namespace latchkey::store

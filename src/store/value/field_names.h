// Names of fields that many hashes have in common, stored once for all of them.
//
// A FieldNames is an ordered list of different names that never changes. A hash with exactly these
// fields keeps the values alone, in the order of the names (Hash::share_names). The order is by
// length and then by bytes, which makes looking a name up a few comparisons of lengths.
//
// FieldNameSets finds the list of a server that has the same names, whatever order they are given
// in. Lists are counted: each hash that has one holds a reference, and so does other code that
// needs one. A reference may be given back on a background thread, where values are freed;
// everything else belongs to the server's thread. FieldNameSets holds a reference of its own. A
// list that nobody else holds is dropped by the next drop_unused(), which the server calls
// regularly and before it refuses or evicts for want of memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace latchkey::store {

struct Environment;

class FieldNames {
 public:
  static constexpr size_t kAbsent = static_cast<size_t>(-1);

  FieldNames(const FieldNames&) = delete;
  FieldNames& operator=(const FieldNames&) = delete;

  // Whether a name comes before another one in every list.
  static bool precedes(std::string_view name, std::string_view other) {
    return name.size() != other.size() ? name.size() < other.size() : name < other;
  }

  // Of the server whose hashes have these fields.
  Environment& environment() const { return environment_; }
  // At least 1.
  size_t size() const { return names_.size(); }
  std::string_view operator[](size_t index) const { return names_[index]; }
  std::span<const std::string_view> all() const { return names_; }
  // The index of `name`, or kAbsent. O(log size).
  size_t find(std::string_view name) const;
  size_t memory_usage() const;
  // The part of memory_usage() for which each holder of a reference stands.
  size_t shared_memory_usage() const;
  // Whether anybody but FieldNameSets holds a reference.
  bool is_used() const { return references_.load(std::memory_order_acquire) > 1; }

  void retain() const { references_.fetch_add(1, std::memory_order_relaxed); }
  void release() const;

 private:
  friend class FieldNameSets;
  FieldNames(Environment& environment, std::span<const std::string_view> ordered);
  ~FieldNames() = default;

  Environment& environment_;
  std::string bytes_;
  std::vector<std::string_view> names_;  // views of bytes_
  mutable std::atomic<size_t> references_{1};
  // How often a list has lost the last of its users, or the last but one when FieldNameSets is
  // gone. Of the process, since a list may outlive its server.
  static inline std::atomic<size_t> released_{0};
};

// Holds one reference, or none.
class FieldNamesRef {
 public:
  FieldNamesRef() = default;
  explicit FieldNamesRef(const FieldNames& names) : names_(&names) { names.retain(); }
  FieldNamesRef(FieldNamesRef&& other) noexcept : names_(std::exchange(other.names_, nullptr)) {}
  FieldNamesRef& operator=(FieldNamesRef&& other) noexcept {
    std::swap(names_, other.names_);
    return *this;
  }
  ~FieldNamesRef() {
    if (names_ != nullptr) names_->release();
  }
  // Moves the reference to the caller, which must release it.
  const FieldNames* take() { return std::exchange(names_, nullptr); }
  const FieldNames* operator->() const { return names_; }
  const FieldNames& operator*() const { return *names_; }

 private:
  const FieldNames* names_ = nullptr;
};

// The lists of one server.
class FieldNameSets {
 public:
  FieldNameSets() = default;
  FieldNameSets(const FieldNameSets&) = delete;
  FieldNameSets& operator=(const FieldNameSets&) = delete;
  ~FieldNameSets();

  // The list of these names, which may come in any order; made when there is none. They must be
  // different, and at least one. O(n log n) for n names.
  FieldNamesRef get(Environment& environment, std::span<const std::string_view> names);
  // Number of lists that are used. O(lists).
  size_t used();
  // Drops lists that nobody else holds. Returns whether there were any. O(lists), but nothing
  // unless at least one has become unused since the last call; unless `all`, not before an eighth
  // of the lists has, so that a call costs little for each.
  bool drop_unused(bool all);

 private:
  void look_through();

  // By a keyed hash of the names.
  std::unordered_multimap<uint64_t, const FieldNames*> lists_;
  size_t drop_at_ = 64;   // the number of lists at which they are looked through
  size_t looked_at_ = 0;  // FieldNames::released_ when they were last looked through
};

}  // namespace latchkey::store

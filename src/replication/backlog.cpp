#include "replication/backlog.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace latchkey::replication {

void Backlog::append(std::string_view bytes) {
  last_ += bytes.size();
  // More than the ring holds leaves only its end.
  if (bytes.size() > capacity_) bytes.remove_prefix(bytes.size() - capacity_);
  const size_t room = capacity_ - ring_.size();
  const std::string_view fresh = bytes.substr(0, room);
  // It grows by doubling, up to its capacity and no further.
  const size_t needed = ring_.size() + fresh.size();
  if (needed > ring_.capacity()) ring_.reserve(std::min(capacity_, needed * 2));
  ring_.insert(ring_.end(), fresh.begin(), fresh.end());
  bytes.remove_prefix(fresh.size());
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, capacity_ - next_);
    std::copy(piece.begin(), piece.end(), ring_.begin() + static_cast<ptrdiff_t>(next_));
    next_ = (next_ + piece.size()) % capacity_;
    bytes.remove_prefix(piece.size());
  }
}

template <typename Fn>
void Backlog::for_each_piece(size_t skipped, Fn&& fn) const {
  const std::string_view all(ring_.data(), ring_.size());
  const std::string_view older = all.substr(next_);
  if (skipped < older.size()) fn(older.substr(skipped));
  const size_t skipped_newer = skipped - std::min(skipped, older.size());
  fn(all.substr(0, next_).substr(skipped_newer));
}

void Backlog::resize(size_t capacity) {
  std::vector<char> kept;
  const size_t dropped = ring_.size() - std::min(ring_.size(), capacity);
  for_each_piece(dropped, [&](std::string_view piece) {
    kept.insert(kept.end(), piece.begin(), piece.end());
  });
  ring_ = std::move(kept);
  next_ = 0;
  capacity_ = capacity;
}

std::string Backlog::latest(size_t most) const {
  std::string text;
  for_each_piece(ring_.size() - std::min(ring_.size(), most),
                 [&](std::string_view piece) { text.append(piece); });
  return text;
}

void Backlog::copy_from(uint64_t number, resp::OutputBuffer& out) const {
  LK_ASSERT(reaches(number));
  for_each_piece(number - first(), [&](std::string_view piece) { out.append(piece); });
}

}  // namespace latchkey::replication

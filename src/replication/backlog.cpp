#include "replication/backlog.h"

#include <algorithm>

#include "base/assert.h"

namespace latchkey::replication {

namespace {

// Blocks: 64 MiB.
constexpr size_t kMaxTrimmedAtOnce = 4096;

}  // namespace

void Backlog::append(std::string_view bytes) {
  while (!bytes.empty()) {
    if (blocks_.empty() || blocks_.back().size == kBlockSize) add_block();
    Block& block = blocks_.back();
    const std::string_view piece = bytes.substr(0, kBlockSize - block.size);
    // Outputs that share the block refer only to bytes before these.
    std::copy(piece.begin(), piece.end(), block.blob.get()->data() + block.size);
    block.size += piece.size();
    last_ += piece.size();
    bytes.remove_prefix(piece.size());
  }
}

void Backlog::add_block() {
  blocks_.push_back({.first = last_ + 1, .size = 0, .blob = base::BlobRef::create(kBlockSize)});
}

void Backlog::trim() {
  for (size_t trimmed = 0; trimmed < kMaxTrimmedAtOnce && !blocks_.empty(); ++trimmed) {
    const Block& oldest = blocks_.front();
    if (size() < capacity_ + oldest.size || oldest.blob.get()->shared()) return;
    blocks_.pop_front();
  }
}

size_t Backlog::memory_usage() const {
  return sizeof(*this) + blocks_.size() * (kBlockSize + sizeof(base::Blob) + sizeof(Block));
}

size_t Backlog::excess_memory() const {
  const size_t used = memory_usage();
  return used - std::min(used, capacity_);
}

template <typename Fn>
void Backlog::for_each_from(uint64_t number, Fn&& fn) const {
  const auto behind = [](uint64_t wanted, const Block& block) { return wanted < block.first; };
  auto block = std::upper_bound(blocks_.begin(), blocks_.end(), number, behind);
  if (block == blocks_.begin()) return;
  for (--block; block != blocks_.end(); ++block) {
    const size_t skipped = std::max(number, block->first) - block->first;
    if (skipped < block->size)
      fn(*block, std::string_view(block->blob.get()->data(), block->size).substr(skipped));
  }
}

void Backlog::share_from(uint64_t number, resp::OutputBuffer& out) const {
  LK_ASSERT(reaches(number));
  for_each_from(number, [&](const Block& block, std::string_view bytes) {
    out.append_shared(block.blob.get(), bytes);
  });
}

std::string Backlog::latest(size_t most) const {
  std::string text;
  for_each_from(last_ + 1 - std::min(size(), most),
                [&](const Block&, std::string_view bytes) { text.append(bytes); });
  return text;
}

}  // namespace latchkey::replication

#include "store/value/stream_producers.h"

#include <algorithm>

#include "base/time_units.h"

namespace latchkey::store {

namespace {

// Size of a std::map node besides its pair: three pointers and a colour.
constexpr size_t kMapNodeBytes = 4 * sizeof(void*);

size_t bytes_of(const std::string& text) {
  constexpr size_t kWithinObject = 15;
  return text.capacity() > kWithinObject ? text.capacity() + 1 : 0;
}

}  // namespace

StreamProducers::StreamProducers(const StreamProducers& other)
    : duration_s_(other.duration_s_),
      most_each_(other.most_each_),
      added_(other.added_),
      repeated_(other.repeated_) {
  std::string_view producer;
  other.for_each([&](std::string_view name, size_t) { producer = name; },
                 [&](std::string_view request, StreamId id) { restore(producer, request, id); });
}

void StreamProducers::set_limits(uint32_t duration_s, uint32_t most_each) {
  if (duration_s != duration_s_ || most_each != most_each_) producers_.clear();
  duration_s_ = duration_s;
  most_each_ = most_each;
}

bool StreamProducers::is_over(StreamId id, int64_t now_ms) const {
  const auto now = static_cast<uint64_t>(now_ms);
  return now > id.ms && now - id.ms >= uint64_t{duration_s_} * base::kMsPerSecond;
}

std::optional<StreamId> StreamProducers::find(std::string_view producer, std::string_view request,
                                              int64_t now_ms) const {
  const auto found = producers_.find(producer);
  if (found == producers_.end()) return std::nullopt;
  const auto id = found->second.ids.find(request);
  if (id == found->second.ids.end() || is_over(id->second.id, now_ms)) return std::nullopt;
  return id->second.id;
}

void StreamProducers::add(std::string_view producer, std::string_view request, StreamId id,
                          int64_t now_ms) {
  forget_old(now_ms);
  // So that what was added in the order of time needs no search when it comes again.
  if (const auto found = producers_.find(producer); found != producers_.end())
    forget_old_of(found->second, now_ms);
  restore(producer, request, id);
  ++added_;
}

void StreamProducers::restore(std::string_view producer, std::string_view request, StreamId id) {
  auto found = producers_.find(producer);
  if (found == producers_.end()) found = producers_.emplace(producer, Producer()).first;
  insert(found->second, request, id);
}

void StreamProducers::insert(Producer& producer, std::string_view request, StreamId id) {
  // It may be there and over.
  if (const auto old = producer.ids.find(request); old != producer.ids.end()) forget(producer, old);
  while (producer.ids.size() >= most_each_) forget_oldest(producer);
  Named* added = &*producer.ids.emplace(request, Request{id}).first;
  (producer.newest == nullptr ? producer.oldest : producer.newest->second.newer) = added;
  producer.newest = added;
}

void StreamProducers::forget_oldest(Producer& producer) {
  const auto oldest = producer.ids.find(producer.oldest->first);
  producer.oldest = producer.oldest->second.newer;
  if (producer.oldest == nullptr) producer.newest = nullptr;
  producer.ids.erase(oldest);
}

void StreamProducers::forget(Producer& producer, Requests::iterator request) {
  if (&*request == producer.oldest) return forget_oldest(producer);
  Named* before = producer.oldest;
  while (before->second.newer != &*request) before = before->second.newer;
  before->second.newer = request->second.newer;
  if (producer.newest == &*request) producer.newest = before;
  producer.ids.erase(request);
}

bool StreamProducers::forget_old_of(Producer& producer, int64_t now_ms) {
  while (producer.oldest != nullptr && is_over(producer.oldest->second.id, now_ms))
    forget_oldest(producer);
  return producer.oldest == nullptr;
}

void StreamProducers::forget_old(int64_t now_ms) {
  constexpr int kProducersEach = 4;
  auto at = producers_.lower_bound(next_looked_at_);
  for (int i = 0; i < kProducersEach && !producers_.empty(); ++i) {
    if (at == producers_.end()) at = producers_.begin();
    at = forget_old_of(at->second, now_ms) ? producers_.erase(at) : std::next(at);
  }
  next_looked_at_ = at == producers_.end() ? std::string() : at->first;
}

StreamProducers::Remembered StreamProducers::remembered(int64_t now_ms) const {
  Remembered remembered;
  for (const auto& [name, producer] : producers_) {
    const auto valid =
        std::count_if(producer.ids.begin(), producer.ids.end(),
                      [&](const Named& request) { return !is_over(request.second.id, now_ms); });
    if (valid == 0) continue;
    ++remembered.producers;
    remembered.requests += static_cast<size_t>(valid);
  }
  return remembered;
}

size_t StreamProducers::memory_usage() const {
  size_t bytes = 0;
  for (const auto& [name, producer] : producers_) {
    bytes += kMapNodeBytes + sizeof(Producers::value_type) + bytes_of(name);
    for (const Named& request : producer.ids)
      bytes += kMapNodeBytes + sizeof(Named) + bytes_of(request.first);
  }
  return bytes;
}

}  // namespace latchkey::store

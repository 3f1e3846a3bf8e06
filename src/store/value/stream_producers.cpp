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
  for (const auto& [name, producer] : other.producers_) {
    for (const auto* request : producer.order) restore(name, request->first, request->second);
  }
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
  if (id == found->second.ids.end() || is_over(id->second, now_ms)) return std::nullopt;
  return id->second;
}

void StreamProducers::add(std::string_view producer, std::string_view request, StreamId id,
                          int64_t now_ms) {
  forget_old(now_ms);
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
  if (const auto old = producer.ids.find(request); old != producer.ids.end()) {
    std::erase(producer.order, &*old);
    producer.ids.erase(old);
  }
  while (producer.order.size() >= most_each_) forget_oldest(producer);
  producer.order.push_back(&*producer.ids.emplace(request, id).first);
}

void StreamProducers::forget_oldest(Producer& producer) {
  producer.ids.erase(producer.ids.find(producer.order.front()->first));
  producer.order.pop_front();
}

bool StreamProducers::forget_old_of(Producer& producer, int64_t now_ms) {
  while (!producer.order.empty() && is_over(producer.order.front()->second, now_ms))
    forget_oldest(producer);
  return producer.order.empty();
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
    const auto valid = std::count_if(
        producer.order.begin(), producer.order.end(),
        [&](const Requests::value_type* request) { return !is_over(request->second, now_ms); });
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
    for (const auto* request : producer.order)
      bytes +=
          kMapNodeBytes + sizeof(Requests::value_type) + bytes_of(request->first) + sizeof(request);
  }
  return bytes;
}

}  // namespace latchkey::store

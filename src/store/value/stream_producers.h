// What a stream remembers of the requests that added entries under an id of their own (XADD with
// IDMP or IDMPAUTO), so that one that is sent again adds nothing.
//
// Request ids are names within their producer. A producer's newest `most_each` requests are
// remembered, each for `duration_s` after the time in its entry's id:
//
//     producer "web-1":  r1 -> 5-0, r2 -> 5-1, r3 -> 9-0   (each knows the next newer one)
//
// A request whose time has passed is as good as forgotten, whether or not its memory has been
// freed; forget_old() frees some, and each addition calls it, so that what is remembered of a
// stream that is written to stays in proportion to what is valid.
//
// Costs: O(log n) to find and add, with n requests of a producer and as many producers; O(n) to
// restore one that is remembered already.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "store/encoding/stream_id.h"

namespace latchkey::store {

class StreamProducers {
 public:
  // The reference's defaults, which files of older servers mean.
  static constexpr uint32_t kDefaultDurationS = 100;
  static constexpr uint32_t kDefaultMostEach = 100;
  static constexpr uint32_t kLongestDurationS = 86400;
  static constexpr uint32_t kMaxIdsPerProducer = 10'000;

  StreamProducers() = default;
  StreamProducers(const StreamProducers& other);
  StreamProducers& operator=(const StreamProducers&) = delete;

  uint32_t duration_s() const { return duration_s_; }
  uint32_t most_each() const { return most_each_; }
  // Forgets all requests if a limit changes.
  void set_limits(uint32_t duration_s, uint32_t most_each);

  // The entry that the request has added; nothing when that is not known (any more). `now_ms`: Unix
  // time, here and below.
  std::optional<StreamId> find(std::string_view producer, std::string_view request,
                               int64_t now_ms) const;
  // REQUIRES: find() finds nothing.
  void add(std::string_view producer, std::string_view request, StreamId id, int64_t now_ms);
  // As add(), without counting it: for what comes from a file.
  void restore(std::string_view producer, std::string_view request, StreamId id);

  // Requests ever added, and those that find() has been found to be repeated.
  uint64_t added() const { return added_; }
  uint64_t repeated() const { return repeated_; }
  void count_repeated() { ++repeated_; }
  void set_counts(uint64_t added, uint64_t repeated) {
    added_ = added;
    repeated_ = repeated;
  }
  // Producers and requests that are remembered at that time. O(requests).
  struct Remembered {
    size_t producers = 0;
    size_t requests = 0;
  };
  Remembered remembered(int64_t now_ms) const;

  // Whether nothing differs from a stream without requests and with the default limits.
  bool is_plain() const {
    return duration_s_ == kDefaultDurationS && most_each_ == kDefaultMostEach && added_ == 0 &&
           repeated_ == 0 && producers_.empty();
  }
  // Calls begin(producer, number of requests), then each(request, id) for them, oldest first, for
  // all producers; requests whose time has passed and that are still there included.
  template <typename Begin, typename Each>
  void for_each(Begin&& begin, Each&& each) const {
    for (const auto& [name, producer] : producers_) {
      begin(std::string_view(name), producer.ids.size());
      for (const Named* request = producer.oldest; request != nullptr;
           request = request->second.newer)
        each(std::string_view(request->first), request->second.id);
    }
  }
  size_t producers() const { return producers_.size(); }
  bool has_producer(std::string_view name) const { return producers_.contains(name); }

  // Bytes held besides this object.
  size_t memory_usage() const;

 private:
  struct Request;
  using Requests = std::map<std::string, Request, std::less<>>;
  using Named = std::pair<const std::string, Request>;
  struct Request {
    StreamId id;
    Named* newer = nullptr;
  };
  // `oldest` and `newest` are null without requests.
  struct Producer {
    Requests ids;
    Named* oldest = nullptr;
    Named* newest = nullptr;
  };
  using Producers = std::map<std::string, Producer, std::less<>>;

  bool is_over(StreamId id, int64_t now_ms) const;
  // REQUIRES: there is one.
  void forget_oldest(Producer& producer);
  void forget(Producer& producer, Requests::iterator request);
  // Frees what is over of the producer's requests; true when nothing is left.
  bool forget_old_of(Producer& producer, int64_t now_ms);
  // Looks at a few producers, others at each call.
  void forget_old(int64_t now_ms);
  void insert(Producer& producer, std::string_view request, StreamId id);

  Producers producers_;
  std::string next_looked_at_;  // producers from this name on are looked at next
  uint32_t duration_s_ = kDefaultDurationS;
  uint32_t most_each_ = kDefaultMostEach;
  uint64_t added_ = 0;
  uint64_t repeated_ = 0;
};

}  // namespace latchkey::store

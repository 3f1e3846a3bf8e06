#include "store/value/stream_producers.h"

#include <string>
#include <utility>
#include <vector>

#include "unit/catch.h"

namespace latchkey::store {

namespace {

using Requests = std::vector<std::pair<std::string, uint64_t>>;

// The requests of all producers, in their order, with the time of their entry.
Requests requests_of(const StreamProducers& producers) {
  Requests requests;
  producers.for_each(
      [](std::string_view, size_t) {},
      [&](std::string_view request, StreamId id) { requests.emplace_back(request, id.ms); });
  return requests;
}

}  // namespace

TEST_CASE("A request is known until its time is over, to the millisecond", "[stream_requests]") {
  StreamProducers producers;
  producers.set_limits(2, 100);
  producers.add("p", "r", {1000, 1}, 1000);
  CHECK(producers.find("p", "r", 1000) == StreamId{1000, 1});
  CHECK(producers.find("p", "r", 2999) == StreamId{1000, 1});
  CHECK_FALSE(producers.find("p", "r", 3000).has_value());
  // A clock that stands before the entry forgets nothing.
  CHECK(producers.find("p", "r", 0) == StreamId{1000, 1});
  CHECK_FALSE(producers.find("p", "other", 1000).has_value());
  CHECK_FALSE(producers.find("other", "r", 1000).has_value());
  CHECK(producers.added() == 1);
}

TEST_CASE("A request that is over and comes again is the newest", "[stream_requests]") {
  StreamProducers producers;
  producers.set_limits(1, 2);
  producers.restore("p", "first", {1000, 0});
  producers.restore("p", "second", {1500, 0});
  producers.restore("p", "first", {2000, 0});
  CHECK(requests_of(producers) == Requests{{"second", 1500}, {"first", 2000}});
  // So the other one is the oldest, which goes for a third.
  producers.restore("p", "third", {2100, 0});
  CHECK(requests_of(producers) == Requests{{"first", 2000}, {"third", 2100}});
  const auto remembered = producers.remembered(2100);
  CHECK(remembered.producers == 1);
  CHECK(remembered.requests == 2);
  CHECK(producers.remembered(3000).requests == 1);
  CHECK(producers.remembered(3100).producers == 0);
  // What is restored was not added here.
  CHECK(producers.added() == 0);
}

TEST_CASE("A request that comes again takes its place at the end from wherever it was",
          "[stream_requests]") {
  StreamProducers producers;
  producers.set_limits(1, 4);
  for (const char* request : {"a", "b", "c", "d"}) producers.restore("p", request, {1000, 0});
  producers.restore("p", "b", {2000, 0});
  CHECK(requests_of(producers) == Requests{{"a", 1000}, {"c", 1000}, {"d", 1000}, {"b", 2000}});
  producers.restore("p", "b", {3000, 0});
  CHECK(requests_of(producers) == Requests{{"a", 1000}, {"c", 1000}, {"d", 1000}, {"b", 3000}});
  // What was added after it is found by later ones.
  producers.restore("p", "e", {4000, 0});
  producers.restore("p", "f", {4000, 0});
  CHECK(requests_of(producers) == Requests{{"d", 1000}, {"b", 3000}, {"e", 4000}, {"f", 4000}});
  // All are over, and the only one left is the first and the last.
  producers.add("p", "d", {9000, 0}, 9000);
  CHECK(requests_of(producers) == Requests{{"d", 9000}});
  producers.restore("p", "d", {9500, 0});
  producers.restore("p", "g", {9600, 0});
  CHECK(requests_of(producers) == Requests{{"d", 9500}, {"g", 9600}});
}

TEST_CASE("Limits that stay the same forget nothing", "[stream_requests]") {
  StreamProducers producers;
  producers.set_limits(10, 20);
  producers.restore("p", "r", {1000, 0});
  producers.set_limits(10, 20);
  CHECK(requests_of(producers).size() == 1);
  SECTION("another time") {
    producers.set_limits(11, 20);
  }
  SECTION("another number") {
    producers.set_limits(10, 21);
  }
  CHECK(requests_of(producers).empty());
  CHECK_FALSE(producers.has_producer("p"));
}

TEST_CASE("Producers count their memory by their requests and the length of names",
          "[stream_requests]") {
  StreamProducers producers;
  producers.set_limits(10, 20);
  CHECK(producers.memory_usage() == 0);
  producers.restore("p", "r1", {1, 0});
  const size_t one = producers.memory_usage();
  CHECK(one > 0);
  producers.restore("p", "r2", {2, 0});
  const size_t two = producers.memory_usage();
  const size_t each = two - one;
  CHECK(each > 0);
  CHECK(each < one);
  // Up to fifteen bytes stand in the string itself.
  producers.restore("p", std::string(15, 'x'), {3, 0});
  CHECK(producers.memory_usage() == two + each);
  producers.restore("p", std::string(16, 'x'), {4, 0});
  CHECK(producers.memory_usage() >= two + 2 * each + 17);
  const size_t before = producers.memory_usage();
  producers.restore("q", "r1", {5, 0});
  CHECK(producers.memory_usage() == before + one);
  producers.restore(std::string(100, 'p'), "r1", {6, 0});
  CHECK(producers.memory_usage() >= before + 2 * one + 101);
  // A copy has the same.
  const StreamProducers copy(producers);
  CHECK(requests_of(copy) == requests_of(producers));
  CHECK(copy.memory_usage() <= producers.memory_usage());
}

}  // namespace latchkey::store

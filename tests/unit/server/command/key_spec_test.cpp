#include "server/command/key_spec.h"

#include <optional>
#include <vector>

#include "unit/catch.h"

namespace latchkey::server {

namespace {

using Positions = std::vector<uint32_t>;

// Where the keys are; nothing when they cannot be found.
std::optional<Positions> positions(const KeySpecs& specs, std::vector<std::string_view> words) {
  std::vector<KeyReference> keys;
  if (!find_keys(specs, words, &keys)) return std::nullopt;
  Positions found;
  for (const KeyReference& key : keys) found.push_back(key.position);
  return found;
}

}  // namespace

TEST_CASE("A counted run has as many keys as its number says", "[key-spec]") {
  const KeySpecs specs = counted_keys(2).rw();
  CHECK(positions(specs, {"c", "x", "1", "a"}) == Positions{3});
  CHECK(positions(specs, {"c", "x", "2", "a", "b"}) == Positions{3, 4});
  CHECK(positions(specs, {"c", "x", "2", "a", "b", "more"}) == Positions{3, 4});
}

TEST_CASE("A counted run that reaches beyond the request is none", "[key-spec]") {
  const KeySpecs specs = counted_keys(2).rw();
  CHECK_FALSE(positions(specs, {"c", "x", "2", "a"}));
  CHECK_FALSE(positions(specs, {"c", "x", "4", "a"}));
  CHECK_FALSE(positions(specs, {"c", "x", "5", "a"}));
  CHECK_FALSE(positions(specs, {"c", "x", "9223372036854775807", "a"}));
  CHECK_FALSE(positions(specs, {"c", "x", "9223372036854775808", "a"}));
  CHECK_FALSE(positions(specs, {"c", "x", "1"}));
}

TEST_CASE("A counted run whose number is missing, negative, zero or no number is none",
          "[key-spec]") {
  const KeySpecs specs = counted_keys(2).rw();
  CHECK_FALSE(positions(specs, {"c", "x"}));
  CHECK_FALSE(positions(specs, {"c"}));
  CHECK_FALSE(positions(specs, {"c", "x", "-1", "a"}));
  CHECK_FALSE(positions(specs, {"c", "x", "-9223372036854775808", "a"}));
  CHECK_FALSE(positions(specs, {"c", "x", "0", "a"}));
  CHECK_FALSE(positions(specs, {"c", "x", "one", "a"}));
}

TEST_CASE("No number, however far out, comes round to a key that is there", "[key-spec]") {
  // Times the step these are 0 in 64 bits.
  CHECK_FALSE(positions(counted_keys(2, 4).rw(), {"c", "x", "4611686018427387905", "a"}));
  CHECK_FALSE(positions(counted_keys(2, 2).rw(), {"c", "x", "-9223372036854775807", "a"}));
}

TEST_CASE("A range counts from the beginning, or from the end if its last is negative",
          "[key-spec]") {
  CHECK(positions(keys(1).ro(), {"c", "a", "b"}) == Positions{1});
  CHECK(positions(keys(1, 2).ro(), {"c", "a", "b", "d"}) == Positions{1, 2});
  CHECK(positions(keys(1, -1).ro(), {"c", "a", "b", "d"}) == Positions{1, 2, 3});
  CHECK(positions(keys(1, -2).ro(), {"c", "a", "b", "d"}) == Positions{1, 2});
  CHECK(positions(keys(1, -1, 2).ow(), {"c", "a", "1", "b", "2"}) == Positions{1, 3});
  CHECK_FALSE(positions(keys(1).ro(), {"c"}));
  CHECK_FALSE(positions(keys(1, -2).ro(), {"c", "a"}));
  CHECK_FALSE(positions(keys(1, 2).ro(), {"c", "a"}));
}

TEST_CASE("A run behind a word begins where the word is, and is none where it is missing",
          "[key-spec]") {
  const KeySpecs forwards = keys_after("STREAMS", 1, -1).limit(2).ro();
  CHECK(positions(forwards, {"c", "streams", "a", "b", "1", "2"}) == Positions{2, 3});
  CHECK(positions(forwards, {"c", "COUNT", "1", "STREAMS", "a", "1"}) == Positions{4});
  CHECK(positions(forwards, {"c", "COUNT", "1"}) == Positions{});
  // The last word is never it.
  CHECK(positions(forwards, {"c", "a", "STREAMS"}) == Positions{});
  const KeySpecs backwards = keys_after("KEYS", -2, -1).ro();
  CHECK(positions(backwards, {"c", "h", "p", "KEYS", "a", "b"}) == Positions{4, 5});
  CHECK(positions(backwards, {"c", "h", "p", "KEYS", "KEYS", "b"}) == Positions{5});
  CHECK(positions(backwards, {"c", "h", "KEYS", "a"}) == Positions{3});
  CHECK(positions(backwards, {"c", "h", "p", "0"}) == Positions{});
  // The first word behind the name is never it, nor is the last one of all.
  CHECK(positions(backwards, {"c", "KEYS", "a", "b"}) == Positions{});
  CHECK(positions(backwards, {"c", "h", "a", "KEYS"}) == Positions{});
  CHECK(positions(backwards, {"c"}) == Positions{});
  CHECK(positions(keys_after("KEYS", 1, -1).ro(), {"c", "KEYS", "a"}) == Positions{2});
}

TEST_CASE("Keys that cannot be described are not found", "[key-spec]") {
  CHECK_FALSE(positions(unknown_keys(), {"c", "a"}));
  CHECK_FALSE(positions(keys(1).ro() + unknown_keys(), {"c", "a"}));
}

TEST_CASE("Several runs are found one after the other", "[key-spec]") {
  CHECK(positions(keys(1).ow() + keys(2, -1).ro(), {"c", "a", "b", "d"}) == Positions{1, 2, 3});
  CHECK_FALSE(positions(keys(1).ow() + counted_keys(2).ro(), {"c", "a", "3", "b"}));
  CHECK(positions(keys(1).not_key() + keys(2).ro(), {"c", "a", "b"}) == Positions{2});
}

}  // namespace latchkey::server

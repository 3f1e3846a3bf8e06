#include "server/random_source.h"

#include <cstdint>
#include <limits>

#include "unit/catch.h"

namespace latchkey::tests {

using server::RandomSource;

TEST_CASE("All that follows from a seed is the same for the same seed") {
  RandomSource one(7);
  RandomSource same(7);
  RandomSource other(8);
  CHECK(one.seed() == 7);
  CHECK(one.commands().next() == same.commands().next());
  CHECK(one.commands().next() != other.commands().next());
  CHECK(one.hash_secret().hash("key") == same.hash_secret().hash("key"));
  CHECK(one.hash_secret().hash("key") != other.hash_secret().hash("key"));
  CHECK(one.script_seed() == same.script_seed());
  CHECK(one.script_seed() != other.script_seed());
  const std::string id = one.hex(40);
  CHECK(id == same.hex(40));
  CHECK(id != other.hex(40));
  CHECK(id != one.hex(40));
  CHECK(id.find_first_not_of("0123456789abcdef") == std::string::npos);
  CHECK(one.background().next() == same.background().next());
}

TEST_CASE("What the server draws by itself changes nothing for commands and ids") {
  RandomSource one(7);
  RandomSource same(7);
  for (int i = 0; i < 10; ++i) one.background().next();
  CHECK(one.commands().next() == same.commands().next());
  CHECK(one.hex(40) == same.hex(40));
}

TEST_CASE("Begun again from a seed everything is as at the beginning") {
  RandomSource source(7);
  const std::string id = source.hex(40);
  const uint64_t number = source.background().next();
  source.reseed(7);
  CHECK(source.hex(40) == id);
  CHECK(source.background().next() == number);
}

TEST_CASE("Without random-seed the system chooses a seed, from which ids do not follow") {
  RandomSource chosen(0);
  CHECK(chosen.seed() > 0);
  CHECK(chosen.seed() != RandomSource(0).seed());
  RandomSource again(chosen.seed());
  CHECK(chosen.commands().next() == again.commands().next());
  CHECK(chosen.hash_secret().hash("key") == again.hash_secret().hash("key"));
  CHECK(chosen.script_seed() == again.script_seed());
  CHECK(chosen.hex(40) != again.hex(40));
  chosen.reseed(again.seed());
  again.reseed(again.seed());
  CHECK(chosen.hex(40) == again.hex(40));
}

TEST_CASE("The largest seed is one like others") {
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
  CHECK(RandomSource(kLargest).seed() == kLargest);
  CHECK(RandomSource(kLargest).hex(8) != RandomSource(kLargest - 1).hex(8));
}

}  // namespace latchkey::tests

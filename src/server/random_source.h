// RandomSource: where the random numbers of one server come from.
//
// All of them follow from one seed, so that the same seed and the same requests give the same
// replies. The seed is what random-seed says; without it the system's generator chooses one, which
// INFO shows, so that a run can be repeated. What must not be guessed (passwords, ids) follows from
// the seed only when random-seed was set, and comes from the system's generator otherwise.
//
// Each use has a generator of its own, seeded by a digest of the seed and the use's name: numbers
// that the server draws by itself, at times that nobody controls, do not change those that commands
// draw, and a client that sees the numbers of one use learns nothing about the others.
//
// Two servers of one seed have the same ids: of servers that replicate from each other, or are
// nodes of one cluster, each needs its own. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/digest/hash.h"
#include "base/random.h"

namespace latchkey::server {

class RandomSource {
 public:
  // `wanted`: random-seed, 0 for one that the system chooses.
  explicit RandomSource(int64_t wanted) { reseed(wanted); }

  // Begins again from this seed.
  void reseed(int64_t wanted);
  // The seed in use, 1 .. INT64_MAX: given as random-seed it gives the same numbers.
  int64_t seed() const { return seed_; }

  // The generator for commands, at its beginning; Environment::random is the one that is used.
  base::Random commands() const { return base::Random(derive("commands")); }
  // The key of the server's hash tables.
  base::HashSecret hash_secret() const { return base::HashSecret(derive("hashes")); }
  // Where math.random begins, in the form of math.randomseed.
  int32_t script_seed() const { return static_cast<int32_t>(derive("scripts") >> 32); }
  // For what the server does by itself.
  base::Random& background() { return background_; }

  // `length` lower-case hexadecimal digits, for ids and passwords.
  std::string hex(size_t length);

 private:
  uint64_t derive(std::string_view use) const;

  int64_t seed_ = 1;
  bool secrets_follow_ = false;  // random-seed was set
  base::Random background_{0};
  base::Random secrets_{0};
};

}  // namespace latchkey::server

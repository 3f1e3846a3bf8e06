#include "server/random_source.h"

#include <cstring>

#include "base/digest/sha256.h"
#include "base/text/hex.h"

namespace latchkey::server {

namespace {

int64_t seed_from_system() {
  uint64_t bits = 0;
  // 0 stands for no seed.
  while ((bits >> 1) == 0) base::random_secret(&bits, sizeof(bits));
  return static_cast<int64_t>(bits >> 1);
}

}  // namespace

void RandomSource::reseed(int64_t wanted) {
  secrets_follow_ = wanted != 0;
  seed_ = wanted != 0 ? wanted : seed_from_system();
  background_ = base::Random(derive("background"));
  secrets_ = base::Random(derive("secrets"));
}

std::string RandomSource::hex(size_t length) {
  if (!secrets_follow_) return base::random_hex(length);
  constexpr uint64_t kDigits = 16;
  std::string text(length, '\0');
  for (char& digit : text) digit = base::kHexDigits[secrets_.below(kDigits)];
  return text;
}

uint64_t RandomSource::derive(std::string_view use) const {
  const auto digest = base::sha256(std::string(use) + ":" + std::to_string(seed_));
  uint64_t first;
  std::memcpy(&first, digest.data(), sizeof(first));
  return first;
}

}  // namespace latchkey::server

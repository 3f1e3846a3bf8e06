#include "base/version.h"

#include <array>
#include <cstdint>
#include <cstdio>
#include <string_view>

#include "base/jemalloc.h"

namespace latchkey::base {

std::string build_id() {
  // FNV-1a.
  uint64_t hash = 0xcbf29ce484222325;
  for (const std::string_view text : {kLatchkeyVersion, kReferenceVersion, __VERSION__}) {
    for (const char c : text) {
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    }
  }
  std::array<char, 17> digits{};
  snprintf(digits.data(), digits.size(), "%llx", static_cast<unsigned long long>(hash));
  return digits.data();
}

std::string allocator_name() {
  const char* version = nullptr;
  size_t size = sizeof version;
  if (mallctl == nullptr || mallctl("version", &version, &size, nullptr, 0) != 0) return "libc";
  // "5.3.0-0-g54eaed1d..."
  const std::string_view full = version;
  return "jemalloc-" + std::string(full.substr(0, full.find('-')));
}

}  // namespace latchkey::base

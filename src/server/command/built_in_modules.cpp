#include "server/command/built_in_modules.h"

namespace latchkey::server {

std::span<const BuiltInModule> built_in_modules(const Edition& edition) {
  if (!edition.has({8, 0})) return {};
  return kBuiltInModules;
}

int module_version(const BuiltInModule& module, const Edition& edition) {
  constexpr int kMajor = 10'000;
  constexpr int kMinor = 100;
  if (!module.has_server_version) return 1;
  const Version version = parse_version(edition.redis_version()).value_or(Version{});
  return version.major * kMajor + version.minor * kMinor;
}

}  // namespace latchkey::server

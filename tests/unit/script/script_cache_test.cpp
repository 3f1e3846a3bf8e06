#include "script/script_cache.h"

#include "base/digest/sha1.h"
#include "unit/catch.h"

using namespace latchkey;
using script::Script;
using script::ScriptCache;

namespace {

Script& add(ScriptCache& cache, std::string_view body, bool evictable) {
  auto script = std::make_unique<Script>();
  script->body = body;
  script->sha = base::sha1_hex(body);
  script->evictable = evictable;
  return cache.add(std::move(script));
}

}  // namespace

TEST_CASE("A script is found by its body and by its digest in any case") {
  const base::HashSecret secret(1);
  ScriptCache cache(secret);
  Script& script = add(cache, "return 1", true);
  CHECK(cache.find_body("return 1") == &script);
  CHECK(cache.find_body("return 2") == nullptr);
  CHECK(cache.find_sha("e0e1f9fabfc9d4800c877a703b823ac0578ff8db") == &script);
  CHECK(cache.find_sha("E0E1F9FABFC9D4800C877A703B823AC0578FF8DB") == &script);
  CHECK(cache.find_sha("e0e1f9fabfc9d4800c877a703b823ac0578ff8d") == nullptr);
  cache.remove(script);
  CHECK(cache.size() == 0);
  CHECK(cache.find_body("return 1") == nullptr);
}

TEST_CASE("The script to evict is the one used longest ago, and never one that was loaded") {
  const base::HashSecret secret(1);
  ScriptCache cache(secret);
  add(cache, "loaded", false);
  for (size_t i = 0; i < ScriptCache::kMaxEvalScripts; ++i)
    add(cache, "script " + std::to_string(i), true);
  Script& first = *cache.find_body("script 0");
  Script& second = *cache.find_body("script 1");
  CHECK(cache.to_evict() == &first);
  cache.used(first);
  CHECK(cache.to_evict() == &second);
  cache.keep(second);
  CHECK(cache.to_evict() == nullptr);
  add(cache, "one more", true);
  CHECK(cache.to_evict() == cache.find_body("script 2"));
}

TEST_CASE("The cache knows what it takes") {
  const base::HashSecret secret(1);
  ScriptCache cache(secret);
  const size_t empty = cache.memory_usage();
  add(cache, std::string(1000, ' '), true);
  CHECK(cache.memory_usage() > empty + 1000);
  cache.clear();
  CHECK(cache.memory_usage() <= empty + 200);
}

#include "server/emulation/edition.h"

#include "base/version.h"
#include "server/emulation/arrivals.h"
#include "server/emulation/info_fields.h"
#include "server/emulation/later_directives.h"
#include "unit/catch.h"

namespace latchkey::server {

TEST_CASE("An edition is named by product and version", "[emulation]") {
  const auto redis = Edition::parse("redis 7.0");
  REQUIRE(redis);
  CHECK(redis->emulates());
  CHECK(redis->version() == "7.0.15");
  CHECK(redis->redis_version() == "7.0.15");
  CHECK(redis->rdb_version() == 10);
  CHECK(redis->text() == "redis 7.0");
  CHECK(Edition::parse("Redis 7.0.15") == redis);
  CHECK(Edition::parse("redis-7.0") == redis);

  const auto valkey = Edition::parse("valkey 8.1");
  REQUIRE(valkey);
  CHECK(valkey->product_name() == "valkey");
  CHECK(valkey->version() == "8.1.1");
  CHECK(valkey->redis_version() == "7.2.4");

  const auto none = Edition::parse("no");
  REQUIRE(none);
  CHECK_FALSE(none->emulates());
  CHECK(none->version() == base::kReferenceVersion);
  CHECK(none->text() == "no");

  for (const char* wrong : {"", "redis", "redis 7", "redis 7.", "redis 7.0.14", "redis 7.1",
                            "valkey 7.0", "redis  7.0", "redis -7.0", "keydb 6.3", "7.0"}) {
    INFO(wrong);
    CHECK_FALSE(Edition::parse(wrong));
  }
  CHECK(Edition::known().starts_with("no, redis 6.2, "));
}

TEST_CASE("A version is read up to its minor part", "[emulation]") {
  CHECK(parse_version("7.2.4") == Version{7, 2});
  CHECK(parse_version("7.2") == Version{7, 2});
  CHECK(parse_version("10.11.12") == Version{10, 11});
  for (const char* wrong :
       {"", "7", "7.", ".2", "7.x", "7.2x", "v7.2", "7-2", "99999999999.1", "1.99999999999"}) {
    INFO(wrong);
    CHECK_FALSE(parse_version(wrong));
  }
}

TEST_CASE("Words of directives, and figures, come with releases", "[emulation]") {
  const Edition redis70 = *Edition::parse("redis 7.0");
  const Edition redis86 = *Edition::parse("redis 8.6");
  const Edition valkey81 = *Edition::parse("valkey 8.1");
  CHECK_FALSE(has_directive_word(redis70, "maxmemory-policy", "allkeys-lrm"));
  CHECK(has_directive_word(redis86, "maxmemory-policy", "allkeys-lrm"));
  CHECK_FALSE(has_directive_word(valkey81, "maxmemory-policy", "allkeys-lrm"));
  CHECK(has_directive_word(redis70, "maxmemory-policy", "allkeys-lru"));
  CHECK(has_directive_word(redis70, "appendfsync", "nothing"));
  CHECK(has_directive_word(Edition(), "repl-diskless-load", "flush-before-load"));
  CHECK(has_event_class(redis70, 'n'));
  CHECK_FALSE(has_event_class(redis70, 'o'));
  CHECK(has_event_class(redis86, 'o'));
  CHECK_FALSE(has_event_class(redis86, 'a'));
  CHECK(has_event_class(Edition(), 'a'));
  CHECK_FALSE(has_memory_figure(redis70, "allocator.muzzy"));
  CHECK(has_memory_figure(redis86, "allocator.muzzy"));
  CHECK_FALSE(has_memory_figure(valkey81, "script.VMs"));
  CHECK(arity_in(redis70, "command|getkeys", -3) == -4);
  CHECK(arity_in(redis86, "command|getkeys", -3) == -3);
  CHECK(arity_in(redis70, "get", 2) == 2);
}

TEST_CASE("Redis and Valkey have in common what came before 7.2", "[emulation]") {
  const Edition latchkey;
  const Edition redis70 = *Edition::parse("redis 7.0");
  const Edition redis80 = *Edition::parse("redis 8.0");
  const Edition valkey81 = *Edition::parse("valkey 8.1");
  const Edition valkey91 = *Edition::parse("valkey 9.1");
  CHECK(valkey91.is_valkey_since({9, 0}));
  CHECK(valkey81.is_valkey_since({8, 1}));
  CHECK_FALSE(valkey81.is_valkey_since({9, 0}));
  CHECK_FALSE(redis80.is_valkey_since({7, 0}));
  CHECK_FALSE(latchkey.is_valkey_since({7, 0}));
  CHECK(latchkey.has(kNever));
  CHECK(redis70.has({7, 0}));
  CHECK_FALSE(redis70.has({7, 2}));
  CHECK_FALSE(redis70.has(kNever, {8, 0}));
  CHECK(redis80.has({7, 4}, {9, 0}));
  CHECK(valkey81.has({7, 2}));
  CHECK_FALSE(valkey81.has({7, 4}, {9, 0}));
  CHECK(valkey91.has({7, 4}, {9, 0}));
  CHECK_FALSE(valkey91.has({8, 0}));
  CHECK(valkey81.has(kNever, {8, 1}));

  CHECK(has_command(redis80, "hexpire", "7.4.0"));
  CHECK_FALSE(has_command(redis70, "hexpire", "7.4.0"));
  CHECK_FALSE(has_command(valkey81, "hexpire", "7.4.0"));
  CHECK(has_command(valkey91, "HEXPIRE", "7.4.0"));
  CHECK(has_command(redis70, "space|create", "1.0.0"));
  CHECK_FALSE(has_argument(redis80, "set", "IFEQ", "8.4.0"));
  CHECK(has_argument(valkey81, "set", "IFEQ", "8.4.0"));
  CHECK_FALSE(has_argument(valkey81, "set", "IFNE", "8.4.0"));

  CHECK_FALSE(has_directive(redis80, "lookahead"));
  CHECK(has_directive(latchkey, "lookahead"));
  CHECK(has_directive(redis70, "lock-watch"));
  CHECK(has_info_field(redis70, "used_memory"));
  CHECK_FALSE(has_info_field(redis70, "eventloop_cycles"));
  CHECK(has_info_field(latchkey, "checkpoints"));
  CHECK_FALSE(has_info_field(valkey91, "checkpoints"));
  CHECK(has_info_field(redis70, "redis_mode"));
  CHECK_FALSE(has_info_field(valkey91, "redis_mode"));
  // Valkey 8.1 brought them.
  for (const char* field : {"paused_actions", "paused_reason", "paused_timeout_milliseconds"}) {
    CHECK(has_info_field(valkey81, field));
    CHECK_FALSE(has_info_field(redis80, field));
  }
  CHECK_FALSE(has_info_section(valkey91, "Keysizes"));
  CHECK(has_info_section(redis80, "Keysizes"));
}

}  // namespace latchkey::server

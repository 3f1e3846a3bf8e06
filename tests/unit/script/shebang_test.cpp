#include "script/shebang.h"

#include "server/command/command.h"
#include "unit/catch.h"

using namespace latchkey::script;

namespace {

std::string refusal(std::string_view script) {
  const auto shebang = parse_shebang(script);
  REQUIRE_FALSE(shebang);
  return shebang.error();
}

Shebang accepted(std::string_view script) {
  const auto shebang = parse_shebang(script);
  REQUIRE(shebang);
  return *shebang;
}

}  // namespace

TEST_CASE("A script without a first line of its own promises nothing") {
  const Shebang shebang = accepted("return 1");
  CHECK(shebang.flags == 0);
  CHECK(shebang.code == "return 1");
}

TEST_CASE("The code behind the first line keeps its line numbers") {
  CHECK(accepted("#!lua\nreturn 1").code == "\nreturn 1");
}

TEST_CASE("Flags add up, over several options too") {
  CHECK(accepted("#!lua\n").flags == kDeclared);
  CHECK(accepted("#!lua flags=\n").flags == kDeclared);
  CHECK(accepted("#!lua flags=no-writes,allow-oom\n").flags == (kDeclared | kNoWrites | kAllowOom));
  CHECK(accepted("#!lua flags=no-writes,allow-oom,allow-stale,no-cluster\n").flags ==
        (kDeclared | kNoWrites | kAllowOom | kAllowStale | kNoCluster));
  CHECK(
      accepted("#!lua  flags=allow-stale \"flags=no-cluster,allow-cross-slot-keys\" \r\n").flags ==
      (kDeclared | kAllowStale | kNoCluster | kAllowCrossSlotKeys));
}

TEST_CASE("A first line that is not understood is refused") {
  CHECK(refusal("#!lua") == "ERR Invalid script shebang");
  CHECK(refusal("#!lua \"flags=\nreturn 1") == "ERR Invalid engine in script shebang");
  CHECK(refusal("#!LUA\n") == "ERR Unexpected engine in script shebang: #!LUA");
  CHECK(refusal("#!\n") == "ERR Unexpected engine in script shebang: #!");
  CHECK(refusal("#!lua name=x\n") == "ERR Unknown lua shebang option: name=x");
  CHECK(refusal("#!lua flags=foo\n") == "ERR Unexpected flag in script shebang: foo");
  CHECK(refusal("#!lua flags=no-writes,\n") == "ERR Unexpected flag in script shebang: ");
}

TEST_CASE("What a script declares stands in place of its command's flags") {
  using namespace latchkey::server;
  constexpr uint32_t kEval = kNoScript | kStale | kMayReplicate;
  CHECK(command_flags_of(0, kEval) == kEval);
  CHECK(command_flags_of(kDeclared, kEval) == (kNoScript | kWrite | kDenyOom));
  CHECK(command_flags_of(kDeclared | kAllowOom, kEval) == (kNoScript | kWrite));
  CHECK(command_flags_of(kDeclared | kNoWrites, kEval) == kNoScript);
  CHECK(command_flags_of(kDeclared | kNoWrites | kAllowStale, kEval) == (kNoScript | kStale));
}

#include "server/acl/denial_log.h"

#include "unit/catch.h"

namespace latchkey::server::acl {

namespace {

constexpr size_t kPlenty = 128;

Denial denial(std::string object) {
  return {.reason = Denial::Reason::kKey,
          .context = Denial::Context::kToplevel,
          .object = std::move(object),
          .user = "anna",
          .client = "id=1"};
}

}  // namespace

TEST_CASE("Refusals that are alike within a minute are one entry, the latest first", "[acl]") {
  DenialLog log;
  log.add(denial("a"), 1000, kPlenty);
  log.add(denial("b"), 2000, kPlenty);
  log.add(denial("a"), 61'000, kPlenty);
  REQUIRE(log.entries().size() == 2);
  const DenialLog::Entry& latest = log.entries().front();
  CHECK(latest.denial.object == "a");
  CHECK(latest.count == 2);
  CHECK(latest.id == 0);
  CHECK(latest.created_ms == 1000);
  CHECK(latest.updated_ms == 61'000);

  log.add(denial("a"), 121'001, kPlenty);
  CHECK(log.entries().size() == 3);
  CHECK(log.entries().front().id == 2);
}

TEST_CASE("Refusals of other kinds, places and users are entries of their own", "[acl]") {
  DenialLog log;
  log.add(denial("a"), 0, kPlenty);
  Denial other = denial("a");
  other.user = "berta";
  log.add(other, 0, kPlenty);
  other.context = Denial::Context::kMulti;
  log.add(other, 0, kPlenty);
  other.reason = Denial::Reason::kChannel;
  log.add(other, 0, kPlenty);
  CHECK(log.entries().size() == 4);
}

TEST_CASE("The log keeps as many entries as it may", "[acl]") {
  DenialLog log;
  for (int i = 0; i < 10; ++i) log.add(denial(std::to_string(i)), 0, 3);
  CHECK(log.entries().size() == 3);
  CHECK(log.entries().back().denial.object == "7");
  log.add(denial("last"), 0, 0);
  CHECK(log.entries().empty());
}

}  // namespace latchkey::server::acl

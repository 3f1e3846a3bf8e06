#include "server/replication_history.h"

#include <string>

#include "server/random_source.h"
#include "unit/catch.h"

namespace latchkey::tests {

using server::RandomSource;
using server::ReplicationHistory;

TEST_CASE("A history that nobody else knows covers its own name only") {
  RandomSource names(1);
  const ReplicationHistory history(names);
  CHECK(history.id().size() == ReplicationHistory::kIdDigits);
  CHECK(history.second_id() == std::string(ReplicationHistory::kIdDigits, '0'));
  CHECK(history.second_end() == -1);
  CHECK(history.covers(history.id(), 1'000'000));
  CHECK_FALSE(history.covers(history.second_id(), 0));
  CHECK_FALSE(history.covers("?", -1));
}

TEST_CASE("A branch goes on from the other history, up to where they part") {
  RandomSource names(1);
  ReplicationHistory history(names);
  const std::string before = history.id();
  history.branch(100);
  CHECK(history.id() != before);
  CHECK(history.second_id() == before);
  CHECK(history.second_end() == 101);
  CHECK(history.covers(before, 101));
  CHECK_FALSE(history.covers(before, 102));
  history.begin();
  CHECK_FALSE(history.covers(before, 1));
}

TEST_CASE("What was saved is covered by the name it had") {
  const std::string saved(ReplicationHistory::kIdDigits, 'a');
  RandomSource names(1);
  ReplicationHistory history(names);
  const std::string own = history.id();
  history.remember(saved, 50);
  CHECK(history.id() == own);
  CHECK(history.covers(saved, 51));
  CHECK_FALSE(history.covers(saved, 52));
}

}  // namespace latchkey::tests

#include "server/replication_history.h"

#include <utility>

#include "base/text/text.h"
#include "server/random_source.h"

namespace latchkey::server {

ReplicationHistory::ReplicationHistory(RandomSource& random) : random_(random) {
  begin();
}

bool ReplicationHistory::covers(std::string_view id, int64_t offset) const {
  if (base::equal_ignoring_case(id, id_)) return true;
  return has_second() && base::equal_ignoring_case(id, second_id_) && offset <= second_end_;
}

void ReplicationHistory::begin() {
  adopt(random_.hex(kIdDigits));
}

void ReplicationHistory::branch(int64_t offset) {
  adopt_branch(random_.hex(kIdDigits), offset);
}

void ReplicationHistory::adopt(std::string_view id) {
  id_ = id;
  second_id_.assign(kIdDigits, '0');
  second_end_ = -1;
}

void ReplicationHistory::adopt_branch(std::string_view id, int64_t offset) {
  second_id_ = std::exchange(id_, std::string(id));
  second_end_ = offset + 1;
}

void ReplicationHistory::remember(std::string_view id, int64_t offset) {
  second_id_ = id;
  second_end_ = offset + 1;
}

}  // namespace latchkey::server

#include "server/replication_history.h"

#include <utility>

#include "base/random.h"
#include "base/text.h"

namespace latchkey::server {

ReplicationHistory::ReplicationHistory() {
  begin();
}

bool ReplicationHistory::covers(std::string_view id, int64_t offset) const {
  if (base::equal_ignoring_case(id, id_)) return true;
  return has_second() && base::equal_ignoring_case(id, second_id_) && offset <= second_end_;
}

void ReplicationHistory::begin() {
  adopt(base::random_hex(kIdDigits));
}

void ReplicationHistory::branch(int64_t offset) {
  adopt_branch(base::random_hex(kIdDigits), offset);
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

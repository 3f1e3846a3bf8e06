#include "server/observe/slow_log.h"

#include <utility>

#include "server/command/redaction.h"

namespace latchkey::server {

void SlowLog::add(Call call, std::span<const std::string_view> words) {
  entries_.push_front({next_id_++, std::move(call), shortened(words)});
  while (entries_.size() > settings_.most_entries) entries_.pop_back();
}

}  // namespace latchkey::server

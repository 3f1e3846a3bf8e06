#include "server/command/propagation.h"

#include <algorithm>

#include "base/free_if_large.h"
#include "resp/request_encoder.h"

namespace latchkey::server {

namespace {

// A buffer that a large unit has left behind is not kept.
constexpr size_t kMaxKeptBytes = 64 * 1024;

constexpr std::string_view kMulti = "*1\r\n$5\r\nMULTI\r\n";
constexpr std::string_view kExec = "*1\r\n$4\r\nEXEC\r\n";

// Whether MULTI and EXEC stand around what of the unit is for one of these.
bool is_transaction(std::span<const PropagatedCommand> unit, uint8_t target) {
  const auto is_mine = [target](const PropagatedCommand& command) {
    return (command.targets & target) != 0;
  };
  return std::count_if(unit.begin(), unit.end(), is_mine) > 1 &&
         std::any_of(unit.begin(), unit.end(), [&](const PropagatedCommand& command) {
           return is_mine(command) && !command.outside_multi();
         });
}

uint64_t bytes_for(std::span<const PropagatedCommand> unit, uint8_t target) {
  uint64_t bytes = is_transaction(unit, target) ? kMulti.size() + kExec.size() : 0;
  for (const PropagatedCommand& command : unit) {
    if ((command.targets & target) != 0) bytes += command.request.size();
  }
  return bytes;
}

}  // namespace

void PropagationEncoder::append(std::span<const PropagatedCommand> unit, std::string* out) {
  const auto is_mine = [this](const PropagatedCommand& command) {
    return (command.targets & target_) != 0;
  };
  const bool several = is_transaction(unit, target_);
  if (several && selects_before_multi_)
    select(std::find_if(unit.begin(), unit.end(), is_mine)->database, out);
  if (several) out->append(kMulti);
  for (const PropagatedCommand& command : unit) {
    if (!is_mine(command)) continue;
    select(command.database, out);
    out->append(command.request);
  }
  if (several) out->append(kExec);
}

void PropagationEncoder::select(int database, std::string* out) {
  if (database == kAnyDatabase || database == database_) return;
  database_ = database;
  resp::append_request(out, {"SELECT", std::to_string(database)});
}

void Propagation::add_sink(PropagationSink& reader) {
  sinks_.push_back(&reader);
  update_wanted();
}

void Propagation::remove_sink(PropagationSink& reader) {
  std::erase(sinks_, &reader);
  update_wanted();
}

void Propagation::set_muted(bool muted) {
  muted_ = muted;
  update_wanted();
}

void Propagation::update_wanted() {
  const bool wanted = !sinks_.empty() && !muted_;
  if (wanted == wanted_) return;
  wanted_ = wanted;
  on_wanted_(wanted);
}

void Propagation::add(int database, CommandWords first, std::span<const std::string_view> rest,
                      uint8_t targets) {
  targets &= unit_.allowed | kPropagateOutsideMulti;
  if (!wanted_ || (targets & kPropagateToAll) == 0) return;
  size_t room = resp::kMaxHeader;
  for (const CommandWord& word : first) room += resp::bulk_room(word.text().size());
  for (const std::string_view word : rest) room += resp::bulk_room(word.size());
  // Requests as they come are most of the stream, and short: room is asked for once.
  const size_t begin = unit_.commands.empty() ? 0 : unit_.commands.back().end;
  if (unit_.bytes.size() - begin < room)
    unit_.bytes.resize(std::max(begin + room, 2 * unit_.bytes.size()));
  char* to = resp::put_header(unit_.bytes.data() + begin, '*', first.size() + rest.size());
  for (const CommandWord& word : first) to = resp::put_bulk(to, word.text());
  for (const std::string_view word : rest) to = resp::put_bulk(to, word);
  unit_.commands.push_back({database, targets, static_cast<size_t>(to - unit_.bytes.data())});
  if (unit_.depth == 0) flush_unit();
}

void Propagation::flush_unit() {
  size_t begin = 0;
  for (const Pending& pending : unit_.commands) {
    flushed_unit_.push_back({pending.database, pending.targets,
                             std::string_view(unit_.bytes).substr(begin, pending.end - begin)});
    begin = pending.end;
  }
  replica_bytes_ += bytes_for(flushed_unit_, kPropagateToReplicas);
  for (PropagationSink* reader : sinks_) reader->on_propagated(flushed_unit_);
  flushed_unit_.clear();
  unit_.commands.clear();
  base::free_if_large(&unit_.bytes, kMaxKeptBytes);
}

}  // namespace latchkey::server

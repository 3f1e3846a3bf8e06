#include "server/command/propagation.h"

#include <algorithm>
#include <cstring>

#include "base/free_if_large.h"

namespace latchkey::server {

namespace {

// A buffer that a large unit has left behind is not kept.
constexpr size_t kMaxKeptBytes = 64 * 1024;

constexpr std::string_view kMulti = "*1\r\n$5\r\nMULTI\r\n";
constexpr std::string_view kExec = "*1\r\n$4\r\nEXEC\r\n";

void append_header(std::string* out, char kind, size_t value) {
  char digits[base::kMaxInt64Text];
  const size_t size = base::format_int64(static_cast<int64_t>(value), digits);
  out->push_back(kind);
  out->append(digits, size).append("\r\n");
}

void append_word(std::string* out, std::string_view word) {
  append_header(out, '$', word.size());
  out->append(word).append("\r\n");
}

// --- The same, where there is known to be room ---------------------------------------------------

// Most that a header takes.
constexpr size_t kHeaderRoom = 1 + base::kMaxInt64Text + 2;

size_t room_for(std::string_view word) {
  return kHeaderRoom + word.size() + 2;
}

char* put_header(char* to, char kind, size_t value) {
  *to++ = kind;
  if (value < 10) {
    *to++ = static_cast<char>('0' + value);
  } else if (value < 100) {
    *to++ = static_cast<char>('0' + value / 10);
    *to++ = static_cast<char>('0' + value % 10);
  } else {
    to += base::format_int64(static_cast<int64_t>(value), to);
  }
  *to++ = '\r';
  *to++ = '\n';
  return to;
}

char* put_word(char* to, std::string_view word) {
  to = put_header(to, '$', word.size());
  // An empty view may have no address.
  if (!word.empty()) std::memcpy(to, word.data(), word.size());
  to += word.size();
  *to++ = '\r';
  *to++ = '\n';
  return to;
}

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
  append_header(out, '*', 2);
  append_word(out, "SELECT");
  append_word(out, std::to_string(database));
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
  size_t room = kHeaderRoom;
  for (const CommandWord& word : first) room += room_for(word.text());
  for (const std::string_view word : rest) room += room_for(word);
  // Requests as they come are most of the stream, and short: room is asked for once.
  const size_t begin = unit_.commands.empty() ? 0 : unit_.commands.back().end;
  if (unit_.bytes.size() - begin < room)
    unit_.bytes.resize(std::max(begin + room, 2 * unit_.bytes.size()));
  char* to = put_header(unit_.bytes.data() + begin, '*', first.size() + rest.size());
  for (const CommandWord& word : first) to = put_word(to, word.text());
  for (const std::string_view word : rest) to = put_word(to, word);
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

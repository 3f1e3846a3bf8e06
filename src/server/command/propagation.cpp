#include "server/command/propagation.h"

#include <algorithm>
#include <cstring>

namespace latchkey::server {

namespace {

// A buffer that a large unit has left behind is not kept.
constexpr size_t kMostKeptBytes = 64 * 1024;

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

}  // namespace

void EffectEncoder::append(std::span<const Effect> unit, std::string* out) {
  const auto is_mine = [this](const Effect& effect) { return (effect.readers & reader_) != 0; };
  const bool several = std::count_if(unit.begin(), unit.end(), is_mine) > 1 &&
                       std::any_of(unit.begin(), unit.end(), [&](const Effect& effect) {
                         return is_mine(effect) && !effect.stands_alone();
                       });
  if (several) out->append(kMulti);
  for (const Effect& effect : unit) {
    if (!is_mine(effect)) continue;
    if (effect.database != kAnyDatabase && effect.database != database_) {
      database_ = effect.database;
      append_header(out, '*', 2);
      append_word(out, "SELECT");
      append_word(out, std::to_string(database_));
    }
    out->append(effect.request);
  }
  if (several) out->append(kExec);
}

void Propagation::add_reader(EffectReader& reader) {
  readers_.push_back(&reader);
  update_wanted();
}

void Propagation::remove_reader(EffectReader& reader) {
  std::erase(readers_, &reader);
  update_wanted();
}

void Propagation::set_muted(bool muted) {
  muted_ = muted;
  update_wanted();
}

void Propagation::update_wanted() {
  const bool wanted = !readers_.empty() && !muted_;
  if (wanted == wanted_) return;
  wanted_ = wanted;
  on_wanted_(wanted);
}

void Propagation::add(int database, EffectWords first, std::span<const std::string_view> rest,
                      uint8_t readers) {
  readers &= unit_.allowed | kEffectStandsAlone;
  if (!wanted_ || (readers & kEffectForAll) == 0) return;
  size_t room = kHeaderRoom;
  for (const EffectWord& word : first) room += room_for(word.text());
  for (const std::string_view word : rest) room += room_for(word);
  // Requests as they come are most of the stream, and short: room is asked for once.
  const size_t begin = unit_.effects.empty() ? 0 : unit_.effects.back().end;
  if (unit_.bytes.size() - begin < room)
    unit_.bytes.resize(std::max(begin + room, 2 * unit_.bytes.size()));
  char* to = put_header(unit_.bytes.data() + begin, '*', first.size() + rest.size());
  for (const EffectWord& word : first) to = put_word(to, word.text());
  for (const std::string_view word : rest) to = put_word(to, word);
  unit_.effects.push_back({database, readers, static_cast<size_t>(to - unit_.bytes.data())});
  if (unit_.depth == 0) hand_on();
}

void Propagation::hand_on() {
  size_t begin = 0;
  for (const Pending& effect : unit_.effects) {
    handed_on_.push_back({effect.database, effect.readers,
                          std::string_view(unit_.bytes).substr(begin, effect.end - begin)});
    begin = effect.end;
  }
  for (EffectReader* reader : readers_) reader->effects_happened(handed_on_);
  handed_on_.clear();
  unit_.effects.clear();
  if (unit_.bytes.size() > kMostKeptBytes) std::string().swap(unit_.bytes);
}

}  // namespace latchkey::server

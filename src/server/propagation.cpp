#include "server/propagation.h"

#include <algorithm>

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

}  // namespace

void EffectEncoder::append(std::span<const Effect> unit, std::string* out) {
  const auto is_mine = [this](const Effect& effect) { return (effect.readers & reader_) != 0; };
  const bool several = std::count_if(unit.begin(), unit.end(), is_mine) > 1;
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
  readers &= allowed_;
  if (!wanted_ || readers == 0) return;
  append_header(&bytes_, '*', first.size() + rest.size());
  for (const EffectWord& word : first) append_word(&bytes_, word.text());
  for (const std::string_view word : rest) append_word(&bytes_, word);
  effects_.push_back({database, readers, bytes_.size()});
  if (open_units_ == 0) hand_on();
}

void Propagation::hand_on() {
  size_t begin = 0;
  for (const Pending& effect : effects_) {
    unit_.push_back({effect.database, effect.readers,
                     std::string_view(bytes_).substr(begin, effect.end - begin)});
    begin = effect.end;
  }
  for (EffectReader* reader : readers_) reader->effects_happened(unit_);
  unit_.clear();
  effects_.clear();
  if (bytes_.capacity() > kMostKeptBytes) bytes_ = {};
  bytes_.clear();
}

}  // namespace latchkey::server

#include "server/observe/info.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <utility>

#include "base/assert.h"
#include "base/text/text.h"
#include "server/emulation/info_fields.h"

namespace latchkey::server {

namespace {

// As printf() writes it, but several times as fast.
std::string fixed(double value, int decimals) {
  char text[std::numeric_limits<double>::max_exponent10 + 16];
  const auto written =
      std::to_chars(std::begin(text), std::end(text), value, std::chars_format::fixed, decimals);
  return {text, static_cast<size_t>(written.ptr - text)};
}

char* copy(std::string_view text, char* out) {
  return std::copy(text.begin(), text.end(), out);
}

}  // namespace

void InfoText::grow(size_t size) {
  // Little to begin with: used_memory, which the text tells, counts it.
  constexpr size_t kFirst = 512;
  text_.resize(2 * text_.size() + std::max(size, kFirst));
}

void InfoText::title(std::string_view title) {
  const std::string_view begin = size_ == 0 ? "# " : "\r\n# ";
  char* end = copy(begin, reserve(begin.size() + title.size() + 2));
  end = copy("\r\n", copy(title, end));
  size_ = static_cast<size_t>(end - text_.data());
}

void InfoText::field(std::string_view name, std::string_view value) {
  if (!has_info_field(edition_, name)) return;
  char* end = copy(name, reserve(name.size() + value.size() + 3));
  *end++ = ':';
  end = copy("\r\n", copy(value, end));
  size_ = static_cast<size_t>(end - text_.data());
}

void InfoText::field(std::string_view name, double value, int decimals) {
  field(name, fixed(value, decimals));
}

void InfoText::percent(std::string_view name, double value) {
  field(name, fixed(value, 2) + "%");
}

void InfoText::bytes(std::string_view name, uint64_t bytes) {
  field(name, bytes);
  field(std::string(name) + "_human", human_bytes(bytes));
}

std::string human_bytes(uint64_t bytes) {
  if (bytes < 1024) return std::to_string(bytes) + "B";
  constexpr std::string_view kUnits = "KMGTP";
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fixed(value, 2) + kUnits[unit];
}

void InfoSections::add(std::string title, Shown shown, Writer writer) {
  sections_.push_back({std::move(title), shown, {std::move(writer)}});
}

void InfoSections::extend(std::string_view section, Writer writer) {
  const auto found =
      std::find_if(sections_.begin(), sections_.end(), [&](const Section& candidate) {
        return base::equal_ignoring_case(candidate.title, section);
      });
  LK_ASSERT(found != sections_.end());
  found->writers.push_back(std::move(writer));
}

void InfoSections::keep_only(std::span<const std::string_view> titles) {
  std::erase_if(sections_, [&](const Section& section) {
    return std::find(titles.begin(), titles.end(), section.title) == titles.end();
  });
}

bool InfoSections::wanted(const Section& section, std::span<const std::string_view> words) {
  if (words.empty()) return section.shown == Shown::kDefault;
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    if (base::equal_ignoring_case(word, "all") || base::equal_ignoring_case(word, "everything")) {
      return section.shown != Shown::kNamed;
    }
    if (base::equal_ignoring_case(word, "default")) return section.shown == Shown::kDefault;
    return base::equal_ignoring_case(word, section.title);
  });
}

std::string InfoSections::text(std::span<const std::string_view> words,
                               const Edition& edition) const {
  InfoText text(edition);
  for (const Section& section : sections_) {
    if (!wanted(section, words) || !has_info_section(edition, section.title)) continue;
    text.title(section.title);
    for (const Writer& writer : section.writers) writer(text);
  }
  return text.take();
}

}  // namespace latchkey::server

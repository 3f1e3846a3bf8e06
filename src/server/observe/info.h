// The content of INFO: sections in order, each a list of functions that append fields.
//
// A subsystem adds a section of its own, or extends an existing one:
//
//     server.info().extend("stats", [this](InfoText& text) { text.field("pubsub_channels",
//     channels()); });
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text/number.h"
#include "server/emulation/edition.h"

namespace latchkey::server {

// The text of sections: "# Title", then "name:value" lines, those that the edition has.
class InfoText {
 public:
  explicit InfoText(const Edition& edition = Edition()) : edition_(edition) {}
  const Edition& edition() const { return edition_; }

  void title(std::string_view title);
  void field(std::string_view name, std::string_view value);
  template <std::integral Integer>
  void field(std::string_view name, Integer value) {
    char text[base::kMaxInt64Text];
    const size_t size = std::signed_integral<Integer>
                            ? base::format_int64(static_cast<int64_t>(value), text)
                            : base::format_uint64(static_cast<uint64_t>(value), text);
    field(name, std::string_view(text, size));
  }
  // `decimals`: number of decimals.
  void field(std::string_view name, double value, int decimals);
  // "60.13%".
  void percent(std::string_view name, double value);
  // "NAME:bytes" and "NAME_human:1.50K".
  void bytes(std::string_view name, uint64_t bytes);

  std::string take() {
    text_.resize(size_);
    return std::move(text_);
  }

 private:
  // Room for `size` more bytes; what was written to it counts when size_ is advanced.
  char* reserve(size_t size) {
    if (text_.size() - size_ < size) grow(size);
    return text_.data() + size_;
  }
  void grow(size_t size);

  const Edition edition_;
  std::string text_;  // with room behind the first size_ bytes
  size_t size_ = 0;
};

// "512B", "1.50K", "2.00G".
std::string human_bytes(uint64_t bytes);

class InfoSections {
 public:
  using Writer = std::function<void(InfoText&)>;
  // When a section is shown: by default, only with "all" and "everything", or only when its name is
  // given.
  enum class Shown : uint8_t { kDefault, kAll, kNamed };

  // `title` as shown; the section is found by it in any case.
  void add(std::string title, Shown shown, Writer writer);
  // Removes all sections but these.
  void keep_only(std::span<const std::string_view> titles);
  // Appends fields to an existing section.
  void extend(std::string_view section, Writer writer);

  // The sections that `words` ask for, each once, in their order; without words the default ones.
  // Words are section names and "default", "all", "everything", in any case; others are ignored.
  std::string text(std::span<const std::string_view> words, const Edition& edition) const;

 private:
  struct Section {
    std::string title;
    Shown shown;
    std::vector<Writer> writers;
  };
  static bool wanted(const Section& section, std::span<const std::string_view> words);

  std::vector<Section> sections_;
};

class Server;
// The sections every server has.
void add_standard_sections(InfoSections& sections, Server& server);

}  // namespace latchkey::server

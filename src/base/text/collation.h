// The order of texts in a language, as defined by the C library (LC_COLLATE).
//
// Compares as strcoll() does: up to the first NUL, and by bytes in the locale "C". Does not change
// the process's own locale.
#pragma once

#include <locale.h>

#include <optional>
#include <string>

namespace latchkey::base {

class Collation {
 public:
  // The order of the locale "C".
  Collation() = default;
  // The order of a named locale; of the environment's (LC_ALL, LC_COLLATE, LANG) if the name is
  // empty. Nothing when the system does not have the locale.
  static std::optional<Collation> named(const std::string& name);
  Collation(Collation&& other) noexcept;
  Collation& operator=(Collation&& other) noexcept;
  ~Collation();

  // Negative, 0 or positive if the first text is before, equal to or after the second.
  int compare(const char* first, const char* second) const;

 private:
  explicit Collation(locale_t locale) : locale_(locale) {}
  locale_t locale_ = nullptr;  // null: by bytes
};

}  // namespace latchkey::base

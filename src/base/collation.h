// The order of texts in a language, as the C library knows it (LC_COLLATE).
//
// Compares as strcoll() does: up to the first NUL, and by bytes in the locale "C". The process's
// own locale is left alone.
#pragma once

#include <locale.h>

#include <optional>
#include <string>

namespace latchkey::base {

class Collation {
 public:
  // That of the locale "C".
  Collation() = default;
  // That of a locale by its name; of the environment's (LC_ALL, LC_COLLATE, LANG) where the name is
  // empty. Nothing when the system does not know the locale.
  static std::optional<Collation> named(const std::string& name);
  Collation(Collation&& other) noexcept;
  Collation& operator=(Collation&& other) noexcept;
  ~Collation();

  // Below 0, 0 or above 0 as the first text goes before, with or behind the second.
  int compare(const char* first, const char* second) const;

 private:
  explicit Collation(locale_t locale) : locale_(locale) {}
  locale_t locale_ = nullptr;  // null: by bytes
};

}  // namespace latchkey::base

#include "base/text/collation.h"

#include <cstring>
#include <utility>

namespace latchkey::base {

std::optional<Collation> Collation::named(const std::string& name) {
  const locale_t locale = newlocale(LC_COLLATE_MASK, name.c_str(), nullptr);
  if (locale == nullptr) return std::nullopt;
  return Collation(locale);
}

Collation::Collation(Collation&& other) noexcept : locale_(std::exchange(other.locale_, nullptr)) {}

Collation& Collation::operator=(Collation&& other) noexcept {
  std::swap(locale_, other.locale_);
  return *this;
}

Collation::~Collation() {
  if (locale_ != nullptr) freelocale(locale_);
}

int Collation::compare(const char* first, const char* second) const {
  return locale_ == nullptr ? std::strcmp(first, second) : strcoll_l(first, second, locale_);
}

}  // namespace latchkey::base

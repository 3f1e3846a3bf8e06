#include "server/emulation/edition.h"

#include <algorithm>
#include <charconv>

#include "base/text/text.h"
#include "base/version.h"

namespace latchkey::server {

namespace {

// Latchkey's own files are those of the reference.
constexpr int kOwnRdbVersion = 12;
// Of Redis's versions the last that Valkey reads.
constexpr int kRdbVersionOfValkeysRoot = 11;
// The Redis that every Valkey says it stands for.
constexpr std::string_view kRedisOfValkey = "7.2.4";

}  // namespace

struct Edition::Release {
  Product product;
  Version version;
  std::string_view full_version;
  int rdb_version;
};

const Edition::Release Edition::kReleases[] = {
    {Product::kRedis, {6, 2}, "6.2.16", 9},  {Product::kRedis, {7, 0}, "7.0.15", 10},
    {Product::kRedis, {7, 2}, "7.2.6", 11},  {Product::kRedis, {7, 4}, "7.4.1", 12},
    {Product::kRedis, {8, 0}, "8.0.2", 12},  {Product::kRedis, {8, 6}, "8.6.3", 13},
    {Product::kValkey, {8, 1}, "8.1.1", 11}, {Product::kValkey, {9, 1}, "9.1.2", 80},
};

std::optional<Version> parse_version(std::string_view text) {
  Version version;
  const char* const end = text.data() + text.size();
  const auto [dot, major_error] = std::from_chars(text.data(), end, version.major);
  if (major_error != std::errc() || dot == end || *dot != '.') return std::nullopt;
  const auto [rest, minor_error] = std::from_chars(dot + 1, end, version.minor);
  if (minor_error != std::errc() || (rest != end && *rest != '.')) return std::nullopt;
  return version;
}

std::optional<Edition> Edition::parse(std::string_view text) {
  if (base::equal_ignoring_case(text, "no")) return Edition();
  const size_t separator = text.find_first_of(" -");
  if (separator == std::string_view::npos) return std::nullopt;
  const std::string_view product = text.substr(0, separator);
  const std::string_view version = text.substr(separator + 1);
  for (const Release& release : kReleases) {
    const Edition edition(release.product, release.version);
    if (!base::equal_ignoring_case(product, edition.product_name())) continue;
    const size_t patch = release.full_version.rfind('.');
    if (version == release.full_version || version == release.full_version.substr(0, patch))
      return edition;
  }
  return std::nullopt;
}

std::string Edition::known() {
  std::string text = "no";
  for (const Release& release : kReleases)
    text.append(", ").append(Edition(release.product, release.version).text());
  return text;
}

const Edition::Release* Edition::release() const {
  const auto* const found =
      std::find_if(std::begin(kReleases), std::end(kReleases), [this](const Release& release) {
        return release.product == product_ && release.version == version_;
      });
  return found == std::end(kReleases) ? nullptr : found;
}

std::string Edition::version() const {
  return emulates() ? std::string(release()->full_version) : base::kReferenceVersion;
}

std::string Edition::redis_version() const {
  return is_valkey() ? std::string(kRedisOfValkey) : version();
}

int Edition::newest_rdb_version(int own) const {
  if (!emulates()) return own;
  return is_valkey() ? kRdbVersionOfValkeysRoot : release()->rdb_version;
}

int Edition::rdb_version() const {
  return emulates() ? release()->rdb_version : kOwnRdbVersion;
}

std::string Edition::text() const {
  if (!emulates()) return "no";
  return std::string(product_name()) + ' ' + std::to_string(version_.major) + '.' +
         std::to_string(version_.minor);
}

}  // namespace latchkey::server

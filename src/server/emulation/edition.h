// Edition: which release a server emulates (the directive `emulate`): none, and then it has all
// features; or a release of Redis or Valkey, and then it has only the features that came with that
// release or before.
//
// Features are named by the versions in which they came. Valkey began as Redis 7.2; what either
// added later has a version of each, or of one of them alone:
//
//     if (edition.has({7, 4}, {9, 0})) ...   // fields of hashes that expire
//     if (edition.has({8, 6})) ...           // Redis alone
//     if (edition.is_valkey_since({9, 0})) ...  // as Valkey does it, Latchkey itself does not
//
// The releases that can be named, their last patch versions and the versions of the files they
// write were read from the releases themselves. An edition is five small numbers: it is copied.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace latchkey::server {

// "7.2.4" is {7, 2}: features come with minor versions.
struct Version {
  int major = 0;
  int minor = 0;
  auto operator<=>(const Version&) const = default;
};

// Later than any.
inline constexpr Version kNever{1000, 0};
// What Valkey began with.
inline constexpr Version kCommonRoot{7, 2};

// "7.2.4" or "7.2"; nothing when it is no version.
std::optional<Version> parse_version(std::string_view text);

class Edition {
 public:
  enum class Product : uint8_t { kLatchkey, kRedis, kValkey };

  // Latchkey itself.
  constexpr Edition() = default;

  // "no", "redis 7.0", "valkey-8.1"; in any case, with a patch version if it is the one that is
  // known. Nothing for what cannot be emulated.
  static std::optional<Edition> parse(std::string_view text);
  // What parse() takes, for errors: "no, redis 6.2, redis 7.0, ...".
  static std::string known();

  bool emulates() const { return product_ != Product::kLatchkey; }
  constexpr bool is_valkey() const { return product_ == Product::kValkey; }
  // The name that HELLO and LOLWUT say: "redis" or "valkey".
  std::string_view product_name() const { return is_valkey() ? "valkey" : "redis"; }

  // Whether it has what came with these releases. What came to Redis up to kCommonRoot is in both.
  constexpr bool has(Version redis, Version valkey = kNever) const {
    if (product_ == Product::kLatchkey) return true;
    if (product_ == Product::kRedis) return version_ >= redis;
    return redis <= kCommonRoot || version_ >= valkey;
  }
  // Whether it is Valkey of this version or a later one. Use has() for features, of which Latchkey
  // itself has all, and this for what Valkey does differently.
  constexpr bool is_valkey_since(Version version) const {
    return is_valkey() && version_ >= version;
  }
  // "7.0.15". Of Latchkey itself: base::kReferenceVersion.
  std::string version() const;
  // The redis_version of INFO: for Valkey the version of Redis that it claims compatibility with.
  std::string redis_version() const;
  // The version of the RDB files and DUMP payloads that it writes.
  int rdb_version() const;
  // Of the versions of Redis's files and payloads the last that it reads; `own`: Latchkey's.
  int newest_rdb_version(int own) const;
  // As parse() takes it: "no", "redis 7.0".
  std::string text() const;

  bool operator==(const Edition&) const = default;

 private:
  struct Release;
  static const Release kReleases[];

  constexpr Edition(Product product, Version version) : product_(product), version_(version) {}
  const Release* release() const;

  Product product_ = Product::kLatchkey;
  Version version_{};
};

}  // namespace latchkey::server

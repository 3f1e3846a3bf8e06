#include "server/dataset_digest.h"

#include <string_view>

#include "base/assert.h"
#include "base/sha1.h"
#include "server/server.h"
#include "store/entry.h"
#include "store/keyspace.h"
#include "store/value/hash.h"
#include "store/value/set.h"

namespace latchkey::server {

namespace {

constexpr std::string_view kDeadlineMark = "!!expire!!";

void join(Digest& digest, std::string_view bytes) {
  const Digest other = base::sha1(bytes);
  for (size_t i = 0; i < digest.size(); ++i) digest[i] ^= other[i];
}

std::string_view view(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

void take_in(Digest& digest, std::string_view part) {
  join(digest, part);
  digest = base::sha1(view(digest));
}

// As four bytes, the highest first.
void take_in(Digest& digest, uint32_t number) {
  const char bytes[] = {static_cast<char>(number >> 24), static_cast<char>(number >> 16),
                        static_cast<char>(number >> 8), static_cast<char>(number)};
  take_in(digest, std::string_view(bytes, sizeof(bytes)));
}

void take_in_hash(Digest& digest, const store::Hash& hash) {
  hash.for_each([&](std::string_view field, std::string_view value) {
    Digest pair{};
    take_in(pair, field);
    take_in(pair, value);
    join(digest, view(pair));
  });
}

void take_in_value(Digest& digest, const store::Entry& entry) {
  char scratch[32];
  take_in(digest, static_cast<uint32_t>(entry.type()));
  switch (entry.type()) {
    case store::Type::kString:
      take_in(digest, entry.string(scratch));
      break;
    case store::Type::kHash:
      take_in_hash(digest, static_cast<const store::Hash&>(*entry.value()));
      break;
    case store::Type::kSet:
      static_cast<const store::Set&>(*entry.value()).for_each([&](std::string_view member) {
        join(digest, member);
      });
      break;
    default:
      LK_ASSERT(false);
  }
  if (entry.has_deadline()) join(digest, kDeadlineMark);
}

}  // namespace

Digest value_digest(const store::Entry& entry) {
  Digest digest{};
  take_in_value(digest, entry);
  return digest;
}

Digest dataset_digest(Server& server) {
  Digest all{};
  for (int i = 0; i < server.database_count(); ++i) {
    const store::Keyspace& database = server.database(i);
    if (database.empty()) continue;
    take_in(all, static_cast<uint32_t>(i));
    database.for_each([&](const store::Entry& entry) {
      Digest digest{};
      take_in(digest, entry.key());
      take_in_value(digest, entry);
      join(all, view(digest));
    });
  }
  return all;
}

std::string to_hex(const Digest& digest) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace latchkey::server

#include "server/observe/dataset_digest.h"

#include <string_view>

#include "base/digest/sha1.h"
#include "base/text/number.h"
#include "server/server.h"
#include "store/entry.h"
#include "store/keyspace.h"
#include "store/value/array.h"
#include "store/value/hash.h"
#include "store/value/list.h"
#include "store/value/module_value.h"
#include "store/value/set.h"
#include "store/value/sorted_set.h"
#include "store/value/stream.h"
#include "store/value/vector_set.h"
#include "store/value/view.h"

namespace latchkey::server {

namespace {

constexpr std::string_view kDeadlineMark = "!!expire!!";
constexpr std::string_view kFieldDeadlineMark = "!!hexpire!!";

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

// Takes in the number as four bytes, the highest first.
void take_in(Digest& digest, uint32_t number) {
  const char bytes[] = {static_cast<char>(number >> 24), static_cast<char>(number >> 16),
                        static_cast<char>(number >> 8), static_cast<char>(number)};
  take_in(digest, std::string_view(bytes, sizeof(bytes)));
}

// --- Elements: in order for lists, in any order for the other types ----------------------------

void take_in_elements(Digest& digest, const store::List& list) {
  char scratch[store::Listpack::kScratch];
  for (auto cursor = list.at(0); cursor; cursor = list.next(cursor))
    take_in(digest, list.get(cursor).text(scratch));
  list.recompress();
}

void take_in_elements(Digest& digest, const store::Set& set) {
  set.for_each([&](std::string_view member) { join(digest, member); });
}

void take_in_elements(Digest& digest, const store::Hash& hash) {
  hash.for_each_stored([&](std::string_view field, std::string_view value, int64_t deadline_ms) {
    Digest pair{};
    take_in(pair, field);
    take_in(pair, value);
    if (deadline_ms >= 0) join(pair, kFieldDeadlineMark);
    join(digest, view(pair));
  });
}

void take_in_elements(Digest& digest, const store::SortedSet& set) {
  set.for_each([&](std::string_view member, double score) {
    char text[base::kMaxDoubleText];
    Digest element{};
    take_in(element, member);
    take_in(element, std::string_view(text, base::format_shortest_double(score, text)));
    join(digest, view(element));
  });
}

void take_in_elements(Digest& digest, const store::Stream& stream) {
  stream.for_each({}, false, [&](const store::StreamEntry& entry) {
    take_in(digest, std::to_string(entry.id().ms) + "." + std::to_string(entry.id().sequence));
    entry.for_each_field([&](const auto& field, const auto& value) {
      char scratch[store::Listpack::kScratch];
      take_in(digest, field.text(scratch));
      take_in(digest, value.text(scratch));
    });
    return true;
  });
}

void take_in_elements(Digest& digest, const store::VectorSet& set) {
  const size_t vector_size = set.graph().distance().vector_size();
  set.for_each([&](const store::VectorElement& element) {
    Digest one{};
    take_in(one, element.name());
    take_in(one, std::string_view(set.vector(element).bytes, vector_size));
    take_in(one, element.attributes());
    join(digest, view(one));
  });
}

void take_in_elements(Digest& digest, const store::Array& array) {
  char scratch[store::kCellScratch];
  array.for_each(0, store::Array::kLastIndex, [&](uint64_t index, store::ArrayCell value) {
    take_in(digest, std::to_string(index));
    take_in(digest, store::cell::text(value, scratch));
    return true;
  });
}

void take_in_elements(Digest& digest, const store::ModuleValue& value) {
  value.for_each_digest_part([&](std::string_view part) { take_in(digest, part); });
}

template <typename V>
void take_in_elements_of(Digest& digest, const store::Entry& entry) {
  take_in_elements(digest, *store::View<V>(entry));
}

// The reference's type numbers count the type of modules before streams.
uint32_t type_number(store::Type type) {
  constexpr uint32_t kModuleNumber = 5;
  constexpr uint32_t kStreamNumber = 6;
  if (type == store::Type::kStream) return kStreamNumber;
  if (type == store::Type::kVectorSet || type > store::Type::kArray) return kModuleNumber;
  return static_cast<uint32_t>(type);
}

void take_in_value(Digest& digest, const store::Entry& entry) {
  char scratch[32];
  take_in(digest, type_number(entry.type()));
  switch (entry.type()) {
    case store::Type::kString:
      take_in(digest, entry.string(scratch));
      break;
    case store::Type::kList:
      take_in_elements_of<store::List>(digest, entry);
      break;
    case store::Type::kSet:
      take_in_elements_of<store::Set>(digest, entry);
      break;
    case store::Type::kSortedSet:
      take_in_elements_of<store::SortedSet>(digest, entry);
      break;
    case store::Type::kHash:
      take_in_elements_of<store::Hash>(digest, entry);
      break;
    case store::Type::kStream:
      take_in_elements_of<store::Stream>(digest, entry);
      break;
    case store::Type::kVectorSet:
      take_in_elements_of<store::VectorSet>(digest, entry);
      break;
    case store::Type::kArray:
      take_in_elements_of<store::Array>(digest, entry);
      break;
    case store::Type::kJson:
    case store::Type::kTimeSeries:
    case store::Type::kBloomFilter:
    case store::Type::kCuckooFilter:
    case store::Type::kCountMinSketch:
    case store::Type::kTopK:
    case store::Type::kTDigest:
      take_in_elements(digest, static_cast<const store::ModuleValue&>(*entry.value()));
      break;
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

}  // namespace latchkey::server

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/text/number.h"
#include "persist/rdb/distinct.h"
#include "persist/rdb/rdb_modules.h"
#include "persist/rdb/rdb_stream_reader.h"
#include "persist/rdb/rdb_values.h"
#include "persist/rdb/ziplist.h"
#include "store/value/hash.h"
#include "store/value/list.h"
#include "store/value/set.h"
#include "store/value/sorted_set.h"

namespace latchkey::persist {

namespace {

using store::Environment;
using store::Hash;
using store::Intset;
using store::List;
using store::Listpack;
using store::Set;
using store::SortedSet;

constexpr ReadResult kDone = ReadResult::kDone;
constexpr ReadResult kEmpty = ReadResult::kEmpty;
constexpr ReadResult kFailed = ReadResult::kFailed;

ReadResult failed(RdbReader& reader, std::string reason) {
  reader.fail(std::move(reason));
  return kFailed;
}

template <typename V>
ReadResult done(std::unique_ptr<V> value, LoadedValue* loaded) {
  loaded->type = V::kType;
  loaded->value = std::move(value);
  return kDone;
}

// Reads a string that contains a listpack.
bool read_listpack(RdbReader& reader, Listpack* pack, std::string_view what) {
  std::string_view bytes;
  if (!reader.string(&bytes)) return false;
  if (!Listpack::is_valid(bytes))
    return reader.fail(std::string(what) + " listpack integrity check failed.");
  *pack = Listpack::from_bytes(bytes);
  return true;
}

// Reads a string that contains a ziplist, and converts it to a listpack.
bool read_ziplist(RdbReader& reader, Listpack* pack, std::string_view what) {
  std::string_view bytes;
  if (!reader.string(&bytes)) return false;
  return append_ziplist(bytes, *pack) ||
         reader.fail(std::string(what) + " ziplist integrity check failed.");
}

// --- Lists --------------------------------------------------------------------------------------

ReadResult finish_list(std::unique_ptr<List> list, LoadedValue* loaded) {
  if (list->size() == 0) return kEmpty;
  list->recompress();
  return done(std::move(list), loaded);
}

ReadResult read_list(RdbReader& reader, const store::ValueLimits& limits, LoadedValue* loaded) {
  uint64_t count;
  if (!reader.length(&count)) return kFailed;
  auto list = std::make_unique<List>();
  std::string_view text;
  for (; count > 0; --count) {
    if (!reader.string(&text)) return kFailed;
    list->will_grow(text.size(), 1, limits);
    list->push_back(text, limits);
  }
  return finish_list(std::move(list), loaded);
}

ReadResult read_list_ziplist(RdbReader& reader, const store::ValueLimits& limits,
                             LoadedValue* loaded) {
  Listpack pack;
  if (!read_ziplist(reader, &pack, "List")) return kFailed;
  if (pack.empty()) return kEmpty;
  auto list = std::make_unique<List>();
  list->adopt(std::move(pack), limits);
  return finish_list(std::move(list), loaded);
}

bool read_node(RdbReader& reader, RdbType type, const store::ValueLimits& limits, List& list) {
  auto container = static_cast<uint64_t>(NodeContainer::kPacked);
  if (type == RdbType::kListQuicklist2 && !reader.length(&container)) return false;
  if (container == static_cast<uint64_t>(NodeContainer::kPlain)) {
    std::string_view text;
    if (!reader.string(&text)) return false;
    if (text.empty()) return reader.fail("Quicklist integrity check failed.");
    list.adopt_plain(std::string(text), limits);
    return true;
  }
  if (container != static_cast<uint64_t>(NodeContainer::kPacked))
    return reader.fail("Quicklist integrity check failed.");
  Listpack pack;
  const bool is_read = type == RdbType::kListQuicklist2 ? read_listpack(reader, &pack, "Quicklist")
                                                        : read_ziplist(reader, &pack, "Quicklist");
  if (is_read && !pack.empty()) list.adopt(std::move(pack), limits);
  return is_read;
}

ReadResult read_quicklist(RdbReader& reader, RdbType type, const store::ValueLimits& limits,
                          LoadedValue* loaded) {
  uint64_t nodes;
  if (!reader.length(&nodes)) return kFailed;
  auto list = std::make_unique<List>();
  for (; nodes > 0; --nodes) {
    if (!read_node(reader, type, limits, *list)) return kFailed;
  }
  return finish_list(std::move(list), loaded);
}

// --- Sets ---------------------------------------------------------------------------------------

ReadResult read_set(RdbReader& reader, Environment& environment, LoadedValue* loaded) {
  uint64_t count;
  if (!reader.length(&count)) return kFailed;
  if (count == 0) return kEmpty;
  auto set = std::make_unique<Set>(environment);
  // What was written member by member was a table, and is one again if it is too large for an
  // intset, as in the reference; otherwise the members decide the encoding.
  if (count > environment.limits.set_max_intset_entries) set->convert_to_table();
  std::string_view member;
  for (; count > 0; --count) {
    if (!reader.string(&member)) return kFailed;
    if (!set->add(member)) return failed(reader, "Duplicate set members detected");
  }
  return done(std::move(set), loaded);
}

ReadResult read_set_intset(RdbReader& reader, Environment& environment, LoadedValue* loaded) {
  std::string_view bytes;
  if (!reader.string(&bytes)) return kFailed;
  if (!Intset::is_valid(bytes)) return failed(reader, "Intset integrity check failed.");
  auto set = std::make_unique<Set>(environment);
  set->adopt(Intset::from_bytes(bytes));
  return done(std::move(set), loaded);
}

ReadResult read_set_listpack(RdbReader& reader, Environment& environment, LoadedValue* loaded) {
  Listpack members;
  if (!read_listpack(reader, &members, "Set")) return kFailed;
  if (!are_distinct(members, 1, environment.secret))
    return failed(reader, "Set listpack has members more than once");
  if (members.empty()) return kEmpty;
  auto set = std::make_unique<Set>(environment);
  set->adopt(std::move(members));
  return done(std::move(set), loaded);
}

// --- Sorted sets --------------------------------------------------------------------------------

ReadResult read_sorted_set(RdbReader& reader, RdbType type, Environment& environment,
                           LoadedValue* loaded) {
  uint64_t count;
  if (!reader.length(&count)) return kFailed;
  if (count == 0) return kEmpty;
  auto set = std::make_unique<SortedSet>(environment);
  if (count > environment.limits.zset_max_listpack_entries) set->expect(count);
  std::string_view text;
  std::string member;
  for (; count > 0; --count) {
    double score;
    if (!reader.string(&text)) return kFailed;
    member = text;
    const bool has_score =
        type == RdbType::kZset2 ? reader.binary_double(&score) : reader.text_double(&score);
    if (!has_score) return kFailed;
    if (std::isnan(score)) return failed(reader, "Zset with NAN score detected");
    if (!set->set(member, score)) return failed(reader, "Duplicate zset fields detected");
  }
  return done(std::move(set), loaded);
}

// Converts an element to a score; false when it is not a number.
bool score_of(const Listpack::Element& element, double* score) {
  if (!element.is_integer) return base::parse_double(element.bytes, score);
  *score = static_cast<double>(element.integer);
  return true;
}

// Takes over a listpack of alternating members and scores after validating it; if only the order is
// wrong, sorts it.
ReadResult adopt_scored(RdbReader& reader, Listpack pack, Environment& environment,
                        LoadedValue* loaded) {
  constexpr char kDamaged[] = "Zset listpack integrity check failed.";
  if (pack.size() % 2 != 0) return failed(reader, kDamaged);
  if (pack.empty()) return kEmpty;
  DistinctElements members(pack, pack.size() / 2, environment.secret);
  bool is_ordered = true;
  auto previous = Listpack::kNone;
  double previous_score = 0;
  for (auto at = pack.first(); at != Listpack::kNone;) {
    const Listpack::Element member = pack.get(at);
    const auto score_at = pack.next(at);
    double score;
    if (!members.add(at, member) || !score_of(pack.get(score_at), &score))
      return failed(reader, kDamaged);
    if (is_ordered && previous != Listpack::kNone && score <= previous_score) {
      char scratch[Listpack::kScratch];
      char previous_scratch[Listpack::kScratch];
      is_ordered = score == previous_score &&
                   pack.get(previous).text(previous_scratch) < member.text(scratch);
    }
    previous = at;
    previous_score = score;
    at = pack.next(score_at);
  }
  auto set = std::make_unique<SortedSet>(environment);
  if (is_ordered) {
    set->adopt(std::move(pack));
    return done(std::move(set), loaded);
  }
  set->expect(pack.size() / 2);
  for (auto at = pack.first(); at != Listpack::kNone; at = pack.next(pack.next(at))) {
    char scratch[Listpack::kScratch];
    double score = 0;
    score_of(pack.get(pack.next(at)), &score);
    set->set(pack.get(at).text(scratch), score);
  }
  return done(std::move(set), loaded);
}

ReadResult read_sorted_set_packed(RdbReader& reader, RdbType type, Environment& environment,
                                  LoadedValue* loaded) {
  Listpack pack;
  const bool is_read = type == RdbType::kZsetListpack ? read_listpack(reader, &pack, "Zset")
                                                      : read_ziplist(reader, &pack, "Zset");
  return is_read ? adopt_scored(reader, std::move(pack), environment, loaded) : kFailed;
}

// --- Hashes -------------------------------------------------------------------------------------

// Converts a deadline of the file to Unix time. False when it is invalid.
bool resolve_deadline(RdbType type, int64_t first_ms, uint64_t told, int64_t* deadline_ms) {
  *deadline_ms = Hash::kNoDeadline;
  if (told == 0) return true;
  if (told > static_cast<uint64_t>(Hash::kMaxDeadline)) return false;
  *deadline_ms = static_cast<int64_t>(told);
  if (type == RdbType::kHashMetadata) *deadline_ms += first_ms - 1;
  return *deadline_ms >= 0 && *deadline_ms <= Hash::kMaxDeadline;
}

bool read_first_deadline(RdbReader& reader, int64_t* first_ms) {
  if (!reader.milliseconds(first_ms)) return false;
  return (*first_ms >= 0 && *first_ms <= Hash::kMaxDeadline) ||
         reader.fail("Hash expiration time is out of range");
}

ReadResult read_hash(RdbReader& reader, RdbType type, Environment& environment,
                     LoadedValue* loaded) {
  int64_t first_ms = 0;
  if (type == RdbType::kHashMetadata && !read_first_deadline(reader, &first_ms)) return kFailed;
  uint64_t count;
  if (!reader.length(&count)) return kFailed;
  if (count == 0) return kEmpty;
  auto hash = std::make_unique<Hash>(environment);
  const bool has_deadlines = type != RdbType::kHash;
  if (has_deadlines) hash->prepare_deadlines();
  hash->expect(count);
  std::string field;
  std::string_view text;
  for (; count > 0; --count) {
    int64_t deadline_ms = Hash::kNoDeadline;
    if (has_deadlines) {
      uint64_t told;
      if (!reader.length(&told)) return kFailed;
      if (!resolve_deadline(type, first_ms, told, &deadline_ms))
        return failed(reader, "Hash expiration time is out of range");
    }
    if (!reader.string(&text)) return kFailed;
    field = text;
    if (!reader.string(&text)) return kFailed;
    if (!hash->set(field, text, deadline_ms))
      return failed(reader, "Duplicate hash fields detected");
  }
  return done(std::move(hash), loaded);
}

// As Valkey writes hashes with deadlines.
ReadResult read_valkey_hash(RdbReader& reader, Environment& environment, LoadedValue* loaded) {
  constexpr int64_t kNone = -1;
  uint64_t count;
  if (!reader.length(&count)) return kFailed;
  if (count == 0) return kEmpty;
  auto hash = std::make_unique<Hash>(environment);
  hash->prepare_deadlines();
  hash->expect(count);
  std::string field;
  std::string value;
  std::string_view text;
  for (; count > 0; --count) {
    int64_t told = 0;
    if (!reader.string(&text)) return kFailed;
    field = text;
    if (!reader.string(&text)) return kFailed;
    value = text;
    if (!reader.milliseconds(&told)) return kFailed;
    if (told != kNone && told < 0) return failed(reader, "Hash expiration time is out of range");
    // Valkey takes later deadlines than a hash has here.
    const int64_t deadline_ms =
        told == kNone ? Hash::kNoDeadline : std::min(told, Hash::kMaxDeadline);
    if (!hash->set(field, value, deadline_ms))
      return failed(reader, "Duplicate hash fields detected");
  }
  return done(std::move(hash), loaded);
}

// Takes over alternating fields and values. `ambiguous`: the error for a duplicate field.
ReadResult adopt_fields(RdbReader& reader, Listpack pack, std::string_view ambiguous,
                        Environment& environment, LoadedValue* loaded) {
  if (pack.size() % 2 != 0) return failed(reader, "Hash listpack integrity check failed.");
  if (!are_distinct(pack, 2, environment.secret)) return failed(reader, std::string(ambiguous));
  if (pack.empty()) return kEmpty;
  auto hash = std::make_unique<Hash>(environment);
  hash->adopt(std::move(pack));
  return done(std::move(hash), loaded);
}

// Values in a zipmap may be longer than this server allows in listpacks.
ReadResult read_zipmap(RdbReader& reader, Environment& environment, LoadedValue* loaded) {
  constexpr char kDamaged[] = "Zipmap integrity check failed.";
  std::string_view bytes;
  Listpack pack;
  if (!reader.string(&bytes)) return kFailed;
  if (!append_zipmap(bytes, pack) || pack.empty() || pack.size() % 2 != 0)
    return failed(reader, kDamaged);
  auto hash = std::make_unique<Hash>(environment);
  for (auto at = pack.first(); at != Listpack::kNone; at = pack.next(at)) {
    char field[Listpack::kScratch];
    char value[Listpack::kScratch];
    const std::string_view name = pack.get(at).text(field);
    at = pack.next(at);
    if (!hash->set(name, pack.get(at).text(value), Hash::kNoDeadline))
      return failed(reader, kDamaged);
  }
  return done(std::move(hash), loaded);
}

ReadResult read_hash_packed(RdbReader& reader, RdbType type, Environment& environment,
                            LoadedValue* loaded) {
  if (type == RdbType::kHashZipmap) return read_zipmap(reader, environment, loaded);
  const bool is_listpack = type == RdbType::kHashListpack;
  const std::string_view ambiguous =
      is_listpack ? "Hash listpack with dup elements" : "Hash ziplist integrity check failed.";
  Listpack pack;
  const bool is_read =
      is_listpack ? read_listpack(reader, &pack, "Hash") : read_ziplist(reader, &pack, "Hash");
  return is_read ? adopt_fields(reader, std::move(pack), ambiguous, environment, loaded) : kFailed;
}

// Whether every third element is a deadline or 0, in ascending order with the zeros at the end.
bool are_deadlines_ordered(const Listpack& pack) {
  int64_t previous = 0;
  for (auto at = pack.first(); at != Listpack::kNone; at = pack.next(at)) {
    at = pack.next(pack.next(at));
    const Listpack::Element element = pack.get(at);
    if (!element.is_integer || element.integer < 0 || element.integer > Hash::kMaxDeadline)
      return false;
    const int64_t deadline_ms = element.integer == 0 ? Hash::kMaxDeadline + 1 : element.integer;
    if (deadline_ms < previous) return false;
    previous = deadline_ms;
  }
  return true;
}

ReadResult read_hash_listpack_ex(RdbReader& reader, RdbType type, Environment& environment,
                                 LoadedValue* loaded) {
  int64_t first_ms;
  Listpack pack;
  if (type == RdbType::kHashListpackEx && !reader.milliseconds(&first_ms)) return kFailed;
  if (!read_listpack(reader, &pack, "Hash")) return kFailed;
  if (pack.size() % 3 != 0 || !are_deadlines_ordered(pack))
    return failed(reader, "Hash listpackex integrity check failed.");
  if (!are_distinct(pack, 3, environment.secret))
    return failed(reader, "Hash listpackex with dup elements");
  if (pack.empty()) return kEmpty;
  auto hash = std::make_unique<Hash>(environment);
  hash->prepare_deadlines();
  hash->adopt(std::move(pack));
  return done(std::move(hash), loaded);
}

ReadResult read_module(RdbReader& reader, RdbType type, Environment& environment,
                       LoadedValue* loaded) {
  uint64_t id;
  if (!reader.length(&id)) return kFailed;
  const ModuleType* const known = module_type_of_id(id);
  if (type == RdbType::kModule2 && known != nullptr)
    return read_module_value(reader, environment, id, *known, loaded);
  return failed(reader,
                "The RDB file contains module data I can't load: no matching module type '" +
                    module_name(id) + "'");
}

}  // namespace

ReadResult read_value(RdbReader& reader, uint8_t type_byte, Environment& environment,
                      LoadedValue* loaded) {
  const auto type = static_cast<RdbType>(type_byte);
  const store::ValueLimits& limits = environment.limits;
  switch (type) {
    case RdbType::kString:
      loaded->type = store::Type::kString;
      loaded->value.reset();
      return reader.string_or_blob(&loaded->text, &loaded->blob) ? kDone : kFailed;
    case RdbType::kList:
      return read_list(reader, limits, loaded);
    case RdbType::kListZiplist:
      return read_list_ziplist(reader, limits, loaded);
    case RdbType::kListQuicklist:
    case RdbType::kListQuicklist2:
      return read_quicklist(reader, type, limits, loaded);
    case RdbType::kSet:
      return read_set(reader, environment, loaded);
    case RdbType::kSetIntset:
      return read_set_intset(reader, environment, loaded);
    case RdbType::kSetListpack:
      return read_set_listpack(reader, environment, loaded);
    case RdbType::kZset:
    case RdbType::kZset2:
      return read_sorted_set(reader, type, environment, loaded);
    case RdbType::kZsetZiplist:
    case RdbType::kZsetListpack:
      return read_sorted_set_packed(reader, type, environment, loaded);
    case RdbType::kHash:
    case RdbType::kHashMetadata:
    case RdbType::kHashMetadataPreGa:
      if (type == RdbType::kHashMetadataPreGa && reader.version() == kValkeyRdbVersion)
        return read_valkey_hash(reader, environment, loaded);
      return read_hash(reader, type, environment, loaded);
    case RdbType::kHashZipmap:
    case RdbType::kHashZiplist:
    case RdbType::kHashListpack:
      return read_hash_packed(reader, type, environment, loaded);
    case RdbType::kHashListpackEx:
    case RdbType::kHashListpackExPreGa:
      return read_hash_listpack_ex(reader, type, environment, loaded);
    case RdbType::kStreamListpacks:
    case RdbType::kStreamListpacks2:
    case RdbType::kStreamListpacks3:
    case RdbType::kStreamListpacks4:
      return read_stream(reader, type, environment, loaded);
    case RdbType::kModule1:
    case RdbType::kModule2:
      return read_module(reader, type, environment, loaded);
  }
  return failed(reader, "Unknown RDB encoding type " + std::to_string(type_byte));
}

void put_value(store::Keyspace& db, store::KeyRef& ref, LoadedValue& loaded, int64_t deadline_ms) {
  if (loaded.blob) return db.set_blob(ref, loaded.blob.release(), deadline_ms);
  if (loaded.type == store::Type::kString) return db.set_string(ref, loaded.text, deadline_ms);
  db.set_value(ref, loaded.type, std::move(loaded.value), deadline_ms);
  db.index_elements(ref);
}

uint32_t idle_access(const Environment& environment, uint64_t seconds) {
  const auto idle = static_cast<uint32_t>(std::min<uint64_t>(seconds, store::Entry::kMaxAccess));
  return (environment.access_clock - idle) & store::Entry::kMaxAccess;
}

uint32_t frequency_access(const Environment& environment, uint8_t counter) {
  // Everything but the counter is as in a new key.
  constexpr uint32_t kCounter = 0xff;
  return (store::initial_access(environment) & ~kCounter) | counter;
}

}  // namespace latchkey::persist

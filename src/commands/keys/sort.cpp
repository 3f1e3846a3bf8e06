// SORT, SORT_RO: the elements of a list, a set or a sorted set in order, by their own values or by
// the values of other keys.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory_resource>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/digest/hash.h"
#include "base/text/collation.h"
#include "base/text/up_to_nul.h"
#include "commands/groups.h"
#include "commands/hashes/hash_fields.h"
#include "commands/keys/old_numbers.h"
#include "commands/keys/typed_key.h"
#include "server/acl/user.h"
#include "server/client/client.h"
#include "server/client/output_limits.h"
#include "server/command/command_context.h"
#include "server/server.h"
#include "store/value/hash.h"
#include "store/value/list.h"
#include "store/value/set.h"
#include "store/value/sorted_set.h"

namespace latchkey::commands {

using namespace server;
using store::Hash;
using store::KeyRef;
using store::List;
using store::Set;
using store::SortedSet;

namespace {

// --- The request --------------------------------------------------------------------------------

// Maps each element to a value: "#" to the element itself, "weight_*" to the string at the key that
// has the element in place of the star, "person_*->age" to a field of the hash at such a key. Any
// other text maps to nothing.
class Pattern {
 public:
  explicit Pattern(std::string_view text) : is_element_(text == "#") {
    const size_t star = text.find('*');
    if (star == text.npos) return;
    names_key_ = true;
    before_ = text.substr(0, star);
    after_ = text.substr(star + 1);
    const size_t arrow = after_.find("->");
    if (arrow == after_.npos || arrow + 2 == after_.size()) return;
    field_ = after_.substr(arrow + 2);
    after_ = after_.substr(0, arrow);
  }

  bool names_key() const { return names_key_; }

  // The value for that element, or nothing. Valid until the next call.
  std::optional<std::string_view> find(CommandContext& ctx, std::string_view element) {
    if (is_element_) return element;
    if (!names_key_) return std::nullopt;
    key_.assign(before_).append(element).append(after_);
    KeyRef ref = ctx.db.find(key_);
    if (!ref) return std::nullopt;
    if (!field_.empty()) {
      if (ref->type() != Hash::kType) return std::nullopt;
      expire_fields(ctx, ref, Arguments(&field_, 1));
      if (!ref) return std::nullopt;
      return view_of<Hash>(ref)->get(field_, scratch_);
    }
    if (!ref->is_string()) return std::nullopt;
    return ref->string(scratch_);
  }

 private:
  bool is_element_ = false;
  bool names_key_ = false;
  std::string_view before_;
  std::string_view after_;
  std::string_view field_;  // empty: the key is a string
  std::string key_;
  char scratch_[Hash::kScratch];
};

struct SortRequest {
  int64_t offset = 0;
  int64_t count = -1;  // negative: all
  bool descending = false;
  bool alphabetic = false;
  bool as_they_are = false;   // BY nosort: not sorted at all
  std::optional<Pattern> by;  // empty: by the elements themselves
  std::vector<Pattern> gets;  // empty: the elements themselves
  bool stores = false;
  std::string_view target;
};

// The keys of patterns are only known during execution, so the user must be permitted to read all
// keys. False, with the error sent, when the client's user is not.
bool may_use_patterns(CommandContext& ctx, std::string_view option) {
  const auto& user = ctx.client.user;
  const acl::Place place{.database = ctx.db.index(), .databases = ctx.server.database_count()};
  if (!ctx.client.has(kClientRestricted) || user->may_read_all_keys(ctx.command, ctx.args, place))
    return true;
  return ctx.refuse("ERR " + std::string(option) +
                    " option of SORT denied due to insufficient ACL permissions.");
}

// In a cluster, the keys of a pattern must be in the slot of the sorted key; before Redis 7.4 and
// Valkey 8.0 there are no patterns there. False, with the error sent, when it may not be used.
bool check_slot(CommandContext& ctx, std::string_view option, std::string_view pattern) {
  const bool audited = ctx.server.cluster_audit().is_sampling();
  if (!ctx.server.in_cluster() && !audited) return true;
  if (ctx.server.in_cluster() && !ctx.server.edition().has({7, 4}, {8, 0}))
    return ctx.refuse("ERR " + std::string(option) + " option of SORT denied in Cluster mode.");
  if (pattern == "#") return true;
  if (store::pattern_slot(pattern) == store::key_slot(ctx.args[1])) return true;
  ctx.server.cluster_audit().count_incompatible();
  if (!ctx.server.in_cluster()) return true;
  return ctx.refuse(
      "ERR " + std::string(option) +
      " option of SORT denied in Cluster mode when keys formed by the pattern may be in "
      "different slots.");
}

// False, with the error sent, when the options are invalid.
bool read_sort(CommandContext& ctx, bool may_store, SortRequest* request) {
  std::string_view text;
  for (ArgReader options(ctx.args, 2); options.more();) {
    if (options.word("ASC")) {
      request->descending = false;
    } else if (options.word("DESC")) {
      request->descending = true;
    } else if (options.word("ALPHA")) {
      request->alphabetic = true;
    } else if (options.left() >= 3 && options.word("LIMIT")) {
      if (!ctx.read_int64(options.next(), &request->offset)) return false;
      if (!ctx.read_int64(options.next(), &request->count)) return false;
    } else if (may_store && options.word("STORE", &request->target)) {
      request->stores = true;
    } else if (options.word("BY", &text)) {
      request->by.emplace(text);
      request->as_they_are |= !request->by->names_key();
      if (request->by->names_key() && !(check_slot(ctx, "BY", text) && may_use_patterns(ctx, "BY")))
        return false;
    } else if (options.word("GET", &text)) {
      request->gets.emplace_back(text);
      if (!check_slot(ctx, "GET", text)) return false;
      if (!may_use_patterns(ctx, "GET")) return false;
    } else {
      ctx.syntax_error();
      return false;
    }
  }
  return true;
}

// --- The elements -------------------------------------------------------------------------------

struct Element {
  std::string_view text;
  double number = 0;
  std::optional<std::string_view> weight;  // the BY value, if it is compared as text
};

struct Range {
  size_t first;
  size_t end;
  size_t count() const { return end - first; }
};

Range range_of(const SortRequest& request, size_t size) {
  const auto whole = static_cast<int64_t>(size);
  const int64_t first = std::clamp<int64_t>(request.offset, 0, whole);
  const int64_t left = whole - first;
  const int64_t count = request.count < 0 ? left : std::min(request.count, left);
  return {static_cast<size_t>(first), static_cast<size_t>(first + count)};
}

// The elements of one request. Their texts are copied, so that looking up other keys, which may
// remove expired ones, does not invalidate them.
class Elements {
 public:
  std::vector<Element> all;

  void add(std::string_view text) { all.push_back({keep(text), 0, std::nullopt}); }
  // A copy of `text` that is followed by a NUL.
  std::string_view keep(std::string_view text) {
    auto* bytes = static_cast<char*>(memory_.allocate(text.size() + 1, 1));
    *std::copy(text.begin(), text.end(), bytes) = '\0';
    return {bytes, text.size()};
  }

 private:
  std::pmr::monotonic_buffer_resource memory_;
};

bool is_sortable(const KeyRef& ref) {
  return ref->type() == List::kType || ref->type() == Set::kType || ref->type() == SortedSet::kType;
}

// Adds a range of the list; `from_behind` counts its indexes from the end of the list.
void add_list(const List& list, Range range, bool from_behind, Elements& elements) {
  char scratch[store::Listpack::kScratch];
  if (range.count() == 0) return;
  const auto first = static_cast<int64_t>(range.first);
  List::Cursor cursor = list.at(from_behind ? -1 - first : first);
  for (size_t left = range.count(); left > 0; --left) {
    elements.add(list.get(cursor).text(scratch));
    cursor = from_behind ? list.previous(cursor) : list.next(cursor);
  }
  list.recompress();
}

// Adds the elements in their own order; those of a set have none. Without sorting, adds only the
// requested range of lists and sorted sets; of sets always all.
void load(store::Keyspace& keyspace, const KeyRef& ref, const SortRequest& request,
          Elements& elements) {
  const size_t size = ref->element_count();
  const bool in_part = request.as_they_are && ref->type() != Set::kType;
  const Range range = in_part ? range_of(request, size) : Range{0, size};
  const bool from_behind = request.as_they_are && request.descending;
  elements.all.reserve(range.count());
  if (ref->type() == List::kType) {
    add_list(*view_of<List>(ref), range, from_behind, elements);
  } else if (ref->type() == Set::kType) {
    view_of<Set>(ref)->for_each([&](std::string_view member) { elements.add(member); });
  } else {
    const size_t first = from_behind ? size - range.end : range.first;
    // Sorting converts the set to the large encoding permanently, as OBJECT ENCODING shows in the
    // reference too.
    keyspace.will_change(ref);
    SortedSet& set = value_of<SortedSet>(ref);
    set.expect(std::numeric_limits<size_t>::max());
    set.for_each({first, range.count()}, from_behind,
                 [&](std::string_view member, double) { elements.add(member); });
  }
}

// --- Sorting ------------------------------------------------------------------------------------

// Parses a text, up to its first NUL, as a number to sort by. An empty text is 0; a number too
// large or too small for a double is infinite or 0. False for anything else.
bool parse_weight(const CommandContext& ctx, std::string_view text, double* number) {
  text = base::up_to_nul(text);
  *number = 0;
  if (text.empty()) return true;
  if (is_old_number(ctx, text)) return base::parse_double(text, number);
  if (text.front() == '+') {
    text.remove_prefix(1);
    if (text.empty() || text.front() == '-') return false;
  }
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, *number);
  if (result.ec == std::errc::invalid_argument || result.ptr != end) return false;
  if (result.ec == std::errc::result_out_of_range)
    *number = std::strtod(std::string(text).c_str(), nullptr);
  return !std::isnan(*number);
}

// Copies of weights. A list may have one element millions of times, whose weight may be large: it
// is copied once.
class KeptWeights {
 public:
  KeptWeights(const base::HashSecret& secret, Elements& elements)
      : elements_(elements), large_(0, base::KeyedTextHash{&secret}) {}

  std::string_view keep(std::string_view element, std::string_view weight) {
    constexpr size_t kLarge = 256;
    if (weight.size() < kLarge) return elements_.keep(weight);
    const auto [known, is_new] = large_.try_emplace(element);
    if (is_new) known->second = elements_.keep(weight);
    return known->second;
  }

 private:
  Elements& elements_;
  std::unordered_map<std::string_view, std::string_view, base::KeyedTextHash, std::equal_to<>>
      large_;  // by element
};

// Looks up the sort key of each element. False when it must be a number and is not.
bool weigh(CommandContext& ctx, SortRequest& request, Elements& elements) {
  bool all_numbers = true;
  KeptWeights weights(ctx.db.environment().secret, elements);
  for (Element& element : elements.all) {
    std::optional<std::string_view> weight = element.text;
    if (request.by) weight = request.by->find(ctx, element.text);
    if (!weight) continue;
    if (!request.alphabetic) {
      all_numbers &= parse_weight(ctx, *weight, &element.number);
    } else if (request.by) {
      element.weight = weights.keep(element.text, *weight);
    }
  }
  return all_numbers;
}

// The order of the elements: negative, 0 or positive if the first is before, equal to or behind the
// second.
class Order {
 public:
  // A stored result must not depend on the locale of this server.
  Order(const SortRequest& request, const base::Collation& collation)
      : request_(request), collation_(request.stores ? nullptr : &collation) {}

  int compare(const Element& first, const Element& second) const {
    if (!request_.alphabetic) {
      if (first.number != second.number) return first.number < second.number ? -1 : 1;
      return first.text.compare(second.text);
    }
    if (!request_.by) return compare_texts(first.text, second.text);
    // Elements without a weight come first.
    if (!first.weight || !second.weight)
      return static_cast<int>(first.weight.has_value()) -
             static_cast<int>(second.weight.has_value());
    // KeptWeights has one large weight for all that are equal because the elements are.
    if (first.weight->data() == second.weight->data()) return 0;
    return compare_texts(*first.weight, *second.weight);
  }

 private:
  // Compares texts from Elements::keep(), which are followed by a NUL.
  int compare_texts(std::string_view first, std::string_view second) const {
    if (collation_ == nullptr) return first.compare(second);
    return collation_->compare(first.data(), second.data());
  }

  const SortRequest& request_;
  const base::Collation* collation_;  // null: by bytes
};

// Puts the elements of the range in order; equal elements keep their order.
void sort_range(const SortRequest& request, const Order& asked, Range range,
                std::vector<Element>& elements) {
  std::vector<uint32_t> order;
  order.reserve(elements.size());
  for (size_t i = 0; i < elements.size(); ++i) order.push_back(static_cast<uint32_t>(i));
  const auto before = [&](uint32_t left, uint32_t right) {
    const int result = asked.compare(elements[left], elements[right]);
    if (result == 0) return left < right;
    return request.descending ? result > 0 : result < 0;
  };
  const auto at = [&](size_t index) { return order.begin() + static_cast<ptrdiff_t>(index); };
  if (range.count() == elements.size()) {
    std::sort(order.begin(), order.end(), before);
  } else {
    if (range.first > 0) std::nth_element(order.begin(), at(range.first), order.end(), before);
    std::partial_sort(at(range.first), at(range.end), order.end(), before);
  }
  std::vector<Element> sorted;
  sorted.reserve(range.count());
  for (size_t i = range.first; i < range.end; ++i) sorted.push_back(elements[order[i]]);
  elements = std::move(sorted);
}

// --- The result ---------------------------------------------------------------------------------

// Calls fn(std::optional<std::string_view>) for each value of the result, in order. Ends when the
// reply is lost: many elements may have one large value.
template <typename Fn>
void for_each_value(CommandContext& ctx, SortRequest& request, const Elements& elements, Fn&& fn) {
  for (const Element& element : elements.all) {
    if (request.gets.empty()) fn(std::optional(element.text));
    for (Pattern& pattern : request.gets) {
      if (reply_is_lost(ctx.client)) return;
      fn(pattern.find(ctx, element.text));
    }
  }
}

void reply_values(CommandContext& ctx, SortRequest& request, const Elements& elements,
                  size_t count) {
  ctx.reply.array(count);
  for_each_value(ctx, request, elements, [&](std::optional<std::string_view> value) {
    value ? ctx.reply.bulk(*value) : ctx.reply.null();
  });
}

void store_values(CommandContext& ctx, SortRequest& request, const Elements& elements,
                  size_t count) {
  const store::ValueLimits& limits = ctx.db.environment().limits;
  auto list = std::make_unique<List>();
  for_each_value(ctx, request, elements, [&](std::optional<std::string_view> value) {
    const std::string_view text = value.value_or(std::string_view());
    list->will_grow(text.size(), 1, limits);
    list->push_back(text, limits);
  });
  list->recompress();
  KeyRef target = ctx.db.find_to_replace(request.target);
  if (count != 0) {
    ctx.db.set_value(target, List::kType, std::move(list));
    ctx.changed(request.target, EventClass::kList, "sortstore");
    ctx.events.count(count - 1);
  } else if (target) {
    ctx.db.erase(target);
    ctx.removed(request.target);
  }
  ctx.reply.integer(static_cast<int64_t>(count));
}

void sort_key(CommandContext& ctx, bool may_store) {
  SortRequest request;
  if (!read_sort(ctx, may_store, &request)) return;
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  if (ref && !is_sortable(ref)) return ctx.wrong_type();
  const bool is_set = ref && ref->type() == Set::kType;
  // A stored result, or the result in a script, must not depend on the encoding of a set.
  if (request.as_they_are && is_set && (request.stores || ctx.client.has(kClientScript))) {
    request.as_they_are = false;
    request.alphabetic = true;
    request.by.reset();
  }

  Elements elements;
  if (ref) load(ctx.db, ref, request, elements);
  const Range range = range_of(request, elements.all.size());
  if (!request.as_they_are) {
    if (!weigh(ctx, request, elements))
      return ctx.reply.error("ERR One or more scores can't be converted into double");
    sort_range(request, Order(request, ctx.server.collation()), range, elements.all);
  } else if (is_set) {
    elements.all.erase(elements.all.begin(),
                       elements.all.begin() + static_cast<ptrdiff_t>(range.first));
    elements.all.resize(range.count());
  }

  const size_t count = elements.all.size() * std::max<size_t>(request.gets.size(), 1);
  request.stores ? store_values(ctx, request, elements, count)
                 : reply_values(ctx, request, elements, count);
}

void sort(CommandContext& ctx) {
  sort_key(ctx, true);
}

void sort_ro(CommandContext& ctx) {
  sort_key(ctx, false);
}

// The sorted key, and the key of the last STORE.
bool find_sort_keys(Arguments words, std::vector<KeyReference>* out) {
  out->push_back({1, kKeyReadOnly | kKeyAccess});
  std::optional<size_t> target;
  ArgReader options(words, 2);
  while (options.more()) {
    if (options.word("LIMIT")) {
      for (int skipped = 0; skipped < 2 && options.more(); ++skipped) options.next();
    } else if (std::string_view pattern;
               options.word("BY", &pattern) || options.word("GET", &pattern)) {
      continue;
    } else if (options.left() >= 2 && options.word("STORE")) {
      target = options.position();
      options.next();
    } else {
      options.next();
    }
  }
  if (target) out->push_back({static_cast<uint32_t>(*target), kKeyOverwrite | kKeyUpdate});
  return true;
}

bool find_sort_ro_keys(Arguments, std::vector<KeyReference>* out) {
  out->push_back({1, kKeyReadOnly | kKeyAccess});
  return true;
}

constexpr CommandRow kSortRows[] = {
    {"SORT",
     sort,
     "key [BY by-pattern(pattern):pattern#1] [LIMIT limit=offset count] [GET "
     "get-pattern(pattern):pattern#1]... [order=ASC|DESC] [sorting=ALPHA] [STORE destination#2]",
     kWrite | kDenyOom,
     keys(1).ro().access() +
         unknown_keys().ro().access().note(
             "For the optional BY/GET keyword. It is marked 'unknown' because the key names derive "
             "from the content of the key we sort") +
         unknown_keys().ow().update().note(
             "For the optional STORE keyword. It is marked 'unknown' because the keyword can "
             "appear anywhere in the argument array"),
     kAclSet | kAclSortedSet | kAclList | kAclDangerous,
     Group::kGeneric,
     "1.0.0",
     "O(N+M*log(M)) where N is the number of elements in the list or set to sort, and M the number "
     "of returned elements. When the elements are not sorted, complexity is O(N).",
     "Sorts the elements in a list, a set, or a sorted set, optionally storing the result.",
     {.find_keys = find_sort_keys}},
    {"SORT_RO",
     sort_ro,
     "key [BY by-pattern(pattern):pattern#1] [LIMIT limit=offset count] [GET "
     "get-pattern(pattern):pattern#1]... [order=ASC|DESC] [sorting=ALPHA]",
     kReadOnly,
     keys(1).ro().access() + unknown_keys().ro().access().note(
                                 "For the optional BY/GET keyword. It is marked 'unknown' because "
                                 "the key names derive from the content of the key we sort"),
     kAclSet | kAclSortedSet | kAclList | kAclDangerous,
     Group::kGeneric,
     "7.0.0",
     "O(N+M*log(M)) where N is the number of elements in the list or set to sort, and M the number "
     "of returned elements. When the elements are not sorted, complexity is O(N).",
     "Returns the sorted elements of a list, a set, or a sorted set.",
     {.find_keys = find_sort_ro_keys}},
};

}  // namespace

std::span<const CommandRow> sort_rows() {
  return kSortRows;
}

}  // namespace latchkey::commands

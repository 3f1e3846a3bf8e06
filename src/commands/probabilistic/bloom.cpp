// Bloom filters: BF.RESERVE, BF.ADD, BF.INSERT, BF.EXISTS and related commands.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "base/text/number.h"
#include "base/text/text.h"
#include "commands/groups.h"
#include "commands/probabilistic/filter_steps.h"
#include "server/config/config_values.h"
#include "server/server.h"
#include "store/probabilistic/bloom_filter.h"

namespace latchkey::commands {

using namespace server;
using store::BloomFilter;
using store::KeyRef;

namespace {

// --- Making filters ------------------------------------------------------------------------------

// What a new filter is like.
struct NewFilter {
  double error_rate = 0;
  uint64_t capacity = 0;
  uint32_t expansion = 0;
  bool is_fixed = false;
};

NewFilter configured_filter(const CommandContext& ctx) {
  const ConfigValues& settings = ctx.server.settings();
  NewFilter filter;
  // The directive accepts nothing else.
  const bool is_number = base::parse_double(settings.bf_error_rate, &filter.error_rate);
  LK_ASSERT(is_number);
  filter.capacity = settings.bf_initial_size;
  filter.expansion = settings.bf_expansion_factor;
  filter.is_fixed = filter.expansion == 0;
  return filter;
}

bool is_error_rate(double rate) {
  return rate > 0 && rate < 1;
}

bool is_capacity(int64_t capacity) {
  return capacity >= 1 && static_cast<uint64_t>(capacity) <= BloomFilter::kMaxCapacity;
}

bool is_expansion(int64_t expansion) {
  return expansion >= 0 && expansion <= BloomFilter::kMaxExpansion;
}

// Sets the key, which there is not yet, to a new filter. False with an error sent.
bool make_filter(CommandContext& ctx, KeyRef& ref, const NewFilter& wanted) {
  BloomFilter::Failure failure;
  auto filter = BloomFilter::make(wanted.capacity, wanted.error_rate, wanted.expansion,
                                  wanted.is_fixed, &failure);
  if (filter == nullptr)
    return ctx.refuse(failure == BloomFilter::Failure::kNoMemory
                          ? "ERR Insufficient memory to create filter"
                          : "ERR could not create filter");
  ctx.db.set_value(ref, BloomFilter::kType, std::move(filter));
  return true;
}

// --- BF.RESERVE ----------------------------------------------------------------------------------

// The options of BF.RESERVE, of which other words are ignored. False with an error sent.
bool read_reserve_options(CommandContext& ctx, NewFilter* filter) {
  const Arguments options = ctx.args.subspan(4);
  const auto named = [options](std::string_view name) {
    return std::find_if(options.begin(), options.end(),
                        [name](std::string_view word) { return is_word(word, name); });
  };
  filter->is_fixed = filter->is_fixed || named("NONSCALING") != options.end();
  const auto expansion = named("EXPANSION");
  if (expansion == options.end()) return true;
  if (expansion + 1 == options.end()) return ctx.refuse("ERR no expansion");
  int64_t number;
  if (!ctx.read_int64(expansion[1], &number, "ERR bad expansion")) return false;
  if (filter->is_fixed && number != 0) return ctx.refuse("Nonscaling filters cannot expand");
  if (!is_expansion(number)) return ctx.refuse("ERR expansion must be in the range [0, 32768]");
  filter->expansion = static_cast<uint32_t>(number);
  return true;
}

void bf_reserve(CommandContext& ctx) {
  constexpr size_t kMostWords = 7;
  if (ctx.args.size() > kMostWords) return ctx.wrong_arity();
  NewFilter filter = configured_filter(ctx);
  if (!ctx.read_double(ctx.args[2], &filter.error_rate, "ERR bad error rate")) return;
  if (!is_error_rate(filter.error_rate))
    return ctx.reply.error("ERR error rate must be in the range (0.000000, 1.000000)");
  int64_t capacity;
  if (!ctx.read_int64(ctx.args[3], &capacity, "ERR bad capacity")) return;
  if (!is_capacity(capacity))
    return ctx.reply.error("ERR capacity must be in the range [1, 1073741824]");
  filter.capacity = static_cast<uint64_t>(capacity);
  if (!read_reserve_options(ctx, &filter)) return;
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  if (!ctx.is_type(ref, BloomFilter::kType)) return;
  if (ref) return ctx.reply.error("ERR item exists");
  if (!make_filter(ctx, ref, filter)) return;
  value_changed(ctx);
  ctx.reply.ok();
}

// --- Adding --------------------------------------------------------------------------------------

// Sends what became of an item. False when the filter takes no further ones.
bool reply_added(CommandContext& ctx, BloomFilter::Outcome outcome) {
  switch (outcome) {
    case BloomFilter::Outcome::kAdded:
    case BloomFilter::Outcome::kPresent:
      ctx.reply.boolean(outcome == BloomFilter::Outcome::kAdded);
      return true;
    case BloomFilter::Outcome::kFull:
      return ctx.refuse("ERR non scaling filter is full");
    case BloomFilter::Outcome::kNoLayer:
      ctx.reply.error("ERR problem inserting into filter");
      return true;
  }
  return false;
}

// Adds items, up to the one at which a filter that does not grow is full. Makes the filter if there
// is none: `wanted`, or null for what is configured.
void add_items(CommandContext& ctx, KeyRef& ref, const NewFilter* wanted, Arguments items,
               bool as_array) {
  const bool is_new = !ref;
  if (!ctx.is_type(ref, BloomFilter::kType)) return;
  if (is_new && !make_filter(ctx, ref, wanted != nullptr ? *wanted : configured_filter(ctx)))
    return;
  auto& filter = value_of<BloomFilter>(ref);
  const uint64_t items_before = filter.items();
  size_t replies = 0;
  const auto add_next = [&] { return reply_added(ctx, filter.add(items[replies++])); };
  if (as_array) {
    const resp::ReplyBuilder::Later later = ctx.reply.later();
    while (replies < items.size() && add_next()) {
    }
    ctx.reply.array_later(later, replies);
  } else {
    add_next();
  }
  if (is_new || filter.items() != items_before) value_changed(ctx);
}

void bf_add(CommandContext& ctx) {
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  add_items(ctx, ref, nullptr, ctx.args.subspan(2), false);
}

void bf_madd(CommandContext& ctx) {
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  add_items(ctx, ref, nullptr, ctx.args.subspan(2), true);
}

struct Insertion {
  NewFilter filter;
  bool may_create = true;
  Arguments items;
};

// The value of an option of BF.INSERT. False with an error sent.
bool read_capacity(CommandContext& ctx, std::string_view text, NewFilter* filter) {
  int64_t capacity;
  if (!base::parse_int64(text, &capacity) || !is_capacity(capacity))
    return ctx.refuse("Bad capacity");
  filter->capacity = static_cast<uint64_t>(capacity);
  return true;
}

bool read_error_rate(CommandContext& ctx, std::string_view text, NewFilter* filter) {
  if (base::parse_double(text, &filter->error_rate) && is_error_rate(filter->error_rate))
    return true;
  return ctx.refuse("Bad error rate");
}

bool read_expansion(CommandContext& ctx, std::string_view text, NewFilter* filter) {
  int64_t expansion;
  if (!base::parse_int64(text, &expansion) || !is_expansion(expansion))
    return ctx.refuse("Bad expansion");
  filter->expansion = static_cast<uint32_t>(expansion);
  return true;
}

// The words of BF.INSERT up to ITEMS. As in the reference, a few letters tell which word it is: the
// first, of ERROR and EXPANSION the second, of NOCREATE and NONSCALING the third. False with an
// error sent.
bool read_insertion(CommandContext& ctx, Insertion* insertion) {
  ArgReader args(ctx.args, 2);
  NewFilter& filter = insertion->filter;
  while (args.more()) {
    const std::string word = base::lower_case(args.next());
    const char letter = word.empty() ? '\0' : word[0];
    if (letter == 'i') {
      insertion->items = args.rest();
      break;
    }
    if (letter == 'n') {
      const bool is_nocreate = word.size() > 2 && word[2] == 'c';
      (is_nocreate ? insertion->may_create : filter.is_fixed) = !is_nocreate;
      continue;
    }
    if (letter != 'c' && letter != 'e') return ctx.refuse("Unknown argument received");
    if (!args.more()) break;
    const std::string_view value = args.next();
    const bool is_rate = letter == 'e' && word.size() > 1 && word[1] == 'r';
    const bool is_read = letter == 'c' ? read_capacity(ctx, value, &filter)
                         : is_rate     ? read_error_rate(ctx, value, &filter)
                                       : read_expansion(ctx, value, &filter);
    if (!is_read) return false;
  }
  if (!insertion->items.empty()) return true;
  ctx.wrong_arity();
  return false;
}

void bf_insert(CommandContext& ctx) {
  Insertion insertion;
  insertion.filter = configured_filter(ctx);
  if (!read_insertion(ctx, &insertion)) return;
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  if (!ref && !insertion.may_create) return ctx.reply.error("ERR not found");
  add_items(ctx, ref, &insertion.filter, insertion.items, true);
}

// --- Reading -------------------------------------------------------------------------------------

void bf_exists(CommandContext& ctx) {
  reply_whether_contained<BloomFilter>(ctx, ctx.args.subspan(2), false);
}

void bf_mexists(CommandContext& ctx) {
  reply_whether_contained<BloomFilter>(ctx, ctx.args.subspan(2), true);
}

void bf_card(CommandContext& ctx) {
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  if (!ref) return ctx.reply.integer(0);
  const auto* filter = value_at<BloomFilter>(ctx, ref);
  if (filter != nullptr) ctx.reply.integer(static_cast<int64_t>(filter->items()));
}

struct InfoField {
  // As a request names it, and as a reply does.
  std::string_view word;
  std::string_view name;
  uint64_t (*value)(const BloomFilter& filter);
};

constexpr InfoField kInfoFields[] = {
    {"CAPACITY", "Capacity", [](const BloomFilter& filter) { return filter.capacity(); }},
    {"SIZE", "Size", [](const BloomFilter& filter) { return uint64_t{filter.reported_size()}; }},
    {"FILTERS", "Number of filters",
     [](const BloomFilter& filter) { return uint64_t{filter.layers().size()}; }},
    {"ITEMS", "Number of items inserted", [](const BloomFilter& filter) { return filter.items(); }},
    {"EXPANSION", "Expansion rate",
     [](const BloomFilter& filter) { return uint64_t{filter.expansion()}; }},
};

void reply_info_value(CommandContext& ctx, const BloomFilter& filter, const InfoField& field) {
  if (filter.is_fixed() && field.word == "EXPANSION") return ctx.reply.null();
  ctx.reply.integer(static_cast<int64_t>(field.value(filter)));
}

void bf_info(CommandContext& ctx) {
  if (ctx.args.size() > 3) return ctx.wrong_arity();
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  const auto* filter = filter_at<BloomFilter>(ctx, ref);
  if (filter == nullptr) return;
  if (ctx.args.size() == 2) {
    ctx.reply.map(std::size(kInfoFields));
    for (const InfoField& field : kInfoFields) {
      ctx.reply.status(field.name);
      reply_info_value(ctx, *filter, field);
    }
    return;
  }
  for (const InfoField& field : kInfoFields) {
    if (!is_word(ctx.args[2], field.word)) continue;
    ctx.reply.is_resp3() ? ctx.reply.map(1) : ctx.reply.array(1);
    if (ctx.reply.is_resp3()) ctx.reply.status(field.name);
    return reply_info_value(ctx, *filter, field);
  }
  ctx.reply.error("Invalid information value");
}

void bf_debug(CommandContext& ctx) {
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  const auto* filter = filter_at<BloomFilter>(ctx, ref);
  if (filter == nullptr) return;
  const int hash_bits = (filter->options() & BloomFilter::kHash64) != 0 ? 64 : 32;
  ctx.reply.array(filter->layers().size() + 1);
  ctx.reply.bulk("size:" + std::to_string(filter->items()));
  for (const BloomFilter::Layer& layer : filter->layers()) {
    const BloomFilter::LayerShape& shape = layer.shape;
    char ratio[32];
    std::snprintf(ratio, sizeof ratio, "%g", shape.error_rate);
    ctx.reply.bulk("bytes:" + std::to_string(shape.bytes) + " bits:" + std::to_string(shape.bits) +
                   " hashes:" + std::to_string(shape.hashes) + " hashwidth:" +
                   std::to_string(hash_bits) + " capacity:" + std::to_string(shape.capacity) +
                   " size:" + std::to_string(shape.items) + " ratio:" + ratio);
  }
}

// --- Dumps ---------------------------------------------------------------------------------------

void bf_scandump(CommandContext& ctx) {
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  const auto* filter = filter_at<BloomFilter>(ctx, ref);
  if (filter == nullptr) return;
  int64_t position;
  if (!ctx.read_int64(ctx.args[2], &position, "Second argument must be numeric")) return;
  ctx.reply.array(2);
  if (position == 0) {
    ctx.reply.integer(1);
    return ctx.reply.bulk(filter->header());
  }
  const BloomFilter::Chunk chunk =
      position < 0 ? BloomFilter::Chunk{} : filter->chunk(static_cast<uint64_t>(position));
  ctx.reply.integer(chunk.next);
  ctx.reply.bulk(chunk.bytes);
}

void load_header(CommandContext& ctx, KeyRef& ref) {
  auto filter = BloomFilter::from_header(ctx.args[3]);
  if (filter == nullptr) return ctx.reply.error("ERR received bad data");
  ctx.db.set_value(ref, BloomFilter::kType, std::move(filter));
  value_changed(ctx);
  ctx.reply.ok();
}

void bf_loadchunk(CommandContext& ctx) {
  int64_t position;
  if (!ctx.read_int64(ctx.args[2], &position, "ERR Second argument must be numeric")) return;
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  if (!ref && position == 1) return load_header(ctx, ref);
  auto* filter = filter_at<BloomFilter>(ctx, ref);
  if (filter == nullptr) return;
  switch (filter->load_chunk(position, ctx.args[3])) {
    case BloomFilter::Load::kDone:
      value_changed(ctx);
      return ctx.reply.ok();
    case BloomFilter::Load::kBadData:
      return ctx.reply.error("ERR received bad data");
    case BloomFilter::Load::kNoLayer:
      return ctx.reply.error("ERR invalid offset - no link found");
    case BloomFilter::Load::kTooLarge:
      return ctx.reply.error("ERR invalid chunk - Too big for current filter");
  }
}

constexpr const char* kOneItem = "O(K), K being the number of hashes of all layers";
constexpr const char* kItemsAndHashes =
    "O(N*K), N being the number of items and K the number of hashes of all layers";
constexpr const char* kOfBytes = "O(N), N being the size of the part in bytes";
constexpr CommandExtras kNotCached = {.tips = "dont_cache", .module = "bf"};

constexpr CommandRow kBloomFilterRows[] = {
    {"BF.ADD", bf_add, "key item", kWrite | kDenyOom | kModule, keys(1).rw(), kAclBloom,
     Group::kModule, "8.0.0", kOneItem,
     "Adds an item to a Bloom filter. Creates the filter if the key doesn't exist.", kOfFilters},
    {"BF.CARD", bf_card, "key", kReadOnly | kModule | kFast, keys(1).ro(), kAclBloom,
     Group::kModule, "8.0.0", "O(1)",
     "Returns the number of items that were added to a Bloom filter.", kOfFilters},
    {"BF.DEBUG", bf_debug, "key", kReadOnly | kModule | kFast, keys(1).ro(), kAclBloom,
     Group::kModule, "8.0.0", "O(N), N being the number of layers",
     "Describes the layers of a Bloom filter.", kNotCached},
    {"BF.EXISTS", bf_exists, "key item", kReadOnly | kModule | kFast, keys(1).ro(), kAclBloom,
     Group::kModule, "8.0.0", kOneItem,
     "Determines whether an item may have been added to a Bloom filter.", kOfFilters},
    {"BF.INFO", bf_info, "key [single_value=CAPACITY|SIZE|FILTERS|ITEMS|EXPANSION]",
     kReadOnly | kModule | kFast, keys(1).ro(), kAclBloom, Group::kModule, "8.0.0",
     "O(N), N being the number of layers", "Returns one or all figures of a Bloom filter.",
     kNotCached},
    {"BF.INSERT", bf_insert,
     "key [CAPACITY capacity:integer] [ERROR error:double] [EXPANSION expansion:integer] "
     "[NOCREATE] [NONSCALING] ITEMS item...",
     kWrite | kDenyOom | kModule, keys(1).rw(), kAclBloom, Group::kModule, "8.0.0", kItemsAndHashes,
     "Adds items to a Bloom filter. Creates the filter, with the given properties, if the key "
     "doesn't exist.",
     kOfFilters},
    {"BF.LOADCHUNK", bf_loadchunk, "key iterator:integer data", kWrite | kDenyOom | kModule,
     keys(1).rw(), kAclBloom, Group::kModule, "8.0.0", kOfBytes,
     "Restores a part of a Bloom filter that BF.SCANDUMP gave.", kOfFilters},
    {"BF.MADD", bf_madd, "key item...", kWrite | kDenyOom | kModule, keys(1).rw(), kAclBloom,
     Group::kModule, "8.0.0", kItemsAndHashes,
     "Adds items to a Bloom filter. Creates the filter if the key doesn't exist.", kOfFilters},
    {"BF.MEXISTS", bf_mexists, "key item...", kReadOnly | kModule | kFast, keys(1).ro(), kAclBloom,
     Group::kModule, "8.0.0", kItemsAndHashes,
     "Determines whether items may have been added to a Bloom filter.", kOfFilters},
    {"BF.RESERVE", bf_reserve,
     "key error_rate:double capacity:integer [EXPANSION expansion:integer] [NONSCALING]",
     kWrite | kDenyOom | kModule, keys(1).rw(), kAclBloom, Group::kModule, "8.0.0", "O(1)",
     "Creates an empty Bloom filter.", kOfFilters},
    {"BF.SCANDUMP", bf_scandump, "key iterator:integer", kReadOnly | kModule | kFast, keys(1).rw(),
     kAclBloom, Group::kModule, "8.0.0", kOfBytes, "Returns a part of a Bloom filter, to save it.",
     kNotCached},
};

}  // namespace

std::span<const CommandRow> bloom_filter_rows() {
  return kBloomFilterRows;
}

}  // namespace latchkey::commands

// Cuckoo filters: CF.RESERVE, CF.ADD, CF.INSERT, CF.DEL and related commands.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/text/number.h"
#include "base/text/text.h"
#include "commands/groups.h"
#include "commands/probabilistic/filter_steps.h"
#include "server/config/config_values.h"
#include "server/server.h"
#include "store/probabilistic/cuckoo_filter.h"

namespace latchkey::commands {

using namespace server;
using store::CuckooFilter;
using store::KeyRef;

namespace {

// --- Making filters ------------------------------------------------------------------------------

// What a new filter is like.
struct NewFilter {
  int64_t capacity;
  int64_t bucket_size;
  int64_t max_iterations;
  int64_t expansion;
};

NewFilter configured_filter(const CommandContext& ctx) {
  const ConfigValues& settings = ctx.server.settings();
  return {settings.cf_initial_size, settings.cf_bucket_size, settings.cf_max_iterations,
          settings.cf_expansion_factor};
}

bool is_capacity(const NewFilter& filter) {
  return filter.capacity >= 2 * filter.bucket_size &&
         filter.capacity <= static_cast<int64_t>(CuckooFilter::kMaxCapacity);
}

// Sets the key, which there is not yet, to a new filter. False with an error sent.
bool make_filter(CommandContext& ctx, KeyRef& ref, const NewFilter& wanted) {
  auto filter = CuckooFilter::make(
      static_cast<uint64_t>(wanted.capacity), static_cast<uint16_t>(wanted.bucket_size),
      static_cast<uint16_t>(wanted.max_iterations), static_cast<uint16_t>(wanted.expansion));
  if (filter == nullptr) return ctx.refuse("ERR Insufficient memory to create filter");
  ctx.db.set_value(ref, CuckooFilter::kType, std::move(filter));
  return true;
}

// --- CF.RESERVE ----------------------------------------------------------------------------------

// An option of CF.RESERVE, if it is there. False with an error sent.
bool read_reserve_option(CommandContext& ctx, std::string_view name, int64_t least, uint64_t most,
                         int64_t* value) {
  const Arguments options = ctx.args.subspan(3);
  const auto option = std::find_if(options.begin(), options.end(),
                                   [name](std::string_view word) { return is_word(word, name); });
  if (option == options.end()) return true;
  if (option + 1 == options.end() || !base::parse_int64(option[1], value))
    return ctx.refuse("Couldn't parse " + std::string(name));
  if (*value >= least && *value <= static_cast<int64_t>(most)) return true;
  return ctx.refuse(std::string(name) + ": value must be in the range [" + std::to_string(least) +
                    ", " + std::to_string(most) + "]");
}

void cf_reserve(CommandContext& ctx) {
  constexpr size_t kFixedWords = 3;
  if ((ctx.args.size() - kFixedWords) % 2 != 0) return ctx.wrong_arity();
  NewFilter filter = configured_filter(ctx);
  if (!ctx.read_int64(ctx.args[2], &filter.capacity, "Bad capacity") ||
      !read_reserve_option(ctx, "MAXITERATIONS", 1, CuckooFilter::kMaxIterations,
                           &filter.max_iterations) ||
      !read_reserve_option(ctx, "BUCKETSIZE", 1, CuckooFilter::kMaxBucketSize,
                           &filter.bucket_size) ||
      !read_reserve_option(ctx, "EXPANSION", 0, CuckooFilter::kMaxExpansion, &filter.expansion))
    return;
  if (!is_capacity(filter))
    return ctx.reply.error("Capacity must be in the range [2 * BUCKETSIZE, 1073741824]");
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  if (!ctx.is_type(ref, CuckooFilter::kType)) return;
  if (ref) return ctx.reply.error("ERR item exists");
  if (!make_filter(ctx, ref, filter)) return;
  value_changed(ctx);
  ctx.reply.ok();
}

// --- Adding --------------------------------------------------------------------------------------

// How items are added, and the reply.
struct Addition {
  bool only_new = false;
  bool as_array = false;
  Arguments items;
  // Null: what is configured.
  const NewFilter* new_filter = nullptr;
};

void reply_added(CommandContext& ctx, const Addition& addition, CuckooFilter::Outcome outcome) {
  using Outcome = CuckooFilter::Outcome;
  const bool is_added = outcome == Outcome::kAdded;
  if (!addition.as_array && outcome == Outcome::kFull) return ctx.reply.error("Filter is full");
  if (!addition.as_array && outcome == Outcome::kNoMemory)
    return ctx.reply.error("ERR Insufficient memory");
  if (is_added || outcome == Outcome::kPresent) {
    // CF.INSERTNX replies with numbers, because it has three answers.
    return addition.as_array && addition.only_new ? ctx.reply.integer(is_added ? 1 : 0)
                                                  : ctx.reply.boolean(is_added);
  }
  const bool has_booleans = ctx.reply.is_resp3() && !addition.only_new;
  has_booleans ? ctx.reply.boolean(false) : ctx.reply.integer(-1);
}

// Adds the items. Makes the filter if there is none.
void add_items(CommandContext& ctx, KeyRef& ref, const Addition& addition) {
  const bool is_new = !ref;
  if (!ctx.is_type(ref, CuckooFilter::kType)) return;
  if (is_new &&
      !make_filter(ctx, ref,
                   addition.new_filter != nullptr ? *addition.new_filter : configured_filter(ctx)))
    return;
  if (is_new) value_changed(ctx);
  auto& filter = value_of<CuckooFilter>(ref);
  // As in the reference, not even what there is room for is added then.
  if (static_cast<int64_t>(filter.layers().size()) >= ctx.server.settings().cf_max_expansions)
    return ctx.reply.error("Maximum expansions reached");
  const uint64_t items_before = filter.items();
  if (addition.as_array) ctx.reply.array(addition.items.size());
  uint64_t moves = CuckooFilter::moves_for(addition.items.size());
  for (const std::string_view item : addition.items) {
    reply_added(ctx, addition,
                addition.only_new ? filter.add_new(item, &moves) : filter.add(item, &moves));
  }
  if (!is_new && filter.items() != items_before) value_changed(ctx);
}

void cf_add(CommandContext& ctx) {
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  add_items(ctx, ref, {.items = ctx.args.subspan(2)});
}

void cf_addnx(CommandContext& ctx) {
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  add_items(ctx, ref, {.only_new = true, .items = ctx.args.subspan(2)});
}

// CF.INSERT and CF.INSERTNX. As in the reference, the first letter of a word tells which it is.
void insert(CommandContext& ctx, bool only_new) {
  ArgReader args(ctx.args, 2);
  NewFilter filter = configured_filter(ctx);
  Addition addition{.only_new = only_new, .as_array = true, .items = {}, .new_filter = &filter};
  bool may_create = true;
  while (args.more() && addition.items.empty()) {
    const std::string_view word = args.next();
    const char letter = word.empty() ? '\0' : base::lower_case(word[0]);
    if (letter == 'i') {
      addition.items = args.rest();
      if (addition.items.empty()) break;
    } else if (letter == 'n') {
      may_create = false;
    } else if (letter == 'c') {
      if (!args.more()) break;
      if (!ctx.read_int64(args.next(), &filter.capacity, "Bad capacity")) return;
      if (!is_capacity(filter))
        return ctx.reply.error("Capacity must be in the range [cf-bucket-size * 2, 1073741824]");
    } else {
      return ctx.reply.error("Unknown argument received");
    }
  }
  if (addition.items.empty()) return ctx.wrong_arity();
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  if (!ref && !may_create) return ctx.reply.error("ERR not found");
  add_items(ctx, ref, addition);
}

void cf_insert(CommandContext& ctx) {
  insert(ctx, false);
}

void cf_insertnx(CommandContext& ctx) {
  insert(ctx, true);
}

// --- Other changes -------------------------------------------------------------------------------

// The filter at the command's key, or null without a reply.
CuckooFilter* filter_if_any(const KeyRef& ref) {
  return ref && ref->type() == CuckooFilter::kType ? &value_of<CuckooFilter>(ref) : nullptr;
}

void cf_del(CommandContext& ctx) {
  CuckooFilter* filter = filter_if_any(ctx.db.find_for_write(ctx.args[1]));
  if (filter == nullptr) return ctx.reply.error("Not found");
  const bool is_erased = filter->erase(ctx.args[2]);
  if (is_erased) value_changed(ctx);
  ctx.reply.boolean(is_erased);
}

void cf_compact(CommandContext& ctx) {
  if (ctx.args.size() != 2) return ctx.wrong_arity();
  CuckooFilter* filter = filter_if_any(ctx.db.find_for_write(ctx.args[1]));
  if (filter == nullptr) return ctx.reply.error("Cuckoo filter was not found");
  filter->compact();
  value_changed(ctx);
  ctx.reply.ok();
}

// --- Reading -------------------------------------------------------------------------------------

void cf_exists(CommandContext& ctx) {
  reply_whether_contained<CuckooFilter>(ctx, ctx.args.subspan(2), false);
}

void cf_mexists(CommandContext& ctx) {
  reply_whether_contained<CuckooFilter>(ctx, ctx.args.subspan(2), true);
}

void cf_count(CommandContext& ctx) {
  const CuckooFilter* filter = filter_if_any(ctx.db.find(ctx.args[1]));
  ctx.reply.integer(filter == nullptr ? 0 : static_cast<int64_t>(filter->count(ctx.args[2])));
}

void cf_info(CommandContext& ctx) {
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  const auto* filter = filter_at<CuckooFilter>(ctx, ref);
  if (filter == nullptr) return;
  const auto field = [&](std::string_view name, uint64_t value) {
    ctx.reply.status(name);
    ctx.reply.integer(static_cast<int64_t>(value));
  };
  ctx.reply.map(8);
  field("Size", filter->reported_size());
  field("Number of buckets", filter->shape().buckets);
  field("Number of filters", filter->layers().size());
  field("Number of items inserted", filter->items());
  field("Number of items deleted", filter->erased());
  field("Bucket size", filter->shape().bucket_size);
  field("Expansion rate", filter->shape().expansion);
  field("Max iterations", filter->shape().max_iterations);
}

void cf_debug(CommandContext& ctx) {
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  const auto* filter = filter_at<CuckooFilter>(ctx, ref);
  if (filter == nullptr) return;
  const CuckooFilter::Shape& shape = filter->shape();
  ctx.reply.bulk(
      "bktsize:" + std::to_string(shape.bucket_size) + " buckets:" + std::to_string(shape.buckets) +
      " items:" + std::to_string(filter->items()) + " deletes:" + std::to_string(filter->erased()) +
      " filters:" + std::to_string(filter->layers().size()) + " max_iterations:" +
      std::to_string(shape.max_iterations) + " expansion:" + std::to_string(shape.expansion));
}

// --- Dumps ---------------------------------------------------------------------------------------

void cf_scandump(CommandContext& ctx) {
  int64_t position;
  if (!ctx.read_int64_in(ctx.args[2], 0, INT64_MAX, &position, "Invalid position")) return;
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  const auto* filter = filter_at<CuckooFilter>(ctx, ref);
  if (filter == nullptr) return;
  ctx.reply.array(2);
  if (position == 0 && filter->items() > 0) {
    ctx.reply.integer(1);
    return ctx.reply.bulk(filter->header());
  }
  // The reference gives no parts of a filter without items either.
  const CuckooFilter::Chunk chunk =
      filter->items() == 0 ? CuckooFilter::Chunk{} : filter->chunk(static_cast<uint64_t>(position));
  ctx.reply.integer(chunk.next);
  chunk.next == 0 ? ctx.reply.null() : ctx.reply.bulk(chunk.bytes);
}

void load_header(CommandContext& ctx, KeyRef& ref) {
  if (ctx.args[3].size() != CuckooFilter::kHeaderSize) return ctx.reply.error("Invalid header");
  auto filter = CuckooFilter::from_header(ctx.args[3]);
  if (filter == nullptr) return ctx.reply.error("Couldn't create filter!");
  ctx.db.set_value(ref, CuckooFilter::kType, std::move(filter));
  value_changed(ctx);
  ctx.reply.ok();
}

void cf_loadchunk(CommandContext& ctx) {
  int64_t position;
  if (!ctx.read_int64(ctx.args[2], &position, "Invalid position")) return;
  if (position == 0) return ctx.reply.error("Invalid position");
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  if (!ref && position == 1) return load_header(ctx, ref);
  auto* filter = filter_at<CuckooFilter>(ctx, ref);
  if (filter == nullptr) return;
  if (position == 1) return ctx.reply.error("ERR item exists");
  if (!filter->load_chunk(position, ctx.args[3])) return ctx.reply.error("Couldn't load chunk!");
  value_changed(ctx);
  ctx.reply.ok();
}

constexpr const char* kOneItem = "O(K), K being the number of layers";
constexpr const char* kItemsAndLayers =
    "O(N*K), N being the number of items and K the number of layers";
constexpr const char* kAddOne = "O(K+I), K being the number of layers and I the most iterations";
constexpr const char* kAddItems =
    "O(N*(K+I)), N being the number of items, K the number of layers and I the most iterations";
constexpr const char* kOfBytes = "O(N), N being the size of the part in bytes";
constexpr CommandExtras kNotCached = {.tips = "dont_cache", .module = "bf"};

constexpr CommandRow kCuckooFilterRows[] = {
    {"CF.ADD", cf_add, "key item", kWrite | kDenyOom | kModule, keys(1).rw(), kAclCuckoo,
     Group::kModule, "8.0.0", kAddOne,
     "Adds an item to a cuckoo filter. Creates the filter if the key doesn't exist.", kOfFilters},
    {"CF.ADDNX", cf_addnx, "key item", kWrite | kDenyOom | kModule, keys(1).rw(), kAclCuckoo,
     Group::kModule, "8.0.0", kAddOne,
     "Adds an item to a cuckoo filter only if the filter doesn't contain it. Creates the filter if "
     "the key doesn't exist.",
     kOfFilters},
    {"CF.COMPACT", cf_compact, "[_...]", kReadOnly | kModule | kFast,
     keys(1).rw().access().update(), kAclCuckoo, Group::kModule, "8.0.0",
     "O(N*K), N being the number of slots and K the number of layers",
     "Moves the items of a cuckoo filter to as few layers as hold them.", kOfFilters},
    {"CF.COUNT", cf_count, "key item", kReadOnly | kModule | kFast, keys(1).ro(), kAclCuckoo,
     Group::kModule, "8.0.0", kOneItem,
     "Returns how often an item may have been added to a cuckoo filter.", kOfFilters},
    {"CF.DEBUG", cf_debug, "key", kReadOnly | kModule | kFast, keys(1).ro(), kAclCuckoo,
     Group::kModule, "8.0.0", "O(1)", "Describes a cuckoo filter.", kNotCached},
    {"CF.DEL", cf_del, "key item", kWrite | kModule | kFast, keys(1).rw(), kAclCuckoo,
     Group::kModule, "8.0.0", kOneItem, "Removes an item from a cuckoo filter once.", kOfFilters},
    {"CF.EXISTS", cf_exists, "key item", kReadOnly | kModule | kFast, keys(1).ro(), kAclCuckoo,
     Group::kModule, "8.0.0", kOneItem,
     "Determines whether an item may have been added to a cuckoo filter.", kOfFilters},
    {"CF.INFO", cf_info, "key", kReadOnly | kModule | kFast, keys(1).ro(), kAclCuckoo,
     Group::kModule, "8.0.0", "O(1)", "Returns the figures of a cuckoo filter.", kNotCached},
    {"CF.INSERT", cf_insert, "key [CAPACITY capacity:integer] [NOCREATE] ITEMS item...",
     kWrite | kDenyOom | kModule, keys(1).rw(), kAclCuckoo, Group::kModule, "8.0.0", kAddItems,
     "Adds items to a cuckoo filter. Creates the filter, with the given capacity, if the key "
     "doesn't exist.",
     kOfFilters},
    {"CF.INSERTNX", cf_insertnx, "key [CAPACITY capacity:integer] [NOCREATE] ITEMS item...",
     kWrite | kDenyOom | kModule, keys(1).rw(), kAclCuckoo, Group::kModule, "8.0.0", kAddItems,
     "Adds those items to a cuckoo filter that it doesn't contain. Creates the filter, with the "
     "given capacity, if the key doesn't exist.",
     kOfFilters},
    {"CF.LOADCHUNK", cf_loadchunk, "key iterator:integer data", kWrite | kDenyOom | kModule,
     keys(1).rw(), kAclCuckoo, Group::kModule, "8.0.0", kOfBytes,
     "Restores a part of a cuckoo filter that CF.SCANDUMP gave.", kOfFilters},
    {"CF.MEXISTS", cf_mexists, "key item...", kReadOnly | kModule | kFast, keys(1).ro(), kAclCuckoo,
     Group::kModule, "8.0.0", kItemsAndLayers,
     "Determines whether items may have been added to a cuckoo filter.", kOfFilters},
    {"CF.RESERVE", cf_reserve,
     "key capacity:integer [BUCKETSIZE bucketsize:integer] [MAXITERATIONS maxiterations:integer] "
     "[EXPANSION expansion:integer]",
     kWrite | kDenyOom | kModule, keys(1).rw(), kAclCuckoo, Group::kModule, "8.0.0", "O(1)",
     "Creates an empty cuckoo filter.", kOfFilters},
    {"CF.SCANDUMP", cf_scandump, "key iterator:integer", kReadOnly | kModule | kFast, keys(1).rw(),
     kAclCuckoo, Group::kModule, "8.0.0", kOfBytes,
     "Returns a part of a cuckoo filter, to save it.", kNotCached},
};

}  // namespace

std::span<const CommandRow> cuckoo_filter_rows() {
  return kCuckooFilterRows;
}

}  // namespace latchkey::commands

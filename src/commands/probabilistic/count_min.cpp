// CMS: count-min sketches.
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "commands/groups.h"
#include "commands/keys/typed_key.h"
#include "commands/probabilistic/value_changed.h"
#include "store/probabilistic/count_min_sketch.h"

namespace latchkey::commands {

using namespace server;
using store::CountMinSketch;
using store::KeyRef;

namespace {

// The sketch of a key; null, with an error sent, when there is none.
CountMinSketch* sketch_at(CommandContext& ctx, const KeyRef& ref) {
  if (!ref) ctx.reply.error("CMS: key does not exist");
  return value_at<CountMinSketch>(ctx, ref);
}

// --- CMS.INITBYDIM and CMS.INITBYPROB ------------------------------------------------------------

struct Dimensions {
  uint64_t width;
  uint64_t depth;
};

// False with an error sent.
bool read_dimensions(CommandContext& ctx, Dimensions* dimensions) {
  int64_t width;
  int64_t depth;
  if (!ctx.read_int64_in(ctx.args[2], 1, INT64_MAX, &width, "CMS: invalid width") ||
      !ctx.read_int64_in(ctx.args[3], 1, INT64_MAX, &depth, "CMS: invalid depth"))
    return false;
  *dimensions = {static_cast<uint64_t>(width), static_cast<uint64_t>(depth)};
  return true;
}

// The dimensions with which estimates are too high by more than a fraction `error` of all that is
// counted with a probability of `probability`. False with an error sent.
bool read_tolerance(CommandContext& ctx, Dimensions* dimensions) {
  constexpr double kEnd = 0x1p63;
  constexpr std::string_view kBadError = "CMS: invalid overestimation value";
  constexpr std::string_view kBadProbability = "CMS: invalid prob value";
  double error;
  double probability;
  if (!ctx.read_double(ctx.args[2], &error, kBadError)) return false;
  if (error <= 0 || error >= 1) return ctx.refuse(kBadError);
  if (!ctx.read_double(ctx.args[3], &probability, kBadProbability)) return false;
  if (probability <= 0 || probability >= 1) return ctx.refuse(kBadProbability);
  // The reference has the probability as a float, which may be 0 then.
  const double width = std::ceil(2 / error);
  const double depth =
      std::ceil(std::log10(static_cast<double>(static_cast<float>(probability))) / std::log10(0.5));
  if (width >= kEnd || !std::isfinite(depth)) return ctx.refuse("CMS: invalid init arguments");
  *dimensions = {static_cast<uint64_t>(width), static_cast<uint64_t>(depth)};
  return true;
}

void create(CommandContext& ctx, bool (*read)(CommandContext&, Dimensions*)) {
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  if (ref) return ctx.reply.error("CMS: key already exists");
  Dimensions dimensions{};
  if (!read(ctx, &dimensions)) return;
  const auto [width, depth] = dimensions;
  if (depth == 0 || width > static_cast<uint64_t>(INT64_MAX) / depth)
    return ctx.reply.error("CMS: invalid init arguments");
  std::unique_ptr<CountMinSketch> sketch;
  if (CountMinSketch::are_dimensions(width, depth)) sketch = CountMinSketch::make(width, depth);
  if (sketch == nullptr) return ctx.reply.error("CMS: Insufficient memory to create the key");
  ctx.db.set_value(ref, CountMinSketch::kType, std::move(sketch));
  value_changed(ctx);
  ctx.reply.ok();
}

void cms_initbydim(CommandContext& ctx) {
  create(ctx, read_dimensions);
}

void cms_initbyprob(CommandContext& ctx) {
  create(ctx, read_tolerance);
}

// --- Counting ------------------------------------------------------------------------------------

void cms_incrby(CommandContext& ctx) {
  if (ctx.args.size() % 2 != 0) return ctx.wrong_arity();
  const KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  CountMinSketch* sketch = sketch_at(ctx, ref);
  if (sketch == nullptr) return;
  std::vector<int64_t> increments;
  for (size_t i = 3; i < ctx.args.size(); i += 2) {
    int64_t increment;
    if (!ctx.read_int64(ctx.args[i], &increment, "CMS: Cannot parse number")) return;
    if (increment < 0) return ctx.reply.error("CMS: Number cannot be negative");
    increments.push_back(increment);
  }
  ctx.reply.array(increments.size());
  for (size_t i = 0; i < increments.size(); ++i) {
    const CountMinSketch::Counter estimate =
        sketch->add(ctx.args[2 + 2 * i], static_cast<uint64_t>(increments[i]));
    estimate == CountMinSketch::kMaxCounter ? ctx.reply.error("CMS: INCRBY overflow")
                                            : ctx.reply.integer(estimate);
  }
  value_changed(ctx);
}

void cms_query(CommandContext& ctx) {
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  const CountMinSketch* sketch = sketch_at(ctx, ref);
  if (sketch == nullptr) return;
  const Arguments items = ctx.args.subspan(2);
  ctx.reply.array(items.size());
  for (const std::string_view item : items) ctx.reply.integer(sketch->estimate(item));
}

void cms_info(CommandContext& ctx) {
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  const CountMinSketch* sketch = sketch_at(ctx, ref);
  if (sketch == nullptr) return;
  const auto field = [&](std::string_view name, uint64_t value) {
    ctx.reply.status(name);
    ctx.reply.integer(static_cast<int64_t>(value));
  };
  ctx.reply.map(3);
  field("width", sketch->width());
  field("depth", sketch->depth());
  field("count", sketch->total());
}

// --- CMS.MERGE -----------------------------------------------------------------------------------

struct MergeArguments {
  Arguments sources;
  // As many, or none.
  Arguments weights;
};

// False with an error sent.
bool read_merge(CommandContext& ctx, MergeArguments* merge) {
  int64_t count;
  if (!ctx.read_int64(ctx.args[2], &count, "CMS: invalid numkeys")) return false;
  if (count <= 0) return ctx.refuse("CMS: Number of keys must be positive");
  const Arguments rest = ctx.args.subspan(3);
  size_t sources = 0;
  while (sources < rest.size() && !is_word(rest[sources], "WEIGHTS")) ++sources;
  const bool has_weights = sources < rest.size();
  if (static_cast<uint64_t>(count) != sources || (has_weights && rest.size() != 2 * sources + 1))
    return ctx.refuse(has_weights ? "CMS: wrong number of keys/weights"
                                  : "CMS: wrong number of keys");
  *merge = {rest.first(sources), has_weights ? rest.subspan(sources + 1) : Arguments()};
  return true;
}

void cms_merge(CommandContext& ctx) {
  const KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  CountMinSketch* target = sketch_at(ctx, ref);
  if (target == nullptr) return;
  MergeArguments merge;
  if (!read_merge(ctx, &merge)) return;
  std::vector<CountMinSketch::Weighted> terms;
  for (size_t i = 0; i < merge.sources.size(); ++i) {
    int64_t weight = 1;
    if (!merge.weights.empty() &&
        !ctx.read_int64(merge.weights[i], &weight, "CMS: invalid weight value"))
      return;
    const CountMinSketch* source = sketch_at(ctx, ctx.db.find(merge.sources[i]));
    if (source == nullptr) return;
    if (source->width() != target->width() || source->depth() != target->depth())
      return ctx.reply.error("CMS: width/depth is not equal");
    terms.push_back({source, weight});
  }
  if (!target->assign_sum(terms)) return ctx.reply.error("CMS: MERGE overflow");
  value_changed(ctx);
  ctx.reply.ok();
}

constexpr const char* kItemsAndDepth =
    "O(N*D), N being the number of items and D the depth of the sketch";

constexpr CommandRow kCountMinSketchRows[] = {
    {"CMS.INCRBY", cms_incrby, "key {items=item increment:integer}...", kWrite | kDenyOom | kModule,
     keys(1).rw(), kAclCountMin, Group::kModule, "8.0.0", kItemsAndDepth,
     "Counts items in a count-min sketch, each by its increment, and returns the new estimates.",
     kOfFilters},
    {"CMS.INFO",
     cms_info,
     "key",
     kReadOnly | kModule | kFast,
     keys(1).ro(),
     kAclCountMin,
     Group::kModule,
     "8.0.0",
     "O(1)",
     "Returns the dimensions of a count-min sketch, and the sum of what was counted.",
     {.tips = "dont_cache", .module = "bf"}},
    {"CMS.INITBYDIM", cms_initbydim, "key width:integer depth:integer",
     kWrite | kDenyOom | kModule | kFast, keys(1).rw(), kAclCountMin, Group::kModule, "8.0.0",
     "O(1)", "Creates a count-min sketch of the given dimensions.", kOfFilters},
    {"CMS.INITBYPROB", cms_initbyprob, "key error:double probability:double",
     kWrite | kDenyOom | kModule | kFast, keys(1).rw(), kAclCountMin, Group::kModule, "8.0.0",
     "O(1)", "Creates a count-min sketch whose estimates are as exact as is asked for.",
     kOfFilters},
    {"CMS.MERGE", cms_merge, "key numKeys:integer source... [WEIGHTS weight:double...]",
     kWrite | kDenyOom | kModule, keys(1).rw(), kAclCountMin, Group::kModule, "8.0.0",
     "O(N*W*D), N being the number of sketches, W their width and D their depth",
     "Makes a count-min sketch the weighted sum of others of the same dimensions.", kOfFilters},
    {"CMS.QUERY", cms_query, "key item...", kReadOnly | kModule, keys(1).ro(), kAclCountMin,
     Group::kModule, "8.0.0", kItemsAndDepth,
     "Returns how often items were counted, as a count-min sketch estimates it.", kOfFilters},
};

}  // namespace

std::span<const CommandRow> count_min_sketch_rows() {
  return kCountMinSketchRows;
}

}  // namespace latchkey::commands

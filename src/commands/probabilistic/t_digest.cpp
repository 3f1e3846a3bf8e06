// TDIGEST: quantiles and ranks of numbers, estimated.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

#include "commands/groups.h"
#include "commands/keys/typed_key.h"
#include "commands/probabilistic/value_changed.h"
#include "store/probabilistic/t_digest.h"

namespace latchkey::commands {

using namespace server;
using store::KeyRef;
using store::TDigest;

namespace {

// The digest of a key; null, with an error sent, when there is none.
TDigest* digest_at(CommandContext& ctx, const KeyRef& ref) {
  if (!ref) ctx.reply.error("ERR T-Digest: key does not exist");
  return value_at<TDigest>(ctx, ref);
}

// False with an error sent.
bool read_compression(CommandContext& ctx, std::string_view text, int64_t* compression) {
  if (!ctx.read_int64(text, compression, "ERR T-Digest: error parsing compression parameter"))
    return false;
  if (*compression > 0) return true;
  return ctx.refuse("ERR T-Digest: compression parameter needs to be a positive integer");
}

// The request's numbers from `first` on. None with an error sent.
std::optional<std::vector<double>> read_numbers(CommandContext& ctx, size_t first,
                                                std::string_view error) {
  std::vector<double> numbers(ctx.args.size() - first);
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (!ctx.read_double(ctx.args[first + i], &numbers[i], error)) return std::nullopt;
  }
  return numbers;
}

// --- Making and adding ---------------------------------------------------------------------------

void tdigest_create(CommandContext& ctx) {
  if (ctx.args.size() != 2 && ctx.args.size() != 4) return ctx.wrong_arity();
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  if (!ctx.is_type(ref, TDigest::kType)) return;
  if (ref) return ctx.reply.error("ERR T-Digest: key already exists");
  int64_t compression = TDigest::kDefaultCompression;
  if (ctx.args.size() == 4) {
    if (!is_word(ctx.args[2], "COMPRESSION")) return ctx.reply.error("ERR T-Digest: wrong keyword");
    if (!read_compression(ctx, ctx.args[3], &compression)) return;
  }
  if (compression > TDigest::kMaxCompression)
    return ctx.reply.error("ERR T-Digest: allocation failed");
  ctx.db.set_value(ref, TDigest::kType, std::make_unique<TDigest>(compression));
  value_changed(ctx);
  ctx.reply.ok();
}

void tdigest_reset(CommandContext& ctx) {
  const KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  TDigest* digest = digest_at(ctx, ref);
  if (digest == nullptr) return;
  digest->clear();
  value_changed(ctx);
  ctx.reply.ok();
}

void tdigest_add(CommandContext& ctx) {
  const KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  TDigest* digest = digest_at(ctx, ref);
  if (digest == nullptr) return;
  std::vector<double> numbers;
  for (const std::string_view text : ctx.args.subspan(2)) {
    double number;
    if (!ctx.read_double(text, &number, "ERR T-Digest: error parsing val parameter")) return;
    if (!std::isfinite(number))
      return ctx.reply.error("ERR T-Digest: val parameter needs to be a finite number");
    numbers.push_back(number);
  }
  if (!digest->add(numbers)) return ctx.reply.error("ERR T-Digest: overflow detected");
  value_changed(ctx);
  ctx.reply.ok();
}

// --- TDIGEST.MERGE -------------------------------------------------------------------------------

struct MergeArguments {
  Arguments sources;
  bool overrides = false;
  // 0: not given.
  int64_t compression = 0;
};

// Where the word is, or the number of words.
size_t position_of(Arguments words, std::string_view upper_case_name) {
  size_t at = 0;
  while (at < words.size() && !is_word(words[at], upper_case_name)) ++at;
  return at;
}

// The options are looked for among what follows the sources; other words between them are passed
// over, as in the reference. False with an error sent.
bool read_merge(CommandContext& ctx, MergeArguments* merge) {
  int64_t count;
  if (!ctx.read_int64(ctx.args[2], &count, "ERR T-Digest: error parsing numkeys")) return false;
  if (count <= 0) return ctx.refuse("ERR T-Digest: numkeys needs to be a positive integer");
  const Arguments rest = ctx.args.subspan(3);
  if (static_cast<uint64_t>(count) > rest.size()) {
    ctx.wrong_arity();
    return false;
  }
  merge->sources = rest.first(static_cast<size_t>(count));
  const Arguments options = rest.subspan(static_cast<size_t>(count));
  const size_t compression_at = position_of(options, "COMPRESSION");
  merge->overrides = position_of(options, "OVERRIDE") < options.size();
  if (compression_at == options.size()) {
    if (options.empty() || merge->overrides) return true;
    return ctx.refuse("ERR T-Digest: wrong keyword");
  }
  if (compression_at + 1 == options.size()) {
    ctx.wrong_arity();
    return false;
  }
  return read_compression(ctx, options[compression_at + 1], &merge->compression);
}

// False with an error sent.
bool find_sources(CommandContext& ctx, Arguments names, std::vector<const TDigest*>* sources) {
  for (const std::string_view name : names) {
    const TDigest* source = digest_at(ctx, ctx.db.find(name));
    if (source == nullptr) return false;
    sources->push_back(source);
  }
  return true;
}

void tdigest_merge(CommandContext& ctx) {
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  if (!ctx.is_type(ref, TDigest::kType)) return;
  MergeArguments merge;
  std::vector<const TDigest*> sources;
  if (!read_merge(ctx, &merge) || !find_sources(ctx, merge.sources, &sources)) return;
  const TDigest* target = ref && !merge.overrides ? &value_of<TDigest>(ref) : nullptr;
  int64_t compression = merge.compression;
  if (compression == 0 && target != nullptr) compression = target->compression();
  if (compression == 0) {
    for (const TDigest* source : sources)
      compression = std::max(compression, source->compression());
  }
  if (compression > TDigest::kMaxCompression)
    return ctx.reply.error("ERR T-Digest: allocation of destination digest failed");
  if (target != nullptr) sources.insert(sources.begin(), target);
  auto merged = std::make_unique<TDigest>(compression);
  if (!merged->add_all(sources)) return ctx.reply.error("ERR T-Digest: overflow detected");
  // Looking sources up may have removed keys.
  ref = ctx.db.find_for_write(ctx.args[1]);
  ctx.db.set_value(ref, TDigest::kType, std::move(merged));
  value_changed(ctx);
  ctx.reply.ok();
}

// --- Questions -----------------------------------------------------------------------------------

void tdigest_min(CommandContext& ctx) {
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  const TDigest* digest = digest_at(ctx, ref);
  if (digest != nullptr) ctx.reply.number(digest->min());
}

void tdigest_max(CommandContext& ctx) {
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  const TDigest* digest = digest_at(ctx, ref);
  if (digest != nullptr) ctx.reply.number(digest->max());
}

// The answers of ask(argument, TDigest::Scan*) to all arguments, which are asked in the order of
// comes_before(), so that one scan answers them.
template <typename Argument, typename Ask, typename ComesBefore = std::less<>>
auto answers_to(const std::vector<Argument>& arguments, Ask&& ask, ComesBefore comes_before = {}) {
  TDigest::Scan scan;
  std::vector<decltype(ask(arguments[0], &scan))> answers(arguments.size());
  std::vector<size_t> order(arguments.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, comes_before, [&](size_t i) { return arguments[i]; });
  for (const size_t i : order) answers[i] = ask(arguments[i], &scan);
  return answers;
}

void reply_numbers(CommandContext& ctx, const std::vector<double>& numbers) {
  ctx.reply.array(numbers.size());
  for (const double number : numbers) ctx.reply.number(number);
}

void tdigest_quantile(CommandContext& ctx) {
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  const TDigest* digest = digest_at(ctx, ref);
  if (digest == nullptr) return;
  std::vector<double> quantiles;
  for (const std::string_view text : ctx.args.subspan(2)) {
    double quantile;
    if (!ctx.read_double(text, &quantile, "ERR T-Digest: error parsing quantile")) return;
    if (quantile < 0 || quantile > 1)
      return ctx.reply.error("ERR T-Digest: quantile should be in [0,1]");
    quantiles.push_back(quantile);
  }
  reply_numbers(ctx, answers_to(quantiles, [&](double quantile, TDigest::Scan* scan) {
                  return digest->quantile(quantile, scan);
                }));
}

void tdigest_cdf(CommandContext& ctx) {
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  const TDigest* digest = digest_at(ctx, ref);
  if (digest == nullptr) return;
  const auto values = read_numbers(ctx, 2, "ERR T-Digest: error parsing cdf");
  if (!values.has_value()) return;
  reply_numbers(ctx, answers_to(*values, [&](double value, TDigest::Scan* scan) {
                  return digest->fraction_below(value, scan);
                }));
}

void reply_ranks(CommandContext& ctx, int64_t (TDigest::*rank)(double, TDigest::Scan*) const) {
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  const TDigest* digest = digest_at(ctx, ref);
  if (digest == nullptr) return;
  const auto values = read_numbers(ctx, 2, "ERR T-Digest: error parsing value");
  if (!values.has_value()) return;
  const auto ranks = answers_to(
      *values, [&](double value, TDigest::Scan* scan) { return (digest->*rank)(value, scan); });
  ctx.reply.array(ranks.size());
  for (const int64_t each : ranks) ctx.reply.integer(each);
}

void tdigest_rank(CommandContext& ctx) {
  reply_ranks(ctx, &TDigest::rank);
}

void tdigest_revrank(CommandContext& ctx) {
  reply_ranks(ctx, &TDigest::reverse_rank);
}

// The ranks of the request. None with an error sent.
std::optional<std::vector<int64_t>> read_ranks(CommandContext& ctx) {
  std::vector<int64_t> ranks;
  for (const std::string_view text : ctx.args.subspan(2)) {
    int64_t rank;
    if (!ctx.read_int64(text, &rank, "ERR T-Digest: error parsing rank")) return std::nullopt;
    if (rank < 0) {
      ctx.reply.error("ERR T-Digest: rank needs to be non negative");
      return std::nullopt;
    }
    ranks.push_back(rank);
  }
  return ranks;
}

void tdigest_byrank(CommandContext& ctx) {
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  const TDigest* digest = digest_at(ctx, ref);
  if (digest == nullptr) return;
  const auto ranks = read_ranks(ctx);
  if (!ranks.has_value()) return;
  reply_numbers(ctx, answers_to(*ranks, [&](int64_t rank, TDigest::Scan* scan) {
                  return digest->by_rank(rank, scan);
                }));
}

void tdigest_byrevrank(CommandContext& ctx) {
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  const TDigest* digest = digest_at(ctx, ref);
  if (digest == nullptr) return;
  const auto ranks = read_ranks(ctx);
  if (!ranks.has_value()) return;
  const auto ask = [&](int64_t rank, TDigest::Scan* scan) {
    return digest->by_reverse_rank(rank, scan);
  };
  reply_numbers(ctx, answers_to(*ranks, ask, std::greater<>()));
}

void tdigest_trimmed_mean(CommandContext& ctx) {
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  const TDigest* digest = digest_at(ctx, ref);
  if (digest == nullptr) return;
  double low;
  double high;
  if (!ctx.read_double(ctx.args[2], &low, "ERR T-Digest: error parsing low_cut_percentile") ||
      !ctx.read_double(ctx.args[3], &high, "ERR T-Digest: error parsing high_cut_percentile"))
    return;
  if (low < 0 || low > 1 || high < 0 || high > 1)
    return ctx.reply.error(
        "ERR T-Digest: low_cut_percentile and high_cut_percentile should be in [0,1]");
  if (low >= high)
    return ctx.reply.error(
        "ERR T-Digest: low_cut_percentile should be lower than high_cut_percentile");
  ctx.reply.number(digest->trimmed_mean(low, high));
}

void tdigest_info(CommandContext& ctx) {
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  const TDigest* digest = digest_at(ctx, ref);
  if (digest == nullptr) return;
  const auto field = [&](std::string_view name, int64_t value) {
    ctx.reply.status(name);
    ctx.reply.integer(value);
  };
  ctx.reply.map(9);
  field("Compression", digest->compression());
  field("Capacity", static_cast<int64_t>(digest->capacity()));
  field("Merged nodes", static_cast<int64_t>(digest->merged_count()));
  field("Unmerged nodes", static_cast<int64_t>(digest->unmerged_count()));
  field("Merged weight", digest->merged_weight());
  field("Unmerged weight", digest->unmerged_weight());
  field("Observations", digest->weight());
  field("Total compressions", digest->merges());
  field("Memory usage", static_cast<int64_t>(digest->reported_size()));
}

constexpr const char* kOfNumbers =
    "O(N*log(N)+C), N being the number of arguments and C the number of centroids";
constexpr uint32_t kWrites = kWrite | kDenyOom | kModule;
constexpr uint32_t kReads = kReadOnly | kModule | kFast;

constexpr CommandRow kTDigestRows[] = {
    {"TDIGEST.ADD", tdigest_add, "key value:double...", kWrites, keys(1).rw(), kAclTDigest,
     Group::kModule, "8.0.0",
     "O(N*log(C)), N being the number of observations and C the number of centroids",
     "Adds observations to a t-digest.", kOfFilters},
    {"TDIGEST.BYRANK", tdigest_byrank, "key rank:double...", kReads, keys(1).ro(), kAclTDigest,
     Group::kModule, "8.0.0", kOfNumbers,
     "Returns the numbers that have the given ranks among the observations of a t-digest, counted "
     "from the least.",
     kOfFilters},
    {"TDIGEST.BYREVRANK", tdigest_byrevrank, "key reverse_rank:double...", kReads, keys(1).ro(),
     kAclTDigest, Group::kModule, "8.0.0", kOfNumbers,
     "Returns the numbers that have the given ranks among the observations of a t-digest, counted "
     "from the greatest.",
     kOfFilters},
    {"TDIGEST.CDF", tdigest_cdf, "key value:double...", kReads, keys(1).ro(), kAclTDigest,
     Group::kModule, "8.0.0", kOfNumbers,
     "Returns for each number the fraction of the observations of a t-digest that are below it.",
     kOfFilters},
    {"TDIGEST.CREATE", tdigest_create, "key [COMPRESSION compression:integer] [_...]",
     kWrites | kFast, keys(1).rw(), kAclTDigest, Group::kModule, "8.0.0", "O(1)",
     "Creates an empty t-digest.", kOfFilters},
    {"TDIGEST.INFO",
     tdigest_info,
     "key",
     kReads,
     keys(1).ro(),
     kAclTDigest,
     Group::kModule,
     "8.0.0",
     "O(1)",
     "Returns the figures of a t-digest.",
     {.tips = "dont_cache", .module = "bf"}},
    {"TDIGEST.MAX", tdigest_max, "key", kReads, keys(1).ro(), kAclTDigest, Group::kModule, "8.0.0",
     "O(1)", "Returns the greatest observation of a t-digest.", kOfFilters},
    {"TDIGEST.MERGE", tdigest_merge,
     "destination-key:key numkeys:integer source-key:key...#1 [COMPRESSION compression:integer] "
     "[OVERRIDE] [_...]",
     kWrites, keys(1).rw() + counted_keys(2).ro(), kAclTDigest, Group::kModule, "8.0.0",
     "O(N*C*log(C)), N being the number of t-digests and C the number of centroids of each",
     "Merges t-digests into one.", kOfFilters},
    {"TDIGEST.MIN", tdigest_min, "key", kReads, keys(1).ro(), kAclTDigest, Group::kModule, "8.0.0",
     "O(1)", "Returns the least observation of a t-digest.", kOfFilters},
    {"TDIGEST.QUANTILE", tdigest_quantile, "key quantile:double...", kReads, keys(1).ro(),
     kAclTDigest, Group::kModule, "8.0.0", kOfNumbers,
     "Returns for each fraction the number below which that fraction of the observations of a "
     "t-digest lies.",
     kOfFilters},
    {"TDIGEST.RANK", tdigest_rank, "key value:double...", kReads, keys(1).ro(), kAclTDigest,
     Group::kModule, "8.0.0", kOfNumbers,
     "Returns for each number how many observations of a t-digest are below it.", kOfFilters},
    {"TDIGEST.RESET", tdigest_reset, "key", kWrites | kFast, keys(1).rw(), kAclTDigest,
     Group::kModule, "8.0.0", "O(1)", "Removes all observations of a t-digest.", kOfFilters},
    {"TDIGEST.REVRANK", tdigest_revrank, "key value:double...", kReads, keys(1).ro(), kAclTDigest,
     Group::kModule, "8.0.0", kOfNumbers,
     "Returns for each number how many observations of a t-digest are above it.", kOfFilters},
    {"TDIGEST.TRIMMED_MEAN", tdigest_trimmed_mean,
     "key low_cut_quantile:double high_cut_quantile:double", kReadOnly | kModule, keys(1).ro(),
     kAclTDigest, Group::kModule, "8.0.0", "O(C), C being the number of centroids",
     "Returns the mean of the observations of a t-digest between two quantiles.", kOfFilters},
};

}  // namespace

std::span<const CommandRow> t_digest_rows() {
  return kTDigestRows;
}

}  // namespace latchkey::commands

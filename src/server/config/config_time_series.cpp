#include "server/config/config_time_series.h"

#include <cmath>
#include <cstdio>
#include <limits>

#include "base/text/number.h"
#include "server/config/config_kinds.h"
#include "store/time_series/compaction_policy.h"
#include "store/time_series/sample.h"

namespace latchkey::server {

using base::fail;
using base::Result;

namespace {

using V = ConfigValues;

// printf's %f, in which the reference shows a directive that is no whole number.
std::string six_decimals(double value) {
  constexpr size_t kMost = std::numeric_limits<double>::max_exponent10 + 16;
  char text[kMost];
  return {text, static_cast<size_t>(std::snprintf(text, sizeof text, "%f", value))};
}

Directive chunk_size() {
  constexpr int64_t kStep = 8;
  Directive row =
      number("ts-chunk-size-bytes", &V::ts_chunk_size_bytes, store::SeriesSettings::kMinChunkSize,
             store::SeriesSettings::kMaxChunkSize);
  row.parse = [](DirectiveArguments arguments, DirectiveContext& context) -> Result<> {
    auto bytes = parse_whole(arguments[0], store::SeriesSettings::kMinChunkSize,
                             store::SeriesSettings::kMaxChunkSize);
    if (!bytes) return bytes.failure();
    if (*bytes % kStep != 0)
      return fail("TSDB: CHUNK_SIZE value must be a multiple of 8 in the range [48 .. 1048576]");
    context.values.ts_chunk_size_bytes = *bytes;
    return {};
  };
  return row;
}

Directive largest_ignored_difference() {
  return special(
      "ts-ignore-max-val-diff", 0,
      [](DirectiveArguments arguments, DirectiveContext& context) -> Result<> {
        constexpr std::string_view kInvalid = "Invalid value for `ts-ignore-max-val-diff`";
        double value;
        if (!base::parse_double(arguments[0], &value)) return fail(std::string(kInvalid));
        if (value < 0 || std::isinf(value))
          return fail(std::string(kInvalid)
                          .append(". Value must be in the range [")
                          .append(six_decimals(0))
                          .append(" .. ")
                          .append(six_decimals(std::numeric_limits<double>::max()))
                          .append("]"));
        context.values.ts_ignore_max_val_diff = value;
        return {};
      },
      [](const ConfigValues& values) { return six_decimals(values.ts_ignore_max_val_diff); });
}

Directive compaction_policy() {
  Directive row = text("ts-compaction-policy", &V::ts_compaction_policy);
  row.parse = [](DirectiveArguments arguments, DirectiveContext& context) -> Result<> {
    const auto rules = store::parse_compaction_policy(arguments[0]);
    if (!rules) return fail("Invalid compaction policy: " + arguments[0]);
    context.values.ts_compaction_policy = store::compaction_policy_text(*rules);
    return {};
  };
  return row;
}

// Words that are refused as the reference refuses them.
Directive named(Directive row, std::string_view what) {
  row.parse = [parse = row.parse, what](DirectiveArguments arguments,
                                        DirectiveContext& context) -> Result<> {
    if (parse(arguments, context)) return {};
    return fail("Invalid " + std::string(what) + ": " + arguments[0]);
  };
  return row;
}

}  // namespace

void add_time_series(std::vector<Directive>& table) {
  table.push_back(number("ts-retention-policy", &V::ts_retention_policy, 0, kMaxInt64));
  table.push_back(chunk_size());
  table.push_back(named(choice<TsDuplicatePolicy>("ts-duplicate-policy", &V::ts_duplicate_policy,
                                                  {{"block", TsDuplicatePolicy::kBlock},
                                                   {"first", TsDuplicatePolicy::kFirst},
                                                   {"last", TsDuplicatePolicy::kLast},
                                                   {"min", TsDuplicatePolicy::kMin},
                                                   {"max", TsDuplicatePolicy::kMax},
                                                   {"sum", TsDuplicatePolicy::kSum}}),
                        "duplicate policy"));
  table.push_back(compaction_policy());
  table.push_back(named(choice<TsEncoding>("ts-encoding", &V::ts_encoding,
                                           {{"compressed", TsEncoding::kCompressed},
                                            {"uncompressed", TsEncoding::kUncompressed}}),
                        "encoding"));
  table.push_back(number("ts-ignore-max-time-diff", &V::ts_ignore_max_time_diff, 0, kMaxInt64));
  table.push_back(largest_ignored_difference());
  constexpr int64_t kMostThreads = 16;
  // The reference's cannot be set later, for it starts its threads once.
  Directive threads = number("ts-num-threads", &V::ts_num_threads, 1, kMostThreads);
  threads.no_effect_because = "queries of several time series run in the thread of the commands";
  table.push_back(std::move(threads));
}

}  // namespace latchkey::server

// Steps that the commands of time series share: their arguments, and the series at a key.
//
// As in the reference, options are found wherever their word stands, the first of several counts,
// and unknown words are passed over. Each function sends the error itself, in the reference's
// words, and returns false or null.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "server/command/command_context.h"
#include "server/config/config.h"
#include "store/time_series/label_index.h"
#include "store/time_series/range.h"
#include "store/time_series/series.h"

namespace latchkey::commands {

// The position of the word among the arguments from `from` on; nothing when it is not there.
std::optional<size_t> find_word(server::Arguments args, std::string_view upper_case_word,
                                size_t from = 1);
// The request up to FILTER, which is looked for from `from` on. Options are looked for in it alone:
// labels and reducers that stand behind FILTER may be called as options are.
server::Arguments before_filter(server::Arguments args, size_t from = 1);

// A sample's timestamp: a whole number, or "*" for the time of the request's clock.
bool read_timestamp(server::CommandContext& ctx, std::string_view text, int64_t* timestamp);
// As JSON writes numbers, or NaN.
bool read_sample_value(server::CommandContext& ctx, std::string_view text, double* value);
// The same without an error.
bool parse_sample_value(std::string_view text, double* value);

// What ts-encoding says.
store::SeriesEncoding configured_encoding(const server::ConfigValues& config);
// What a series of this request is made with: the directives' settings, and in their place those
// that it names.
bool read_settings(server::CommandContext& ctx, store::SeriesSettings* settings);
// The settings that the request names in place of those of `settings`. Labels are replaced if the
// request names them, which `*names_labels` says.
bool read_changed_settings(server::CommandContext& ctx, store::SeriesSettings* settings,
                           bool* names_labels);
// ON_DUPLICATE's or, without it, the series's own, or the directive's.
bool read_duplicate_policy(server::CommandContext& ctx, const store::TimeSeries& series,
                           store::DuplicatePolicy* policy);
// The series's own, or the directive's.
store::DuplicatePolicy policy_of(server::CommandContext& ctx, const store::TimeSeries& series);

// Whether the key holds a time series, or there is none. The error has a code before the usual one,
// as in the reference.
bool is_series_or_none(server::CommandContext& ctx, const store::KeyRef& ref);
// The series of a key that must be there.
store::TimeSeries* existing_series(server::CommandContext& ctx, const store::KeyRef& ref);

// A range's two ends: "-" and "+" are open.
bool read_range_ends(server::CommandContext& ctx, std::string_view from, std::string_view to,
                     store::RangeQuery* query, bool* is_from_open, bool* is_to_open);

struct RangeRequest {
  // Its aggregations are those of the first column.
  store::RangeQuery query;
  size_t count = SIZE_MAX;
  // One for each series; none without AGGREGATION.
  std::vector<std::vector<store::Aggregation>> columns;
};
// The ends at `ends`, and the options between them and FILTER. `columns`: how many words follow
// AGGREGATION, as TS.NRANGE has one for each series.
bool read_range(server::CommandContext& ctx, size_t ends, bool backwards, RangeRequest* request,
                size_t columns = 1);
// An aggregation's name with commas between several. Nothing is sent; the error is returned.
std::optional<std::string_view> parse_aggregations(std::string_view text,
                                                   std::vector<store::Aggregation>* aggregations);
// Whether with_empty_buckets may be told of all that series: of values for spans without samples
// there can be any number. False with an error sent.
bool is_not_too_wide(server::CommandContext& ctx, std::span<const store::TimeSeries* const> series,
                     const RangeRequest& request);

}  // namespace latchkey::commands

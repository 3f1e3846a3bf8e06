// Replies of the commands of time series that several of them share.
#pragma once

#include "server/command/command_context.h"
#include "store/time_series/range.h"
#include "store/time_series/series.h"

namespace latchkey::commands {

// A double; with RESP2 a status such as "+5E-1", as the reference writes it: plain from 1 on and
// below 1e16, else with an exponent.
void reply_sample_value(server::CommandContext& ctx, double value);
// An array of the timestamp and the value.
void reply_sample(server::CommandContext& ctx, store::Sample sample);
// The same, or an empty array.
void reply_sample_or_nothing(server::CommandContext& ctx, std::optional<store::Sample> sample);
void reply_row(server::CommandContext& ctx, const store::RangeRow& row);
// The rows of a series, `most` at most.
void reply_rows(server::CommandContext& ctx, const store::TimeSeries& series,
                const store::RangeQuery& query, size_t most);
// The newest sample of a series or, if `latest`, of what is compacted into it.
std::optional<store::Sample> newest_sample(const store::TimeSeries& series, bool latest);

}  // namespace latchkey::commands

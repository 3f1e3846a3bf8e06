// Compaction: what a change of a series means for the series that its rules name.
//
// A rule collects the samples of the newest bucket, and writes its value to the destination when a
// sample of a later bucket comes. A change among older samples changes the value of their bucket,
// or erases it when the aggregation sees none of its samples any more. Replicas run the same
// requests, so nothing of this is propagated.
#pragma once

#include <string_view>

#include "server/command/command_context.h"
#include "store/time_series/series.h"

namespace latchkey::commands {

// The sample has been appended to the series: O(rules), and what is written to destinations.
void compact_appended(server::CommandContext& ctx, store::TimeSeries& source, store::Sample sample);
// A sample of that time, older than the newest or as old, has been added or changed: O(the samples
// of a bucket of each rule).
void compact_inserted(server::CommandContext& ctx, store::TimeSeries& source, int64_t timestamp);
// Samples of from .. to have been erased.
void compact_erased(server::CommandContext& ctx, store::TimeSeries& source, int64_t from,
                    int64_t to);

// Makes the series that ts-compaction-policy tells for a series that has just been made, with its
// labels and two more, unless there are such keys.
void make_policy_destinations(server::CommandContext& ctx, std::string_view source_key);

}  // namespace latchkey::commands

// Reports on latency samples for people to read: LATENCY GRAPH and DOCTOR.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "server/config/config_values.h"
#include "server/observe/latency_monitor.h"

namespace latchkey::commands {

// Draws a column for each sample, whose height is the sample's place between the lowest and the
// highest one, and below it the sample's age, written from top to bottom.
std::string draw_latency(std::string_view name, const server::LatencyEvent& event, int64_t now_s);

// Describes the samples of each event, and advises what can be done about them.
std::string diagnose_latency(const server::LatencyMonitor& monitor,
                             const server::ConfigValues& settings);

}  // namespace latchkey::commands

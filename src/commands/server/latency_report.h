// Latency samples for people to read: LATENCY GRAPH and DOCTOR.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "server/config/config_values.h"
#include "server/observe/latency_monitor.h"

namespace latchkey::commands {

// A column for each sample, as high as the sample is between the lowest and the highest of them,
// with how long ago it was written from top to bottom below it.
std::string draw_latency(std::string_view name, const server::LatencyEvent& event, int64_t now_s);

// What was seen of each event, and what can be done about it.
std::string diagnose_latency(const server::LatencyMonitor& monitor,
                             const server::ConfigValues& settings);

}  // namespace latchkey::commands

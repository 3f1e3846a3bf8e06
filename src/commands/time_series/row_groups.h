// The rows of this folder's files, which time_series_rows() puts together.
#pragma once

#include <span>

#include "server/command/command.h"

namespace latchkey::commands {

std::span<const server::CommandRow> time_series_query_rows();
std::span<const server::CommandRow> time_series_range_rows();
std::span<const server::CommandRow> time_series_rule_rows();
std::span<const server::CommandRow> time_series_sample_rows();

}  // namespace latchkey::commands

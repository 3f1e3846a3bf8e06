// The directives of time series: the settings that a new series gets unless the request names them.
#pragma once

#include <vector>

#include "server/config/config_directive.h"

namespace latchkey::server {

void add_time_series(std::vector<Directive>& table);

}  // namespace latchkey::server

// Which fields of INFO, of CLIENT LIST and of MEMORY STATS a release has.
#pragma once

#include <string_view>

#include "server/emulation/edition.h"

namespace latchkey::server {

// `name`: of a field, or the title of a section.
bool has_info_field(const Edition& edition, std::string_view name);
bool has_client_field(const Edition& edition, std::string_view name);
bool has_memory_figure(const Edition& edition, std::string_view name);
bool has_info_section(const Edition& edition, std::string_view title);

}  // namespace latchkey::server

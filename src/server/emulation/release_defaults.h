// Directives whose defaults differ in a release that can be emulated.
#pragma once

#include "server/emulation/edition.h"

namespace latchkey::server {

struct ConfigValues;

// Makes these the values of a server of that edition: those that have the default of the edition
// they had take that of the new one, and what has been set otherwise stays.
void change_edition(const Edition& edition, ConfigValues* values);

}  // namespace latchkey::server

// Steps that the geo commands share: reading coordinates and units, replying with coordinates and
// distances.
#pragma once

#include "base/geohash.h"
#include "resp/reply_builder.h"
#include "server/command/command_context.h"

namespace latchkey::commands {

// Reads a longitude and a latitude; false, with an error sent, when they cannot be stored.
// REQUIRES: two words left.
bool read_geo_point(server::CommandContext& ctx, server::ArgReader& reader, base::GeoPoint* point);

// Reads a unit of length and sets *unit_m to its metres; false, with an error sent, for unknown
// units.
bool read_geo_unit(server::CommandContext& ctx, server::ArgReader& reader, double* unit_m);

// Replies with longitude and latitude.
void reply_geo_point(server::CommandContext& ctx, base::GeoPoint point);

// Replies with the distance to four decimals. REQUIRES: distance >= 0.
void reply_geo_distance(resp::ReplyBuilder& reply, double distance);

}  // namespace latchkey::commands

// Steps that the geo commands share: coordinates and units read, coordinates and distances replied.
#pragma once

#include "base/geohash.h"
#include "resp/reply_builder.h"
#include "server/command/command_context.h"

namespace latchkey::commands {

// Reads a longitude and a latitude; false, with an error sent, when they are none that can be
// stored. REQUIRES: two words left.
bool read_geo_point(server::CommandContext& ctx, server::ArgReader& reader, base::GeoPoint* point);

// Reads a unit of length as metres; false, with an error sent, when there is no such unit.
bool read_geo_unit(server::CommandContext& ctx, server::ArgReader& reader, double* unit_m);

// Replies with longitude and latitude.
void reply_geo_point(resp::ReplyBuilder& reply, base::GeoPoint point);

// Replies with four decimals. REQUIRES: distance >= 0.
void reply_geo_distance(resp::ReplyBuilder& reply, double distance);

}  // namespace latchkey::commands

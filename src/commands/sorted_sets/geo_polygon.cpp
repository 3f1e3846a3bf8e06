#include "commands/sorted_sets/geo_polygon.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace latchkey::commands {

using base::GeoPoint;

namespace {

constexpr double kRadians = std::numbers::pi / 180;

GeoPoint mean_on_sphere(const std::vector<GeoPoint>& points) {
  double x = 0;
  double y = 0;
  double z = 0;
  for (const GeoPoint& point : points) {
    const double longitude = point.longitude * kRadians;
    const double latitude = point.latitude * kRadians;
    x += std::cos(latitude) * std::cos(longitude);
    y += std::cos(latitude) * std::sin(longitude);
    z += std::sin(latitude);
  }
  const double latitude = std::atan2(z, std::hypot(x, y)) / kRadians;
  return {std::atan2(y, x) / kRadians,
          std::clamp(latitude, -base::kMaxGeoLatitude, base::kMaxGeoLatitude)};
}

}  // namespace

GeoPolygon::GeoPolygon(std::vector<GeoPoint> vertices)
    : vertices_(std::move(vertices)),
      center_(mean_on_sphere(vertices_)),
      least_(vertices_.front()),
      most_(vertices_.front()) {
  for (const GeoPoint& vertex : vertices_) {
    least_.longitude = std::min(least_.longitude, vertex.longitude);
    least_.latitude = std::min(least_.latitude, vertex.latitude);
    most_.longitude = std::max(most_.longitude, vertex.longitude);
    most_.latitude = std::max(most_.latitude, vertex.latitude);
  }
}

base::GeoShape GeoPolygon::bounds() const {
  // Where the box of the polygon reaches farthest from the centre: its corners, or, across the
  // equator, the ends of the widest parallel.
  const double widest = std::clamp(0.0, least_.latitude, most_.latitude);
  double radius_m = 0;
  for (const double longitude : {least_.longitude, most_.longitude}) {
    for (const double latitude : {least_.latitude, widest, most_.latitude})
      radius_m = std::max(radius_m, base::geo_distance(center_, {longitude, latitude}));
  }
  return {base::GeoShape::Kind::kCircle, center_, radius_m, radius_m};
}

bool GeoPolygon::contains(GeoPoint point) const {
  // Counts the edges that a ray towards the east crosses.
  bool inside = false;
  for (size_t i = 0, before = vertices_.size() - 1; i < vertices_.size(); before = i++) {
    const GeoPoint& from = vertices_[before];
    const GeoPoint& to = vertices_[i];
    if ((from.latitude > point.latitude) == (to.latitude > point.latitude)) continue;
    const double part = (point.latitude - from.latitude) / (to.latitude - from.latitude);
    if (point.longitude < from.longitude + part * (to.longitude - from.longitude)) inside = !inside;
  }
  return inside;
}

}  // namespace latchkey::commands

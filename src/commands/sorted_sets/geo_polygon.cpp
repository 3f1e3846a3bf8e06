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
  // Points at the eastern and northern end of the world are in no cell of a search.
  constexpr double kEast = 180;
  constexpr double kNorth = base::kMaxGeoLatitude - 1e-9;
  const double longitude = std::atan2(y, x) / kRadians;
  const double latitude = std::atan2(z, std::hypot(x, y)) / kRadians;
  return {longitude < kEast ? longitude : -kEast,
          std::clamp(latitude, -base::kMaxGeoLatitude, kNorth)};
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
  constexpr double kQuarter = 90;
  double radius_m = 0;
  if (center_.longitude - least_.longitude > kQuarter ||
      most_.longitude - center_.longitude > kQuarter) {
    // What is farther away than a quarter to the east or west may be farthest in its middle.
    radius_m = std::numbers::pi * base::kEarthRadiusMeters;
  } else {
    // The box of the polygon reaches farthest with a corner.
    for (const double longitude : {least_.longitude, most_.longitude}) {
      for (const double latitude : {least_.latitude, most_.latitude})
        radius_m = std::max(radius_m, base::geo_distance(center_, {longitude, latitude}));
    }
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

#include "commands/sorted_sets/geo_polygon.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
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
  make_bands();
}

size_t GeoPolygon::band_of(double latitude) const {
  const double height = most_.latitude - least_.latitude;
  if (height <= 0) return 0;
  const double part = (latitude - least_.latitude) / height;
  return std::min(static_cast<size_t>(part * static_cast<double>(bands_)), bands_ - 1);
}

std::pair<size_t, size_t> GeoPolygon::bands_of_edge(size_t edge) const {
  const auto [from, to] = std::pair(vertices_[before(edge)].latitude, vertices_[edge].latitude);
  return {band_of(std::min(from, to)), band_of(std::max(from, to))};
}

template <typename Fn>
void GeoPolygon::for_each_in_bands(Fn&& fn) const {
  for (size_t i = 0; i < vertices_.size(); ++i) {
    const auto [first, last] = bands_of_edge(i);
    for (size_t band = first; band <= last; ++band) fn(i, band);
  }
}

void GeoPolygon::make_bands() {
  const size_t most = kMostBandsAnEdge * vertices_.size();
  const auto are_too_many = [&] {
    size_t total = 0;
    for (size_t i = 0; i < vertices_.size(); ++i) {
      const auto [first, last] = bands_of_edge(i);
      total += last - first + 1;
    }
    return total > most;
  };
  bands_ = vertices_.size();
  while (bands_ > 1 && are_too_many()) bands_ /= 2;
  begins_.assign(bands_ + 1, 0);
  for_each_in_bands([&](size_t, size_t band) { ++begins_[band + 1]; });
  std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
  edges_.resize(begins_.back());
  std::vector<size_t> next = begins_;
  for_each_in_bands(
      [&](size_t edge, size_t band) { edges_[next[band]++] = static_cast<uint32_t>(edge); });
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

bool GeoPolygon::may_contain(GeoPoint point) const {
  // Where an edge crosses a latitude is rounded.
  constexpr double kRounding = 1e-9;
  return point.latitude >= least_.latitude && point.latitude <= most_.latitude &&
         point.longitude >= least_.longitude - kRounding &&
         point.longitude <= most_.longitude + kRounding;
}

bool GeoPolygon::is_crossed(size_t edge, GeoPoint point) const {
  const GeoPoint& from = vertices_[before(edge)];
  const GeoPoint& to = vertices_[edge];
  if ((from.latitude > point.latitude) == (to.latitude > point.latitude)) return false;
  const double part = (point.latitude - from.latitude) / (to.latitude - from.latitude);
  return point.longitude < from.longitude + part * (to.longitude - from.longitude);
}

bool GeoPolygon::contains(GeoPoint point) const {
  if (!may_contain(point)) return false;
  // Counts the edges that a ray towards the east crosses.
  bool inside = false;
  const size_t band = band_of(point.latitude);
  for (size_t i = begins_[band]; i < begins_[band + 1]; ++i) inside ^= is_crossed(edges_[i], point);
  return inside;
}

size_t GeoPolygon::edges_near(GeoPoint point) const {
  if (!may_contain(point)) return 0;
  const size_t band = band_of(point.latitude);
  return begins_[band + 1] - begins_[band];
}

}  // namespace latchkey::commands

// Places on the earth as scores of sorted sets, and searches for places near others.
//
// A score is a geohash of 52 bits: the ranges of longitude and latitude are each halved 26 times,
// and the bits that select the halves are interleaved, longitude first. Places in the same cell
// share the first 2 * s bits, so their scores are contiguous, and a search reads the nine cells
// around its centre. The latitudes of scores reach as far as Web Mercator does (EPSG:3857). The
// method is published as geohash-int (https://github.com/yinqiwen/geohash-int); clients of the
// reference see its scores, distances and order of cells.
//
// Longitudes and latitudes are in degrees, lengths in metres. Everything costs O(1).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace latchkey::base {

struct GeoPoint {
  double longitude;
  double latitude;
};

inline constexpr double kMaxGeoLongitude = 180;
inline constexpr double kMaxGeoLatitude = 85.05112878;
inline constexpr double kEarthRadiusMeters = 6372797.560856;

// Whether the point has a score. False for NaN.
constexpr bool is_valid(GeoPoint point) {
  return point.longitude >= -kMaxGeoLongitude && point.longitude <= kMaxGeoLongitude &&
         point.latitude >= -kMaxGeoLatitude && point.latitude <= kMaxGeoLatitude;
}

// The score of a place. Below 2^52, except at the eastern or northern end, where it equals the
// reference's and no search finds it. REQUIRES: is_valid(point).
uint64_t geo_score(GeoPoint point);
// The centre of the smallest cell with this score; every score maps to some place.
GeoPoint geo_point(double score);

// Writes the standard geohash of a place, whose latitudes reach to the poles: 10 characters and a
// '0', because ten characters take up 50 of the 52 bits.
inline constexpr size_t kGeohashText = 11;
void format_geohash(GeoPoint point, char* out);

// The great-circle distance between two places, by the haversine formula.
double geo_distance(GeoPoint from, GeoPoint to);

// The area of a search.
struct GeoShape {
  enum class Kind : uint8_t { kCircle, kBox };
  Kind kind;
  GeoPoint center;
  // For a circle both are the radius; for a box half its width and half its height. Neither
  // negative nor NaN.
  double half_width;
  double half_height;
};

// Tells which places lie within a shape. What the shape alone decides is worked out when this is
// made, so that most places beside the shape cost no trigonometry.
class GeoFilter {
 public:
  explicit GeoFilter(const GeoShape& shape);

  // The distance of a place from the centre if it lies within the shape, else nothing. A circle
  // reaches as far as geo_distance() says, to the last bit.
  std::optional<double> distance_within(GeoPoint point) const;

 private:
  bool is_in_box(GeoPoint point) const;

  GeoShape shape_;
  double center_longitude_;  // in radians, as all below
  double center_latitude_;
  double center_cosine_;  // of the latitude
  // A place that is farther from the centre than one of these lies outside of the shape.
  double most_latitude_;
  double most_longitude_;
  double most_haversine_;  // of a circle
};

// The scores from `first` up to, but not including, `end`.
struct GeoScoreRange {
  uint64_t first;
  uint64_t end;
};
struct GeoCover {
  std::array<GeoScoreRange, 9> cells;
  size_t count = 0;
};

// Cells that together contain every place within the shape, in the reference's search order: the
// centre's cell, then its neighbours. If the shape is wider than the largest cells can cover, the
// farthest places may be missing, as in the reference.
GeoCover geo_cover(const GeoShape& shape);

}  // namespace latchkey::base

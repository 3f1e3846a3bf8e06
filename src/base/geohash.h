// Places on the earth as scores of sorted sets, and what lies near them.
//
// A score is a geohash of 52 bits: longitude and latitude are each halved 26 times, and the halves
// chosen are interleaved, longitude first. So the places of a cell (what shares the first 2 * s
// bits) have scores that lie together, and a search reads the nine cells around its centre. The
// latitudes of scores reach as far as Web Mercator does (EPSG:3857). The method is the one
// published as geohash-int (https://github.com/yinqiwen/geohash-int), whose scores, distances and
// order of cells clients of the reference see.
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

// Whether a score can be made of it. False for NaN.
constexpr bool is_valid(GeoPoint point) {
  return point.longitude >= -kMaxGeoLongitude && point.longitude <= kMaxGeoLongitude &&
         point.latitude >= -kMaxGeoLatitude && point.latitude <= kMaxGeoLatitude;
}

// The score of a place. Below 2^52, but at the eastern or northern end, where it is the reference's
// and beyond what a search finds. REQUIRES: is_valid(point).
uint64_t geo_score(GeoPoint point);
// The middle of the smallest cell around what has this score; any score is some place.
GeoPoint geo_point(double score);

// Writes the standard geohash of a place, whose latitudes reach to the poles: 10 characters, and a
// last one that is always '0', because ten take up 50 of the 52 bits.
inline constexpr size_t kGeohashText = 11;
void format_geohash(GeoPoint point, char* out);

// The length of the great circle's arc between two places, by the haversine formula.
double geo_distance(GeoPoint from, GeoPoint to);

// What a search looks within.
struct GeoShape {
  enum class Kind : uint8_t { kCircle, kBox };
  Kind kind;
  GeoPoint center;
  // Of a circle the radius twice; of a box half its width and half its height. Neither negative nor
  // NaN.
  double half_width;
  double half_height;
};

// How far a place is from the centre, if it lies within the shape.
std::optional<double> distance_within(const GeoShape& shape, GeoPoint point);

// Scores from `first` to below `end`.
struct GeoScoreRange {
  uint64_t first;
  uint64_t end;
};
struct GeoCover {
  std::array<GeoScoreRange, 9> cells;
  size_t count = 0;
};

// Cells that together hold every place within the shape, in the order in which the reference looks
// through them: the centre's, then its neighbours. Where the whole shape is wider than the cells
// can be, what is farthest off may be missing, as there.
GeoCover geo_cover(const GeoShape& shape);

}  // namespace latchkey::base

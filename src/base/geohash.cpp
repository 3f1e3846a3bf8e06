#include "base/geohash.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace latchkey::base {

namespace {

constexpr unsigned kSteps = 26;  // halvings of each coordinate
constexpr double kRadiansPerDegree = std::numbers::pi / 180.0;

double to_radians(double degrees) {
  return degrees * kRadiansPerDegree;
}

double to_degrees(double radians) {
  return radians / kRadiansPerDegree;
}

// --- Bits ---------------------------------------------------------------------------------------

// Inserts a zero before each bit.
constexpr uint64_t spread(uint32_t bits) {
  uint64_t value = bits;
  value = (value | value << 16) & 0x0000ffff0000ffff;
  value = (value | value << 8) & 0x00ff00ff00ff00ff;
  value = (value | value << 4) & 0x0f0f0f0f0f0f0f0f;
  value = (value | value << 2) & 0x3333333333333333;
  return (value | value << 1) & 0x5555555555555555;
}

// Drops every other bit: the inverse of spread().
constexpr uint32_t gather(uint64_t value) {
  value &= 0x5555555555555555;
  value = (value | value >> 1) & 0x3333333333333333;
  value = (value | value >> 2) & 0x0f0f0f0f0f0f0f0f;
  value = (value | value >> 4) & 0x00ff00ff00ff00ff;
  value = (value | value >> 8) & 0x0000ffff0000ffff;
  return static_cast<uint32_t>(value | value >> 16);
}

// Converts a score of a sorted set to bits. A score that is not an integer of 64 bits, so not of
// any place, is converted as the machine's instruction does.
uint64_t score_bits(double score) {
  constexpr double kTwoTo63 = 9223372036854775808.0;
  if (score >= 2 * kTwoTo63) return 0;
  if (score >= kTwoTo63) return static_cast<uint64_t>(score);
  if (score < -kTwoTo63) return uint64_t{1} << 63;
  return static_cast<uint64_t>(static_cast<int64_t>(score));
}

// --- Cells --------------------------------------------------------------------------------------

// The range from `-half` to `half`, in both directions.
struct World {
  double half_width;
  double half_height;
};
constexpr World kMercator = {kMaxGeoLongitude, kMaxGeoLatitude};
constexpr World kPoleToPole = {180, 90};

struct Area {
  GeoPoint low;
  GeoPoint high;
};

// A cell in a grid of 2^steps columns and as many rows; a point at the eastern or northern end of
// the world is in a cell outside the grid.
struct Cell {
  uint32_t column;
  uint32_t row;
  unsigned steps;

  uint64_t bits() const { return spread(row) | spread(column) << 1; }
  uint32_t mask() const { return static_cast<uint32_t>((uint64_t{1} << steps) - 1); }
  // The world wraps around in both directions.
  Cell moved(int columns, int rows) const {
    Cell cell = *this;
    if (columns != 0) cell.column = (column + static_cast<uint32_t>(columns)) & mask();
    if (rows != 0) cell.row = (row + static_cast<uint32_t>(rows)) & mask();
    return cell;
  }
  GeoScoreRange scores() const {
    const unsigned shift = 2 * (kSteps - steps);
    return {bits() << shift, (bits() + 1) << shift};
  }
};

uint32_t halve(double value, double half, unsigned steps) {
  const double part = (value + half) / (half + half);
  return static_cast<uint32_t>(part * static_cast<double>(uint64_t{1} << steps));
}

Cell cell_of(GeoPoint point, unsigned steps, const World& world = kMercator) {
  return {halve(point.longitude, world.half_width, steps),
          halve(point.latitude, world.half_height, steps), steps};
}

double edge(uint32_t index, double half, unsigned steps) {
  const double part = index * 1.0 / static_cast<double>(uint64_t{1} << steps);
  return -half + part * (half + half);
}

Area area_of(const Cell& cell) {
  const auto point = [&](uint32_t column, uint32_t row) {
    return GeoPoint{edge(column, kMercator.half_width, cell.steps),
                    edge(row, kMercator.half_height, cell.steps)};
  };
  return {point(cell.column, cell.row), point(cell.column + 1, cell.row + 1)};
}

// --- Covers -------------------------------------------------------------------------------------

// How often the world can be halved so that the nine cells around a point contain everything within
// `range`. Towards the poles degrees of longitude are short, so cells must be larger.
unsigned steps_for(double range, double latitude) {
  constexpr double kHalfEquator = 20037726.37;
  if (range == 0) return kSteps;
  int steps = -1;
  for (; range < kHalfEquator; range *= 2) ++steps;
  if (std::abs(latitude) > 66) --steps;
  if (std::abs(latitude) > 80) --steps;
  return static_cast<unsigned>(std::clamp(steps, 1, static_cast<int>(kSteps)));
}

// The bounding box of the shape; its width is measured at the edge nearer to a pole, where degrees
// of longitude are shortest.
Area bounds_of(const GeoShape& shape) {
  const GeoPoint center = shape.center;
  const double height = to_degrees(shape.half_height / kEarthRadiusMeters);
  const double edge_latitude =
      center.latitude < 0 ? center.latitude - height : center.latitude + height;
  const double width =
      to_degrees(shape.half_width / kEarthRadiusMeters / std::cos(to_radians(edge_latitude)));
  return {{center.longitude - width, center.latitude - height},
          {center.longitude + width, center.latitude + height}};
}

// Whether the neighbours of `cell` do not reach to the bounds.
bool falls_short(const Cell& cell, const Area& bounds) {
  return area_of(cell.moved(0, 1)).high.latitude < bounds.high.latitude ||
         area_of(cell.moved(0, -1)).low.latitude > bounds.low.latitude ||
         area_of(cell.moved(1, 0)).high.longitude < bounds.high.longitude ||
         area_of(cell.moved(-1, 0)).low.longitude > bounds.low.longitude;
}

double meridian_distance(double from_latitude, double to_latitude) {
  return kEarthRadiusMeters * std::abs(to_radians(to_latitude) - to_radians(from_latitude));
}

// --- Distances ----------------------------------------------------------------------------------

// The sine of half the angle from one to another, both in radians.
double half_sine(double from, double to) {
  return std::sin((to - from) / 2);
}

// The haversine of the arc between two places: from the half sines of what lies between their
// latitudes (u) and longitudes (v), and the cosines of their latitudes.
double haversine(double u, double from_cosine, double to_cosine, double v) {
  return u * u + from_cosine * to_cosine * v * v;
}

// The metres of an arc whose haversine is `a`.
double arc_length(double a) {
  return 2.0 * kEarthRadiusMeters * std::asin(std::sqrt(a));
}

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

// A bound that what equals it does not exceed, however it was rounded; an angle's is some
// micrometres farther.
double with_slack(double bound) {
  return bound * (1 + 1e-9) + 1e-12;
}

}  // namespace

uint64_t geo_score(GeoPoint point) {
  return cell_of(point, kSteps).bits();
}

GeoPoint geo_point(double score) {
  const uint64_t bits = score_bits(score);
  const Area area = area_of({gather(bits >> 1), gather(bits), kSteps});
  const auto middle = [](double low, double high, double most) {
    return std::clamp((low + high) / 2, -most, most);
  };
  return {middle(area.low.longitude, area.high.longitude, kMaxGeoLongitude),
          middle(area.low.latitude, area.high.latitude, kMaxGeoLatitude)};
}

void format_geohash(GeoPoint point, char* out) {
  constexpr char kDigits[] = "0123456789bcdefghjkmnpqrstuvwxyz";
  const uint64_t bits = cell_of(point, kSteps, kPoleToPole).bits();
  for (unsigned i = 0; i + 1 < kGeohashText; ++i) out[i] = kDigits[bits >> (47 - 5 * i) & 31];
  out[kGeohashText - 1] = kDigits[0];
}

double geo_distance(GeoPoint from, GeoPoint to) {
  const double v = half_sine(to_radians(from.longitude), to_radians(to.longitude));
  if (v == 0) return meridian_distance(from.latitude, to.latitude);
  const double from_latitude = to_radians(from.latitude);
  const double to_latitude = to_radians(to.latitude);
  const double u = half_sine(from_latitude, to_latitude);
  return arc_length(haversine(u, std::cos(from_latitude), std::cos(to_latitude), v));
}

GeoFilter::GeoFilter(const GeoShape& shape)
    : shape_(shape),
      center_longitude_(to_radians(shape.center.longitude)),
      center_latitude_(to_radians(shape.center.latitude)),
      center_cosine_(std::cos(center_latitude_)),
      most_latitude_(kUnbounded),
      most_longitude_(kUnbounded),
      most_haversine_(kUnbounded) {
  const double height = shape.half_height / kEarthRadiusMeters;
  const double width = shape.half_width / kEarthRadiusMeters;
  const bool circle = shape.kind == GeoShape::Kind::kCircle;
  if (height < std::numbers::pi) most_latitude_ = with_slack(height);
  if (width >= std::numbers::pi) return;
  const double half_chord = std::sin(width / 2);
  most_haversine_ = with_slack(half_chord * half_chord);
  // A circle is widest where meridians touch it, a box at its edge nearer to a pole. Beyond a pole
  // there is no bound, and close to one the arcsine would magnify rounding.
  const double nearest_pole = std::abs(center_latitude_) + height;
  if (nearest_pole >= std::numbers::pi / 2) return;
  const double part =
      circle ? std::sin(width) / center_cosine_ : half_chord / std::cos(nearest_pole);
  if (part < 0.999) most_longitude_ = with_slack(std::asin(part) * (circle ? 1 : 2));
}

std::optional<double> GeoFilter::distance_within(GeoPoint point) const {
  const double latitude = to_radians(point.latitude);
  const double longitude = to_radians(point.longitude);
  if (std::abs(latitude - center_latitude_) > most_latitude_) return std::nullopt;
  const double apart = std::abs(longitude - center_longitude_);
  if (std::min(apart, 2 * std::numbers::pi - apart) > most_longitude_) return std::nullopt;
  if (shape_.kind == GeoShape::Kind::kBox && !is_in_box(point)) return std::nullopt;

  double distance;
  if (const double v = half_sine(center_longitude_, longitude); v == 0) {
    distance = meridian_distance(shape_.center.latitude, point.latitude);
  } else {
    const double u = half_sine(center_latitude_, latitude);
    const double a = haversine(u, center_cosine_, std::cos(latitude), v);
    if (shape_.kind == GeoShape::Kind::kCircle && a > most_haversine_) return std::nullopt;
    distance = arc_length(a);
  }
  if (shape_.kind == GeoShape::Kind::kCircle && distance > shape_.half_width) return std::nullopt;
  return distance;
}

// The height is measured along the meridian, the width along the latitude of `point`.
bool GeoFilter::is_in_box(GeoPoint point) const {
  const GeoPoint beside = {shape_.center.longitude, point.latitude};
  return meridian_distance(point.latitude, shape_.center.latitude) <= shape_.half_height &&
         geo_distance(point, beside) <= shape_.half_width;
}

GeoCover geo_cover(const GeoShape& shape) {
  const Area bounds = bounds_of(shape);
  const double range =
      shape.kind == GeoShape::Kind::kCircle
          ? shape.half_width
          : std::sqrt(shape.half_width * shape.half_width + shape.half_height * shape.half_height);
  Cell center = cell_of(shape.center, steps_for(range, shape.center.latitude));
  if (center.steps > 1 && falls_short(center, bounds))
    center = cell_of(shape.center, center.steps - 1);

  // Skip neighbours beyond an edge that the shape does not reach; cells of one step are so few that
  // all of them are searched.
  const Area area = area_of(center);
  const bool choose = center.steps >= 2;
  const bool without_north = choose && area.high.latitude > bounds.high.latitude;
  const bool without_south = choose && area.low.latitude < bounds.low.latitude;
  const bool without_east = choose && area.high.longitude > bounds.high.longitude;
  const bool without_west = choose && area.low.longitude < bounds.low.longitude;

  struct Move {
    int columns;
    int rows;
  };
  constexpr Move kMoves[] = {{0, 0}, {0, 1},  {0, -1}, {1, 0},  {-1, 0},
                             {1, 1}, {-1, 1}, {1, -1}, {-1, -1}};
  GeoCover cover;
  for (const Move move : kMoves) {
    if ((move.rows > 0 && without_north) || (move.rows < 0 && without_south) ||
        (move.columns > 0 && without_east) || (move.columns < 0 && without_west))
      continue;
    const GeoScoreRange range_of_cell = center.moved(move.columns, move.rows).scores();
    // With few cells, the northern neighbour is also the southern one.
    if (cover.count > 1 && cover.cells[cover.count - 1].first == range_of_cell.first) continue;
    cover.cells[cover.count++] = range_of_cell;
  }
  return cover;
}

}  // namespace latchkey::base

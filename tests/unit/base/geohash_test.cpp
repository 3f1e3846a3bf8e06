#include "base/geohash.h"

#include <cmath>
#include <limits>
#include <string>

#include "base/random.h"
#include "unit/catch.h"

namespace latchkey::base {

namespace {

std::string text_of(GeoPoint point) {
  char text[kGeohashText];
  format_geohash(point, text);
  return {text, sizeof(text)};
}

// Between 0 and 1.
double fraction(Random& random) {
  return static_cast<double>(random.below(1'000'000'001)) / 1e9;
}

GeoPoint any_point(Random& random) {
  return {(fraction(random) * 2 - 1) * kMaxGeoLongitude,
          (fraction(random) * 2 - 1) * kMaxGeoLatitude};
}

bool covers(const GeoCover& cover, uint64_t score) {
  for (size_t i = 0; i < cover.count; ++i) {
    if (score >= cover.cells[i].first && score < cover.cells[i].end) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("A place has the score that clients of the reference know", "[geohash]") {
  CHECK(geo_score({13.361389, 38.115556}) == 3479099956230698);
  CHECK(geo_score({15.087269, 37.502669}) == 3479447370796909);
  CHECK(geo_score({-180, -85.05112878}) == 0);
  CHECK(geo_score({180, 85.05112878}) == 13510798882111488);
}

TEST_CASE("A score gives its place back to within a cell", "[geohash]") {
  const GeoPoint palermo = geo_point(3479099956230698);
  CHECK(palermo.longitude == 13.361389338970184);
  CHECK(palermo.latitude == 38.1155563954963);
  Random random(1);
  for (int i = 0; i < 10'000; ++i) {
    const GeoPoint point = any_point(random);
    const GeoPoint found = geo_point(static_cast<double>(geo_score(point)));
    CHECK(std::abs(found.longitude - point.longitude) <= 360.0 / (1 << 26));
    CHECK(std::abs(found.latitude - point.latitude) <= 171.0 / (1 << 26));
  }
}

TEST_CASE("Scores that no place has are some place all the same", "[geohash]") {
  for (const double score :
       {-1.0, 1e300, -1e300, 1.5, 0x1p63, 0x1p52, 0x1p53 - 1,
        std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()})
    CHECK(is_valid(geo_point(score)));
  CHECK_FALSE(is_valid({std::nan(""), 0}));
  CHECK_FALSE(is_valid({0, 85.06}));
  CHECK_FALSE(is_valid({-180.1, 0}));
}

TEST_CASE("A geohash is the standard one, and ends in a zero", "[geohash]") {
  CHECK(text_of({13.361389338970184, 38.1155563954963}) == "sqc8b49rny0");
  CHECK(text_of({15.087267458438873, 37.50266842333162}) == "sqdtr74hyu0");
  CHECK(text_of({-5.6, 42.6}) == "ezs42e44yx0");
}

TEST_CASE("Distances are arcs of the reference's sphere", "[geohash]") {
  const double distance = geo_distance(geo_point(3479099956230698), geo_point(3479447370796909));
  CHECK(std::abs(distance - 166274.1516) < 0.0001);
  CHECK(geo_distance({10, 20}, {10, 20}) == 0);
  const double quarter = kEarthRadiusMeters * std::acos(0.0);
  CHECK(geo_distance({10, 0}, {10, 45}) == Catch::Approx(quarter / 2));
  CHECK(geo_distance({-45, 0}, {45, 0}) == Catch::Approx(quarter));
  CHECK(geo_distance({179, 0}, {-179, 0}) == Catch::Approx(quarter / 45));
}

TEST_CASE("A filter for a circle decides as the distance does", "[geohash]") {
  Random random(11);
  int within = 0;
  int beside = 0;
  for (int i = 0; i < 20'000; ++i) {
    const GeoPoint center = any_point(random);
    // Near the centre, on its meridian, or anywhere.
    const double reach = std::pow(10.0, -8 * fraction(random));
    GeoPoint point = any_point(random);
    point.longitude = std::remainder(center.longitude + point.longitude * reach, 360);
    point.latitude = center.latitude + (point.latitude - center.latitude) * reach;
    if (i % 16 == 0) point.longitude = center.longitude;
    if (!is_valid(point)) continue;
    const double distance_m = geo_distance(center, point);
    const double radii_m[] = {distance_m,
                              std::nextafter(distance_m, 0),
                              std::nextafter(distance_m, 1e9),
                              distance_m * (1 + 1e-12),
                              distance_m * (1 - 1e-12),
                              distance_m * 1.3,
                              distance_m * 0.7,
                              0,
                              fraction(random) * 25'000'000};
    for (const double radius_m : radii_m) {
      const GeoFilter filter({GeoShape::Kind::kCircle, center, radius_m, radius_m});
      const auto found = filter.distance_within(point);
      CHECK(found.has_value() == (distance_m <= radius_m));
      if (found) CHECK(*found == distance_m);
      ++(found ? within : beside);
    }
  }
  CHECK(within > 10'000);
  CHECK(beside > 10'000);
}

TEST_CASE("A filter for a box measures its width at each latitude", "[geohash]") {
  Random random(13);
  int within = 0;
  int beside = 0;
  for (int i = 0; i < 20'000; ++i) {
    const GeoPoint center = any_point(random);
    const double reach = std::pow(10.0, -6 * fraction(random));
    GeoPoint point = any_point(random);
    point.longitude = std::remainder(center.longitude + point.longitude * reach, 360);
    point.latitude = center.latitude + (point.latitude - center.latitude) * reach;
    if (!is_valid(point)) continue;
    const double width_m = geo_distance(point, {center.longitude, point.latitude});
    const double height_m = geo_distance(center, {center.longitude, point.latitude});
    const double factors[] = {1, 1 - 1e-12, 1 + 1e-12, 0.7, 1.3, 10};
    for (const double factor : factors) {
      const double half_width_m = width_m * factor;
      const double half_height_m = height_m * factors[random.below(std::size(factors))];
      const GeoFilter filter({GeoShape::Kind::kBox, center, half_width_m, half_height_m});
      const auto found = filter.distance_within(point);
      CHECK(found.has_value() == (width_m <= half_width_m && height_m <= half_height_m));
      if (found) CHECK(*found == geo_distance(center, point));
      ++(found ? within : beside);
    }
  }
  CHECK(within > 10'000);
  CHECK(beside > 10'000);
}

TEST_CASE("A cover holds what lies within the shape", "[geohash]") {
  Random random(7);
  int within = 0;
  for (int i = 0; i < 30'000; ++i) {
    GeoPoint center = any_point(random);
    center.latitude *= 0.7;
    const double size_m = std::pow(10.0, 1 + fraction(random) * 4.9);
    const bool circle = random.below(2) == 0;
    const GeoShape shape = {circle ? GeoShape::Kind::kCircle : GeoShape::Kind::kBox, center, size_m,
                            circle ? size_m : size_m / 2};
    const double degrees = size_m / kEarthRadiusMeters * 60;
    const GeoPoint point = {
        std::remainder(center.longitude + (fraction(random) * 4 - 2) * degrees, 360),
        center.latitude + (fraction(random) * 2 - 1) * degrees};
    if (!is_valid(point) || !GeoFilter(shape).distance_within(point)) continue;
    ++within;
    CHECK(covers(geo_cover(shape), geo_score(point)));
  }
  CHECK(within > 1'000);
}

TEST_CASE("A cover leaves out neighbours that the shape does not reach", "[geohash]") {
  // The earth has four by four cells of two steps, the largest of which any are left out; this is
  // the middle of one.
  const GeoPoint middle = {45, 21.2};
  constexpr uint64_t kTwoSteps = uint64_t{1} << 48;
  int with_two_steps = 0;
  for (double radius_m = 100'000; radius_m < 3'000'000; radius_m += 100'000) {
    const GeoCover cover = geo_cover({GeoShape::Kind::kCircle, middle, radius_m, radius_m});
    if (cover.cells[0].end - cover.cells[0].first == kTwoSteps) {
      ++with_two_steps;
      CHECK(cover.count < 9);
    }
  }
  CHECK(with_two_steps > 0);
}

TEST_CASE("A cover has no cell twice, however large the shape", "[geohash]") {
  Random random(9);
  for (int i = 0; i < 3'000; ++i) {
    const double size_m = std::pow(10.0, fraction(random) * 8);
    const GeoCover cover = geo_cover({GeoShape::Kind::kCircle, any_point(random), size_m, size_m});
    REQUIRE(cover.count >= 1);
    for (size_t a = 0; a < cover.count; ++a) {
      for (size_t b = 0; b < a; ++b) CHECK(cover.cells[a].first != cover.cells[b].first);
    }
  }
}

}  // namespace latchkey::base

// A polygon on the earth as the area of a search (GEOSEARCH ... BYPOLYGON of Valkey 9).
//
// Edges are straight in degrees of longitude and latitude, and none crosses the date line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/geohash.h"

namespace latchkey::commands {

class GeoPolygon {
 public:
  // REQUIRES: at least three vertices. About O(vertices).
  explicit GeoPolygon(std::vector<base::GeoPoint> vertices);

  // The mean of the vertices on the sphere, from which distances are measured.
  base::GeoPoint center() const { return center_; }
  // A circle around the centre that has all of the polygon in it. O(1).
  base::GeoShape bounds() const;
  // As many steps as there are edges near the point's latitude, which are few unless most edges are
  // about as high as the polygon.
  bool contains(base::GeoPoint point) const;
  // For tests: edges that contains() would look at.
  size_t edges_near(base::GeoPoint point) const;

 private:
  // The polygon is cut into bands of latitude, so many that edges are in kMostBandsAnEdge of them
  // on average at most. Edge i is from the vertex before i to vertex i.
  static constexpr size_t kMostBandsAnEdge = 8;

  size_t before(size_t i) const { return (i == 0 ? vertices_.size() : i) - 1; }
  // Never lower for a higher latitude. REQUIRES: within the polygon's latitudes.
  size_t band_of(double latitude) const;
  // The first and the last.
  std::pair<size_t, size_t> bands_of_edge(size_t edge) const;
  // Calls fn(edge, band) for each band that an edge is in.
  template <typename Fn>
  void for_each_in_bands(Fn&& fn) const;
  void make_bands();
  bool may_contain(base::GeoPoint point) const;
  bool is_crossed(size_t edge, base::GeoPoint point) const;

  std::vector<base::GeoPoint> vertices_;
  base::GeoPoint center_;
  base::GeoPoint least_;
  base::GeoPoint most_;
  size_t bands_ = 1;
  // Edges band by band, and where each band begins, with the end behind the last one.
  std::vector<uint32_t> edges_;
  std::vector<size_t> begins_;
};

}  // namespace latchkey::commands

// A polygon on the earth as the area of a search (GEOSEARCH ... BYPOLYGON of Valkey 9).
//
// Edges are straight in degrees of longitude and latitude, and none crosses the date line.
#pragma once

#include <vector>

#include "base/geohash.h"

namespace latchkey::commands {

class GeoPolygon {
 public:
  // REQUIRES: at least three vertices.
  explicit GeoPolygon(std::vector<base::GeoPoint> vertices);

  // The mean of the vertices on the sphere, from which distances are measured.
  base::GeoPoint center() const { return center_; }
  // A circle around the centre that has all of the polygon in it. O(1).
  base::GeoShape bounds() const;
  // O(vertices).
  bool contains(base::GeoPoint point) const;

 private:
  std::vector<base::GeoPoint> vertices_;
  base::GeoPoint center_;
  base::GeoPoint least_;
  base::GeoPoint most_;
};

}  // namespace latchkey::commands

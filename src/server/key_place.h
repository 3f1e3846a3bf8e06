// A key of a database, as the tables of what clients watch, wait for or hold as a lock have it.
//
// A table of KeyPlace is searched by KeyPlaceView, which copies no key:
//
//     std::unordered_map<KeyPlace, Watchers, KeyPlaceHash, KeyPlaceEqual> table(
//         0, KeyPlaceHash{&secret});
//     table.find(KeyPlaceView{database, key});
//
// Clients choose the keys, so they are hashed with the server's secret.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/digest/hash.h"

namespace latchkey::server {

struct KeyPlaceView {
  int database = 0;  // its number
  std::string_view key = {};
  bool operator==(const KeyPlaceView&) const = default;
};

struct KeyPlace {
  int database = 0;
  std::string key = {};
  bool operator==(const KeyPlace&) const = default;
  // Valid as long as this is neither changed nor moved.
  operator KeyPlaceView() const { return {database, key}; }
};

// The hash of KeyPlace and KeyPlaceView. The secret must outlive the table.
struct KeyPlaceHash {
  using is_transparent = void;
  const base::HashSecret* secret;
  size_t operator()(const KeyPlaceView& place) const {
    return secret->hash(place.key) + static_cast<size_t>(place.database);
  }
};

struct KeyPlaceEqual {
  using is_transparent = void;
  bool operator()(const KeyPlaceView& one, const KeyPlaceView& other) const { return one == other; }
};

}  // namespace latchkey::server

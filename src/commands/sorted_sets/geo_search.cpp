// Searches by distance from a place: GEOSEARCH, GEOSEARCHSTORE and the older GEORADIUS family.
#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "base/geohash.h"
#include "commands/groups.h"
#include "commands/keys/store_result.h"
#include "commands/keys/typed_key.h"
#include "commands/sorted_sets/geo_polygon.h"
#include "commands/sorted_sets/geo_steps.h"
#include "server/command/command_context.h"
#include "store/value/sorted_set.h"

namespace latchkey::commands {

using namespace server;
using base::GeoShape;
using store::KeyRef;
using store::RankRange;
using store::ScoreRange;
using store::SortedSet;

namespace {

// Where a command has the search area: GEOSEARCH in options, the others in their first arguments.
enum class Center : uint8_t { kOptions, kPoint, kMember };
// Where it has the destination: nowhere, in its first key, or in options.
enum class Store : uint8_t { kNever, kFirstKey, kOptions };

struct SearchRequest {
  Center center_from;
  Store store_to;
  size_t key = 1;  // the argument that names the sorted set

  std::optional<base::GeoPoint> center = {};
  bool member_without_key = false;  // the centre is a member of a missing set
  GeoShape shape = {};
  bool has_shape = false;
  // Of Valkey; it has the centre and bounds `shape`.
  std::optional<GeoPolygon> polygon = {};
  double unit_m = 1;

  bool with_point = false;
  bool with_distance = false;
  bool with_score = false;
  enum class Order : uint8_t { kAsFound, kNearest, kFarthest } order = Order::kAsFound;
  size_t count = 0;  // 0: all
  bool any = false;
  std::string_view destination = {};
  bool store = false;
  bool store_distance = false;

  bool has_center() const { return center.has_value() || member_without_key; }
};

// --- Reading the request ------------------------------------------------------------------------

// Whether there are searches by polygon. Valkey has them since 9.0, which also names the member
// that is missing.
bool has_polygons(const CommandContext& ctx) {
  return ctx.server.edition().is_valkey_since({9, 0});
}

// Takes a member's place as the centre; false, with an error sent, when the member is missing.
bool center_on_member(CommandContext& ctx, const SortedSet* set, std::string_view member,
                      SearchRequest* request) {
  if (set == nullptr) {
    request->member_without_key = true;
    return true;
  }
  const auto score = set->score(member);
  if (!score)
    return ctx.refuse(has_polygons(ctx) ? "ERR member " + std::string(member) + " does not exist"
                                        : "ERR could not decode requested zset member");
  request->center = base::geo_point(*score);
  return true;
}

bool center_on_point(CommandContext& ctx, ArgReader& reader, SearchRequest* request) {
  base::GeoPoint point;
  if (!read_geo_point(ctx, reader, &point)) return false;
  request->center = point;
  return true;
}

bool read_circle(CommandContext& ctx, ArgReader& reader, SearchRequest* request) {
  double radius;
  if (!ctx.read_double(reader.next(), &radius, "ERR need numeric radius")) return false;
  if (radius < 0) return ctx.refuse("ERR radius cannot be negative");
  if (!read_geo_unit(ctx, reader, &request->unit_m)) return false;
  const double radius_m = radius * request->unit_m;
  request->shape = {GeoShape::Kind::kCircle, {}, radius_m, radius_m};
  request->has_shape = true;
  return true;
}

bool read_box(CommandContext& ctx, ArgReader& reader, SearchRequest* request) {
  double width;
  double height;
  if (!ctx.read_double(reader.next(), &width, "ERR need numeric width") ||
      !ctx.read_double(reader.next(), &height, "ERR need numeric height"))
    return false;
  if (width < 0 || height < 0) return ctx.refuse("ERR height or width cannot be negative");
  if (!read_geo_unit(ctx, reader, &request->unit_m)) return false;
  request->shape = {
      GeoShape::Kind::kBox, {}, width * request->unit_m / 2, height * request->unit_m / 2};
  request->has_shape = true;
  return true;
}

bool read_polygon(CommandContext& ctx, ArgReader& reader, SearchRequest* request) {
  constexpr int64_t kMin = 3;
  int64_t count;
  if (!ctx.read_int64(reader.next(), &count, "ERR invalid number of vertices")) return false;
  if (count < kMin || static_cast<uint64_t>(count) > reader.left() / 2)
    return ctx.refuse("ERR GEOSEARCH BYPOLYGON must have at least 3 vertices");
  std::vector<base::GeoPoint> vertices(static_cast<size_t>(count));
  for (base::GeoPoint& vertex : vertices) {
    if (!read_geo_point(ctx, reader, &vertex)) return false;
  }
  request->polygon.emplace(std::move(vertices));
  request->center = request->polygon->center();
  request->shape = request->polygon->bounds();
  request->has_shape = true;
  return true;
}

bool read_count(CommandContext& ctx, ArgReader& reader, SearchRequest* request) {
  int64_t count;
  if (!ctx.read_int64(reader.next(), &count)) return false;
  if (count <= 0) return ctx.refuse("ERR COUNT must be > 0");
  request->count = static_cast<size_t>(count);
  return true;
}

// Reads the first arguments of the GEORADIUS family: a centre and a radius.
bool read_circle_around(CommandContext& ctx, const SortedSet* set, ArgReader& reader,
                        SearchRequest* request) {
  if (request->center_from == Center::kPoint)
    return center_on_point(ctx, reader, request) && read_circle(ctx, reader, request);
  if (!center_on_member(ctx, set, reader.next(), request)) return false;
  if (set != nullptr) return read_circle(ctx, reader, request);
  // The radius is not checked when there is nothing to search.
  reader.next();
  reader.next();
  return true;
}

// Reads an option that only GEOSEARCH and GEOSEARCHSTORE have. False when it is no such option;
// *valid becomes false when an error has been sent.
bool read_area_option(CommandContext& ctx, const SortedSet* set, ArgReader& reader,
                      SearchRequest* request, bool* by_member, bool* valid) {
  // A polygon is both the centre and the shape.
  if (request->polygon) return false;
  const bool circle = request->has_shape && request->shape.kind == GeoShape::Kind::kCircle;
  const bool box = request->has_shape && request->shape.kind == GeoShape::Kind::kBox;
  std::string_view member;
  if ((*by_member || !request->has_center()) && reader.word("FROMMEMBER", &member)) {
    *by_member = true;
    *valid = center_on_member(ctx, set, member, request);
  } else if (!*by_member && reader.left() > 2 && reader.word("FROMLONLAT")) {
    *valid = center_on_point(ctx, reader, request);
  } else if (!box && reader.left() > 2 && reader.word("BYRADIUS")) {
    *valid = read_circle(ctx, reader, request);
  } else if (!circle && reader.left() > 3 && reader.word("BYBOX")) {
    *valid = read_box(ctx, reader, request);
  } else if (!request->has_shape && !request->has_center() && has_polygons(ctx) &&
             reader.left() > 1 && reader.word("BYPOLYGON")) {
    *valid = read_polygon(ctx, reader, request);
  } else {
    return false;
  }
  return true;
}

// False, with an error sent, when the options are invalid.
bool read_options(CommandContext& ctx, const SortedSet* set, ArgReader reader,
                  SearchRequest* request) {
  using Order = SearchRequest::Order;
  const bool area_in_options = request->center_from == Center::kOptions;
  bool by_member = false;
  bool valid = true;
  while (valid && reader.more()) {
    if (reader.word("WITHDIST")) {
      request->with_distance = true;
    } else if (reader.word("WITHHASH")) {
      request->with_score = true;
    } else if (reader.word("WITHCOORD")) {
      request->with_point = true;
    } else if (reader.word("ANY")) {
      request->any = true;
    } else if (reader.word("ASC")) {
      request->order = Order::kNearest;
    } else if (reader.word("DESC")) {
      request->order = Order::kFarthest;
    } else if (reader.left() > 1 && reader.word("COUNT")) {
      valid = read_count(ctx, reader, request);
    } else if (request->store_to == Store::kOptions &&
               reader.word("STORE", &request->destination)) {
      request->store = true;
      request->store_distance = false;
    } else if (request->store_to == Store::kOptions &&
               reader.word("STOREDIST", &request->destination)) {
      request->store = true;
      request->store_distance = true;
    } else if (request->store_to == Store::kFirstKey && reader.word("STOREDIST")) {
      request->store_distance = true;
    } else if (!area_in_options ||
               !read_area_option(ctx, set, reader, request, &by_member, &valid)) {
      ctx.syntax_error();
      valid = false;
    }
  }
  return valid;
}

// False, with an error sent, when the options contradict each other.
bool check_options(CommandContext& ctx, const SearchRequest& request) {
  const bool area_in_options = request.center_from == Center::kOptions;
  const std::string name(ctx.args[0]);
  if (request.store && (request.with_distance || request.with_score || request.with_point)) {
    const std::string who = area_in_options ? "GEOSEARCHSTORE" : "STORE option in GEORADIUS";
    ctx.reply.error("ERR " + who +
                    " is not compatible with WITHDIST, WITHHASH and WITHCOORD options");
  } else if (area_in_options && !request.has_center()) {
    ctx.reply.error("ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for " + name);
  } else if (area_in_options && !request.has_shape) {
    ctx.reply.error((has_polygons(ctx)
                         ? "ERR exactly one of BYRADIUS, BYBOX and BYPOLYGON can be specified for "
                         : "ERR exactly one of BYRADIUS and BYBOX can be specified for ") +
                    name);
  } else if (request.any && request.count == 0) {
    ctx.reply.error("ERR the ANY argument requires COUNT argument");
  } else {
    return true;
  }
  return false;
}

// --- Searching ----------------------------------------------------------------------------------

struct Match {
  std::string member;
  double score;
  double distance_m;
  base::GeoPoint point;
};

// Adds the members of a cell that lie within the shape, up to `most` matches in all (0: no limit).
void search_cell(const SortedSet& set, base::GeoScoreRange cell, const base::GeoFilter& filter,
                 const SearchRequest& request, std::vector<Match>* found) {
  const size_t most = request.any ? request.count : 0;
  constexpr size_t kStep = 128;  // members examined between checks of `most`
  RankRange left = set.range(
      ScoreRange{{static_cast<double>(cell.first)}, {static_cast<double>(cell.end), true}});
  while (left.count > 0 && (most == 0 || found->size() < most)) {
    const size_t step = most == 0 ? left.count : std::min(left.count, kStep);
    set.for_each({left.first, step}, false, [&](std::string_view member, double score) {
      if (most != 0 && found->size() == most) return;
      const base::GeoPoint point = base::geo_point(score);
      const auto distance = filter.distance_within(point);
      if (distance && (!request.polygon || request.polygon->contains(point)))
        found->push_back({std::string(member), score, *distance, point});
    });
    left = {left.first + step, left.count - step};
  }
}

std::vector<Match> search(const SortedSet& set, const SearchRequest& request) {
  GeoShape shape = request.shape;
  shape.center = *request.center;
  std::vector<Match> found;
  const base::GeoFilter filter(shape);
  const base::GeoCover cover = geo_cover(shape);
  for (size_t i = 0; i < cover.count; ++i)
    search_cell(set, cover.cells[i], filter, request, &found);
  return found;
}

// The indexes of the wanted matches, in order. With COUNT but neither an order nor ANY, these are
// the nearest.
std::vector<size_t> choose(const std::vector<Match>& found, const SearchRequest& request) {
  using Order = SearchRequest::Order;
  std::vector<size_t> chosen(found.size());
  std::iota(chosen.begin(), chosen.end(), 0);
  const size_t wanted = request.count == 0 ? found.size() : std::min(request.count, found.size());
  Order order = request.order;
  if (order == Order::kAsFound && request.count != 0 && !request.any) order = Order::kNearest;
  if (order != Order::kAsFound) {
    const auto before = [&](size_t left, size_t right) {
      const double a = found[left].distance_m;
      const double b = found[right].distance_m;
      if (a == b) return left < right;
      return order == Order::kNearest ? a < b : a > b;
    };
    if (wanted == chosen.size()) {
      std::sort(chosen.begin(), chosen.end(), before);
    } else {
      std::partial_sort(chosen.begin(), chosen.begin() + static_cast<std::ptrdiff_t>(wanted),
                        chosen.end(), before);
    }
  }
  chosen.resize(wanted);
  return chosen;
}

// --- Answering ----------------------------------------------------------------------------------

void reply_matches(CommandContext& ctx, const std::vector<Match>& found,
                   const SearchRequest& request) {
  const std::vector<size_t> chosen = choose(found, request);
  const size_t extras =
      size_t{request.with_distance} + size_t{request.with_score} + size_t{request.with_point};
  ctx.reply.array(chosen.size());
  for (const size_t i : chosen) {
    const Match& match = found[i];
    if (extras > 0) ctx.reply.array(extras + 1);
    ctx.reply.bulk(match.member);
    if (request.with_distance) reply_geo_distance(ctx.reply, match.distance_m / request.unit_m);
    if (request.with_score) ctx.reply.integer(static_cast<int64_t>(match.score));
    if (request.with_point) reply_geo_point(ctx, match.point);
  }
}

void store_matches(CommandContext& ctx, const std::vector<Match>& found,
                   const SearchRequest& request) {
  const std::vector<size_t> chosen = choose(found, request);
  std::unique_ptr<SortedSet> made;
  if (!chosen.empty()) {
    size_t longest = 0;
    for (const size_t i : chosen) longest = std::max(longest, found[i].member.size());
    made = std::make_unique<SortedSet>(ctx.db.environment(), chosen.size(), longest);
    for (const size_t i : chosen) {
      const Match& match = found[i];
      made->set(match.member,
                request.store_distance ? match.distance_m / request.unit_m : match.score);
    }
    ctx.events.count(chosen.size() - 1);
  }
  store_result(ctx, request.destination, std::move(made), EventClass::kSortedSet,
               request.store_to == Store::kFirstKey ? "geosearchstore" : "georadiusstore");
}

void answer(CommandContext& ctx, SearchRequest request) {
  if (request.store_to == Store::kFirstKey) {
    request.destination = ctx.args[1];
    request.store = true;
    request.key = 2;
  }
  const KeyRef ref = ctx.db.find(ctx.args[request.key]);
  const auto set = view_at<SortedSet>(ctx, ref);
  if (ref && set == nullptr) return;
  ArgReader reader(ctx.args, request.key + 1);
  if (request.center_from != Center::kOptions &&
      !read_circle_around(ctx, set.get(), reader, &request))
    return;
  if (!read_options(ctx, set.get(), reader, &request) || !check_options(ctx, request)) return;
  const std::vector<Match> found = set == nullptr ? std::vector<Match>() : search(*set, request);
  request.store ? store_matches(ctx, found, request) : reply_matches(ctx, found, request);
}

void geosearch(CommandContext& ctx) {
  answer(ctx, {Center::kOptions, Store::kNever});
}

void geosearchstore(CommandContext& ctx) {
  answer(ctx, {Center::kOptions, Store::kFirstKey});
}

void georadius(CommandContext& ctx) {
  answer(ctx, {Center::kPoint, Store::kOptions});
}

void georadius_ro(CommandContext& ctx) {
  answer(ctx, {Center::kPoint, Store::kNever});
}

void georadiusbymember(CommandContext& ctx) {
  answer(ctx, {Center::kMember, Store::kOptions});
}

void georadiusbymember_ro(CommandContext& ctx) {
  answer(ctx, {Center::kMember, Store::kNever});
}

constexpr const char* kRadiusCost =
    "O(N+log(M)) where N is the number of elements inside the bounding box of the circular area "
    "delimited by center and radius and M is the number of items inside the index.";
constexpr const char* kRadiusHistory =
    "6.2.0 Added the `ANY` option for `COUNT`.\n7.0.0 Added support for uppercase unit names.";
constexpr const char* kShapeCost =
    "O(N+log(M)) where N is the number of elements in the grid-aligned bounding box area around "
    "the shape provided as the filter and M is the number of items inside the shape";

// Of several STORE and STOREDIST the last one counts, which the specifications cannot tell.
// FirstOption: the position of the word that may be the first option.
template <size_t FirstOption>
bool find_radius_keys(Arguments words, std::vector<KeyReference>* out) {
  out->push_back({1, kKeyReadOnly | kKeyAccess});
  std::optional<size_t> target;
  for (size_t i = FirstOption; i + 1 < words.size(); ++i) {
    if (is_word(words[i], "STORE") || is_word(words[i], "STOREDIST")) target = ++i;
  }
  if (target) out->push_back({static_cast<uint32_t>(*target), kKeyOverwrite | kKeyUpdate});
  return true;
}

constexpr CommandRow kGeoSearchRows[] = {
    {"GEORADIUS",
     georadius,
     "key longitude:double latitude:double radius:double {unit=M|KM|FT|MI} [WITHCOORD] [WITHDIST] "
     "[WITHHASH] [count-block=COUNT count [ANY]@6.2.0] [order=ASC|DESC] [store=STORE "
     "storekey(key):key|STOREDIST storedistkey(key):key]",
     kWrite | kDenyOom,
     keys(1).ro().access() + keys_after("STORE", 6).ow().update() +
         keys_after("STOREDIST", 6).ow().update(),
     kAclGeo,
     Group::kGeo,
     "3.2.0",
     kRadiusCost,
     "Queries a geospatial index for members within a distance from a coordinate, optionally "
     "stores the result.",
     {.history = kRadiusHistory,
      .deprecated_since = "6.2.0",
      .replaced_by = "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` argument",
      .find_keys = find_radius_keys<6>}},
    {"GEORADIUS_RO",
     georadius_ro,
     "key longitude:double latitude:double radius:double {unit=M|KM|FT|MI} [WITHCOORD] [WITHDIST] "
     "[WITHHASH] [count-block=COUNT count [ANY]@6.2.0] [order=ASC|DESC]",
     kReadOnly,
     keys(1).ro().access(),
     kAclGeo,
     Group::kGeo,
     "3.2.10",
     kRadiusCost,
     "Returns members from a geospatial index that are within a distance from a coordinate.",
     {.history = kRadiusHistory,
      .deprecated_since = "6.2.0",
      .replaced_by = "`GEOSEARCH` with the `BYRADIUS` argument"}},
    {"GEORADIUSBYMEMBER",
     georadiusbymember,
     "key member radius:double {unit=M|KM|FT|MI} [WITHCOORD] [WITHDIST] [WITHHASH] "
     "[count-block=COUNT count [ANY]] [order=ASC|DESC] [store=STORE storekey(key):key|STOREDIST "
     "storedistkey(key):key]",
     kWrite | kDenyOom,
     keys(1).ro().access() + keys_after("STORE", 5).ow().update() +
         keys_after("STOREDIST", 5).ow().update(),
     kAclGeo,
     Group::kGeo,
     "3.2.0",
     kRadiusCost,
     "Queries a geospatial index for members within a distance from a member, optionally stores "
     "the result.",
     {.history = kRadiusHistory,
      .deprecated_since = "6.2.0",
      .replaced_by =
          "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` and `FROMMEMBER` arguments",
      .find_keys = find_radius_keys<5>}},
    {"GEORADIUSBYMEMBER_RO",
     georadiusbymember_ro,
     "key member radius:double {unit=M|KM|FT|MI} [WITHCOORD] [WITHDIST] [WITHHASH] "
     "[count-block=COUNT count [ANY]] [order=ASC|DESC]",
     kReadOnly,
     keys(1).ro().access(),
     kAclGeo,
     Group::kGeo,
     "3.2.10",
     kRadiusCost,
     "Returns members from a geospatial index that are within a distance from a member.",
     {.history = kRadiusHistory,
      .deprecated_since = "6.2.0",
      .replaced_by = "`GEOSEARCH` with the `BYRADIUS` and `FROMMEMBER` arguments"}},
    {"GEOSEARCH",
     geosearch,
     "key {from=FROMMEMBER member|{FROMLONLAT fromlonlat=longitude:double latitude:double}} "
     "{by={circle=BYRADIUS radius:double {unit=M|KM|FT|MI}}|{box=BYBOX width:double height:double "
     "{unit=M|KM|FT|MI}}} [order=ASC|DESC] [count-block=COUNT count [ANY]] [WITHCOORD] [WITHDIST] "
     "[WITHHASH]",
     kReadOnly,
     keys(1).ro().access(),
     kAclGeo,
     Group::kGeo,
     "6.2.0",
     kShapeCost,
     "Queries a geospatial index for members inside an area of a box or a circle.",
     {.history = "7.0.0 Added support for uppercase unit names."}},
    {"GEOSEARCHSTORE",
     geosearchstore,
     "destination source {from=FROMMEMBER member|{FROMLONLAT fromlonlat=longitude:double "
     "latitude:double}} {by={circle=BYRADIUS radius:double {unit=M|KM|FT|MI}}|{box=BYBOX "
     "width:double height:double {unit=M|KM|FT|MI}}} [order=ASC|DESC] [count-block=COUNT count "
     "[ANY]] [STOREDIST]",
     kWrite | kDenyOom,
     keys(1).ow().update() + keys(2).ro().access(),
     kAclGeo,
     Group::kGeo,
     "6.2.0",
     kShapeCost,
     "Queries a geospatial index for members inside an area of a box or a circle, optionally "
     "stores the result.",
     {.history = "7.0.0 Added support for uppercase unit names."}},
};

}  // namespace

std::span<const CommandRow> geo_search_rows() {
  return kGeoSearchRows;
}

}  // namespace latchkey::commands

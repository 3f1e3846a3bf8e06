// Places as members of a sorted set: GEOADD, GEODIST, GEOHASH, GEOPOS.
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "base/geohash.h"
#include "base/text/number.h"
#include "commands/groups.h"
#include "commands/keys/typed_key.h"
#include "commands/sorted_sets/geo_steps.h"
#include "commands/sorted_sets/sorted_set_adds.h"
#include "server/command/command_context.h"
#include "store/value/sorted_set.h"

namespace latchkey::commands {

using namespace server;
using store::KeyRef;
using store::SortedSet;

namespace {

AddOptions read_add_options(ArgReader& reader) {
  AddOptions options;
  for (;;) {
    if (reader.word("NX")) {
      options.only_new = true;
    } else if (reader.word("XX")) {
      options.only_existing = true;
    } else if (reader.word("CH")) {
      options.count_changes = true;
    } else {
      return options;
    }
  }
}

// Propagates the places as ZADD with their scores.
void propagate_scores(CommandContext& ctx, Arguments options, const std::vector<int64_t>& scores) {
  if (!ctx.propagation.wanted()) return;
  const Arguments places = ctx.args.last(scores.size() * 3);
  std::vector<std::string> texts(scores.size());
  std::vector<std::string_view> words(options.begin(), options.end());
  for (size_t i = 0; i < scores.size(); ++i) {
    texts[i] = std::to_string(scores[i]);
    words.insert(words.end(), {texts[i], places[i * 3 + 2]});
  }
  ctx.propagate({"zadd", ctx.args[1]}, words);
}

void geoadd(CommandContext& ctx) {
  ArgReader reader(ctx.args, 2);
  const AddOptions options = read_add_options(reader);
  if (!reader.more() || reader.left() % 3 != 0 || (options.only_new && options.only_existing))
    return ctx.syntax_error();
  const Arguments option_words = ctx.args.subspan(2, reader.position() - 2);
  std::vector<int64_t> scores;
  std::vector<ScoredText> members;
  members.reserve(reader.left() / 3);
  while (reader.more()) {
    base::GeoPoint point;
    if (!read_geo_point(ctx, reader, &point)) return;
    scores.push_back(static_cast<int64_t>(base::geo_score(point)));
    members.push_back({static_cast<double>(scores.back()), reader.next()});
  }
  const uint64_t changes = ctx.events.total();
  add_members(ctx, options, members);
  if (ctx.events.total() != changes) propagate_scores(ctx, option_words, scores);
}

void geodist(CommandContext& ctx) {
  ArgReader reader(ctx.args, 4);
  double unit_m = 1;
  if (reader.left() > 1) return ctx.syntax_error();
  if (reader.more() && !read_geo_unit(ctx, reader, &unit_m)) return;
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  if (!ref) return ctx.reply.null();
  const auto set = view_at<SortedSet>(ctx, ref);
  if (set == nullptr) return;
  const auto from = set->score(ctx.args[2]);
  const auto to = set->score(ctx.args[3]);
  if (!from || !to) return ctx.reply.null();
  reply_geo_distance(ctx.reply,
                     base::geo_distance(base::geo_point(*from), base::geo_point(*to)) / unit_m);
}

// Replies with an array: fn(point) replies for each existing member, `missing` for the others.
template <typename Fn, typename Missing>
void reply_places(CommandContext& ctx, Fn&& fn, Missing&& missing) {
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  const auto set = view_at<SortedSet>(ctx, ref);
  if (ref && set == nullptr) return;
  const Arguments members = ctx.args.subspan(2);
  ctx.reply.array(members.size());
  for (const std::string_view member : members) {
    const auto score = set == nullptr ? std::nullopt : set->score(member);
    score ? fn(base::geo_point(*score)) : missing();
  }
}

void geopos(CommandContext& ctx) {
  reply_places(
      ctx, [&](base::GeoPoint point) { reply_geo_point(ctx, point); },
      [&] { ctx.reply.null_array(); });
}

void geohash(CommandContext& ctx) {
  const auto reply_text = [&](base::GeoPoint point) {
    char text[base::kGeohashText];
    base::format_geohash(point, text);
    ctx.reply.bulk(std::string_view(text, sizeof(text)));
  };
  reply_places(ctx, reply_text, [&] { ctx.reply.null(); });
}

constexpr CommandRow kGeoRows[] = {
    {"GEOADD",
     geoadd,
     "key [condition=NX|XX]@6.2.0 [change=CH]@6.2.0 {data=longitude:double latitude:double "
     "member}...",
     kWrite | kDenyOom,
     keys(1).rw().update(),
     kAclGeo,
     Group::kGeo,
     "3.2.0",
     "O(log(N)) for each item added, where N is the number of elements in the sorted set.",
     "Adds one or more members to a geospatial index. The key is created if it doesn't exist.",
     {.history = "6.2.0 Added the `CH`, `NX` and `XX` options.", .element = -1}},
    {"GEODIST", geodist, "key member1 member2 [unit=M|KM|FT|MI]", kReadOnly, keys(1).ro().access(),
     kAclGeo, Group::kGeo, "3.2.0", "O(1)",
     "Returns the distance between two members of a geospatial index."},
    {"GEOHASH", geohash, "key [member...]", kReadOnly, keys(1).ro().access(), kAclGeo, Group::kGeo,
     "3.2.0", "O(1) for each member requested.",
     "Returns members from a geospatial index as geohash strings."},
    {"GEOPOS", geopos, "key [member...]", kReadOnly, keys(1).ro().access(), kAclGeo, Group::kGeo,
     "3.2.0", "O(1) for each member requested.",
     "Returns the longitude and latitude of members from a geospatial index."},
};

}  // namespace

bool read_geo_point(CommandContext& ctx, ArgReader& reader, base::GeoPoint* point) {
  if (!ctx.read_double(reader.next(), &point->longitude) ||
      !ctx.read_double(reader.next(), &point->latitude))
    return false;
  if (is_valid(*point)) return true;
  char text[1'000];  // a number has up to 309 digits
  std::snprintf(text, sizeof(text), "ERR invalid longitude,latitude pair %f,%f", point->longitude,
                point->latitude);
  return ctx.refuse(text);
}

bool read_geo_unit(CommandContext& ctx, ArgReader& reader, double* unit_m) {
  if (reader.word("M")) {
    *unit_m = 1;
  } else if (reader.word("KM")) {
    *unit_m = 1000;
  } else if (reader.word("FT")) {
    *unit_m = 0.3048;
  } else if (reader.word("MI")) {
    *unit_m = 1609.34;
  } else {
    return ctx.refuse("ERR unsupported unit provided. please use M, KM, FT, MI");
  }
  return true;
}

void reply_geo_point(CommandContext& ctx, base::GeoPoint point) {
  ctx.reply.array(2);
  // Before Redis 8.0, and in Valkey, with all decimals.
  const bool shortest = ctx.server.edition().has({8, 0});
  for (const double degrees : {point.longitude, point.latitude})
    shortest ? ctx.reply.number(degrees) : ctx.reply.number(base::format_long_double(degrees));
}

void reply_geo_distance(resp::ReplyBuilder& reply, double distance) {
  constexpr int64_t kScale = 10'000;
  const int64_t scaled = std::llrint(distance * kScale);
  char text[base::kMaxInt64Text + 1];
  size_t size = base::format_int64(scaled / kScale, text);
  // The leading 1 keeps the zeros of the fraction, and is then overwritten by the point.
  const size_t fraction = base::format_int64(kScale + scaled % kScale, text + size);
  text[size] = '.';
  size += fraction;
  reply.bulk(std::string_view(text, size));
}

std::span<const CommandRow> geo_rows() {
  return kGeoRows;
}

}  // namespace latchkey::commands

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>
#include <vector>

#include "base/geohash.h"
#include "base/random.h"
#include "commands/groups.h"
#include "commands/sorted_sets/geo_polygon.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

using base::GeoPoint;

class GeoServer : public ServerFixture {
 public:
  explicit GeoServer(std::string_view settings = {})
      : ServerFixture(
            {commands::geo_rows(), commands::geo_search_rows(), commands::sorted_set_range_rows(),
             commands::sorted_set_rows(), commands::string_rows()},
            settings) {}
};

constexpr std::string_view kSicily =
    "GEOADD Sicily 13.361389 38.115556 Palermo 15.087269 37.502669 Catania";

const std::string kPalermoPoint = bulks({"13.361389338970184", "38.1155563954963"});
const std::string kCataniaPoint = bulks({"15.087267458438873", "37.50266842333162"});

}  // namespace

TEST_CASE("GEOADD adds and moves members as its options want it", "[geo]") {
  GeoServer server;
  TestClient client(server);
  CHECK(client.run(kSicily) == integer(2));
  CHECK(client.run("ZSCORE Sicily Palermo") == bulk("3479099956230698"));
  CHECK(client.run("GEOADD Sicily NX CH 1 1 Palermo 2 2 Enna") == integer(1));
  CHECK(client.run("GEOADD Sicily XX CH 1 1 Palermo 2 2 Ragusa") == integer(1));
  CHECK(client.run("GEOADD Sicily 1 1 Palermo") == integer(0));
  CHECK(client.run("GEOADD none XX 1 1 Palermo") == integer(0));
  CHECK(server.events() == "zadd Sicily, zadd Sicily, zadd Sicily");
  CHECK(client.run("GEOADD Sicily NX XX 1 1 a") == error("ERR syntax error"));
  CHECK(client.run("GEOADD Sicily NX CH CH") == error("ERR syntax error"));
  CHECK(client.run("GEOADD Sicily 1 1 a 2") == error("ERR syntax error"));
  CHECK(client.run("GEOADD Sicily 1 x a") == error("ERR value is not a valid float"));
  CHECK(client.run("GEOADD Sicily 1 1 a 200 1 b") ==
        error("ERR invalid longitude,latitude pair 200.000000,1.000000"));
  CHECK(client.run("ZCARD Sicily") == integer(3));
  client.run("SET text a");
  CHECK(client.run("GEOADD text 1 1 a") == kWrongType);
}

TEST_CASE("Places are told as coordinates, as hashes and by their distance", "[geo]") {
  GeoServer server;
  TestClient client(server);
  client.run(kSicily);
  CHECK(client.run("GEOPOS Sicily Palermo none") ==
        array({kPalermoPoint, std::string(kNullArray)}));
  CHECK(client.run("GEOPOS Sicily") == array({}));
  CHECK(client.run("GEOPOS none a") == array({std::string(kNullArray)}));
  CHECK(client.run("GEOHASH Sicily Palermo none Catania") ==
        array({bulk("sqc8b49rny0"), std::string(kNull), bulk("sqdtr74hyu0")}));
  CHECK(client.run("GEODIST Sicily Palermo Catania") == bulk("166274.1516"));
  CHECK(client.run("GEODIST Sicily Palermo Catania km") == bulk("166.2742"));
  CHECK(client.run("GEODIST Sicily Palermo Catania MI") == bulk("103.3182"));
  CHECK(client.run("GEODIST Sicily Palermo Catania ft") == bulk("545518.8700"));
  CHECK(client.run("GEODIST Sicily Palermo Palermo") == bulk("0.0000"));
  CHECK(client.run("GEODIST Sicily Palermo none") == kNull);
  CHECK(client.run("GEODIST none a b yd") ==
        error("ERR unsupported unit provided. please use M, KM, FT, MI"));
  CHECK(client.run("GEODIST none a b m m") == error("ERR syntax error"));
}

TEST_CASE("In RESP3 coordinates are numbers and distances are text", "[geo]") {
  GeoServer server;
  TestClient client(server, 3);
  client.run(kSicily);
  const std::string point = "*2\r\n,13.361389338970184\r\n,38.1155563954963\r\n";
  CHECK(client.run("GEOPOS Sicily Palermo none") == array({point, std::string(kNull3)}));
  CHECK(client.run("GEOSEARCH Sicily FROMLONLAT 13 38 BYRADIUS 100 km WITHDIST WITHHASH "
                   "WITHCOORD") ==
        array({array({bulk("Palermo"), bulk("34.1601"), integer(3479099956230698), point})}));
}

TEST_CASE("GEOSEARCH finds what lies within a circle or a box", "[geo]") {
  GeoServer server;
  TestClient client(server);
  client.run(kSicily);
  client.run("GEOADD Sicily 12.758489 38.788135 edge1 17.241510 38.788135 edge2");
  CHECK(client.run("GEOSEARCH Sicily FROMLONLAT 15 37 BYRADIUS 200 km ASC") ==
        bulks({"Catania", "Palermo"}));
  CHECK(client.run("GEOSEARCH Sicily FROMLONLAT 15 37 BYRADIUS 200 km DESC") ==
        bulks({"Palermo", "Catania"}));
  CHECK(client.run("GEOSEARCH Sicily FROMLONLAT 15 37 BYBOX 400 400 km ASC") ==
        bulks({"Catania", "Palermo", "edge2", "edge1"}));
  CHECK(
      client.run("GEOSEARCH Sicily FROMMEMBER Palermo BYRADIUS 200 km COUNT 1 WITHDIST "
                 "WITHHASH WITHCOORD") ==
      array({array({bulk("Palermo"), bulk("0.0000"), integer(3479099956230698), kPalermoPoint})}));
  CHECK(client.run("GEOSEARCH Sicily FROMLONLAT 15 37 BYBOX 400 400 km ASC COUNT 1 WITHCOORD") ==
        array({array({bulk("Catania"), kCataniaPoint})}));
  CHECK(client.run("GEOSEARCH Sicily FROMLONLAT 15 37 BYBOX 400 400 km ANY COUNT 3 ASC") ==
        bulks({"Catania", "Palermo", "edge1"}));
  CHECK(client.run("GEOSEARCH Sicily FROMLONLAT -90 0 BYRADIUS 10 km") == array({}));
  CHECK(client.run("GEOSEARCH none FROMMEMBER a BYRADIUS 10 km") == array({}));
}

TEST_CASE("A search goes across the date line", "[geo]") {
  GeoServer server;
  TestClient client(server);
  client.run("GEOADD places 179.9 0 west -179.9 0 east");
  CHECK(client.run("GEOSEARCH places FROMMEMBER west BYRADIUS 30 km ASC") ==
        bulks({"west", "east"}));
  CHECK(client.run("GEOSEARCH places FROMMEMBER east BYBOX 60 60 km ASC") ==
        bulks({"east", "west"}));
  CHECK(client.run("GEODIST places west east km") == bulk("22.2454"));
}

TEST_CASE("GEOSEARCH with COUNT ANY stops when it has enough, however many there are", "[geo]") {
  GeoServer server;
  TestClient client(server);
  for (int i = 0; i < 1'000; ++i) {
    const std::string text = std::to_string(i);
    client.run("GEOADD places 10." + text + " 45 m" + text);
  }
  const std::string reply =
      client.run("GEOSEARCH places FROMLONLAT 10.5 45 BYRADIUS 1000 km COUNT 300 ANY");
  CHECK(reply.substr(0, 6) == "*300\r\n");
}

TEST_CASE("Options of searches that do not belong together are refused", "[geo]") {
  GeoServer server;
  TestClient client(server);
  client.run(kSicily);
  const auto refuses = [&](std::string_view request, std::string_view text) {
    CHECK(client.run(request) == error("ERR " + std::string(text)));
  };
  refuses("GEOSEARCH Sicily FROMLONLAT 15 37 FROMMEMBER Palermo BYRADIUS 1 km", "syntax error");
  refuses("GEOSEARCH Sicily FROMMEMBER Palermo BYBOX 1 1 km BYRADIUS 1 km", "syntax error");
  refuses("GEOSEARCH Sicily FROMMEMBER none BYRADIUS 1 km",
          "could not decode requested zset member");
  refuses("geoSearch Sicily BYRADIUS 1 km ASC WITHDIST",
          "exactly one of FROMMEMBER or FROMLONLAT can be specified for geoSearch");
  refuses("GEOSEARCH Sicily FROMMEMBER Palermo ASC WITHDIST WITHHASH",
          "exactly one of BYRADIUS and BYBOX can be specified for GEOSEARCH");
  refuses("GEOSEARCH Sicily FROMMEMBER Palermo BYRADIUS -1 km", "radius cannot be negative");
  refuses("GEOSEARCH Sicily FROMMEMBER Palermo BYRADIUS x km", "need numeric radius");
  refuses("GEOSEARCH Sicily FROMMEMBER Palermo BYBOX 1 -1 km",
          "height or width cannot be negative");
  refuses("GEOSEARCH Sicily FROMMEMBER Palermo BYBOX x 1 km", "need numeric width");
  refuses("GEOSEARCH Sicily FROMMEMBER Palermo BYBOX 1 x km", "need numeric height");
  refuses("GEOSEARCH Sicily FROMMEMBER Palermo BYRADIUS 1 km COUNT 0", "COUNT must be > 0");
  refuses("GEOSEARCH Sicily FROMMEMBER Palermo BYRADIUS 1 km ANY",
          "the ANY argument requires COUNT argument");
  refuses("GEOSEARCH Sicily FROMMEMBER Palermo BYRADIUS 1 km STOREDIST", "syntax error");
  refuses("GEORADIUS_RO Sicily 15 37 1 km STORE to", "syntax error");
  refuses("GEORADIUS Sicily 15 37 1 km STORE to WITHDIST",
          "STORE option in GEORADIUS is not compatible with WITHDIST, WITHHASH and WITHCOORD "
          "options");
  refuses("GEOSEARCHSTORE to Sicily FROMMEMBER Palermo BYRADIUS 1 km WITHHASH",
          "GEOSEARCHSTORE is not compatible with WITHDIST, WITHHASH and WITHCOORD options");
}

TEST_CASE("An area has one shape, of which the last size counts", "[geo]") {
  GeoServer server;
  TestClient client(server);
  client.run(kSicily);
  const std::string search = "GEOSEARCH Sicily FROMLONLAT 15 37 ASC ";
  const std::string both = bulks({"Catania", "Palermo"});
  CHECK(client.run(search + "BYRADIUS 1 km BYRADIUS 200 km") == both);
  CHECK(client.run(search + "BYRADIUS 200 km BYRADIUS 1 km") == array({}));
  CHECK(client.run(search + "BYBOX 1 1 km BYBOX 400 400 km") == both);
  CHECK(client.run(search + "BYBOX 400 400 km BYBOX 1 1 km") == array({}));
  const std::string refused = error("ERR syntax error");
  CHECK(client.run(search + "BYRADIUS 200 km BYBOX 400 400 km") == refused);
  CHECK(client.run(search + "BYBOX 400 400 km BYRADIUS 200 km") == refused);
  CHECK(client.run(search + "BYBOX 400 400 km BYRADIUS 200 km BYBOX 1 1 km") == refused);
}

TEST_CASE("What a search stores has scores or distances, and replaces what was there", "[geo]") {
  GeoServer server;
  TestClient client(server);
  client.run(kSicily);
  client.run("SET to text");
  server.events();
  server.changes();
  CHECK(client.run("GEOSEARCHSTORE to Sicily FROMLONLAT 15 37 BYRADIUS 200 km") == integer(2));
  CHECK(server.changes() == 2);
  CHECK(client.run("ZRANGE to 0 -1 WITHSCORES") ==
        bulks({"Palermo", "3479099956230698", "Catania", "3479447370796909"}));
  CHECK(client.run("GEORADIUS Sicily 15 37 200 km STOREDIST to") == integer(2));
  CHECK(client.run("ZRANGE to 0 -1 WITHSCORES") ==
        bulks({"Catania", "56.4412578701582", "Palermo", "190.44242984775784"}));
  CHECK(client.run("GEORADIUSBYMEMBER Sicily Palermo 1 km STOREDIST other STORE to") == integer(1));
  CHECK(client.run("GEOSEARCHSTORE to none FROMMEMBER a BYRADIUS 1 km") == integer(0));
  CHECK(client.run("GEORADIUSBYMEMBER none a 1 km STORE to") == integer(0));
  CHECK(server.events() == "geosearchstore to, georadiusstore to, georadiusstore to, del to");
}

TEST_CASE("The older commands check in the reference's order", "[geo]") {
  GeoServer server;
  TestClient client(server);
  client.run(kSicily);
  CHECK(client.run("GEORADIUS Sicily 15 37 200 km WITHDIST ASC") ==
        array({bulks({"Catania", "56.4413"}), bulks({"Palermo", "190.4424"})}));
  CHECK(client.run("GEORADIUS_RO Sicily 15 37 200 km DESC") == bulks({"Palermo", "Catania"}));
  CHECK(client.run("GEORADIUSBYMEMBER_RO Sicily Palermo 1 km") == bulks({"Palermo"}));
  CHECK(client.run("GEORADIUSBYMEMBER none a x yd") == array({}));
  CHECK(client.run("GEORADIUSBYMEMBER none a 1 km FOO") == error("ERR syntax error"));
  CHECK(client.run("GEORADIUSBYMEMBER Sicily none x yd") ==
        error("ERR could not decode requested zset member"));
  CHECK(client.run("GEORADIUS none 1 1 1 yd") ==
        error("ERR unsupported unit provided. please use M, KM, FT, MI"));
  client.run("SET text a");
  CHECK(client.run("GEORADIUS text 1 1 1 yd FOO") == kWrongType);
}

TEST_CASE("Coordinates have all their decimals before Redis 8.0, and in Valkey", "[geo]") {
  const auto places = [](const char* settings) {
    GeoServer server(settings);
    TestClient client(server);
    client.run(kSicily);
    const std::string place = client.run("GEOPOS Sicily Palermo");
    CHECK(client.run("GEORADIUS Sicily 13 38 50 km WITHCOORD") ==
          array({array({bulk("Palermo"), place.substr(std::string_view("*1\r\n").size())})}));
    return place;
  };
  const std::string shortest = array({bulks({"13.361389338970184", "38.1155563954963"})});
  const std::string longest = array({bulks({"13.36138933897018433", "38.11555639549629859"})});
  CHECK(places("") == shortest);
  CHECK(places("emulate \"redis 8.0\"\n") == shortest);
  CHECK(places("emulate \"redis 7.4\"\n") == longest);
  CHECK(places("emulate \"valkey 9.1\"\n") == longest);
  GeoServer server("emulate \"redis 7.0\"\n");
  TestClient client(server, 3);
  client.run(kSicily);
  CHECK(client.run("GEOPOS Sicily Palermo") ==
        "*1\r\n*2\r\n,13.36138933897018433\r\n,38.11555639549629859\r\n");
}

TEST_CASE("GEOSEARCH of Valkey finds what a polygon encloses", "[geo]") {
  GeoServer server("emulate \"valkey 9.1\"\n");
  TestClient client(server);
  client.run(kSicily);
  // The square has both, the triangle has one.
  CHECK(client.run("GEOSEARCH Sicily BYPOLYGON 4 10 30 20 30 20 40 10 40 ASC") ==
        bulks({"Catania", "Palermo"}));
  CHECK(client.run("GEOSEARCH Sicily BYPOLYGON 3 12 36 12 40 14.5 38") == bulks({"Palermo"}));
  CHECK(client.run("GEOSEARCH Sicily BYPOLYGON 4 10 30 20 30 20 40 10 40 WITHDIST COUNT 1") ==
        "*1\r\n" + bulks({"Catania", "267053.9696"}));
  CHECK(client.run("GEOSEARCH none BYPOLYGON 3 12 36 12 40 14.5 38") == "*0\r\n");
  for (const char* request :
       {"GEOSEARCH Sicily BYPOLYGON 2 1 1 2 2", "GEOSEARCH Sicily BYPOLYGON 3 1 1 2 2",
        "GEOSEARCH Sicily BYPOLYGON -1 1 1 2 2"}) {
    INFO(request);
    CHECK(client.run(request) == error("ERR GEOSEARCH BYPOLYGON must have at least 3 vertices"));
  }
  for (const char* request : {"GEOSEARCH Sicily BYPOLYGON 3 1 1 2 2 3 3 BYRADIUS 1 km",
                              "GEOSEARCH Sicily BYPOLYGON 3 1 1 2 2 3 3 FROMLONLAT 1 1",
                              "GEOSEARCH Sicily FROMLONLAT 1 1 BYPOLYGON 3 1 1 2 2 3 3"}) {
    INFO(request);
    CHECK(client.run(request) == error("ERR syntax error"));
  }
  CHECK(client.run("GEOSEARCH Sicily FROMMEMBER none BYRADIUS 1 km") ==
        error("ERR member none does not exist"));
}

TEST_CASE("A polygon may reach around the earth", "[geo]") {
  GeoServer server("emulate \"valkey 9.1\"\n");
  TestClient client(server);
  client.run("GEOADD places 179 0 east -179 0 west 0 0 middle 0 80 north 0 -80 south -90 60 far");
  CHECK(client.run("GEOSEARCH places BYPOLYGON 4 -180 -85 180 -85 180 85 -180 85 ASC COUNT 10")
            .starts_with("*6\r\n"));
  CHECK(client.run("GEOSEARCH places BYPOLYGON 4 -180 -10 180 -10 180 10 -180 10 ASC")
            .starts_with("*3\r\n"));
  // Its vertices' mean lies at its eastern end.
  CHECK(client.run("GEOSEARCH places BYPOLYGON 6 -100 50 -100 70 100 71 110 72 120 71 130 50") ==
        bulks({"far"}));
}

TEST_CASE("A polygon is unknown unless Valkey is emulated", "[geo]") {
  GeoServer server;
  TestClient client(server);
  client.run(kSicily);
  CHECK(client.run("GEOSEARCH Sicily BYPOLYGON 3 1 1 2 2 3 3") == error("ERR syntax error"));
}

TEST_CASE("A polygon contains what lies between its edges, of which few are looked at", "[geo]") {
  base::Random random(3);
  const auto between = [&](double least, double most) {
    return least + (most - least) * static_cast<double>(random.below(1 << 20)) / (1 << 20);
  };
  // Counts the edges that a ray towards the east crosses.
  const auto contains = [](const std::vector<GeoPoint>& vertices, GeoPoint point) {
    bool inside = false;
    for (size_t i = 0; i < vertices.size(); ++i) {
      const GeoPoint& from = vertices[(i == 0 ? vertices.size() : i) - 1];
      const GeoPoint& to = vertices[i];
      if ((from.latitude > point.latitude) == (to.latitude > point.latitude)) continue;
      const double part = (point.latitude - from.latitude) / (to.latitude - from.latitude);
      inside ^= point.longitude < from.longitude + part * (to.longitude - from.longitude);
    }
    return inside;
  };
  // About round ones of many vertices, ones of any form, and flat ones.
  enum class Form : uint8_t { kRound, kAny, kFlat };
  const Form form = GENERATE(Form::kRound, Form::kAny, Form::kFlat);
  for (const size_t size : {size_t{3}, size_t{4}, size_t{50}, size_t{2000}}) {
    std::vector<GeoPoint> vertices;
    for (size_t i = 0; i < size; ++i) {
      const double angle =
          2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(size);
      const double radius = between(30, 40);
      if (form == Form::kRound)
        vertices.push_back({10 + radius * std::cos(angle), 5 + radius * std::sin(angle)});
      else
        vertices.push_back({between(-40, 40), form == Form::kFlat ? 7 : between(-40, 40)});
    }
    const commands::GeoPolygon polygon(vertices);
    size_t most_near = 0;
    for (int i = 0; i < 2000; ++i) {
      const bool is_vertex = random.below(4) == 0;
      const GeoPoint point =
          is_vertex ? vertices[random.below(size)] : GeoPoint{between(-60, 60), between(-60, 60)};
      if (polygon.contains(point) != contains(vertices, point))
        FAIL(point.longitude << " " << point.latitude);
      most_near = std::max(most_near, polygon.edges_near(point));
    }
    if (form == Form::kRound && size == 2000) CHECK(most_near < size / 5);
  }
}

}  // namespace latchkey::tests

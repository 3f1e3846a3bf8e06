// Arrays, filters and vector sets as payloads: parts that cannot be are refused.
#include <cstdint>
#include <string>

#include "commands/groups.h"
#include "persist/rows.h"
#include "unit/catch.h"
#include "unit/persist/rdb/rdb_bytes.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

struct ModuleServer : ServerFixture {
  ModuleServer()
      : ServerFixture({commands::array_cursor_rows(), commands::array_rows(),
                       commands::cuckoo_filter_rows(), commands::key_rows(),
                       commands::vector_set_rows(), persist::dump_rows()}),
        client(*this) {}
  std::string run(std::string_view line) { return client.run(line); }
  std::string restore(std::string_view key, const std::string& body) {
    return client.run_words({"RESTORE", key, "0", rdb_dump(body), "REPLACE"});
  }
  TestClient client;
};

// An unsigned number as a part, and text, in nine bytes whatever its value.
std::string part(uint64_t number) {
  std::string bytes = byte(2) + byte(0x81);
  for (int shift = 56; shift >= 0; shift -= 8)
    bytes += byte(static_cast<int>(number >> shift & 255));
  return bytes;
}
std::string text_part(std::string_view text) {
  return byte(5) + rdb_string(text);
}
// The type and a module's id in hexadecimal.
std::string module(std::string_view id) {
  return byte(7) + byte(0x81) + from_hex(id);
}
const std::string kEnd = byte(0);

constexpr std::string_view kBad = "-ERR Bad data format\r\n";

}  // namespace

TEST_CASE("An array whose parts cannot be is refused", "[arrays]") {
  ModuleServer server;
  const std::string array = module("964f9aaeb6b2f800");
  const auto element = [](uint64_t index, std::string_view text) {
    return part(index) + text_part(text);
  };
  const std::string head = array + part(2) + part(7);
  REQUIRE(server.restore("a", head + element(0, "x") + element(5, "y") + kEnd) == kOk);
  CHECK(server.run("ARGET a 5") == bulk("y"));
  CHECK(server.run("ARCOUNT a") == integer(2));
  CHECK(server.run("ARNEXT a") == integer(7));
  CHECK(server.restore("a", head + element(4, "x") + element(5, "y") + kEnd) == kOk);
  CHECK(server.restore("a", head + element(5, "x") + element(5, "y") + kEnd) == kBad);
  CHECK(server.restore("a", head + element(5, "x") + element(4, "y") + kEnd) == kBad);
  CHECK(server.restore("a", head + element(0, "x") + element(UINT64_MAX - 1, "y") + kEnd) == kOk);
  CHECK(server.restore("a", head + element(0, "x") + element(UINT64_MAX, "y") + kEnd) == kBad);
  CHECK(server.restore("a", head + element(0, "x") + kEnd) == kBad);
  CHECK(server.restore("a", head + element(0, "x") + part(1) + kEnd) == kBad);
  CHECK(server.restore("a", array + part(0) + part(7) + kEnd) == kBad);
  CHECK(server.restore("a", array + part(0) + kEnd) == kBad);
  // Of a later version; and with one more part than there are elements.
  CHECK(server.restore(
            "a", module("964f9aaeb6b2f801") + part(1) + part(7) + element(0, "x") + kEnd) == kBad);
  CHECK(server.restore("a", head + element(0, "x") + element(1, "y") + part(1) + kEnd) == kBad);
}

TEST_CASE("A cuckoo filter whose parts cannot be is refused", "[cuckoo filter]") {
  ModuleServer server;
  struct Filter {
    std::string id = "3016e5a289821404";
    uint64_t layers = 1;
    uint64_t buckets = 4;
    uint64_t bucket_size = 2;
    uint64_t iterations = 20;
    uint64_t expansion = 1;
    uint64_t layer_buckets = 4;
    size_t slots = 8;
  };
  const auto reply = [&](auto change) {
    Filter filter;
    change(filter);
    return server.restore(
        "c", module(filter.id) + part(filter.layers) + part(filter.buckets) + part(3) + part(1) +
                 part(filter.bucket_size) + part(filter.iterations) + part(filter.expansion) +
                 part(filter.layer_buckets) + text_part(std::string(filter.slots, '\0')) + kEnd);
  };
  CHECK(reply([](Filter&) {}) == kOk);
  const std::string info = server.run("CF.INFO c");
  CHECK(info.find(status("Number of buckets") + integer(4)) != std::string::npos);
  CHECK(info.find(status("Number of items inserted") + integer(3)) != std::string::npos);
  CHECK(info.find(status("Number of items deleted") + integer(1)) != std::string::npos);
  CHECK(info.find(status("Bucket size") + integer(2)) != std::string::npos);
  CHECK(info.find(status("Max iterations") + integer(20)) != std::string::npos);
  CHECK(info.find(status("Expansion rate") + integer(1)) != std::string::npos);

  CHECK(reply([](Filter& f) { f.id = "3016e5a289821405"; }) == kBad);
  for (const uint64_t layers : {0, 2, 65'536})
    CHECK(reply([&](Filter& f) { f.layers = layers; }) == kBad);
  for (const uint64_t buckets : {0, 3, 5})
    CHECK(reply([&](Filter& f) { f.buckets = buckets; }) == kBad);
  for (const uint64_t size : {0, 256, 65'538})
    CHECK(reply([&](Filter& f) { f.bucket_size = size; }) == kBad);
  CHECK(reply([](Filter& f) {
          f.bucket_size = 255;
          f.slots = 4 * 255;
        }) == kOk);
  for (const uint64_t iterations : {1, 65'535})
    CHECK(reply([&](Filter& f) { f.iterations = iterations; }) == kOk);
  for (const uint64_t iterations : {0, 65'536})
    CHECK(reply([&](Filter& f) { f.iterations = iterations; }) == kBad);
  for (const uint64_t expansion : {0, 32'768})
    CHECK(reply([&](Filter& f) { f.expansion = expansion; }) == kOk);
  for (const uint64_t expansion : {32'769, 65'536})
    CHECK(reply([&](Filter& f) { f.expansion = expansion; }) == kBad);
  for (const size_t slots : {6, 7, 9, 10})
    CHECK(reply([&](Filter& f) { f.slots = slots; }) == kBad);
  for (const uint64_t buckets : {3, 5})
    CHECK(reply([&](Filter& f) { f.layer_buckets = buckets; }) == kBad);
  CHECK(reply([](Filter& f) {
          f.layer_buckets = 0;
          f.slots = 0;
        }) == kBad);
}

TEST_CASE("A cuckoo filter of an earlier version has the shape that all had then",
          "[cuckoo filter]") {
  ModuleServer server;
  const auto reply = [&](size_t slots) {
    return server.restore("c", module("3016e5a289821403") + part(1) + part(4) + part(3) +
                                   text_part(std::string(slots, '\0')) + kEnd);
  };
  CHECK(reply(8) == kOk);
  const std::string info = server.run("CF.INFO c");
  CHECK(info.find(status("Bucket size") + integer(2)) != std::string::npos);
  CHECK(info.find(status("Max iterations") + integer(20)) != std::string::npos);
  CHECK(info.find(status("Expansion rate") + integer(1)) != std::string::npos);
  CHECK(info.find(status("Number of items deleted") + integer(0)) != std::string::npos);
  CHECK(reply(6) == kBad);
  CHECK(reply(10) == kBad);
}

TEST_CASE("A vector set whose parts cannot be is refused", "[vector sets]") {
  ModuleServer server;
  struct Set {
    std::string id = "bde72da2bb1eb400";
    uint64_t dimensions = 2;
    uint64_t elements = 2;
    uint64_t quantization = 0;
    uint64_t links = 16;
    uint64_t flags = 0;
    size_t vector_bytes = 8;
    std::string second = "b";
    uint64_t second_id = 2;
    uint64_t numbers = 6;  // of a node with one link
    uint64_t level = 0;
    uint64_t count = 1;
    uint64_t first_link = 2;
  };
  const auto reply = [&](auto change) {
    Set set;
    change(set);
    const auto node = [&](const std::string& name, uint64_t id, uint64_t link) {
      std::string body = text_part(name);
      body += text_part(std::string(set.vector_bytes, '\1')) + part(set.numbers) + part(id) +
              part(set.level) + part(set.count) + part(32);
      for (uint64_t i = 0; i < set.count; ++i) body += part(link);
      return body + part(0x3f8000003f800000);
    };
    std::string body = module(set.id) + part(set.dimensions) + part(set.elements) +
                       part(set.quantization | set.links << 8) + part(set.flags);
    body += node("a", 1, set.first_link);
    if (set.elements > 1) body += node(set.second, set.second_id, 1);
    return server.restore("v", body + kEnd);
  };
  CHECK(reply([](Set&) {}) == kOk);
  CHECK(server.run("VCARD v") == integer(2));
  CHECK(server.run("VDIM v") == integer(2));
  CHECK(server.run("VLINKS v a") == array({bulks({"b"})}));

  CHECK(reply([](Set& s) { s.id = "bde72da2bb1eb401"; }) == kBad);
  CHECK(reply([](Set& s) { s.dimensions = 0; }) == kBad);
  CHECK(reply([](Set& s) { s.dimensions = (1 << 20) + 1; }) == kBad);
  CHECK(reply([](Set& s) { s.quantization = 3; }) == kBad);
  for (const uint64_t links : {3, 4097}) CHECK(reply([&](Set& s) { s.links = links; }) == kBad);
  for (const uint64_t links : {4, 4096}) CHECK(reply([&](Set& s) { s.links = links; }) == kOk);
  CHECK(reply([](Set& s) { s.flags = 4; }) == kBad);
  for (const size_t bytes : {7, 9}) CHECK(reply([&](Set& s) { s.vector_bytes = bytes; }) == kBad);
  CHECK(reply([](Set& s) { s.second = "a"; }) == kBad);
  CHECK(reply([](Set& s) { s.second_id = 1; }) == kBad);
  for (const uint64_t numbers : {2, 5, 7})
    CHECK(reply([&](Set& s) { s.numbers = numbers; }) == kBad);
  // Levels above 16, and those of a version of nodes that is not known.
  CHECK(reply([](Set& s) { s.level = 17; }) == kBad);
  CHECK(reply([](Set& s) { s.level = 2 << 24; }) == kBad);
  // A link to nobody, and to the node itself.
  CHECK(reply([](Set& s) { s.first_link = 3; }) == kBad);
  CHECK(reply([](Set& s) { s.first_link = 1; }) == kBad);
  CHECK(reply([](Set& s) {
          s.elements = 1;
          s.count = 0;
          s.numbers = 5;
        }) == kOk);
  CHECK(server.run("VCARD v") == integer(1));
}

}  // namespace latchkey::tests

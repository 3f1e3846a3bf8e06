#include "persist/aof/aof_manifest.h"

#include "unit/catch.h"

namespace latchkey::persist {

namespace {

AofManifest parsed(std::string_view text) {
  AofManifest manifest("appendonly.aof");
  INFO(text);
  REQUIRE(manifest.parse(text));
  return manifest;
}

AofManifestError refused(std::string_view text) {
  AofManifest manifest("appendonly.aof");
  INFO(text);
  const auto result = manifest.parse(text);
  REQUIRE_FALSE(result);
  CHECK(manifest.format().empty());
  return result.error();
}

}  // namespace

TEST_CASE("A manifest is written as it was read: base, history, increments") {
  const std::string text =
      "file appendonly.aof.7.base.rdb seq 7 type b\n"
      "file appendonly.aof.2.incr.aof seq 2 type h\n"
      "file appendonly.aof.6.base.rdb seq 6 type h\n"
      "file appendonly.aof.3.incr.aof seq 3 type i startoffset 100 endoffset 250\n"
      "file appendonly.aof.9.incr.aof seq 9 type i\n";
  const AofManifest manifest = parsed(text);
  CHECK(manifest.format() == text);
  CHECK(manifest.base()->sequence == 7);
  CHECK(manifest.history().size() == 2);
  REQUIRE(manifest.increments().size() == 2);
  CHECK(manifest.increments()[0].start_offset == 100);
  CHECK(manifest.increments()[0].end_offset == 250);
  CHECK(manifest.increments()[1].start_offset == -1);
}

TEST_CASE("A manifest's words may be quoted, in any case, joined by unknown ones and comments") {
  const AofManifest manifest = parsed(
      "# made by hand\n"
      "FILE \" file seq \\n\\n.aof .2.base.rdb\" Seq 2 TYPE base colour red\r\n"
      "file x file appendonly.aof.1.incr.aof seq 1 type i\n");
  CHECK(manifest.base()->name == " file seq \n\n.aof .2.base.rdb");
  CHECK(manifest.increments()[0].name == "appendonly.aof.1.incr.aof");
  CHECK(manifest.format() ==
        "file \" file seq \\n\\n.aof .2.base.rdb\" seq 2 type b\n"
        "file appendonly.aof.1.incr.aof seq 1 type i\n");
}

TEST_CASE("A manifest of comments names no files") {
  CHECK(parsed("# nothing\n").empty());
}

TEST_CASE("A damaged manifest is refused with the line and the reason") {
  constexpr std::string_view kBadFormat = "Invalid AOF manifest file format";
  const std::string good = "file appendonly.aof.1.incr.aof seq 1 type i\n";
  const struct {
    std::string text;
    int line;
    std::string_view message;
  } kCases[] = {
      {"", 0, "Found an empty AOF manifest"},
      {"file a seq 1 type i", 0, "The AOF manifest file contains too long line"},
      {"file a seq 1 type i " + std::string(1100, 'x') + " y\n", 0,
       "The AOF manifest file contains too long line"},
      {good + "\n" + good, 2, kBadFormat},
      {"   \n", 1, kBadFormat},
      {"filx a seq 1 type b\n", 1, kBadFormat},
      {good + "file a type i\n", 2, kBadFormat},
      {"file a seq 1 type i newkey\n", 1, kBadFormat},
      {"file a seq 0 type i\n", 1, kBadFormat},
      {"file a seq x type i\n", 1, kBadFormat},
      {"file a seq 1 type \"\"\n", 1, kBadFormat},
      {"file \"a seq 1 type i\n", 1, kBadFormat},
      {"file a/b seq 1 type i\n", 1, "File can't be a path, just a filename"},
      {"file a seq 1 type x\n", 1, "Unknown AOF file type"},
      {"file a seq 1 type b\nfile b seq 2 type b\n", 2, "Found duplicate base file information"},
      {good + good, 2, "Found a non-monotonic sequence number"},
      {"file a seq -3 type i\n", 1, "Found a non-monotonic sequence number"},
      {"file a seq -1 type b\n", 1, kBadFormat},
      {"file a seq -1 type h\n", 1, kBadFormat},
      {"file a seq 4611686018427387904 type b\n", 1, kBadFormat},
      {"file \"a\\x00b\" seq 1 type h\n", 1, kBadFormat},
  };
  for (const auto& each : kCases) {
    const AofManifestError error = refused(each.text);
    CHECK(error.line == each.line);
    CHECK(error.message == each.message);
  }
}

TEST_CASE("A manifest's error is logged with the line it is about") {
  CHECK(refused("file a seq 1 type i\n  !!! \n").log_lines() ==
        std::vector<std::string>{"\n*** FATAL AOF MANIFEST FILE ERROR ***\n",
                                 "Reading the manifest file, at line 2\n", ">>> '!!!'\n",
                                 "Invalid AOF manifest file format\n"});
  CHECK(refused("").log_lines() ==
        std::vector<std::string>{"\n*** FATAL AOF MANIFEST FILE ERROR ***\n",
                                 "Found an empty AOF manifest\n"});
}

TEST_CASE("New files are numbered after those that are there", "[aof]") {
  AofManifest manifest("appendonly.aof");
  for (const std::string_view other :
       {"appendonly.aof", "appendonly.aof.9.base", "appendonly.aof.x.incr.aof", "other.9.base.rdb",
        "appendonly.aof.9223372036854775807.incr.aof", "appendonly.aof.-3.incr.aof",
        "appendonly.aof.manifest", "temp-appendonly.aof.9.incr.aof", "appendonly.aof.9.incr.aof.x"})
    CHECK_FALSE(manifest.number_after(other));
  CHECK(manifest.number_after("appendonly.aof.4.incr.aof"));
  CHECK(manifest.number_after("appendonly.aof.2.incr.aof"));
  CHECK(manifest.number_after("appendonly.aof.7.base.aof"));
  CHECK(manifest.add_increment(0) == "appendonly.aof.5.incr.aof");
  CHECK(manifest.add_base(true) == "appendonly.aof.8.base.rdb");
}

TEST_CASE("A rewrite's base takes the place of the old one and of the increments it holds") {
  AofManifest manifest("appendonly.aof");
  CHECK(manifest.add_base(true) == "appendonly.aof.1.base.rdb");
  CHECK(manifest.add_increment(0) == "appendonly.aof.1.incr.aof");
  CHECK(manifest.add_increment(20) == "appendonly.aof.2.incr.aof");
  CHECK(manifest.add_increment(30) == "appendonly.aof.3.incr.aof");
  CHECK(manifest.add_base(false) == "appendonly.aof.2.base.aof");
  manifest.retire_increments(true);
  CHECK(manifest.format() ==
        "file appendonly.aof.2.base.aof seq 2 type b\n"
        "file appendonly.aof.1.incr.aof seq 1 type h startoffset 0\n"
        "file appendonly.aof.2.incr.aof seq 2 type h startoffset 20\n"
        "file appendonly.aof.1.base.rdb seq 1 type h\n"
        "file appendonly.aof.3.incr.aof seq 3 type i startoffset 30\n");
  CHECK(manifest.is_last("appendonly.aof.3.incr.aof"));
  CHECK(manifest.take_history().size() == 3);
  manifest.retire_increments(false);
  CHECK(manifest.is_last("appendonly.aof.2.base.aof"));
  CHECK(manifest.increments().empty());
}

TEST_CASE("A new file gets no name that another one has, whatever its number is", "[aof]") {
  AofManifest manifest = parsed(
      "file appendonly.aof.2.base.rdb seq 1 type b\n"
      "file appendonly.aof.3.base.rdb seq 1 type h\n"
      "file appendonly.aof.3.incr.aof seq 1 type h\n"
      "file appendonly.aof.2.incr.aof seq 1 type i\n");
  CHECK(manifest.add_base(true) == "appendonly.aof.4.base.rdb");
  CHECK(manifest.add_increment(-1) == "appendonly.aof.4.incr.aof");
  CHECK(manifest.format() ==
        "file appendonly.aof.4.base.rdb seq 4 type b\n"
        "file appendonly.aof.2.base.rdb seq 1 type h\n"
        "file appendonly.aof.3.base.rdb seq 1 type h\n"
        "file appendonly.aof.3.incr.aof seq 1 type h\n"
        "file appendonly.aof.2.incr.aof seq 1 type i\n"
        "file appendonly.aof.4.incr.aof seq 4 type i\n");
}

TEST_CASE("Behind the largest number counting begins anew, and the order stays", "[aof]") {
  AofManifest manifest = parsed(
      "file appendonly.aof.1.base.rdb seq 4611686018427387903 type b\n"
      "file appendonly.aof.4.incr.aof seq 7 type i\n"
      "file first seq 4611686018427387902 type i\n");
  CHECK(manifest.add_increment(-1) == "appendonly.aof.4611686018427387903.incr.aof");
  CHECK(manifest.add_base(true) == "appendonly.aof.2.base.rdb");
  CHECK(manifest.add_increment(-1) == "appendonly.aof.5.incr.aof");
  const std::string text =
      "file appendonly.aof.2.base.rdb seq 2 type b\n"
      "file appendonly.aof.1.base.rdb seq 4611686018427387903 type h\n"
      "file appendonly.aof.4.incr.aof seq 1 type i\n"
      "file first seq 2 type i\n"
      "file appendonly.aof.4611686018427387903.incr.aof seq 3 type i\n"
      "file appendonly.aof.5.incr.aof seq 5 type i\n";
  CHECK(manifest.format() == text);
  CHECK(parsed(text).add_increment(-1) == "appendonly.aof.6.incr.aof");
}

}  // namespace latchkey::persist

#include "all_commands.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/command/command_docs.h"
#include "server/command/command_syntax.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"

namespace latchkey {

using namespace server;
using tests::ServerFixture;
using tests::TestClient;

// Two rows of one name would end the process here, and a malformed syntax line.
TEST_CASE("Every command of every folder has a place in one table", "[commands]") {
  ServerFixture server({});
  add_all_commands(server.server);
  const CommandTable& table = server.server.commands();
  for (const char* name : {"get", "acl|setuser", "cluster|slots", "debug", "eval", "function|load",
                           "bgrewriteaof", "restore", "save", "migrate", "replicaof", "psync"}) {
    INFO(name);
    CHECK(table.find_full_name(name) != nullptr);
  }
  for (const auto& command : table.all()) {
    INFO(command->full_name);
    REQUIRE(table.find_full_name(command->full_name) != nullptr);
    CHECK(table.find_full_name(command->full_name)->id == command->id);
    CHECK((command->handler != nullptr || command->is_container()));
    if (command->handler == nullptr) continue;
    const CommandRow& row = *command->row;
    const int words = command->parent == nullptr ? 1 : 2;
    CHECK(row.syntax.arity(words) == parse_syntax(row.syntax.text(), words, row.keys.size()).arity);
  }
}

// The place of the first key of a syntax line before which only single words stand; words of the
// name count as well. 0: there is none.
static int place_of_first_key(std::string_view syntax, int words_of_name) {
  int place = words_of_name;
  for (size_t at = 0; at < syntax.size(); ++place) {
    const std::string_view word = syntax.substr(at, syntax.find(' ', at) - at);
    for (const std::string_view key : {"key", "key...", "source", "destination"}) {
      if (word == key) return place;
    }
    if (word.find_first_of("[{|=.") != word.npos) return 0;
    at += word.size() + 1;
  }
  return 0;
}

TEST_CASE("The first key of a request is where the command's syntax has it", "[commands]") {
  CHECK(place_of_first_key("key value", 1) == 1);
  CHECK(place_of_first_key("start key... x", 2) == 3);
  CHECK(place_of_first_key("[NX] key", 1) == 0);
  ServerFixture server({});
  add_all_commands(server.server);
  int seen = 0;
  for (const auto& command : server.server.commands().all()) {
    INFO(command->full_name);
    if (command->is_container()) continue;
    const int place =
        place_of_first_key(command->row->syntax.text(), command->parent == nullptr ? 1 : 2);
    if (place == 0 || command->row->keys.size() == 0) continue;
    const KeySpec& keys = command->row->keys[0];
    if (keys.begin != KeySpec::Begin::kIndex || keys.find != KeySpec::Find::kRange) continue;
    CHECK(keys.position == place);
    ++seen;
  }
  CHECK(seen > 200);
}

TEST_CASE("Commands of a type are in the category of that type, and of no other", "[commands]") {
  ServerFixture server({});
  add_all_commands(server.server);
  const std::pair<std::string_view, uint32_t> kinds[] = {
      {"json.", kAclJson},       {"ts.", kAclTimeSeries}, {"bf.", kAclBloom},
      {"cf.", kAclCuckoo},       {"cms.", kAclCountMin},  {"topk.", kAclTopK},
      {"tdigest.", kAclTDigest}, {"ar", kAclArray}};
  // Vector sets have no category of their own, as in the reference.
  const uint32_t general = kAclRead | kAclWrite | kAclFast | kAclSlow;
  int seen = 0;
  for (const auto& command : server.server.commands().all()) {
    INFO(command->full_name);
    const CommandRow& row = *command->row;
    if (row.group != Group::kModule && row.group != Group::kArray) continue;
    const auto kind = std::find_if(std::begin(kinds), std::end(kinds), [&](const auto& each) {
      return command->full_name.starts_with(each.first);
    });
    CHECK((row.acl & ~general) == (kind != std::end(kinds) ? kind->second : 0));
    ++seen;
  }
  CHECK(seen > 100);
}

TEST_CASE("Commands and subcommands stand in the documentation under their names", "[commands]") {
  ServerFixture server({});
  add_all_commands(server.server);
  TestClient client(server, 3);
  const std::string docs = client.run("COMMAND DOCS");
  for (const auto& command : server.server.commands().all()) {
    INFO(command->full_name);
    CHECK(docs.find(tests::bulk(command->full_name)) != std::string::npos);
  }
}

TEST_CASE("No two folders bring the same subcommand of DEBUG", "[commands]") {
  ServerFixture server({});
  add_all_commands(server.server);
  std::set<std::string> names;
  for (const DebugSubcommand& subcommand : server.server.debug_subcommands()) {
    INFO(subcommand.name);
    CHECK(names.insert(std::string(subcommand.name)).second);
  }
  CHECK(names.contains("SET-SKIP-CHECKSUM-VALIDATION"));
}

// The lines of a reply of statuses.
static std::vector<std::string> lines_of(const std::string& reply) {
  std::vector<std::string> lines;
  for (size_t at = reply.find("\r\n") + 2; at < reply.size();) {
    const size_t end = reply.find("\r\n", at);
    lines.push_back(reply.substr(at + 1, end - at - 1));
    at = end + 2;
  }
  return lines;
}

TEST_CASE("HELP of each container names all of its subcommands, and itself last", "[commands]") {
  ServerFixture server({});
  add_all_commands(server.server);
  TestClient client(server);
  int containers = 0;
  for (const auto& command : server.server.commands().all()) {
    if (command->name != "help" || command->parent == nullptr) continue;
    std::string container = command->parent->name;
    for (char& letter : container) letter = static_cast<char>(std::toupper(letter));
    INFO(container);
    const std::string reply = client.run(container + " HELP");
    // Without a cluster its containers are not there for clients.
    if (reply.starts_with("-ERR This instance has cluster support disabled")) continue;
    const std::vector<std::string> lines = lines_of(reply);
    INFO(reply);
    REQUIRE(lines.size() > 3);
    CHECK(reply.starts_with("*" + std::to_string(lines.size()) + "\r\n+"));
    CHECK(lines.front() == container + " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:");
    CHECK(lines[lines.size() - 2] == "HELP");
    CHECK(lines.back() == "    Print this help.");
    for (const Command* subcommand : command->parent->subcommands) {
      std::string name = subcommand->name;
      for (char& letter : name) letter = static_cast<char>(std::toupper(letter));
      INFO(name);
      CHECK(std::any_of(lines.begin() + 1, lines.end(), [&](const std::string& line) {
        return line == name || line.starts_with(name + " ");
      }));
    }
    ++containers;
  }
  CHECK(containers > 15);
}

TEST_CASE("DEBUG HELP names the subcommands of all folders", "[commands]") {
  ServerFixture server({}, "enable-debug-command yes\n");
  add_all_commands(server.server);
  TestClient client(server);
  const std::vector<std::string> lines = lines_of(client.run("DEBUG HELP"));
  REQUIRE(lines.size() > 3);
  CHECK(lines.front() == "DEBUG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:");
  CHECK(lines.back() == "    Print this help.");
  const auto place_of = [&](std::string_view line) {
    return std::find(lines.begin(), lines.end(), line) - lines.begin();
  };
  const auto structures = place_of("STRUCTSIZE");
  REQUIRE(structures + 1 < static_cast<std::ptrdiff_t>(lines.size()));
  CHECK(lines[static_cast<size_t>(structures) + 1] ==
        "    Tell the sizes of the server's main structures.");
  for (const DebugSubcommand& subcommand : server.server.debug_subcommands()) {
    INFO(subcommand.name);
    const auto place = place_of(subcommand.usage);
    REQUIRE(place + 1 < static_cast<std::ptrdiff_t>(lines.size()));
    CHECK(place > structures);
    CHECK(lines[static_cast<size_t>(place) + 1] == "    " + std::string(subcommand.summary));
  }
}

TEST_CASE("SCRIPT HELP tells of SHOW where the release has it", "[commands]") {
  for (const bool has_it : {true, false}) {
    ServerFixture server({}, has_it ? "" : "emulate \"redis 8.6\"\n");
    add_all_commands(server.server);
    TestClient client(server);
    const std::string reply = client.run("SCRIPT HELP");
    CHECK((reply.find("+SHOW <sha1>\r\n") != std::string::npos) == has_it);
    CHECK(reply.find("+LOAD <script>\r\n") != std::string::npos);
  }
}

}  // namespace latchkey

#include "server/config/directive_help.h"

#include <set>
#include <string>

#include "server/config/config.h"
#include "server/config/config_directive.h"
#include "unit/catch.h"

namespace latchkey::server {

namespace {

constexpr std::string_view kText = R"(# What the file is.
#
# It has directives.

#### One thing ####

# The port.
#   port 7000
port 6379

# A socket,
# and its mode.
#unixsocket /run/a.sock
unixsocketperm 0
####################

save 3600 1
save 300 100
)";

}  // namespace

TEST_CASE("A configuration with comments is read in blocks", "[directive help]") {
  const auto blocks = read_directive_help(kText);
  REQUIRE(blocks.size() == 3);
  CHECK(blocks[0].section == "One thing");
  CHECK(blocks[0].text == "The port.\n  port 7000\n");
  CHECK(blocks[0].lines == std::vector<std::string_view>{"port 6379"});
  CHECK(blocks[1].text == "A socket,\nand its mode.\n");
  CHECK(blocks[1].lines ==
        std::vector<std::string_view>{"unixsocket /run/a.sock", "unixsocketperm 0"});
  CHECK(blocks[1].set_by_default == std::vector<bool>{false, true});
  CHECK(blocks[2].section.empty());
  CHECK(blocks[2].names() == std::vector<std::string_view>{"save"});
}

TEST_CASE("Text without directives has no blocks", "[directive help]") {
  CHECK(read_directive_help("").empty());
  CHECK(read_directive_help("# a comment\n\n#### Title ####\n").empty());
  CHECK(read_directive_help("port 1").size() == 1);
}

TEST_CASE("Every directive that CONFIG GET shows is explained", "[directive help]") {
  for (const Directive& directive : Config::directives()) {
    if (directive.has(kHidden)) continue;
    INFO(directive.name);
    CHECK(explain_directives(directive.name).has_value());
  }
}

TEST_CASE("Whatever is explained is a directive", "[directive help]") {
  const std::set<std::string_view> elsewhere = {"include", "user", "rename-command"};
  for (const DirectiveHelp& block : read_directive_help(default_configuration())) {
    for (const std::string_view name : block.names()) {
      INFO(name);
      CHECK((elsewhere.contains(name) || Config::find(name) != nullptr));
    }
  }
}

TEST_CASE("An explanation has the text, the default, and how it is set", "[directive help]") {
  const std::string page = explain_directives("PORT").value();
  CHECK(page.starts_with("Network\n\nThe TCP port;"));
  CHECK(page.find("\n\n  default   port 6379\n") != std::string::npos);
  CHECK(page.find("  port: CONFIG SET too, while the server runs\n") != std::string::npos);
  CHECK(explain_directives("databases").value().find("databases: at start only") !=
        std::string::npos);
  CHECK(explain_directives("dir").value().find("where enable-protected-configs allows it") !=
        std::string::npos);
  CHECK(explain_directives("slaveof").value().find("replicaof: at start only") !=
        std::string::npos);
  CHECK_FALSE(explain_directives("prot").has_value());
  CHECK_FALSE(explain_directives("").has_value());
}

TEST_CASE("A directive that the configuration does not show is explained by its name",
          "[directive help]") {
  for (const Directive& directive : Config::directives()) {
    INFO(directive.name);
    CHECK(explain_directives(directive.name).has_value());
  }
  const std::string page = explain_directives("RDB-key-save-delay").value();
  CHECK(page.starts_with("Not in latchkey.conf\n"));
  CHECK(page.find("  default   rdb-key-save-delay 0\n") != std::string::npos);
  CHECK(page.ends_with("  rdb-key-save-delay: CONFIG SET too, while the server runs\n"));
}

TEST_CASE("A pattern explains all that match", "[directive help]") {
  const std::string pages = explain_directives("appendf*").value();
  CHECK(pages.find("appendfilename") != std::string::npos);
  CHECK(pages.find("appendfsync") != std::string::npos);
  CHECK(pages.find("port 6379") == std::string::npos);
}

}  // namespace latchkey::server

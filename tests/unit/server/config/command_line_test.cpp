#include "server/config/command_line.h"

#include <string>
#include <vector>

#include "unit/catch.h"

namespace latchkey::server {

namespace {

CommandLine parse(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "latchkey-server");
  return parse_command_line(arguments);
}

std::string options(std::vector<std::string> arguments) {
  return parse(std::move(arguments)).options;
}

}  // namespace

TEST_CASE("The first argument names the configuration file unless it is an option",
          "[command line]") {
  CHECK(parse({}).config_path == "");
  CHECK(parse({"my.conf"}).config_path == "my.conf");
  CHECK(parse({"my.conf", "--port", "1"}).config_path == "my.conf");
  CHECK(parse({"--port", "1"}).config_path == "");
  CHECK(parse({""}).config_path == "");
}

TEST_CASE("Options become lines of configuration with quoted values", "[command line]") {
  CHECK(options({"--port", "7777"}) == "port \"7777\" ");
  CHECK(options({"--port", "7777", "--bind", "::1", "a\"b"}) ==
        "port \"7777\" \nbind \"::1\" \"a\\\"b\" ");
  CHECK(options({"--port 7777", "--timeout x"}) == "port 7777 \ntimeout x ");
  CHECK(options({"-x"}) == "\"-x\" ");
  CHECK(options({"--"}) == " ");
}

TEST_CASE("Right after an option an argument that looks like one is its value", "[command line]") {
  CHECK(options({"--requirepass", "--foo", "--port", "1"}) ==
        "requirepass \"--foo\" \nport \"1\" ");
  CHECK(options({"--port", "--timeout", "5"}) == "port \"--timeout\" \"5\" ");
}

TEST_CASE("save without a value saves never", "[command line]") {
  CHECK(options({"--save", "--port", "1"}) == "save \"\" \nport \"1\" ");
  CHECK(options({"--port", "1", "--save"}) == "port \"1\" \nsave \"\" ");
  CHECK(options({"--save", "", "--port", "1"}) == "save \"\" \nport \"1\" ");
  CHECK(options({"--save", "60 1", "--port", "1"}) == "save \"60 1\" \nport \"1\" ");
}

TEST_CASE("Switches without a value mean yes", "[command line]") {
  CHECK(options({"--print-url", "--port", "auto"}) == "print-url yes \nport \"auto\" ");
  CHECK(options({"--port", "auto", "--exit-with-parent"}) ==
        "port \"auto\" \nexit-with-parent yes ");
  CHECK(options({"--print-url", "no", "--port", "1"}) == "print-url \"no\" \nport \"1\" ");
  CHECK(parse({"--print-url", "-"}).read_stdin);
  CHECK(parse({"--print-url", "-"}).options == "print-url yes ");
}

TEST_CASE("A dash at either end reads standard input", "[command line]") {
  CHECK(parse({"-"}).read_stdin);
  CHECK(parse({"-", "--port", "1"}).read_stdin);
  CHECK(parse({"-", "--port", "1"}).options == "port \"1\" ");
  CHECK(parse({"my.conf", "--port", "1", "-"}).read_stdin);
  CHECK(parse({"my.conf", "--port", "1", "-"}).options == "port \"1\" ");
  CHECK_FALSE(parse({"my.conf", "-", "--port", "1"}).read_stdin);
}

TEST_CASE("Options stand on lines of their own after standard input", "[command line]") {
  CHECK(parse({"--port", "1"}).configuration("") == "\nport \"1\" ");
  CHECK(parse({"-", "--port", "1"}).configuration("hz 5\n") == "hz 5\n\nport \"1\" ");
  CHECK(parse({"-"}).configuration("hz 5") == "hz 5");
}

TEST_CASE("The version line has the shape that harnesses read", "[command line]") {
  for (const auto* option : {"-v", "--version"}) {
    const auto line = parse({option});
    CHECK(line.action == CommandLine::Action::kExit);
    CHECK(line.exit_status == 0);
    CHECK_THAT(line.output, Catch::Matchers::Matches(
                                "Redis server v=8\\.6\\.3 sha=00000000:0 malloc=[a-z]+[-0-9.]* "
                                "bits=[0-9]+ build=[0-9a-f]+\n"));
  }
  CHECK(parse({"--port", "1", "--version"}).action == CommandLine::Action::kServe);
}

TEST_CASE("Help goes to standard error with status 1", "[command line]") {
  const auto line = parse({"--help"});
  CHECK(line.exit_status == 1);
  CHECK(line.output.empty());
  CHECK_THAT(line.errors, Catch::Matchers::StartsWith("Usage: latchkey-server "));
}

TEST_CASE("What this release lacks is refused with a word", "[command line]") {
  for (const auto& arguments : std::vector<std::vector<std::string>>{{"--test-memory", "5"}}) {
    const auto line = parse(arguments);
    CHECK(line.action == CommandLine::Action::kExit);
    CHECK(line.exit_status == 1);
    CHECK_FALSE(line.errors.empty());
  }
}

TEST_CASE("A Sentinel is asked for by a word or by the binary's name", "[command line]") {
  const auto line = parse({"my.conf", "--sentinel", "--port", "5000"});
  CHECK(line.action == CommandLine::Action::kServe);
  CHECK(line.sentinel);
  CHECK(line.config_path == "my.conf");
  CHECK(line.options == "port \"5000\" ");
  CHECK_FALSE(parse({"my.conf"}).sentinel);
  const std::vector<std::string> arguments = {"/usr/bin/redis-sentinel", "my.conf"};
  CHECK(parse_command_line(arguments).sentinel);
}

TEST_CASE("The name of the binary chooses the program", "[command line]") {
  CHECK(program_of("/usr/bin/redis-server") == Program::kServer);
  CHECK(program_of("latchkey-server") == Program::kServer);
  CHECK(program_of("anything") == Program::kServer);
  CHECK(program_of("./redis-sentinel") == Program::kSentinel);
  CHECK(program_of("redis-check-rdb") == Program::kCheckRdb);
  CHECK(program_of("/x/redis-check-aof") == Program::kCheckAof);
  const std::vector<std::string> of_file = {"/x/redis-check-aof", "file"};
  CHECK(parse_command_line(of_file).action == CommandLine::Action::kCheckAof);
  const std::vector<std::string> of_snapshot = {"redis-check-rdb", "file"};
  CHECK(parse_command_line(of_snapshot).action == CommandLine::Action::kCheckRdb);
}

TEST_CASE("A configuration is checked, or its server asked, wherever the word stands",
          "[command line]") {
  using Action = CommandLine::Action;
  for (const auto& arguments :
       {std::vector<std::string>{"--check-config", "my.conf", "--hz", "5"},
        std::vector<std::string>{"my.conf", "--check-config", "--hz", "5"},
        std::vector<std::string>{"my.conf", "--hz", "5", "--check-config"}}) {
    const CommandLine line = parse(arguments);
    CHECK(line.action == Action::kCheckConfig);
    CHECK(line.config_path == "my.conf");
    CHECK(line.options == "hz \"5\" ");
  }
  CHECK(parse({"--ping"}).action == Action::kPing);
  CHECK(parse({"--ping"}).options.empty());
  CHECK(parse({"--port", "7000", "--ping"}).action == Action::kPing);
  CHECK(parse({"--check-config", "-"}).read_stdin);
  CHECK(parse({"my.conf"}).action == Action::kServe);
}

TEST_CASE("--explain prints what a directive is for", "[command line]") {
  const CommandLine one = parse({"--explain", "port"});
  CHECK(one.action == CommandLine::Action::kExit);
  CHECK(one.exit_status == 0);
  CHECK(one.output.find("port 6379") != std::string::npos);
  CHECK(parse({"--explain"}).output.starts_with("# Latchkey's configuration"));
  const CommandLine unknown = parse({"--explain", "prot"});
  CHECK(unknown.exit_status == 1);
  CHECK(unknown.errors == "There is no directive 'prot'. Did you mean 'port'?\n");
  CHECK(parse({"--explain", "xxxxxxxxxxxxx"}).errors == "There is no directive 'xxxxxxxxxxxxx'.\n");
  CHECK(parse({"--explain", "lua-enable-insecure-api"}).exit_status == 0);
  CHECK(parse({"--explain", "port", "bind"}).exit_status == 1);
}

TEST_CASE("--check-system looks at the system alone", "[command line]") {
  CHECK(parse({"--check-system"}).action == CommandLine::Action::kCheckSystem);
  CHECK(parse({"my.conf", "--check-system"}).action != CommandLine::Action::kCheckSystem);
}

}  // namespace latchkey::server

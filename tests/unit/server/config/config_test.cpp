#include "server/config/config.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "server/config/config_directive.h"
#include "server/config/config_parse.h"
#include "server/emulation/later_directives.h"
#include "unit/catch.h"

using latchkey::base::fail;
using latchkey::base::Result;
using latchkey::server::Config;
using latchkey::server::ConfigError;
using latchkey::server::ConfigValues;
using latchkey::server::PrivateDirectory;

namespace {

using Pairs = std::vector<Config::NameAndValue>;

// A configuration in a directory of its own, which goes away with it.
struct Fixture {
  Fixture() : config(std::make_unique<PrivateDirectory>()) {
    std::string pattern = std::filesystem::temp_directory_path() / "latchkey-config-XXXXXX";
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    directory = std::filesystem::canonical(pattern);
    REQUIRE(load("dir " + directory.string()) == "");
  }
  ~Fixture() { std::filesystem::remove_all(directory); }

  // The message of the error, or nothing.
  std::string load(std::string_view text) {
    error = {};
    if (auto loaded = config.load_text(text); !loaded) error = std::move(loaded).error();
    return error.message;
  }

  std::string set(const Pairs& pairs, Config::SetRequest request = {}) {
    const auto done = config.set(pairs, request);
    return done ? "" : done.error();
  }

  std::string get(std::string_view name) const {
    const auto found = config.get(std::span(&name, 1));
    return found.size() == 1 ? found[0].second : "(" + std::to_string(found.size()) + " values)";
  }

  void write(const std::string& name, std::string_view text) const {
    std::ofstream(directory / name) << text;
  }

  Config config;
  ConfigError error;
  std::filesystem::path directory;
};

std::string failed(const std::string& name, const std::string& reason) {
  return "CONFIG SET failed (possibly related to argument '" + name + "') - " + reason;
}

}  // namespace

TEST_CASE("A line of the configuration splits into words as a shell's would", "[config]") {
  using latchkey::server::split_arguments;
  using Words = std::vector<std::string>;
  CHECK(split_arguments("port 6379") == Words{"port", "6379"});
  CHECK(split_arguments("  a\t b ") == Words{"a", "b"});
  CHECK(split_arguments(R"("a b" 'c d')") == Words{"a b", "c d"});
  CHECK(split_arguments(R"("\x41\n\"\q" 'it\'s \n')") == Words{"A\n\"q", "it's \\n"});
  CHECK(split_arguments(R"("" '')") == Words{"", ""});
  CHECK(split_arguments("") == Words{});
  CHECK_FALSE(split_arguments(R"("open)"));
  CHECK_FALSE(split_arguments("'open"));
  CHECK_FALSE(split_arguments(R"("a"b)"));
}

TEST_CASE("A quoted argument reads back as it was", "[config]") {
  std::string all;
  for (int byte = 1; byte < 256; ++byte) all.push_back(static_cast<char>(byte));
  const auto words = latchkey::server::split_arguments(latchkey::server::quote_argument(all));
  REQUIRE(words);
  CHECK(*words == std::vector<std::string>{all});
}

TEST_CASE("Memory has units of a thousand and of 1024", "[config]") {
  using latchkey::server::format_memory;
  using latchkey::server::parse_memory;
  CHECK(parse_memory("100") == 100);
  CHECK(parse_memory("1k") == 1000);
  CHECK(parse_memory("1Kb") == 1024);
  CHECK(parse_memory("2M") == 2000000);
  CHECK(parse_memory("2mb") == 2097152);
  CHECK(parse_memory("1gB") == 1073741824);
  CHECK(parse_memory("99999999999999999999") == UINT64_MAX);
  CHECK_FALSE(parse_memory("1t"));
  CHECK_FALSE(parse_memory("-1"));
  CHECK_FALSE(parse_memory("1.5gb"));
  CHECK_FALSE(parse_memory("5 "));
  CHECK(format_memory(3ULL << 30) == "3gb");
  CHECK(format_memory(1100 * 1024) == "1100kb");
  CHECK(format_memory(1000) == "1000");
  CHECK(format_memory(0) == "0");
}

TEST_CASE("Directives load into typed values", "[config]") {
  Fixture f;
  REQUIRE(f.load("# a comment\n\n  PORT 7000\r\nmaxmemory 100mb\nappendonly YES\n"
                 "maxmemory-policy AllKeys-LRU\nrequirepass \"a b\"\nslave-priority 7\n"
                 "client-output-buffer-limit replica 1mb 2k 3\nbind 127.0.0.1 -::1\n"
                 "shutdown-on-sigterm nosave now\noom-score-adj-values 1 2 3\n"
                 "replicaof 10.0.0.1 6380\nunixsocketperm 755\nmaxmemory-clients 5%\n") == "");
  const ConfigValues& values = f.config.values();
  CHECK(values.port == 7000);
  CHECK(values.maxmemory == 104857600);
  CHECK(values.appendonly);
  CHECK(values.maxmemory_policy == latchkey::server::MaxmemoryPolicy::kAllkeysLru);
  CHECK(values.requirepass == "a b");
  CHECK(values.replica_priority == 7);
  CHECK(values.client_output_buffer_limit[latchkey::server::kBufferReplica].soft_limit_bytes ==
        2000);
  CHECK(values.bind == std::vector<std::string>{"127.0.0.1", "-::1"});
  CHECK(values.shutdown_on_sigterm ==
        (latchkey::server::kShutdownNosave | latchkey::server::kShutdownNow));
  CHECK(values.oom_score_adj_values == std::array<int, 3>{1, 2, 3});
  CHECK(values.replicaof_host == "10.0.0.1");
  CHECK(values.replicaof_port == 6380);
  CHECK(values.unixsocketperm == 0755);
  CHECK(values.maxmemory_clients == -5);
}

TEST_CASE("A wrong line is reported with its number, its text and the reason", "[config]") {
  Fixture f;
  CHECK(f.load("# one\n\n   port   abc  \n") == "argument couldn't be parsed into an integer");
  CHECK(f.error.report() ==
        "\n*** FATAL CONFIG FILE ERROR (Redis 8.6.3) ***\n"
        "Reading the configuration file, at line 3\n"
        ">>> 'port   abc'\n"
        "argument couldn't be parsed into an integer\n"
        "What it takes: latchkey-server --explain port\n");
}

TEST_CASE("Every way to get a line wrong has the reference's message", "[config]") {
  Fixture f;
  CHECK(f.load("port 1 2") == "wrong number of arguments");
  CHECK(f.load("port") == "wrong number of arguments");
  CHECK(f.load("port 70000") == "argument must be between 0 and 65535 inclusive");
  CHECK(f.load("port \"7") == "Unbalanced quotes in configuration line");
  CHECK(f.load("nosuch") == "Bad directive or wrong number of arguments");
  CHECK(f.load("appendonly maybe") == "argument must be 'yes' or 'no'");
  CHECK(f.load("maxmemory lots") == "argument must be a memory value");
  CHECK(f.load("proto-max-bulk-len 1k") ==
        "argument must be between 1048576 and 9223372036854775807 inclusive");
  CHECK(f.load("appendfsync never") ==
        "argument(s) must be one of the following: everysec, always, no");
  CHECK(f.load("unixsocketperm 8") == "argument couldn't be parsed as an octal number");
  CHECK(f.load("unixsocketperm 1777") == "argument must be between 0 and 777 inclusive");
  CHECK(f.load("save 1") == "Invalid save parameters");
  CHECK(f.load("replicaof here there") == "Invalid master port");
  CHECK(f.load("dir /nonexistent") == "No such file or directory");
  CHECK(f.load("dbfilename a/b") == "dbfilename can't be a path, just a filename");
  CHECK(f.load("appenddirname \"\"") == "appenddirname can't be empty");
  CHECK(f.load("cluster-announce-hostname a_b") ==
        "Hostnames may only contain alphanumeric characters, hyphens or dots");
  for (const char* const ip : {"node.example.com", "192.168.1", "\"1.2.3.4\\n\"", "fe80::1%eth0"})
    CHECK(f.load("cluster-announce-ip " + std::string(ip)) ==
          "Cluster announce IP must be a valid IPv4 or IPv6 address");
  for (const char* const name :
       {"a,b", "a=b", "\"a b\"", "\"a\\tb\"", "\"a'b\"", "\"a\\\\b\"", "a:b"})
    CHECK(f.load("cluster-announce-human-nodename " + std::string(name)) ==
          "Announced human node name contained invalid character");
  CHECK(f.load("proc-title-template {foo}") ==
        "template format is invalid or contains unknown variables");
  CHECK(f.load("oom-score-adj-values 1 2 3000") ==
        "Invalid oom-score-adj-values, elements must be between -2000 and 2000.");
  CHECK(f.load("client-output-buffer-limit master 1 2 3") ==
        "Invalid client class specified in buffer limit configuration.");
  CHECK(f.load("notify-keyspace-events q") ==
        "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.");
  CHECK(f.load("latency-tracking-info-percentiles 101") ==
        "latency-tracking-info-percentiles parameters should sit between [0.0,100.0]");
  CHECK(f.load("shutdown-on-sigint save nosave") ==
        "shutdown options SAVE and NOSAVE can't be used simultaneously");
  CHECK(f.load("sentinel monitor x") == "sentinel directive while not in sentinel mode");
  CHECK(f.load("user a on\nuser a off") ==
        "Error in user declaration 'a': Duplicate user found. A user can only be defined once in "
        "config files");
  CHECK_THAT(f.load("loadmodule /x.so"),
             Catch::Matchers::ContainsSubstring("Modules are not supported"));
}

TEST_CASE("A human name is as long as other nodes take it, in any language", "[config]") {
  Fixture f;
  const std::string line = "cluster-announce-human-nodename ";
  CHECK(f.load(line + std::string(255, 'n')) == "");
  CHECK(f.load(line + std::string(256, 'n')) ==
        "Announced human node name must be less than 256 characters");
  CHECK(f.load(line + "n\xc5\x93ud-1") == "");
  CHECK(f.get("cluster-announce-human-nodename") == "n\xc5\x93ud-1");
}

TEST_CASE("Directives of old releases are read and forgotten", "[config]") {
  Fixture f;
  CHECK(f.load("list-max-ziplist-entries 5\nlua-replicate-commands yes\n") == "");
  CHECK(f.config.startup_problems().empty());
  CHECK(f.load("IO-threads-do-reads yes") == "");
  CHECK(f.config.startup_problems().empty());
  CHECK(f.config.settings_without_effect() ==
        std::vector<std::string>{
            "The directive 'io-threads-do-reads' has no effect: it is of older releases."});
  CHECK(f.get("io-threads-do-reads") == "(0 values)");
}

TEST_CASE("A release ignores what its predecessors had, and no other", "[config]") {
  const auto read_by = [](const std::string& release, const std::string& line) {
    Fixture f;
    REQUIRE(f.load("emulate \"" + release + "\"\n" + line) == "");
    if (!f.config.startup_problems().empty()) return std::string("refused");
    return f.get(line.substr(0, line.find(' ')));
  };
  CHECK(read_by("redis 7.0", "io-threads-do-reads yes") == "yes");
  CHECK(read_by("redis 8.0", "io-threads-do-reads yes") == "(0 values)");
  CHECK(read_by("redis 8.6", "io-threads-do-reads bogus") == "(0 values)");
  CHECK(read_by("valkey 8.1", "io-threads-do-reads yes") == "(0 values)");
  CHECK(read_by("valkey 9.1", "dynamic-hz yes") == "(0 values)");
  CHECK(read_by("valkey 8.1", "events-per-io-thread 3") == "3");
  CHECK(read_by("valkey 9.1", "events-per-io-thread 3") == "(0 values)");
  CHECK(read_by("redis 8.6", "events-per-io-thread 3") == "refused");
  CHECK(read_by("redis 8.6", "prefetch-batch-max-size 3") == "3");
  CHECK(read_by("redis 8.0", "prefetch-batch-max-size 3") == "refused");
  CHECK(read_by("valkey 9.1", "rdma-port 7000") == "7000");
  CHECK(read_by("valkey 8.1", "rdma-bind ::1 127.0.0.1") == "::1 127.0.0.1");
  CHECK(read_by("redis 8.6", "rdma-port 0") == "refused");
}

TEST_CASE("Directives of RDMA are read and cannot be set", "[config]") {
  Fixture f;
  REQUIRE(f.load("emulate \"valkey 9.1\"\nrdma-port 7000\nrdma-rx-size 65536") == "");
  CHECK(f.config.settings_without_effect() ==
        std::vector<std::string>{"The directive 'rdma-port' has no effect: there is no RDMA, and "
                                 "clients come by TCP.",
                                 "The directive 'rdma-rx-size' has no effect: there is no RDMA, "
                                 "and clients come by TCP."});
  CHECK(f.set({{"rdma-port", "7000"}}) == "");
  CHECK(f.set({{"rdma-port", "7001"}}) == failed("rdma-port", "No RDMA building support."));
  CHECK(f.set({{"rdma-bind", "::1"}}) == failed("rdma-bind", "No RDMA building support."));
  CHECK(f.set({{"rdma-rx-size", "1"}}) == failed("rdma-rx-size", "can't set immutable config"));
  CHECK(f.get("rdma-port") == "7000");
  CHECK(f.get("rdma-bind") == "");
  CHECK(f.load("rdma-completion-vector 1025") == "argument must be between -1 and 1024 inclusive");
}

TEST_CASE("An unknown directive with a value is a problem at start", "[config]") {
  Fixture f;
  REQUIRE(f.load("foo.bar a 'b c'\n") == "");
  CHECK(f.config.startup_problems() ==
        std::vector<std::string>{"Unresolved Configuration(s) Detected:", ">>> 'foo.bar a b c'",
                                 "Module Configuration detected without loadmodule directive or "
                                 "no ApplyConfig call: aborting"});
}

TEST_CASE("Save points add up within a configuration and take the default's place", "[config]") {
  Fixture f;
  CHECK(f.get("save") == "3600 1 300 100 60 10000");
  REQUIRE(f.load("save 900 1\nsave 300 10\n") == "");
  CHECK(f.get("save") == "900 1 300 10");
  REQUIRE(f.load("save 1 1\nsave \"\"\nsave 2 2\n") == "");
  CHECK(f.get("save") == "2 2");
  CHECK(f.set({{"save", ""}}) == "");
  CHECK(f.get("save") == "");
  CHECK(f.set({{"save", "1 2  3"}}) == failed("save", "Invalid save parameters"));
}

TEST_CASE("include reads other files, with wildcards, and counts their own lines", "[config]") {
  Fixture f;
  f.write("one.conf", "timeout 1\n");
  f.write("two.conf", "hz 20\n");
  CHECK(f.load("include *.conf\n") == "");
  CHECK(f.config.values().timeout == 1);
  CHECK(f.config.values().hz == 20);
  CHECK(f.load("include nothing*.conf\n") == "");

  f.write("bad.conf", "#\n#\nport x\n");
  CHECK_FALSE(f.load("# here\ninclude bad.conf\n").empty());
  CHECK(f.error.line == 3);
  CHECK(f.error.line_text == "port x");

  CHECK(f.load("include missing.conf\n") ==
        "Fatal error, can't open config file 'missing.conf': No such file or directory");
  CHECK(f.error.kind == ConfigError::Kind::kFile);

  f.write("loop.conf", "include loop.conf\n");
  CHECK(f.load("include loop.conf\n") == "include is nested too deeply");
}

TEST_CASE("A replica cannot be a cluster node", "[config]") {
  Fixture f;
  const auto loaded = f.config.load("", "replicaof 1.2.3.4 6379\ncluster-enabled yes\n");
  REQUIRE_FALSE(loaded);
  CHECK(loaded.error().report() ==
        "\n*** FATAL CONFIG FILE ERROR (Redis 8.6.3) ***\n"
        "replicaof directive not allowed in cluster mode\n");
}

TEST_CASE("A protected bus of a cluster needs TLS", "[config]") {
  const std::string settings = "cluster-enabled yes\ncluster-bus-port-protected-mode yes\n";
  Fixture f;
  const auto loaded = f.config.load("", settings);
  REQUIRE_FALSE(loaded);
  CHECK(loaded.error().report().find(
            "cluster-bus-port-protected-mode is enabled but tls-cluster is disabled") !=
        std::string::npos);
  Fixture secure;
  CHECK(secure.config.load("", "tls-cluster yes\n" + settings));
  Fixture alone;
  CHECK(alone.config.load("", "cluster-bus-port-protected-mode yes\n"));
}

TEST_CASE("What TLS is asked for is read whatever comes of it", "[config]") {
  Fixture f;
  REQUIRE(f.config.load(
      "", "tls-port 6380\ntls-cluster yes\ntls-auth-clients optional\ntls-auth-clients-user cn\n"));
  CHECK(f.config.values().tls_port == 6380);
  CHECK(f.config.values().tls_cluster);
  CHECK(f.config.values().tls_auth_clients_user == latchkey::server::TlsUserField::kCommonName);
  CHECK_FALSE(f.config.load("", "tls-auth-clients-user SAN\n"));
}

TEST_CASE("CONFIG GET takes names and patterns and shows each name once", "[config]") {
  Fixture f;
  const auto names = [&](std::vector<std::string_view> patterns) {
    std::set<std::string> found;
    for (const auto& [name, value] : f.config.get(patterns)) CHECK(found.insert(name).second);
    return found;
  };
  using Set = std::set<std::string>;
  CHECK(names({"timeout", "time*", "TIMEOUT", "nosuch"}) == Set{"timeout"});
  CHECK(names({"*-priority"}) == Set{"replica-priority", "slave-priority"});
  CHECK(names({"TIME*", "*OUT-NONE"}) == Set{"timeout"});
  CHECK(names({"Slave-Pri*"}) == Set{"slave-priority"});
  CHECK(names({"slave-pri*"}) == Set{"slave-priority"});
  CHECK(names({"key-load-dela?"}).empty());
  CHECK(names({"KEY-load-delay"}) == Set{"KEY-load-delay"});
  Set shown;
  for (const auto& directive : f.config.directives()) {
    if (directive.has(latchkey::server::kHidden)) continue;
    if (directive.has(latchkey::server::kOfValkey)) continue;
    if (!has_directive(f.config.values().edition, directive.name)) continue;
    shown.emplace(directive.name);
    if (!directive.alias.empty()) shown.emplace(directive.alias);
  }
  CHECK(shown.size() > 200);
  CHECK(names({"*"}) == shown);
  CHECK(names({"*-databases"}).empty());
  CHECK(names({"cluster-databases"}) == Set{"cluster-databases"});
}

TEST_CASE("CONFIG SET stores all pairs or none", "[config]") {
  Fixture f;
  CHECK(f.set({{"maxclients", "50"}, {"TIMEOUT", "5"}}) == "");
  CHECK(f.get("maxclients") == "50");
  CHECK(f.set({{"maxclients", "60"}, {"hz", "x"}}) ==
        failed("hz", "argument couldn't be parsed into an integer"));
  CHECK(f.get("maxclients") == "50");
}

TEST_CASE("CONFIG SET says what is wrong with an argument", "[config]") {
  Fixture f;
  CHECK(f.set({{"nope", "1"}}) == "Unknown option or number of arguments for CONFIG SET - 'nope'");
  CHECK(f.set({{"databases", "1"}, {"nope", "2"}}) ==
        failed("databases", "can't set immutable config"));
  CHECK(f.set({{"maxmemory", "x"}, {"MAXMEMORY", "2"}}) ==
        failed("MAXMEMORY", "duplicate parameter"));
  CHECK(f.set({{"slave-priority", "1"}, {"replica-priority", "2"}}) ==
        failed("replica-priority", "duplicate parameter"));
  CHECK(f.set({{"Slave-Priority", "x"}}) ==
        failed("slave-priority", "argument couldn't be parsed into an integer"));
  CHECK(f.set({{"maxmemory-clients", "101%"}}) ==
        failed("maxmemory-clients", "percentage argument must be less or equal to 100"));
  CHECK(f.set({{"maxmemory-clients", "5.5%"}}) ==
        failed("maxmemory-clients", "argument must be a memory or percent value"));
}

TEST_CASE("Protected directives open by enable-protected-configs", "[config]") {
  Fixture f;
  const std::string refused = failed("dbfilename", "can't set protected config");
  CHECK(f.set({{"dbfilename", "x.rdb"}}) == refused);
  REQUIRE(f.load("enable-protected-configs local") == "");
  CHECK(f.set({{"dbfilename", "x.rdb"}}, {.from_local_client = false}) == refused);
  CHECK(f.set({{"dbfilename", "x.rdb"}}, {.from_local_client = true}) == "");
  REQUIRE(f.load("enable-protected-configs yes") == "");
  CHECK(f.set({{"dbfilename", "y.rdb"}}, {.from_local_client = false}) == "");
}

TEST_CASE("dir follows the directory and comes back when CONFIG SET fails", "[config]") {
  Fixture f;
  REQUIRE(f.load("enable-protected-configs yes") == "");
  std::filesystem::create_directory(f.directory / "sub");
  CHECK(f.set({{"dir", "sub"}}) == "");
  CHECK(f.get("dir") == (f.directory / "sub").string());
  CHECK(f.set({{"dir", ".."}, {"hz", "x"}}) != "");
  CHECK(f.get("dir") == (f.directory / "sub").string());
  CHECK(f.set({{"dir", ".."}}) == "");
  CHECK(f.get("dir") == f.directory.string());
  CHECK(f.set({{"dir", "/etc/passwd"}}) == failed("dir", "Not a directory"));
}

TEST_CASE("What keeps values of its own copies them before hooks, and again when one refuses",
          "[config]") {
  Fixture f;
  std::vector<uint32_t> copied;
  f.config.on_every_change([&] { copied.push_back(f.config.values().maxclients); });
  size_t copies_before_hook = 0;
  f.config.on_change({"maxclients"}, [&]() -> Result<> {
    copies_before_hook = copied.size();
    if (f.config.values().maxclients < 1000) return {};
    return fail("too many");
  });

  REQUIRE(f.set({{"maxclients", "10"}}) == "");
  CHECK(copies_before_hook == 1);
  CHECK(f.set({{"maxclients", "10"}}) == "");
  CHECK(copied == std::vector<uint32_t>{10});
  CHECK(f.set({{"port", "8"}, {"maxclients", "2000"}}) == failed("maxclients", "too many"));
  CHECK(copied == std::vector<uint32_t>{10, 2000, 10});
  CHECK(f.set({{"port", "8"}, {"maxclients", "x"}}) != "");
  CHECK(copied.size() == 3);
}

TEST_CASE("Settings without effect are told, with the reason, where a configuration asks for them",
          "[config]") {
  Fixture f;
  REQUIRE(f.load("active-expire-effort 3\nactiverehashing yes\nhz 20\nslave-priority 5") == "");
  const std::vector<std::string> lines = f.config.settings_without_effect();
  REQUIRE(lines.size() == 1);
  CHECK(lines[0] ==
        "The directive 'active-expire-effort' has no effect: keys are deleted at their deadlines, "
        "and not looked for by samples.");
}

TEST_CASE("A check refuses a change before any hook or copy has seen it", "[config]") {
  Fixture f;
  int seen = 0;
  f.config.on_every_change([&] { ++seen; });
  f.config.on_change({"port", "maxclients"}, [&] { ++seen; });
  int checks = 0;
  f.config.check_change({"maxclients", "bind"}, [&]() -> Result<> {
    ++checks;
    if (f.config.values().maxclients < 1000) return {};
    return fail("too many");
  });
  CHECK(f.set({{"port", "8"}, {"maxclients", "2000"}}) == failed("maxclients", "too many"));
  CHECK(f.get("port") != "8");
  CHECK(seen == 0);
  CHECK(checks == 1);
  CHECK(f.set({{"bind", "::1"}, {"maxclients", "10"}}) == "");
  CHECK(checks == 2);
  CHECK(seen == 2);
}

TEST_CASE("A hook is called once for what changed and can refuse it", "[config]") {
  Fixture f;
  int calls = 0;
  f.config.on_change({"port", "bind"}, [&] { ++calls; });
  std::vector<uint32_t> seen;
  f.config.on_change({"maxclients"}, [&]() -> Result<> {
    seen.push_back(f.config.values().maxclients);
    if (f.config.values().maxclients < 1000) return {};
    return fail("too many");
  });

  CHECK(f.set({{"port", "7"}, {"bind", "::1"}}) == "");
  CHECK(calls == 1);
  CHECK(f.set({{"port", "7"}}) == "");
  CHECK(calls == 1);

  REQUIRE(f.set({{"maxclients", "10"}}) == "");
  seen.clear();
  CHECK(f.set({{"port", "8"}, {"maxclients", "2000"}}) == failed("maxclients", "too many"));
  CHECK(f.get("port") == "7");
  CHECK(f.get("maxclients") == "10");
  CHECK(calls == 3);
  CHECK(seen == std::vector<uint32_t>{2000, 10});
}

TEST_CASE("Key space events are shown in one order whatever order they were given in", "[config]") {
  Fixture f;
  const auto shown = [&](const std::string& events) {
    CHECK(f.set({{"notify-keyspace-events", events}}) == "");
    return f.get("notify-keyspace-events");
  };
  CHECK(shown("KEA") == "AKE");
  CHECK(shown("Kx") == "xK");
  CHECK(shown("$lshzxetdmn") == "$lshzxetdnm");
  CHECK(shown("KEg$lshzxetd") == "AKE");
  CHECK(shown("AKEmn") == "AKEm");
  CHECK(shown("Ka") == "aK");
  CHECK(shown("VITShK") == "hKSTIV");
  CHECK(shown("ASTIV") == "ASTIV");
  CHECK(shown("ng") == "gn");
  CHECK(shown("") == "");
}

TEST_CASE("Values are shown as the reference shows them", "[config]") {
  Fixture f;
  const auto shown = [&](const std::string& name, const std::string& value) {
    CHECK(f.set({{name, value}}) == "");
    return f.get(name);
  };
  CHECK(shown("latency-tracking-info-percentiles", "99.99 1e1 100.0 0x10") == "99.99 10 100 16");
  CHECK(shown("oom-score-adj", "relative") == "yes");
  CHECK(shown("shutdown-on-sigterm", "NOW nosave") == "nosave now");
  CHECK(shown("shutdown-on-sigterm", "default") == "default");
  CHECK(shown("client-output-buffer-limit", "NORMAL 1mb 2k 3 replica 4 5 6") ==
        "normal 1048576 2000 3 slave 4 5 6 pubsub 33554432 8388608 60");
  CHECK(shown("hz", "1000") == "500");
  CHECK(shown("hz", "0") == "1");
  CHECK(shown("maxmemory-clients", "5%") == "5%");
  CHECK(shown("bind", "127.0.0.1 -::1") == "127.0.0.1 -::1");
  CHECK(shown("bind", "") == "");
}

TEST_CASE("Passwords are known to be secrets, port numbers are not", "[config]") {
  Fixture f;
  CHECK(f.config.is_sensitive("RequirePass"));
  CHECK(f.config.is_sensitive("tls-key-file-pass"));
  CHECK_FALSE(f.config.is_sensitive("port"));
  CHECK_FALSE(f.config.is_sensitive("nosuch"));
}

TEST_CASE("Where the data is loaded from stays as it is while they load", "[config]") {
  Fixture f;
  CHECK(f.config.waits_for_loading("DIR"));
  CHECK(f.config.waits_for_loading("repl-diskless-load"));
  CHECK_FALSE(f.config.waits_for_loading("appendonly"));
}

TEST_CASE("The port may be one that the system chooses", "[config]") {
  Fixture f;
  REQUIRE(f.load("port AUTO") == "");
  CHECK(f.get("port") == "auto");
  CHECK(f.config.values().port == 0);
  f.config.mutable_values().port = 40123;  // as who listens does
  CHECK(f.get("port") == "40123");
  CHECK(f.set({{"port", "auto"}}) == "");
  CHECK(f.get("port") == "40123");
  CHECK(f.set({{"port", "7000"}}) == "");
  CHECK_FALSE(f.config.values().port_auto);
  CHECK(f.set({{"port", "auto"}}) == "");
  CHECK(f.get("port") == "auto");
  CHECK(f.set({{"port", "0"}}) == "");
  CHECK(f.get("port") == "0");
  for (const char* wrong : {"automatic", "-1", "65536", "", "1.5"}) {
    INFO(wrong);
    CHECK(f.set({{"port", wrong}}) != "");
  }
  CHECK(f.load("port automatic") == "argument couldn't be parsed into an integer");
  // The last line counts.
  REQUIRE(f.load("port auto\nport 7001") == "");
  CHECK(f.get("port") == "7001");
  REQUIRE(f.load("port 7001\nport auto") == "");
  CHECK(f.get("port") == "auto");
}

TEST_CASE("A daemon has neither a parent to go with nor an output for its URL", "[config]") {
  const auto refusal = [](std::string_view text) {
    Config config(std::make_unique<PrivateDirectory>());
    const auto loaded = config.load("", text);
    return loaded ? "" : loaded.error().message;
  };
  CHECK(refusal("daemonize yes") == "");
  CHECK(refusal("exit-with-parent yes\nprint-url yes") == "");
  CHECK(refusal("daemonize yes\nexit-with-parent yes") ==
        "exit-with-parent cannot be yes with daemonize: who starts a daemon is not its parent");
  CHECK(refusal("print-url yes\ndaemonize yes") ==
        "print-url cannot be yes with daemonize: a daemon has no standard output");
}

TEST_CASE("Whoever waits for random-seed hears of it even if it stays what it was", "[config]") {
  Fixture f;
  int calls = 0;
  f.config.on_change({"random-seed"}, [&] { ++calls; });
  CHECK(f.set({{"random-seed", "7"}}) == "");
  CHECK(f.set({{"random-seed", "7"}}) == "");
  CHECK(calls == 2);
  CHECK(f.set({{"timeout", "7"}}) == "");
  CHECK(calls == 2);
  CHECK(f.set({{"random-seed", "-1"}}) ==
        "CONFIG SET failed (possibly related to argument 'random-seed') - argument must be between "
        "0 and 9223372036854775807 inclusive");
}

TEST_CASE("A configuration that inherits takes over what concerns neither sockets nor the process",
          "[config]") {
  Fixture first;
  REQUIRE(first.load("timeout 5\nrandom-seed 7\nport auto\nport-file ports\nready-fd 5\n"
                     "print-url yes\nexit-with-parent yes\nexit-when-idle 9\n") == "");
  Fixture space;
  space.config.inherit(first.config);
  CHECK(space.get("timeout") == "5");
  CHECK(space.get("random-seed") == "7");
  CHECK(space.get("port-file") == "");
  CHECK(space.get("ready-fd") == "-1");
  CHECK(space.get("print-url") == "no");
  CHECK(space.get("exit-with-parent") == "no");
  CHECK(space.get("exit-when-idle") == "0");
}

TEST_CASE("What later subsystems check is kept with its place", "[config]") {
  Fixture f;
  REQUIRE(f.load("rename-command GET \"\"\nuser alice on >x ~*\n") == "");
  REQUIRE(f.config.values().rename_commands.size() == 1);
  CHECK(f.config.values().rename_commands[0].arguments == std::vector<std::string>{"GET", ""});
  REQUIRE(f.config.values().users.size() == 1);
  const auto error = ConfigError::at(f.config.values().users[0], "no good");
  CHECK(error.line == 2);
  CHECK(error.line_text == "user alice on >x ~*");
}

TEST_CASE("The configuration file of the distribution shows every directive at its default",
          "[config]") {
  std::ifstream file(LATCHKEY_SOURCE_ROOT "/conf/latchkey.conf");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  REQUIRE_FALSE(text.empty());
  Fixture f;
  REQUIRE(f.load(text) == "");

  std::set<std::string> shown;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("#")) line.erase(0, 1);
    shown.insert(line.substr(0, line.find(' ')));
  }
  const ConfigValues defaults;
  for (const auto& directive : f.config.directives()) {
    INFO(directive.name);
    CHECK(
        (directive.has(latchkey::server::kHidden) || shown.contains(std::string(directive.name))));
    if (directive.name == "dir") continue;
    CHECK(directive.format(f.config.values()) == directive.format(defaults));
  }
  CHECK(f.get("dir") == f.directory.string());
}

TEST_CASE("Examples in the configuration file of the distribution are valid", "[config]") {
  std::ifstream file(LATCHKEY_SOURCE_ROOT "/conf/latchkey.conf");
  Fixture f;
  for (std::string line; std::getline(file, line);) {
    const bool example = line.size() > 1 && line[0] == '#' && line[1] >= 'a' && line[1] <= 'z';
    if (!example || line.starts_with("#include")) continue;
    INFO(line);
    CHECK(f.load(line.substr(1)) == "");
  }
  CHECK(f.config.startup_problems().empty());
}

TEST_CASE("What was probably meant follows the reference's error") {
  Fixture f;
  CHECK(f.load("hz") == "wrong number of arguments");
  CHECK(f.error.hint == "What it takes: latchkey-server --explain hz");
  CHECK(f.error.report().ends_with("wrong number of arguments\n" + f.error.hint + "\n"));
  CHECK(f.load("prot") == "Bad directive or wrong number of arguments");
  CHECK(f.error.hint == "Did you mean 'port'?");
  CHECK(f.load("prot 1") == "");
  CHECK(f.config.startup_problems().back() == "'prot' is not known. Did you mean 'port'?");
}

TEST_CASE("A suggestion is a directive that the emulated server has") {
  using latchkey::server::Edition;
  using latchkey::server::suggest_directive;
  CHECK(suggest_directive(Edition(), "maxmemory-polcy") == "Did you mean 'maxmemory-policy'?");
  CHECK(suggest_directive(Edition(), "slavof") == "Did you mean 'slaveof'?");
  CHECK(suggest_directive(Edition(), "nothinglikeit") == "");
  Config old;
  REQUIRE(old.load_text("emulate \"redis 6.2\""));
  CHECK(suggest_directive(Edition(), "lua-memroy-limit") == "Did you mean 'lua-memory-limit'?");
  CHECK(suggest_directive(old.values().edition, "cluster-slot-stats-enabld") == "");
}

TEST_CASE("A check tells all that is wrong, with its place, in order") {
  Fixture f;
  f.write("inner.conf", "port 1\nhz many\n");
  f.write("my.conf", "# a comment\nprot 1\nport 70000\ninclude " +
                         (f.directory / "inner.conf").string() +
                         "\nbind \"x\nuser bob on\nuser bob on\ndaemonize yes\n");
  const std::string path = f.directory / "my.conf";
  const auto problems = f.config.check(path, "\nloglevel loud\nprint-url yes\n");
  std::vector<std::string> seen;
  for (const auto& problem : problems)
    seen.push_back(std::filesystem::path(problem.file).filename().string() + ":" +
                   std::to_string(problem.line) + " " + problem.line_text);
  CHECK(seen == std::vector<std::string>{"my.conf:2 prot 1", "my.conf:3 port 70000",
                                         "inner.conf:2 hz many", "my.conf:5 bind \"x",
                                         "my.conf:7 user bob on", "my.conf:10 loglevel loud",
                                         ":0 "});
  CHECK(problems.front().message == "There is no such directive");
  CHECK(problems.front().hint == "Did you mean 'port'?");
  CHECK(problems.back().message ==
        "print-url cannot be yes with daemonize: a daemon has no standard output");
}

TEST_CASE("A check of what is right finds nothing and makes no file") {
  Fixture f;
  f.write("my.conf", "port 7000\nlogfile " + (f.directory / "log").string() + "\n");
  CHECK(f.config.check(f.directory / "my.conf", "").empty());
  CHECK_FALSE(std::filesystem::exists(f.directory / "log"));
  // Sentinels ask which one it is.
  CHECK(f.config.file() == f.directory / "my.conf");
  const auto missing = f.config.check(f.directory / "none.conf", "");
  REQUIRE(missing.size() == 1);
  CHECK(missing[0].kind == ConfigError::Kind::kFile);
}

TEST_CASE("A file without an end is not read as a configuration") {
  Fixture f;
  const auto problems = f.config.check("/dev/zero", "");
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].kind == ConfigError::Kind::kFile);
  CHECK(problems[0].message == "Fatal error, can't open config file '/dev/zero': File too large");
  CHECK(f.load("include /dev/zero\n") ==
        "Fatal error, can't open config file '/dev/zero': File too large");
}

TEST_CASE("A check ends when it has found more problems than anybody reads") {
  Fixture f;
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "nonsense 1\n";
  f.write("inner.conf", text);
  f.write("my.conf", "include " + (f.directory / "inner.conf").string() + "\nport x\n");
  const auto problems = f.config.check(f.directory / "my.conf", "");
  REQUIRE(problems.size() == 1001);
  CHECK(problems[999].line == 1000);
  CHECK(problems[1000].line == 0);
  CHECK(problems[1000].message == "There are too many problems: the rest was not read");
}

TEST_CASE("A check finds a log that cannot be written") {
  Fixture f;
  const auto problems = f.config.check("", "logfile /nonexistent/log\n");
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].message == "Can't open the log file: No such file or directory");
}

TEST_CASE("At most sixteen addresses are bound", "[config]") {
  Fixture fixture;
  std::string addresses;
  for (int i = 1; i <= 16; ++i) addresses += " 127.0.0." + std::to_string(i);
  CHECK(fixture.load("bind" + addresses) == "");
  CHECK(fixture.load("bind" + addresses + " 127.0.0.17") == "Too many bind addresses specified.");
}

TEST_CASE("Limits of output buffers are sizes and a time that is not negative", "[config]") {
  Fixture fixture;
  const std::string wrong =
      "Error in hard, soft or soft_seconds setting in buffer limit configuration.";
  CHECK(fixture.load("client-output-buffer-limit normal 1mb 512kb 60") == "");
  CHECK(fixture.get("client-output-buffer-limit").starts_with("normal 1048576 524288 60 "));
  CHECK(fixture.load("client-output-buffer-limit normal x 1 1") == wrong);
  CHECK(fixture.load("client-output-buffer-limit normal 1 x 1") == wrong);
  CHECK(fixture.load("client-output-buffer-limit normal 1 1 x") == wrong);
  CHECK(fixture.load("client-output-buffer-limit normal 1 1 -1") == wrong);
  CHECK(fixture.load("client-output-buffer-limit normal 1 1 0") == "");
  CHECK(fixture.load("client-output-buffer-limit nobody 1 1 1") ==
        "Invalid client class specified in buffer limit configuration.");
  CHECK(fixture.load("client-output-buffer-limit normal 1 1") ==
        "Wrong number of arguments in buffer limit configuration.");
}

TEST_CASE("A Sentinel is neither a replica nor a node of a cluster", "[config]") {
  const auto problem = [](const std::string& settings) {
    Config config(std::make_unique<PrivateDirectory>());
    config.mutable_values().sentinel_mode = true;
    const auto loaded = config.load("", settings);
    return loaded ? "" : loaded.error().message;
  };
  CHECK(problem("") == "");
  CHECK(problem("replicaof 127.0.0.1 6379") == "replicaof directive not allowed in sentinel mode");
  CHECK(problem("cluster-enabled yes") ==
        "cluster-enabled and appendonly cannot be yes in sentinel mode");
  CHECK(problem("appendonly yes") ==
        "cluster-enabled and appendonly cannot be yes in sentinel mode");
}

TEST_CASE("An announced address is a number, or what Valkey takes for one", "[config]") {
  const auto problem = [](const std::string& edition, const std::string& ip) {
    Fixture fixture;
    if (!edition.empty()) REQUIRE(fixture.load("emulate \"" + edition + "\"") == "");
    return fixture.load("cluster-announce-ip \"" + ip + "\"");
  };
  const std::string not_an_ip = "Cluster announce IP must be a valid IPv4 or IPv6 address";
  CHECK(problem("", "10.0.0.1") == "");
  CHECK(problem("", "::1") == "");
  CHECK(problem("", "") == "");
  CHECK(problem("", "host") == not_an_ip);
  CHECK(problem("", "10.0.0.1 ") == not_an_ip);
  const std::string valkey = "valkey 9.1";
  CHECK(problem(valkey, "10.0.0.1") == "");
  CHECK(problem(valkey, "a b") == "cluster-announce-ip contains invalid character");
  CHECK(problem(valkey, "a%") == "cluster-announce-ip contains invalid character");
  CHECK(problem(valkey, std::string(46, 'a')) == "cluster-announce-ip is too long");
}

TEST_CASE("A log that cannot be written keeps the server from starting", "[config]") {
  Fixture fixture;
  const std::string log = (fixture.directory / "none" / "log").string();
  Config config(std::make_unique<PrivateDirectory>());
  const auto loaded = config.load("", "logfile " + log);
  REQUIRE_FALSE(loaded);
  CHECK(loaded.error().message == "Can't open the log file: No such file or directory");
  Config other(std::make_unique<PrivateDirectory>());
  CHECK(other.load("", "logfile " + (fixture.directory / "log").string()));
  CHECK(std::filesystem::exists(fixture.directory / "log"));
}

TEST_CASE("More than so many files are not included", "[config]") {
  Fixture fixture;
  std::string all;
  fixture.write("empty", "");
  const std::string line = "include " + (fixture.directory / "empty").string() + "\n";
  for (int i = 0; i < 10'000; ++i) all += line;
  fixture.write("all", all);
  const std::string problem = fixture.load("include " + (fixture.directory / "all").string());
  INFO(problem);
  CHECK(problem.find(" files are included") != std::string::npos);
}

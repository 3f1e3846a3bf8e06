#include "server/process/readiness.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <string>
#include <utility>

#include "unit/catch.h"
#include "unit/temporary_directory.h"

namespace latchkey::tests {

using server::Config;
using server::ConfigValues;
using server::Readiness;
using server::url_of;

namespace {

struct Pipe {
  Pipe() { REQUIRE(pipe(ends.data()) == 0); }
  ~Pipe() {
    close(ends[0]);
    close(ends[1]);
  }
  // What has been written, when the other end is closed.
  std::string read_to_end() const {
    std::string text;
    std::array<char, 256> piece;
    ssize_t count;
    while ((count = read(ends[0], piece.data(), piece.size())) > 0)
      text.append(piece.data(), static_cast<size_t>(count));
    return text;
  }
  std::array<int, 2> ends;
};

struct Started {
  Started() { log.set_level(base::LogLevel::kNothing); }
  // Why the server cannot start; empty when it can.
  std::string prepare(const std::string& settings) {
    REQUIRE(config.load("", directory.setting() + settings));
    const auto prepared = readiness.prepare(config);
    return prepared ? "" : prepared.error().message;
  }
  TemporaryDirectory directory;
  base::Logger log;
  Config config{std::make_unique<server::PrivateDirectory>()};
  Readiness readiness{log};
};

}  // namespace

TEST_CASE("The URL is one that clients can connect to") {
  ConfigValues values;
  values.port = 40123;
  const std::pair<const char*, const char*> urls[] = {
      {"*", "redis://127.0.0.1:40123"},
      {"0.0.0.0", "redis://127.0.0.1:40123"},
      {"::*", "redis://[::1]:40123"},
      {"::", "redis://[::1]:40123"},
      {"10.1.2.3", "redis://10.1.2.3:40123"},
      {"fe80::1%eth0", "redis://[fe80::1%25eth0]:40123"},
      {"db-1.local", "redis://db-1.local:40123"},
      {"$(x)", "redis://%24%28x%29:40123"},
  };
  for (const auto& [address, url] : urls) CHECK(url_of(address, values) == url);
  values.unixsocket = "/tmp/a b'$c/socket";
  CHECK(url_of("", values) == "unix:///tmp/a%20b%27%24c/socket");
}

TEST_CASE("The port-file appears when the server is ready, follows its port, and goes with it") {
  Started started;
  started.directory.write("ports", "port=1\nurl=redis://127.0.0.1:1\n");
  REQUIRE(started.prepare("port 7000\nport-file ports\n") == "");
  CHECK_FALSE(started.directory.exists("ports"));
  started.readiness.moved("*");
  CHECK_FALSE(started.directory.exists("ports"));

  REQUIRE(started.readiness.announce("*"));
  CHECK(started.directory.read("ports") == "port=7000\nurl=redis://127.0.0.1:7000\n");
  started.config.mutable_values().port = 7001;
  started.readiness.moved("::1");
  CHECK(started.directory.read("ports") == "port=7001\nurl=redis://[::1]:7001\n");

  started.readiness.withdraw();
  CHECK(std::filesystem::is_empty(started.directory.path()));
}

TEST_CASE("The port-file of a server without a port has the socket's URL") {
  Started started;
  REQUIRE(started.prepare("port 0\nunixsocket /tmp/s\nport-file ports\n") == "");
  REQUIRE(started.readiness.announce(""));
  CHECK(started.directory.read("ports") == "port=0\nurl=unix:///tmp/s\n");
}

TEST_CASE("A port-file that another server has written since is left to it") {
  Started started;
  REQUIRE(started.prepare("port 7000\nport-file ports\n") == "");
  REQUIRE(started.readiness.announce("*"));
  started.directory.write("ports", "port=7001\nurl=redis://127.0.0.1:7001\n");
  started.readiness.withdraw();
  CHECK(started.directory.exists("ports"));
}

TEST_CASE("A port-file that cannot be written keeps the server from starting") {
  Started started;
  REQUIRE(started.prepare("port-file missing/ports\n") == "");
  CHECK_FALSE(started.readiness.announce("*"));

  Started occupied;
  occupied.directory.write("ports/file", "");
  CHECK(occupied.prepare("port-file ports\n").starts_with("port-file: the old "));
}

TEST_CASE("ready-fd gets the URL, and then its end") {
  Pipe pipe;
  Started started;
  // The descriptor that whoever starts a server would let it inherit.
  const int inherited = dup(pipe.ends[1]);
  REQUIRE(started.prepare("port 7000\nready-fd " + std::to_string(inherited) + "\n") == "");
  CHECK((fcntl(inherited, F_GETFD) & FD_CLOEXEC) != 0);
  REQUIRE(started.readiness.announce("127.0.0.1"));
  CHECK(fcntl(inherited, F_GETFD) == -1);
  close(std::exchange(pipe.ends[1], -1));
  CHECK(pipe.read_to_end() == "redis://127.0.0.1:7000\n");
}

TEST_CASE("ready-fd must be open for writing, and none of the standard streams") {
  Pipe pipe;
  const auto refusal = [](int descriptor) {
    return Started().prepare("ready-fd " + std::to_string(descriptor) + "\n");
  };
  CHECK(refusal(-1) == "");
  for (const int standard : {0, 1, 2}) {
    CHECK(refusal(standard) ==
          "ready-fd must be above 2: the first three descriptors are the standard streams");
  }
  const std::string reading = std::to_string(pipe.ends[0]);
  CHECK(refusal(pipe.ends[0]) == "ready-fd " + reading + " is not open for writing");
  CHECK(refusal(1'000'000'000) == "ready-fd 1000000000 is not open for writing");
}

}  // namespace latchkey::tests

#include "server/process/port_owner.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "unit/catch.h"
#include "unit/temporary_directory.h"

namespace latchkey::server {

namespace {

constexpr std::string_view kHeading =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
    "inode\n";

// Stands for /proc, with one socket that listens at port 6379 (0x18EB).
class Processes {
 public:
  Processes() {
    std::filesystem::create_directories(directory_.path() / "net");
    write(
        "net/tcp",
        std::string(kHeading) +
            "   0: 0100007F:A1B2 0100007F:18EB 01 00000000:00000000 00:00000000 00000000  1000   "
            "     0 41 1\n"
            "   1: 0100007F:18EB 0100007F:A1B2 01 00000000:00000000 00:00000000 00000000  1000   "
            "     0 42 1\n"
            "   2: 00000000:18EB 00000000:0000 0A 00000000:00000000 00:00000000 00000000 4294967  "
            "      0 4711 1\n");
  }
  void write(const std::string& name, std::string_view text) const {
    std::ofstream(directory_.path() / name, std::ios::binary) << text;
  }
  // A process that holds `target`.
  void add(const std::string& pid, std::string_view command, const std::string& target) const {
    const auto process = directory_.path() / pid;
    std::filesystem::create_directories(process / "fd");
    write(pid + "/cmdline", command);
    std::filesystem::create_symlink("/dev/null", process / "fd" / "0");
    std::filesystem::create_symlink(target, process / "fd" / "6");
  }
  std::string describe(int port) const {
    return describe_port_owner(port, directory_.path().string());
  }

 private:
  tests::TemporaryDirectory directory_;
};

}  // namespace

TEST_CASE("The process that listens on a port is named", "[port owner]") {
  const Processes processes;
  processes.add("12", std::string_view("other\0", 6), "socket:[42]");
  processes.add("34", std::string_view("redis-server\0*:6379\0", 20), "socket:[4711]");
  CHECK(processes.describe(6379) == "Port 6379 is used by process 34 (redis-server *:6379).");
}

TEST_CASE("A process that may not be looked at is another user's", "[port owner]") {
  const Processes processes;
  CHECK(processes.describe(6379) ==
        "Port 6379 is used by a process of user 4294967, which this one may not look at: as root, "
        "ss -ltnp 'sport = :6379' tells which.");
}

TEST_CASE("Of a port where nobody listens nothing is said", "[port owner]") {
  const Processes processes;
  // Connections from and to a port are no listeners.
  CHECK(processes.describe(0xA1B2).empty());
  CHECK(processes.describe(80).empty());
  CHECK(describe_port_owner(6379, "/nonexistent").empty());
}

TEST_CASE("A socket of IPv6 is found in its own table", "[port owner]") {
  const Processes processes;
  processes.write("net/tcp6",
                  std::string(kHeading) +
                      "   0: 00000000000000000000000000000000:18EC "
                      "00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 "
                      "00000000     0        0 99 1\n");
  processes.add("7", std::string_view("server\0", 7), "socket:[99]");
  CHECK(processes.describe(6380) == "Port 6380 is used by process 7 (server).");
}

}  // namespace latchkey::server

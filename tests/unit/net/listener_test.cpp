#include "net/listener.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "unit/catch.h"
#include "unit/net/bind_calls.h"
#include "unit/temporary_directory.h"

namespace {

// The mode that a Unix socket had when bind() had just made it.
std::optional<mode_t> mode_at_birth;
// The socket that was bound last.
int last_bound = -1;

mode_t mode_of(const char* path) {
  struct stat status {};
  return stat(path, &status) == 0 ? status.st_mode & 07777 : 0;
}

}  // namespace

std::function<bool(const sockaddr_in&)> latchkey::tests::is_port_taken;

// Takes the place of the C library's in this program, also for libuv.
extern "C" int bind(int socket, const sockaddr* address, socklen_t size) noexcept {
  using latchkey::tests::is_port_taken;
  if (address->sa_family == AF_INET && is_port_taken &&
      is_port_taken(*reinterpret_cast<const sockaddr_in*>(address))) {
    errno = EADDRINUSE;
    return -1;
  }
  const int status = static_cast<int>(syscall(SYS_bind, socket, address, size));
  if (status == 0) last_bound = socket;
  if (status == 0 && address->sa_family == AF_UNIX && address->sa_data[0] != '\0')
    mode_at_birth = mode_of(address->sa_data);
  return status;
}

namespace latchkey::tests {

namespace {

struct Opened {
  Opened(const std::string& path, unsigned permissions, int backlog = 1) {
    mode_at_birth.reset();
    auto made = net::Listener::unix_socket(
        loop, path, {.permissions = permissions, .group = {}}, backlog,
        {.accepted =
             [this](net::Connection* connection) {
               ++accepted;
               connection->close();
             },
         .cannot_accept = [this](const std::string& why) { complaints.push_back(why); },
         .limit = [this] { return limit; }});
    if (made) {
      listener = *std::move(made);
    } else {
      error = made.error();
    }
  }
  net::Loop loop;
  std::string error;
  int limit = 1000;
  int accepted = 0;
  std::vector<std::string> complaints;
  std::unique_ptr<net::Listener> listener;
};

// A client at a Unix socket.
class UnixPeer {
 public:
  explicit UnixPeer(const std::string& path) : descriptor_(socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    REQUIRE(connect(descriptor_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  }
  ~UnixPeer() { close(descriptor_); }
  UnixPeer(const UnixPeer&) = delete;
  UnixPeer& operator=(const UnixPeer&) = delete;

 private:
  int descriptor_;
};

// A client at a TCP port of this machine.
class TcpPeer {
 public:
  explicit TcpPeer(int port) : descriptor_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(connect(descriptor_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  }
  ~TcpPeer() { close(descriptor_); }
  TcpPeer(const TcpPeer&) = delete;
  TcpPeer& operator=(const TcpPeer&) = delete;

 private:
  int descriptor_;
};

class IdleHandler : public net::ConnectionHandler {
 public:
  size_t on_input(std::span<char> bytes) override { return bytes.size(); }
  size_t wanted_input() const override { return 0; }
  void on_end_of_input() override {}
  void on_disconnect() override {}
  void on_flushed() override {}
};

net::Listener::Purpose closes_each() {
  return {.accepted = [](net::Connection* connection) { connection->close(); },
          .cannot_accept = {},
          .limit = {}};
}

int option_of(int socket, int level, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  REQUIRE(getsockopt(socket, level, name, &value, &size) == 0);
  return value;
}

}  // namespace

TEST_CASE("A socket in a directory that is not there is told as such", "[net]") {
  const TemporaryDirectory directory;
  CHECK(Opened((directory.path() / "nowhere" / "socket").string(), 0).error ==
        "bind: No such file or directory");
  CHECK(Opened((directory.path() / "nowhere" / "socket").string(), 0700).error ==
        "bind: No such file or directory");
  CHECK(Opened((directory.path() / "socket").string(), 0).error.empty());
}

TEST_CASE("A loop knows at which addresses it listens", "[listener]") {
  net::Loop loop;
  auto one = net::Listener::tcp(loop, "127.0.0.1", 0, 1, closes_each());
  auto all = net::Listener::tcp(loop, "*", 0, 1, closes_each());
  REQUIRE(one);
  REQUIRE(all);
  const int port = (*one)->port();
  const int port_of_all = (*all)->port();
  CHECK(loop.listens_at("127.0.0.1", port));
  CHECK_FALSE(loop.listens_at("127.0.0.2", port));
  CHECK_FALSE(loop.listens_at("127.0.0.1", 1));
  CHECK(loop.listens_at("127.0.0.2", port_of_all));
  CHECK_FALSE(loop.listens_at("::1", port_of_all));
  one->reset();
  CHECK_FALSE(loop.listens_at("127.0.0.1", port));
}

TEST_CASE("A listening socket is marked, where that is permitted", "[listener]") {
  net::Loop loop;
  const auto listener = net::Listener::tcp(loop, "127.0.0.1", 0, 1, closes_each());
  REQUIRE(listener);
  constexpr uint32_t kMark = 77;
  const base::Result<> marked = (*listener)->set_mark(kMark);
  uint32_t mark = 0;
  socklen_t size = sizeof(mark);
  REQUIRE(getsockopt(last_bound, SOL_SOCKET, SO_MARK, &mark, &size) == 0);
  CHECK(mark == (marked ? kMark : 0));
  if (!marked) CHECK(marked.error() == "Operation not permitted");
}

TEST_CASE("Connections have the options they start with, inherited or not", "[listener]") {
  net::Loop loop;
  IdleHandler handler;
  net::Connection* accepted = nullptr;
  int keepalive_seconds = 0;
  const auto start = [&](net::Connection* connection) {
    accepted = connection;
    connection->start(handler, keepalive_seconds);
  };
  auto listener = net::Listener::tcp(loop, "127.0.0.1", 0, 1,
                                     {.accepted = start, .cannot_accept = {}, .limit = {}});
  REQUIRE(listener);
  const auto connect = [&](int seconds) {
    keepalive_seconds = seconds;
    const TcpPeer peer((*listener)->port());
    for (accepted = nullptr; accepted == nullptr;) loop.run_once();
    const int socket = accepted->descriptor();
    CHECK(option_of(socket, IPPROTO_TCP, TCP_NODELAY) != 0);
    CHECK((option_of(socket, SOL_SOCKET, SO_KEEPALIVE) != 0) == (seconds > 0));
    if (seconds > 0) {
      CHECK(option_of(socket, IPPROTO_TCP, TCP_KEEPIDLE) == seconds);
      CHECK(option_of(socket, IPPROTO_TCP, TCP_KEEPINTVL) == std::max(seconds / 3, 1));
      CHECK(option_of(socket, IPPROTO_TCP, TCP_KEEPCNT) == 3);
    }
    accepted->close();
  };
  for (const int seconds : {0, 1, 300}) connect(seconds);
  (*listener)->prepare_connections(300);
  CHECK(option_of(last_bound, IPPROTO_TCP, TCP_KEEPIDLE) == 300);
  for (const int seconds : {0, 2, 300, 301}) connect(seconds);
}

TEST_CASE("A Unix socket is never more open than it was asked to be", "[listener]") {
  TemporaryDirectory directory;
  const std::string path = directory.path() / "socket";
  const mode_t before = umask(022);
  for (const unsigned permissions : {0600U, 0700U, 0770U, 0777U}) {
    const Opened opened(path, permissions);
    REQUIRE(opened.listener != nullptr);
    REQUIRE(mode_at_birth);
    CHECK((*mode_at_birth & ~permissions) == 0);
    CHECK(mode_of(path.c_str()) == permissions);
  }
  CHECK(umask(before) == 022);
}

TEST_CASE("Without permissions a Unix socket is as the umask has it", "[listener]") {
  TemporaryDirectory directory;
  const std::string path = directory.path() / "socket";
  const mode_t before = umask(027);
  {
    const Opened opened(path, 0);
    REQUIRE(opened.listener != nullptr);
    CHECK(mode_of(path.c_str()) == 0750);
  }
  umask(before);
}

TEST_CASE("Port 0 listens at a port that the system chooses, and says which", "[listener]") {
  net::Loop loop;
  const auto listen = [&](const std::string& address, int port) {
    return net::Listener::tcp(loop, address, port, 1, closes_each());
  };
  const auto first = listen("127.0.0.1", 0);
  REQUIRE(first);
  const int port = (*first)->port();
  CHECK(port > 0);
  const auto second = listen("127.0.0.1", 0);
  REQUIRE(second);
  CHECK((*second)->port() != port);
  const auto taken = listen("127.0.0.1", port);
  REQUIRE_FALSE(taken);
  CHECK(taken.error().code == EADDRINUSE);
}

TEST_CASE("No more connections are accepted in a turn than the limit allows", "[listener]") {
  TemporaryDirectory directory;
  const std::string path = directory.path() / "socket";
  Opened opened(path, 0700, /*backlog=*/100);
  REQUIRE(opened.listener != nullptr);
  std::vector<std::unique_ptr<UnixPeer>> peers;
  for (int i = 0; i < 10; ++i) peers.push_back(std::make_unique<UnixPeer>(path));
  opened.limit = 3;
  int turns = 0;
  while (opened.accepted < 10 && turns < 100) {
    const int before = opened.accepted;
    opened.loop.run_once();
    CHECK(opened.accepted - before <= 3);
    ++turns;
  }
  CHECK(opened.accepted == 10);
  // What comes later is accepted as before.
  opened.limit = 1000;
  for (int i = 0; i < 10; ++i) peers.push_back(std::make_unique<UnixPeer>(path));
  for (turns = 0; opened.accepted < 20 && turns < 100; ++turns) opened.loop.run_once();
  CHECK(opened.accepted == 20);
}

TEST_CASE("Without a free descriptor connections wait, and that is told once", "[listener]") {
  TemporaryDirectory directory;
  const std::string path = directory.path() / "socket";
  Opened opened(path, 0700, /*backlog=*/100);
  REQUIRE(opened.listener != nullptr);
  const UnixPeer first(path);
  const UnixPeer second(path);
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit none = before;
  none.rlim_cur = 0;
  REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
  int fired = 0;
  net::Timer timer(opened.loop, [&] { ++fired; });
  // It is tried again meanwhile, and other events are served.
  for (int i = 0; i < 3; ++i) {
    timer.start(120);
    while (fired == i) opened.loop.run_once();
  }
  REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(opened.accepted == 0);
  CHECK(opened.complaints == std::vector<std::string>{"accept: Too many open files"});
  while (opened.accepted < 2) opened.loop.run_once();
}

TEST_CASE("A listener may go while connections wait for the next turn", "[listener]") {
  TemporaryDirectory directory;
  const std::string path = directory.path() / "socket";
  Opened opened(path, 0700, /*backlog=*/100);
  REQUIRE(opened.listener != nullptr);
  const UnixPeer first(path);
  const UnixPeer second(path);
  opened.limit = 1;
  for (int turns = 0; opened.accepted < 1 && turns < 100; ++turns) opened.loop.run_once();
  opened.listener.reset();
  opened.loop.run_once();
  CHECK(opened.accepted == 1);
}

TEST_CASE("A Unix socket has no port", "[listener]") {
  TemporaryDirectory directory;
  const Opened opened(directory.path() / "socket", 0700);
  REQUIRE(opened.listener != nullptr);
  CHECK(opened.listener->port() == 0);
}

TEST_CASE("A Unix socket has no longer a path than the system knows", "[listener]") {
  TemporaryDirectory directory;
  const std::string longest =
      (directory.path() / std::string(107 - directory.path().native().size() - 1, 'x')).native();
  REQUIRE(longest.size() == 107);
  CHECK(Opened(longest, 0).listener != nullptr);
  const Opened refused(longest + "x", 0);
  CHECK(refused.listener == nullptr);
  CHECK(refused.error == "unix socket path too long (108), must be under 108");
}

TEST_CASE("A Unix socket that cannot be made leaves the umask as it was", "[listener]") {
  TemporaryDirectory directory;
  const mode_t before = umask(022);
  const Opened opened(directory.path() / "missing" / "socket", 0700);
  CHECK(opened.listener == nullptr);
  CHECK_FALSE(opened.error.empty());
  CHECK(umask(before) == 022);
}

}  // namespace latchkey::tests

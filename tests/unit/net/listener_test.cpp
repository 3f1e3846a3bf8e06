#include "net/listener.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <optional>
#include <string>

#include "unit/catch.h"
#include "unit/net/bind_calls.h"
#include "unit/temporary_directory.h"

namespace {

// The mode that a Unix socket had when bind() had just made it.
std::optional<mode_t> mode_at_birth;

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
  if (status == 0 && address->sa_family == AF_UNIX && address->sa_data[0] != '\0')
    mode_at_birth = mode_of(address->sa_data);
  return status;
}

namespace latchkey::tests {

namespace {

struct Opened {
  Opened(const std::string& path, unsigned permissions) {
    mode_at_birth.reset();
    listener = net::Listener::unix_socket(
        loop, path, {.permissions = permissions, .group = {}}, 1,
        [](net::Connection* connection) { connection->close(); }, &error);
  }
  net::Loop loop;
  std::string error;
  std::unique_ptr<net::Listener> listener;
};

}  // namespace

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
  std::string error;
  int code = 0;
  const auto listen = [&](const std::string& address, int port) {
    return net::Listener::tcp(
        loop, address, port, 1, [](net::Connection* connection) { connection->close(); }, &error,
        &code);
  };
  const auto first = listen("127.0.0.1", 0);
  REQUIRE(first != nullptr);
  CHECK(first->port() > 0);
  const auto second = listen("127.0.0.1", 0);
  REQUIRE(second != nullptr);
  CHECK(second->port() != first->port());
  CHECK(listen("127.0.0.1", first->port()) == nullptr);
  CHECK(code == EADDRINUSE);
}

TEST_CASE("A Unix socket has no port", "[listener]") {
  TemporaryDirectory directory;
  const Opened opened(directory.path() / "socket", 0700);
  REQUIRE(opened.listener != nullptr);
  CHECK(opened.listener->port() == 0);
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

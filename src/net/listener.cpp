#include "net/listener.h"

#include <arpa/inet.h>
#include <grp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "net/socket_options.h"

namespace latchkey::net {

namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

// Resolves a name or a literal address. The error is an errno.
base::Result<AddressList, int> resolve(const std::string& name, int port) {
  const bool any_v4 = name == "*";
  const bool any_v6 = name == "::*";
  addrinfo hints{};
  hints.ai_family = any_v4 ? AF_INET : name.find(':') != std::string::npos ? AF_INET6 : AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int status = getaddrinfo(any_v4 || any_v6 ? nullptr : name.c_str(),
                                 std::to_string(port).c_str(), &hints, &found);
  // An unknown name counts as an unavailable address.
  if (status != 0) return base::fail_with(status == EAI_SYSTEM ? errno : EADDRNOTAVAIL);
  return AddressList(found, freeaddrinfo);
}

// Both return an errno, or 0.
int bind_tcp(int socket, const addrinfo& address) {
  const int on = 1;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (address.ai_family == AF_INET6 &&
      setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) != 0)
    return errno;
  return bind(socket, address.ai_addr, address.ai_addrlen) == 0 ? 0 : errno;
}

int bind_unix(int socket, const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  return bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 ? 0
                                                                                         : errno;
}

// Binds so that the socket is never more accessible than `permissions`, not even between its
// creation and chmod(), because a client that connected then would stay connected. The umask
// applies to the whole process: files that other threads create meanwhile are at worst less
// accessible.
int bind_with_mode(int socket, const std::string& path, unsigned permissions) {
  if (permissions == 0) return bind_unix(socket, path);
  constexpr mode_t kEverything = 0777;
  const auto mode = static_cast<mode_t>(permissions);
  const mode_t before = umask(kEverything & ~mode);
  const int code = bind_unix(socket, path);
  umask(before);
  if (code != 0) return code;
  // For the bits that the umask cannot set: those beyond owner, group and others.
  return chmod(path.c_str(), mode) == 0 ? 0 : errno;
}

// What chown() takes for "as it is".
constexpr auto kNoUser = static_cast<uid_t>(-1);
constexpr auto kNoGroup = static_cast<gid_t>(-1);

bool find_group(const std::string& name, gid_t* group) {
  std::vector<char> buffer(size_t{16} * 1024);
  struct group entry {};
  struct group* found = nullptr;
  if (getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 ||
      found == nullptr)
    return false;
  *group = found->gr_gid;
  return true;
}

std::string error_of(const char* call, int code) {
  return std::string(call) + ": " + std::strerror(code);
}

constexpr int kSocketFlags = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;

// How long a listener waits that could not accept.
constexpr uint64_t kRetryMs = 100;

}  // namespace

base::Result<std::unique_ptr<Listener>, Listener::Error> Listener::tcp(Loop& loop,
                                                                       const std::string& name,
                                                                       int port, int backlog,
                                                                       const Purpose& purpose) {
  const base::Result<AddressList, int> addresses = resolve(name, port);
  if (!addresses)
    return base::fail_with(Error{error_of("bind", addresses.error()), addresses.error()});
  Error error{};
  for (const addrinfo* address = addresses->get(); address != nullptr; address = address->ai_next) {
    const int socket = ::socket(address->ai_family, kSocketFlags, 0);
    if (socket < 0) {
      const int code = errno;
      error = {error_of("socket", code), code};
      continue;
    }
    std::unique_ptr<Listener> listener(new Listener(loop, socket, Connection::Kind::kTcp, purpose));
    if (const int code = bind_tcp(socket, *address); code != 0) {
      error = {error_of("bind", code), code};
    } else if (const int refused = listener->listen(backlog); refused != 0) {
      error = {error_of("listen", refused), refused};
    } else {
      return listener;
    }
  }
  return base::fail_with(std::move(error));
}

base::Result<std::unique_ptr<Listener>> Listener::unix_socket(Loop& loop, const std::string& path,
                                                              const UnixAccess& access, int backlog,
                                                              Purpose purpose) {
  gid_t group = kNoGroup;
  if (!access.group.empty() && !find_group(access.group, &group))
    return base::fail("getgrnam error for group '" + access.group + "'");
  // bind() would take the part that has room.
  constexpr size_t kRoom = sizeof(sockaddr_un::sun_path);
  if (path.size() >= kRoom)
    return base::fail("unix socket path too long (" + std::to_string(path.size()) +
                      "), must be under " + std::to_string(kRoom));
  unlink(path.c_str());
  const int socket = ::socket(AF_UNIX, kSocketFlags, 0);
  if (socket < 0) return base::fail(error_of("socket", errno));
  std::unique_ptr<Listener> listener(
      new Listener(loop, socket, Connection::Kind::kUnix, std::move(purpose)));
  if (const int code = bind_with_mode(socket, path, access.permissions); code != 0)
    return base::fail(error_of("bind", code));
  listener->path_ = path;
  if (group != kNoGroup && chown(path.c_str(), kNoUser, group) != 0)
    return base::fail(error_of("chown", errno));
  if (const int code = listener->listen(backlog); code != 0)
    return base::fail(error_of("listen", code));
  return listener;
}

Listener::Listener(Loop& loop, int socket, Connection::Kind kind, Purpose purpose)
    : loop_(loop), socket_(socket), kind_(kind), purpose_(std::move(purpose)), retry_(loop, [this] {
        watcher_->start();
      }) {}

Listener::~Listener() {
  if (watcher_ && kind_ == Connection::Kind::kTcp) loop_.listening_ended(ip_of_socket(), port());
  watcher_.reset();
  ::close(socket_);
  if (!path_.empty()) unlink(path_.c_str());
}

int Listener::listen(int backlog) {
  if (::listen(socket_, backlog) != 0) return errno;
  watcher_.emplace(loop_, socket_, [this] { accept(); });
  watcher_->start();
  if (kind_ == Connection::Kind::kTcp) loop_.listening_began(ip_of_socket(), port());
  return 0;
}

// Accepts what has come, up to the limit: the watcher calls again in the next turn for the rest.
void Listener::accept() {
  const int most = purpose_.limit ? purpose_.limit() : std::numeric_limits<int>::max();
  for (int taken = 0; taken < most;) {
    const int socket = accept4(socket_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket < 0) {
      if (errno == EAGAIN) return;
      if (errno == EINTR || errno == ECONNABORTED) continue;
      return cannot_accept(errno);
    }
    failing_ = false;
    ++taken;
    Connection* connection = Connection::adopt(loop_, socket, kind_, keepalive_seconds_);
    if (connection != nullptr) purpose_.accepted(connection);
  }
}

// What has come would be reported in every turn.
void Listener::cannot_accept(int code) {
  watcher_->stop();
  retry_.start(kRetryMs);
  if (!std::exchange(failing_, true) && purpose_.cannot_accept)
    purpose_.cannot_accept(error_of("accept", code));
}

int Listener::port() const {
  if (kind_ != Connection::Kind::kTcp) return 0;
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return address.ss_family == AF_INET6
             ? ntohs(reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port)
             : ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

std::string Listener::ip_of_socket() const {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  char text[INET6_ADDRSTRLEN] = "";
  if (getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
  getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, text, sizeof(text), nullptr, 0,
              NI_NUMERICHOST);
  return text;
}

void Listener::prepare_connections(int keepalive_seconds) {
  if (kind_ != Connection::Kind::kTcp) return;
  set_tcp_options(socket_, keepalive_seconds);
  keepalive_seconds_ = keepalive_seconds;
}

base::Result<> Listener::set_mark(uint32_t mark) {
  if (setsockopt(socket_, SOL_SOCKET, SO_MARK, &mark, sizeof(mark)) != 0)
    return base::fail(std::strerror(errno));
  return {};
}

}  // namespace latchkey::net

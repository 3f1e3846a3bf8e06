#include "net/listener.h"

#include <arpa/inet.h>
#include <grp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <uv.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "net/delete_when_closed.h"
#include "net/socket_options.h"

namespace latchkey::net {

struct Listener::Handle : HandleOwner {
  union {
    uv_stream_t stream;
    uv_tcp_t tcp;
    uv_pipe_t pipe;
    uv_handle_t handle;
  };
  Loop& loop;
  Connection::Kind kind;
  Acceptor acceptor;
  Limit limit;
  BeforeWait turn_ends;
  std::optional<int> keepalive_seconds;  // of prepare_connections()
  int accepted = 0;                      // in this turn
  bool waiting = false;                  // a connection beyond the limit, until the turn ends

  Handle(Loop& loop_in, Connection::Kind kind_in, Acceptor acceptor_in, Limit limit_in)
      : loop(loop_in),
        kind(kind_in),
        acceptor(std::move(acceptor_in)),
        limit(std::move(limit_in)),
        turn_ends(
            loop, [this] { begin_turn(); }, BeforeWait::When::kAsked) {
    if (kind == Connection::Kind::kTcp) {
      uv_tcp_init(loop.handle(), &tcp);
    } else {
      uv_pipe_init(loop.handle(), &pipe, 0);
    }
    handle.data = this;
  }
  int listen(int backlog) {
    return uv_listen(&stream, backlog, [](uv_stream_t* server, int status) {
      auto* self = static_cast<Handle*>(server->data);
      if (status == 0) self->accept();
    });
  }
  int descriptor() const {
    uv_os_fd_t number = -1;
    uv_fileno(&handle, &number);
    return number;
  }
  // The connection that has waited counts for the turn that begins.
  void begin_turn() {
    accepted = 0;
    if (std::exchange(waiting, false)) take();
  }
  // Accepts a connection that has come, or leaves it for the next turn: until it is accepted, libuv
  // reports no further one.
  void accept() {
    if (limit) turn_ends.ask();
    waiting = limit && accepted >= limit();
    if (!waiting) take();
  }
  void take() {
    loop.begin_work();
    ++accepted;
    Connection* connection = Connection::accept(loop, &stream, kind, keepalive_seconds);
    if (connection != nullptr) acceptor(connection);
  }
};

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

// libuv says EACCES for a directory that is not there.
int bind_pipe(uv_pipe_t* pipe, const std::string& path) {
  const int status = uv_pipe_bind(pipe, path.c_str());
  if (status != UV_EACCES) return status;
  const std::string directory = path.substr(0, path.rfind('/') + 1);
  return !directory.empty() && access(directory.c_str(), F_OK) != 0 && errno == ENOENT ? UV_ENOENT
                                                                                       : status;
}

// Binds so that the socket is never more accessible than `permissions`, not even between its
// creation and chmod(), because a client that connected then would stay connected. The umask
// applies to the whole process: files that other threads create meanwhile are at worst less
// accessible.
int bind_with_mode(uv_pipe_t* pipe, const std::string& path, unsigned permissions) {
  if (permissions == 0) return bind_pipe(pipe, path);
  constexpr mode_t kEverything = 0777;
  const auto mode = static_cast<mode_t>(permissions);
  const mode_t before = umask(kEverything & ~mode);
  const int status = bind_pipe(pipe, path);
  umask(before);
  if (status != 0) return status;
  // For the bits that the umask cannot set: those beyond owner, group and others.
  return chmod(path.c_str(), mode) == 0 ? 0 : -errno;
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

std::string bind_error(int code) {
  return std::string("bind: ") + std::strerror(code);
}

}  // namespace

base::Result<std::unique_ptr<Listener>, Listener::Error> Listener::tcp(Loop& loop,
                                                                       const std::string& name,
                                                                       int port, int backlog,
                                                                       const Acceptor& acceptor,
                                                                       const Limit& limit) {
  const base::Result<AddressList, int> addresses = resolve(name, port);
  if (!addresses) return base::fail_with(Error{bind_error(addresses.error()), addresses.error()});
  int code = 0;
  for (const addrinfo* address = addresses->get(); address != nullptr; address = address->ai_next) {
    std::unique_ptr<Listener> listener(
        new Listener(new Handle(loop, Connection::Kind::kTcp, acceptor, limit)));
    const unsigned flags = address->ai_family == AF_INET6 ? unsigned{UV_TCP_IPV6ONLY} : 0u;
    int status = uv_tcp_bind(&listener->handle_->tcp, address->ai_addr, flags);
    if (status == 0) status = listener->handle_->listen(backlog);
    if (status == 0) return listener;
    code = -status;
  }
  return base::fail_with(Error{bind_error(code), code});
}

base::Result<std::unique_ptr<Listener>> Listener::unix_socket(Loop& loop, const std::string& path,
                                                              const UnixAccess& access, int backlog,
                                                              Acceptor acceptor, Limit limit) {
  gid_t group = kNoGroup;
  if (!access.group.empty() && !find_group(access.group, &group))
    return base::fail("getgrnam error for group '" + access.group + "'");
  // libuv would listen at the part that has room.
  constexpr size_t kRoom = sizeof(sockaddr_un::sun_path);
  if (path.size() >= kRoom)
    return base::fail("unix socket path too long (" + std::to_string(path.size()) +
                      "), must be under " + std::to_string(kRoom));
  unlink(path.c_str());
  std::unique_ptr<Listener> listener(new Listener(
      new Handle(loop, Connection::Kind::kUnix, std::move(acceptor), std::move(limit))));
  int status = bind_with_mode(&listener->handle_->pipe, path, access.permissions);
  if (status == 0 && group != kNoGroup && chown(path.c_str(), kNoUser, group) != 0) status = -errno;
  if (status == 0) status = listener->handle_->listen(backlog);
  if (status != 0) return base::fail(bind_error(-status));
  return listener;
}

int Listener::port() const {
  if (handle_->kind != Connection::Kind::kTcp) return 0;
  sockaddr_storage address{};
  int size = sizeof(address);
  if (uv_tcp_getsockname(&handle_->tcp, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    return 0;
  return address.ss_family == AF_INET6
             ? ntohs(reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port)
             : ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

void Listener::prepare_connections(int keepalive_seconds) {
  if (handle_->kind != Connection::Kind::kTcp) return;
  set_tcp_options(handle_->descriptor(), keepalive_seconds);
  handle_->keepalive_seconds = keepalive_seconds;
}

base::Result<> Listener::set_mark(uint32_t mark) {
  if (setsockopt(handle_->descriptor(), SOL_SOCKET, SO_MARK, &mark, sizeof(mark)) != 0)
    return base::fail(std::strerror(errno));
  return {};
}

Listener::~Listener() {
  handle_->waiting = false;
  delete_when_closed(handle_, &handle_->handle);
}

}  // namespace latchkey::net

#include "net/listener.h"

#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace latchkey::net {

struct Listener::Handle {
  union {
    uv_stream_t stream;
    uv_tcp_t tcp;
    uv_pipe_t pipe;
    uv_handle_t handle;
  };
  Loop& loop;
  Connection::Kind kind;
  Acceptor acceptor;

  Handle(Loop& loop_in, Connection::Kind kind_in, Acceptor acceptor_in)
      : loop(loop_in), kind(kind_in), acceptor(std::move(acceptor_in)) {
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
      if (status != 0) return;
      self->loop.begin_work();
      Connection* connection = Connection::accept(self->loop, server, self->kind);
      if (connection != nullptr) self->acceptor(connection);
    });
  }
};

std::unique_ptr<Listener> Listener::tcp(Loop& loop, const std::string& address, int port, int backlog,
                                        Acceptor acceptor, std::string* error, int* code) {
  sockaddr_storage storage{};
  auto* any = reinterpret_cast<sockaddr*>(&storage);
  unsigned flags = 0;
  int status;
  if (address.find(':') != std::string::npos) {
    status = uv_ip6_addr(address.c_str(), port, reinterpret_cast<sockaddr_in6*>(&storage));
    flags = UV_TCP_IPV6ONLY;
  } else {
    status = uv_ip4_addr(address == "*" ? "0.0.0.0" : address.c_str(), port, reinterpret_cast<sockaddr_in*>(&storage));
  }
  std::unique_ptr<Listener> listener(new Listener(new Handle(loop, Connection::Kind::kTcp, std::move(acceptor))));
  if (status == 0) status = uv_tcp_bind(&listener->handle_->tcp, any, flags);
  if (status == 0) status = listener->handle_->listen(backlog);
  if (status == 0) return listener;
  *error = std::strerror(-status);
  *code = -status;
  return nullptr;
}

std::unique_ptr<Listener> Listener::unix_socket(Loop& loop, const std::string& path, unsigned permissions, int backlog,
                                                Acceptor acceptor, std::string* error) {
  unlink(path.c_str());
  std::unique_ptr<Listener> listener(new Listener(new Handle(loop, Connection::Kind::kUnix, std::move(acceptor))));
  int status = uv_pipe_bind(&listener->handle_->pipe, path.c_str());
  if (status == 0) status = listener->handle_->listen(backlog);
  if (status != 0) {
    *error = std::strerror(-status);
    return nullptr;
  }
  if (permissions != 0) chmod(path.c_str(), static_cast<mode_t>(permissions));
  return listener;
}

Listener::~Listener() {
  uv_close(&handle_->handle, [](uv_handle_t* handle) { delete static_cast<Handle*>(handle->data); });
}

}  // namespace latchkey::net

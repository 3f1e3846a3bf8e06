#include "net/dialer.h"

#include <netdb.h>
#include <sys/socket.h>
#include <uv.h>

#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "net/connection.h"

namespace latchkey::net {

struct Dialer::Attempt final : ConnectionHandler {
  Loop& loop;
  Target target;
  Done done;  // empty: cancelled
  uv_getaddrinfo_t lookup{};
  std::optional<Timer> failure;  // of a lookup that could not be started
  uv_connect_t connecting{};
  addrinfo* found = nullptr;
  const addrinfo* next = nullptr;
  Connection* connection = nullptr;
  std::string error;
  bool in_handshake = false;

  Attempt(Loop& on, Target to) : loop(on), target(std::move(to)) {}
  ~Attempt() override {
    if (found != nullptr) uv_freeaddrinfo(found);
  }
  // ConnectionHandler, during a layer's handshake. Input stays for the connection's next handler.
  size_t on_input(std::span<char>) override { return 0; }
  size_t wanted_input() const override { return 0; }
  void on_end_of_input() override { on_handshake_failed("the connection was closed"); }
  void on_disconnect() override { on_handshake_failed("the connection has failed"); }
  void on_flushed() override {}
  void on_secured() override { finish(std::exchange(connection, nullptr)); }
  void on_handshake_failed(const std::string& reason) override;

  void begin();
  void connected();
  void try_next();
  void finish(Connection* made);
  // Starts to connect. The error if that failed, or 0.
  int try_address(const addrinfo& address);
  int bind_source(int family);
};

namespace {

std::string text_of(int status) {
  return strerror(-status);
}

}  // namespace

void Dialer::Attempt::begin() {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  lookup.data = this;
  connecting.data = this;
  const int status = uv_getaddrinfo(
      loop.handle(), &lookup,
      [](uv_getaddrinfo_t* request, int result, addrinfo* addresses) {
        auto* self = static_cast<Attempt*>(request->data);
        self->loop.begin_work();
        self->found = addresses;
        self->next = addresses;
        if (result != 0) self->error = uv_strerror(result);
        self->try_next();
      },
      target.host.c_str(), std::to_string(target.port).c_str(), &hints);
  if (status == 0) return;
  // A lookup that cannot be started fails in a turn of its own, like all other failures.
  error = uv_strerror(status);
  failure.emplace(loop, [this] { try_next(); });
  failure->start(0);
}

void Dialer::Attempt::connected() {
  if (!done || !target.layer) return finish(std::exchange(connection, nullptr));
  auto layer = target.layer(target.host);
  if (layer == nullptr) return on_handshake_failed("TLS was switched off");
  connection->secure(std::move(layer));
  in_handshake = true;
  connection->start(*this, /*keepalive_seconds=*/0);
}

// Other addresses of the name are not tried: they would be the same server's.
void Dialer::Attempt::on_handshake_failed(const std::string& reason) {
  std::exchange(connection, nullptr)->close();
  error = reason;
  finish(nullptr);
}

void Dialer::Attempt::try_next() {
  while (done && next != nullptr) {
    const addrinfo& address = *std::exchange(next, next->ai_next);
    const int status = try_address(address);
    if (status == 0) return;
    error = text_of(status);
  }
  finish(nullptr);
}

int Dialer::Attempt::bind_source(int family) {
  if (target.source.empty()) return 0;
  addrinfo hints{};
  hints.ai_family = family;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST;
  addrinfo* own = nullptr;
  if (getaddrinfo(target.source.c_str(), nullptr, &hints, &own) != 0) return UV_EADDRNOTAVAIL;
  const int status = connection->bind(own->ai_addr);
  freeaddrinfo(own);
  return status;
}

int Dialer::Attempt::try_address(const addrinfo& address) {
  connection = Connection::make(loop);
  int status = bind_source(address.ai_family);
  if (status == 0) {
    status =
        connection->connect(&connecting, address.ai_addr, [](uv_connect_s* request, int result) {
          auto* self = static_cast<Attempt*>(request->data);
          self->loop.begin_work();
          if (result == 0 && self->connection != nullptr) return self->connected();
          if (self->connection != nullptr) std::exchange(self->connection, nullptr)->close();
          self->error = text_of(result);
          self->try_next();
        });
  }
  if (status != 0) std::exchange(connection, nullptr)->close();
  return status;
}

void Dialer::Attempt::finish(Connection* made) {
  if (done) {
    std::exchange(done, nullptr)(made, error);
  } else if (made != nullptr) {
    made->close();
  }
  delete this;
}

Dialer::Dialer(Loop& loop, Target target, Done done)
    : attempt_(new Attempt(loop, std::move(target))) {
  attempt_->done = [this, done = std::move(done)](Connection* connection,
                                                  const std::string& error) {
    attempt_ = nullptr;
    done(connection, error);
  };
  attempt_->begin();
}

void Dialer::give_up() {
  if (attempt_ == nullptr) return;
  attempt_->done = nullptr;
  // The callbacks still come, with an error, and free the attempt.
  Attempt& attempt = *std::exchange(attempt_, nullptr);
  if (attempt.connection != nullptr) {
    std::exchange(attempt.connection, nullptr)->close();
    // A handshake waits for no callback of libuv's.
    if (attempt.in_handshake) delete &attempt;
  } else {
    uv_cancel(reinterpret_cast<uv_req_t*>(&attempt.lookup));
  }
}

}  // namespace latchkey::net

// Another node of a cluster, which the test plays, as this node sees it where that one has
// connected: as a client.
//
//     CallingNode caller(loop, server);
//     CHECK(caller.ask({"CLUSTER", "SYNCSLOTS", "ESTABLISH", ...}) == kOk);
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "net/loop.h"
#include "server/client/authentication.h"
#include "server/client/client.h"
#include "server/server.h"
#include "unit/catch.h"
#include "unit/net/wire.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

class CallingNode {
 public:
  CallingNode(net::Loop& loop, server::Server& server)
      : loop_(loop),
        server_(server),
        wire_(loop),
        client_(server_.clients().add(wire_.connection)),
        id_(client_.id) {
    server::assume_default_user(client_);
    wire_.connection->start(client_, 0);
  }
  ~CallingNode() {
    if (!is_over()) client_.close();
  }
  CallingNode(const CallingNode&) = delete;
  CallingNode& operator=(const CallingNode&) = delete;

  // Proves that it is a node of the cluster with that secret.
  void authenticate(std::string_view secret) {
    REQUIRE(ask({"AUTH", "internal connection", secret}) == kOk);
  }
  std::string ask(std::initializer_list<std::string_view> words) {
    says(bulks(words));
    return received();
  }
  // Reads nothing.
  void says(std::string_view bytes) {
    wire_.peer.send(bytes);
    turn(loop_);
  }
  // One byte after the other.
  void says_slowly(std::string_view bytes) {
    for (size_t i = 0; i < bytes.size(); ++i) says(bytes.substr(i, 1));
  }
  // As much as the system takes, without a turn of the loop.
  void says_some(std::string_view* bytes) { bytes->remove_prefix(wire_.peer.send_some(*bytes)); }
  std::string received() {
    turn(loop_);
    return wire_.peer.receive();
  }
  void hangs_up() {
    wire_.peer.close();
    turn(loop_);
  }
  bool is_over() const { return server_.clients().find(id_) == nullptr; }
  server::Client& client() { return client_; }

 private:
  net::Loop& loop_;
  server::Server& server_;
  Wire wire_;
  server::Client& client_;
  uint64_t id_;
};

}  // namespace latchkey::tests

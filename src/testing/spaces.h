// Spaces: whole servers of their own within the process, each known by a name. What happens in one
// is not seen in any other.
//
// A client comes into a space by its user name, "space-<name>", in AUTH or HELLO; by SPACE ENTER;
// or through a port that belongs to the space (SPACE LISTEN). A space is made when its first client
// comes, and goes when it has had none for space-linger-ms, unless it is to be kept.
//
// Clients are handed over between two turns of the loop: the request that names the space has not
// run then, and runs there. A space is destroyed between two turns, too.
//
// A space whose name ends in "~redis-7.0" or the like emulates that release, and one in "~latchkey"
// none; others do as the first server does.
//
// One registry for all servers of the process; the first server, which is no space, outlives it.
// Costs of a space: those of a WholeServer. One without clients neither ticks nor is it looked at
// more than once a tick of the first server.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/loop.h"
#include "server/command/space_gate.h"
#include "server/config/config.h"
#include "server/emulation/edition.h"

namespace latchkey::server {
class Server;
}

namespace latchkey::testing {

// A server that a space owns.
class SpaceServer {
 public:
  virtual ~SpaceServer() = default;
  virtual server::Server& server() = 0;
};

class Spaces final : public server::SpaceGate {
 public:
  static constexpr size_t kMaxNameBytes = 128;
  static constexpr std::string_view kUserPrefix = "space-";
  // Stands for the first server where a space is named.
  static constexpr std::string_view kMain = "main";

  struct Space {
    std::string name;
    bool keep = false;
    bool ends = false;           // destroyed soon; takes no clients
    bool sleeps = true;          // does not tick
    int64_t made_us = 0;         // monotonic time
    int64_t empty_since_ms = 0;  // the machine's time; of one without clients
    int port = 0;                // at which it listens; 0: at none
    std::string socket;          // the unix socket at which it listens; empty: at none
    std::unique_ptr<SpaceServer> host;

    server::Server& server() const { return host->server(); }
    // Whether it is dropped by request only, and not when it has had no clients for a while.
    bool stays() const { return keep || port != 0 || !socket.empty(); }
  };

  // Makes the server of a space, with that edition.
  using Factory = std::function<base::Result<std::unique_ptr<SpaceServer>, server::ConfigError>(
      const server::Edition& edition)>;

  // REQUIRES: `main` has a loop.
  Spaces(server::Server& main, Factory factory);
  ~Spaces() override;
  Spaces(const Spaces&) = delete;
  Spaces& operator=(const Spaces&) = delete;

  // The error of a name that no space can have; empty: the name is valid.
  static std::string_view name_error(std::string_view name);
  // The edition of a space of that name; `usual`: the edition of the first server. REQUIRES: the
  // name is valid.
  static server::Edition edition_of(std::string_view name, const server::Edition& usual);

  // The space of that name; null: there is none.
  Space* find(std::string_view name);
  // Makes it, with a copy of what `from` holds unless that is null (testing/space_copy.h). The
  // error is the text after "ERR ". REQUIRES: there is none of that name.
  base::Result<Space*> create(std::string_view name, bool keep, server::Server* from);
  // Whether clients of that server may copy the first one: those of a space when its default user
  // has the passwords of the first server's, if that has any.
  bool may_copy_main(server::Server& asked) const;
  // Whether the first server's default user may run that subcommand of SPACE: a client that enters
  // a space by name has not authenticated as another user.
  bool default_user_may(std::string_view subcommand) const;
  // A name that no space has.
  std::string unused_name();
  // Listens for its clients at the addresses of `bind`; port 0: at one that the system chooses. The
  // error is the text after "ERR ". REQUIRES: it listens at none.
  base::Result<> listen(Space& space, int port);
  // The same at a unix socket, with the permissions that unixsocketperm says.
  base::Result<> listen(Space& space, const std::string& socket);
  // Closes its clients when they have their replies, then destroys it.
  void drop(Space& space);

  // The space whose server this is; null: it is the first server. O(log spaces).
  Space* space_of(server::Server& server);
  const std::map<std::string, std::unique_ptr<Space>, std::less<>>& all() const { return spaces_; }
  server::Server& main() { return main_; }

  // server::SpaceGate
  Answer ask(server::Client& client, const server::Command& command,
             server::Arguments args) override;

 private:
  struct Move {
    server::Server* from;
    uint64_t client_id;
    std::string name;  // of the space; kMain
  };

  // The space that the request of a client asks for; empty: none.
  std::string requested_space(server::Client& client, const server::Command& command,
                              server::Arguments args);
  bool may_enter(server::Client& client, std::string_view password);
  // Gives the default user of a new space the passwords of the first server's.
  void copy_passwords(server::Server& server);
  // What waits for the turn to end: clients that move, spaces that end.
  void work();
  void make(const Move& move);
  void drop_idle_spaces();
  void wake(Space& space);
  void let_sleep(Space& space);
  void destroy(Space& space);
  // Makes the spaces a layer and the gate of a server; and ends that.
  void attach(server::Server& server);
  void detach(server::Server& server);
  // The server of the space of that name, which is made if there is none; kMain: the first server.
  base::Result<server::Server*> server_named(std::string_view name);
  // Copies what `from` holds. A space that this fails for is detached.
  base::Result<> fill(Space& space, server::Server& from);

  server::Server& main_;
  Factory factory_;
  std::map<std::string, std::unique_ptr<Space>, std::less<>> spaces_;
  std::vector<Move> moves_;
  net::Timer timer_;
  uint64_t last_number_ = 0;
};

}  // namespace latchkey::testing

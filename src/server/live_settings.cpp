#include "server/live_settings.h"

#include <string>

#include "server/memory.h"
#include "server/process.h"
#include "server/server.h"

namespace latchkey::server {

namespace {

// Settings of what this server does not have. They can be switched off, which they are, but not on.
void refuse_what_is_missing(Server& server) {
  Config& config = server.config();
  config.on_change({"appendonly"}, [&server](std::string* error) {
    if (!server.settings().appendonly) return true;
    server.log().warning("This server has no append only file: appendonly stays off.");
    *error = "Unable to turn on AOF. Check server logs.";
    return false;
  });
  config.on_change({"tls-port"}, [&server](std::string* error) {
    if (server.settings().tls_port == 0) return true;
    server.log().warning("This server has no TLS: tls-port stays 0.");
    *error = "Unable to update TLS configuration. Check server logs.";
    return false;
  });
  config.on_change({"activedefrag"}, [&server](std::string* error) {
    if (!server.settings().activedefrag) return true;
    *error =
        "Active defragmentation cannot be enabled: it requires a Redis server compiled with a "
        "modified Jemalloc like "
        "the one shipped by default with the Redis source distribution";
    return false;
  });
}

}  // namespace

void register_live_settings(Server& server) {
  Config& config = server.config();
  config.on_change({"loglevel"}, [&server](std::string*) {
    server.log().set_level(server.settings().loglevel);
    return true;
  });
  config.on_change({"hz"}, [&server](std::string*) {
    server.start_ticking();
    return true;
  });
  config.on_change({"port"}, [&server](std::string* error) {
    if (server.relisten_tcp()) return true;
    *error = "Unable to listen on this port. Check server logs.";
    return false;
  });
  config.on_change({"bind"}, [&server](std::string* error) {
    if (server.relisten_tcp()) return true;
    *error = "Failed to bind to specified addresses.";
    return false;
  });
  if (server.loop() != nullptr) {
    // Limits belong to the process; a server without sockets has no need of them.
    config.on_change({"maxclients"}, [&server](std::string* error) {
      return grow_room_for_clients(server.settings().maxclients, error);
    });
  }
  config.on_change({"jemalloc-bg-thread"}, [&server](std::string*) {
    set_allocator_background_thread(server.settings().jemalloc_bg_thread);
    return true;
  });
  refuse_what_is_missing(server);
}

}  // namespace latchkey::server

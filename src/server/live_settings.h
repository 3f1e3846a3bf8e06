// What CONFIG SET does beyond changing a value: the hooks of directives that something must act
// upon at once.
#pragma once

namespace latchkey::server {

class Server;

// To be called once, when the server is composed.
void register_live_settings(Server& server);

}  // namespace latchkey::server

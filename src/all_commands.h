// Every command there is: the rows of all folders.
#pragma once

namespace latchkey::server {
class Server;
}

namespace latchkey {

// To be called once, when the server is composed.
void add_all_commands(server::Server& server);

}  // namespace latchkey

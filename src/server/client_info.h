// What CLIENT LIST, CLIENT INFO and the log say of a client.
#pragma once

#include <string>

namespace latchkey::server {

class Client;

// "id=3 addr=127.0.0.1:52555 laddr=... tot-cmds=7", in the reference's order of fields.
std::string describe(Client& client);

// Bytes of memory held for the client: itself, buffers in both directions, what MULTI queued.
size_t memory_usage(Client& client);

}  // namespace latchkey::server

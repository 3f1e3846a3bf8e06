// client-output-buffer-limit: a client that does not read what it asked for is not kept for ever.
#pragma once

namespace latchkey::server {

class Client;

// Closes the client if what is queued for it exceeds the hard limit of its class, or has exceeded
// the soft one for too long.
void enforce_output_limit(Client& client);

}  // namespace latchkey::server

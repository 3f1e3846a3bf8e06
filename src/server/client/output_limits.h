// client-output-buffer-limit: a client that does not read what it asked for is not kept for ever.
#pragma once

namespace latchkey::server {

class Client;

// Closes the client if what is queued for it exceeds the hard limit of its class, or has exceeded
// the soft one for too long. To be called before replies are sent, so that a single reply that is
// too large counts though the network might take it.
void enforce_output_limit(Client& client);
// Whether what is queued for it exceeds the hard limit of its class.
bool exceeds_hard_limit(const Client& client);
// For messages that are no replies. Where it is false the client gets no more of them, and is
// closed when it is its turn to be sent to (Client::flush_soon).
bool may_be_sent_more(Client& client);
// Whether the reply that is being made is in vain, since its client will be closed for the size of
// it. Commands whose replies have no natural end ask as they go, and stop.
bool reply_is_lost(const Client& client);

}  // namespace latchkey::server

// client-output-buffer-limit: closes clients that do not read their replies.
#pragma once

#include <cstddef>

namespace latchkey::server {

class Client;

// Closes the client if its pending output exceeds the hard limit of its class, or has exceeded the
// soft one for too long. To be called before replies are sent, so that a single reply that is too
// large counts even if the network would take it.
void enforce_output_limit(Client& client);
// Whether the client's pending output exceeds the hard limit of its class.
bool exceeds_hard_limit(const Client& client);
// For messages that are not replies. False: the client gets no more of them, for it is closing
// after its last reply, or Client::flush_soon will close it.
bool may_be_sent_more(Client& client);
// True when the client will be closed for the size of the reply that is being made. Commands whose
// replies can grow without limit check this and stop.
bool reply_is_lost(const Client& client);
// The same, asked only after a value large enough for it to matter: a request may name one value
// thousands of times.
inline bool reply_is_lost_after(const Client& client, size_t value_bytes) {
  constexpr size_t kLarge = 4096;
  return value_bytes >= kLarge && reply_is_lost(client);
}

}  // namespace latchkey::server

#include "server/command/transaction.h"

#include <cstring>

#include "server/client/client.h"
#include "server/command/watch.h"
#include "server/server.h"

namespace latchkey::server {

StoredRequest::StoredRequest(Command& command, std::span<const std::string_view> words)
    : command_(&command) {
  for (const std::string_view word : words) bytes_size_ += word.size();
  bytes_.reset(new char[bytes_size_]);
  words_.reserve(words.size());
  char* at = bytes_.get();
  for (const std::string_view word : words) {
    std::memcpy(at, word.data(), word.size());
    words_.emplace_back(at, word.size());
    at += word.size();
  }
}

void end_transaction(Server& server, Client& client) {
  client.transaction.reset();
  client.set(kClientInMulti, false);
  server.watches().unwatch_all(client);
}

}  // namespace latchkey::server

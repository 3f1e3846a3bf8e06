#include "server/transaction.h"

#include <cstring>

namespace latchkey::server {

StoredRequest::StoredRequest(Command& command, std::span<const std::string_view> words) : command_(&command) {
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

}  // namespace latchkey::server

// Transaction: the requests queued since MULTI.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace latchkey::server {

class Client;
struct Command;
class Server;

// A request that outlives the buffer it came in: its words in one allocation.
class StoredRequest {
 public:
  StoredRequest(Command& command, std::span<const std::string_view> words);
  Command& command() const { return *command_; }
  std::span<const std::string_view> words() const { return words_; }
  size_t memory_usage() const { return bytes_size_ + words_.capacity() * sizeof(std::string_view); }

 private:
  Command* command_;
  size_t bytes_size_ = 0;
  std::unique_ptr<char[]> bytes_;
  std::vector<std::string_view> words_;
};

struct Transaction {
  std::vector<StoredRequest> requests;
  // All flags (CommandFlag) that any queued command has.
  uint32_t command_flags = 0;
  // All that any of them has not.
  uint32_t missing_flags = 0;
  // A command was refused while queueing: EXEC will answer EXECABORT.
  bool aborted = false;
  size_t memory_usage = 0;
  // The database that the latest queued SELECT names; -1: none does.
  int database = -1;
};

// Drops what the client has queued and whatever it watches. Of no effect on a client without a
// transaction but for the watches.
void end_transaction(Server& server, Client& client);

}  // namespace latchkey::server

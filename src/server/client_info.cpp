#include "server/client_info.h"

#include <string_view>

#include "server/client.h"
#include "server/command_table.h"
#include "server/server.h"
#include "server/transaction.h"
#include "server/watch.h"

namespace latchkey::server {

namespace {

class Fields {
 public:
  Fields& add(std::string_view name, std::string_view value) {
    if (!text_.empty()) text_ += ' ';
    text_.append(name).append("=").append(value);
    return *this;
  }
  Fields& add(std::string_view name, int64_t value) { return add(name, std::string_view(std::to_string(value))); }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

std::string flag_letters(const Client& client) {
  std::string letters;
  if (client.has(kClientMonitor)) letters += 'O';
  if (client.has(kClientSubscribed)) letters += 'P';
  if (client.has(kClientInMulti)) letters += 'x';
  if (client.has(kClientBlocked)) letters += 'b';
  if (client.watched_key_changed) letters += 'd';
  if (client.has(kClientCloseAfterReply)) letters += 'c';
  if (client.has(kClientClosing)) letters += 'A';
  if (client.has(kClientUnixSocket)) letters += 'U';
  if (client.has(kClientNoEvict)) letters += 'e';
  if (client.has(kClientNoTouch)) letters += 'T';
  return letters.empty() ? "N" : letters;
}

}  // namespace

size_t memory_usage(Client& client) {
  size_t bytes = sizeof(Client) + client.out().memory_usage() + client.name.capacity();
  if (client.transaction != nullptr) bytes += client.transaction->memory_usage;
  if (net::Connection* connection = client.connection(); connection != nullptr) {
    bytes += sizeof(net::Connection) + connection->input_capacity();
  }
  return bytes;
}

std::string describe(Client& client) {
  net::Connection* connection = client.connection();
  const int64_t now_ms = client.server.now_ms();
  const size_t kept = connection != nullptr ? connection->kept_input() : 0;
  const size_t capacity = connection != nullptr ? connection->input_capacity() : 0;
  const size_t pending = client.pending_output();
  Fields fields;
  fields.add("id", static_cast<int64_t>(client.id))
      .add("addr", client.peer_address())
      .add("laddr", client.local_address())
      .add("fd", connection != nullptr ? connection->descriptor() : -1)
      .add("name", client.name)
      .add("age", (now_ms - client.created_ms) / 1000)
      .add("idle", (now_ms - client.last_interaction_ms) / 1000)
      .add("flags", flag_letters(client))
      .add("db", client.database)
      .add("sub", 0)
      .add("psub", 0)
      .add("ssub", 0)
      .add("multi", client.transaction != nullptr ? static_cast<int64_t>(client.transaction->requests.size()) : -1)
      .add("watch", static_cast<int64_t>(client.server.watches().watched_by(client)))
      .add("qbuf", static_cast<int64_t>(kept))
      .add("qbuf-free", static_cast<int64_t>(capacity - kept))
      .add("argv-mem", static_cast<int64_t>(client.parser.partial_bytes()))
      .add("multi-mem", client.transaction != nullptr ? static_cast<int64_t>(client.transaction->memory_usage) : 0)
      .add("rbs", static_cast<int64_t>(client.out().memory_usage()))
      .add("rbp", static_cast<int64_t>(client.out().size()))
      .add("obl", static_cast<int64_t>(client.out().size()))
      .add("oll", static_cast<int64_t>(pending > client.out().size() ? 1 : 0))
      .add("omem", static_cast<int64_t>(pending))
      .add("tot-mem", static_cast<int64_t>(memory_usage(client)))
      .add("events", pending > 0 ? "rw" : "r")
      .add("cmd", client.last_command != nullptr ? std::string_view(client.last_command->full_name) : "NULL")
      .add("user", client.user)
      .add("redir", -1)
      .add("resp", client.reply.protocol())
      .add("lib-name", client.library_name)
      .add("lib-ver", client.library_version)
      .add("io-thread", 0)
      .add("tot-net-in", static_cast<int64_t>(client.total_bytes_in))
      .add("tot-net-out", static_cast<int64_t>(client.total_bytes_out))
      .add("tot-cmds", static_cast<int64_t>(client.total_commands));
  return fields.take();
}

}  // namespace latchkey::server

#include "server/client/client_info.h"

#include <algorithm>
#include <string_view>

#include "base/text/text.h"
#include "base/time_units.h"
#include "server/acl/user.h"
#include "server/client/client.h"
#include "server/client/fieldsets.h"
#include "server/client/node_link.h"
#include "server/client/pubsub.h"
#include "server/client/replica_link.h"
#include "server/client/tracking.h"
#include "server/command/command_table.h"
#include "server/command/dispatcher.h"
#include "server/command/transaction.h"
#include "server/command/watch.h"
#include "server/emulation/info_fields.h"
#include "server/server.h"

namespace latchkey::server {

namespace {

// "name=value" for each field, of those that the edition has.
class Fields {
 public:
  explicit Fields(const Edition& edition) : edition_(edition) {}

  Fields& add(std::string_view name, std::string_view value) {
    if (!has_client_field(edition_, name)) return *this;
    if (!text_.empty()) text_ += ' ';
    text_.append(name).append("=").append(value);
    return *this;
  }
  Fields& add(std::string_view name, uint64_t value) {
    return add(name, std::string_view(std::to_string(value)));
  }
  std::string take() { return std::move(text_); }

 private:
  const Edition& edition_;
  std::string text_;
};

}  // namespace

std::string flag_letters(const Client& client) {
  std::string letters;
  if (client.has(kClientReplica)) letters += 'S';
  if (client.has(kClientMaster)) letters += 'M';
  if (client.has(kClientMonitor)) letters += 'O';
  if (client.has(kClientSubscribed)) letters += 'P';
  if (client.has(kClientInMulti)) letters += 'x';
  if (client.has(kClientBlocked)) letters += 'b';
  if (client.tracking != nullptr) {
    letters += 't';
    if (client.tracking->redirect_broken) letters += 'R';
    if (client.tracking->options.broadcast) letters += 'B';
  }
  if (client.watched_key_changed) letters += 'd';
  if (client.has(kClientCloseAfterReply)) letters += 'c';
  if (client.has(kClientClosing)) letters += 'A';
  if (client.has(kClientUnixSocket)) letters += 'U';
  if (client.has(kClientReadsAnywhere)) letters += 'r';
  if (client.has(kClientNoEvict)) letters += 'e';
  if (client.has(kClientNoTouch)) letters += 'T';
  if (client.has(kClientReplica) && client.replica->is_rdb_channel()) letters += 'C';
  if (client.has(kClientImportSource)) letters += 'I';
  if (client.node != nullptr && client.server.edition().is_valkey_since({9, 0})) {
    letters += client.node->exports() ? 'E' : 'i';
  } else if (client.node != nullptr) {
    letters += client.node->gets_stream() ? "gI" : "I";
  }
  return letters.empty() ? "N" : letters;
}

namespace {

// The memory of a client's output, in the reference's terms: a first buffer, and a list after it.
struct OutputFigures {
  size_t buffer_size = 0;  // memory of the first buffer
  size_t buffer_used = 0;  // bytes in it
  size_t list_length = 0;  // nodes that do not fit into it
  size_t list_memory = 0;
};

OutputFigures output_figures(Client& client) {
  const size_t memory = client.output_memory();
  OutputFigures figures;
  if (memory <= base::BufferPool::kBufferSize) {
    figures.buffer_size = memory;
    figures.buffer_used = client.pending_output();
  } else {
    const net::Connection* connection = client.connection();
    figures.list_length = connection != nullptr && connection->waits_to_write() ? 2 : 1;
    figures.list_memory = memory;
  }
  return figures;
}

}  // namespace

ClientType client_type(const Client& client) {
  if (client.has(kClientMaster)) return ClientType::kMaster;
  if (client.has(kClientReplica)) return ClientType::kReplica;
  return client.has(kClientSubscribed) ? ClientType::kPubsub : ClientType::kNormal;
}

std::optional<ClientType> find_client_type(std::string_view name) {
  if (base::equal_ignoring_case(name, "normal")) return ClientType::kNormal;
  if (base::equal_ignoring_case(name, "pubsub")) return ClientType::kPubsub;
  if (base::equal_ignoring_case(name, "replica") || base::equal_ignoring_case(name, "slave"))
    return ClientType::kReplica;
  if (base::equal_ignoring_case(name, "master") || base::equal_ignoring_case(name, "primary"))
    return ClientType::kMaster;
  return std::nullopt;
}

bool is_one_printable_word(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char byte) { return byte >= '!' && byte <= '~'; });
}

bool check_client_name(CommandContext& ctx, std::string_view name) {
  if (is_one_printable_word(name)) return true;
  return ctx.refuse("ERR Client names cannot contain spaces, newlines or special characters.");
}

namespace {

// Without output.
size_t memory_beside_output(Client& client) {
  size_t bytes = sizeof(Client) + client.name.capacity();
  if (client.library != nullptr) {
    bytes += sizeof(ClientLibrary) + client.library->name.capacity() +
             client.library->version.capacity();
  }
  if (client.transaction != nullptr) bytes += client.transaction->memory_usage;
  if (client.fieldsets != nullptr) bytes += client.fieldsets->memory_usage();
  bytes += client.server.watches().memory_of(client) + PubSub::memory_of(client) +
           Tracking::memory_of(client);
  const net::Connection* connection = client.connection();
  return connection == nullptr ? bytes
                               : bytes + connection->own_memory() + connection->input_memory();
}

}  // namespace

size_t memory_usage(Client& client) {
  return memory_beside_output(client) + client.output_memory() +
         client.server.dispatcher().held_push_bytes(client);
}

size_t own_memory_usage(Client& client) {
  return memory_beside_output(client) + client.own_output_memory();
}

namespace {

std::string describe(Client& client, bool hides_names) {
  const auto name_or_not = [hides_names](std::string_view name) {
    return hides_names ? kRedacted : name;
  };
  const net::Connection* connection = client.connection();
  const int64_t now_ms = client.server.machine_ms();
  // Valkey does not count what is in the buffer that all clients share.
  const bool has_input = connection != nullptr &&
                         (!client.server.edition().is_valkey() || connection->input_memory() > 0);
  const size_t input = has_input ? connection->input_size() : 0;
  const size_t input_capacity = has_input ? connection->input_capacity() : 0;
  const OutputFigures output = output_figures(client);
  const bool waits_to_write = connection != nullptr && connection->waits_to_write();
  Fields fields(client.server.edition());
  fields.add("id", client.id)
      .add("addr", client.peer_address())
      .add("laddr", client.local_address())
      .add("fd", connection != nullptr ? std::to_string(connection->descriptor()) : "-1")
      .add("name", name_or_not(client.name))
      .add("age", static_cast<uint64_t>((now_ms - client.created_ms) / base::kMsPerSecond))
      .add("idle",
           static_cast<uint64_t>((now_ms - client.last_interaction_ms) / base::kMsPerSecond))
      .add("flags", flag_letters(client))
      .add("capa", client.has(kClientRedirects) ? "r" : "")
      .add("db", static_cast<uint64_t>(client.database))
      .add("sub", PubSub::count(client, TopicKind::kChannel))
      .add("psub", PubSub::count(client, TopicKind::kPattern))
      .add("ssub", PubSub::count(client, TopicKind::kShardChannel))
      .add("multi", client.transaction != nullptr
                        ? std::to_string(client.transaction->requests.size())
                        : "-1")
      .add("watch", client.server.watches().watched_by(client))
      .add("qbuf", has_input ? input - client.parser.understood_bytes() : 0)
      .add("qbuf-free", input_capacity - input)
      .add("argv-mem", client.parser.partial_bytes())
      .add("multi-mem", client.transaction != nullptr ? client.transaction->memory_usage : 0)
      .add("rbs", output.buffer_size)
      .add("rbp", output.buffer_used)
      .add("obl", output.buffer_used)
      .add("oll", output.list_length)
      .add("omem", output.list_memory)
      .add("tot-mem", memory_usage(client))
      .add("events", waits_to_write ? "rw" : "r")
      .add("cmd", client.last_command != nullptr ? std::string_view(client.last_command->full_name)
                                                 : "NULL")
      .add("user", name_or_not(client.user != nullptr ? std::string_view(client.user->name)
                                                      : "(superuser)"))
      .add("redir",
           client.tracking != nullptr ? std::to_string(client.tracking->options.redirect) : "-1")
      .add("resp", static_cast<uint64_t>(client.reply.protocol()))
      .add("lib-name", client.library != nullptr ? client.library->name : std::string())
      .add("lib-ver", client.library != nullptr ? client.library->version : std::string())
      .add("io-thread", static_cast<uint64_t>(connection != nullptr ? connection->io_thread() : 0))
      .add("tot-net-in", connection != nullptr ? connection->bytes_received() : 0)
      .add("tot-net-out", connection != nullptr ? connection->bytes_sent() : 0)
      .add("tot-cmds", client.total_commands);
  return fields.take();
}

}  // namespace

std::string describe(Client& client) {
  return describe(client, false);
}

std::string describe_for_log(Client& client) {
  return describe(client, client.server.settings().hide_user_data_from_log);
}

}  // namespace latchkey::server

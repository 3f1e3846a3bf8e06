// Selects clients for CLIENT LIST and CLIENT KILL: all given options must match.
//
//     ID id [id ...] | TYPE type | USER name | ADDR address | LADDR address | MAXAGE seconds |
//     SKIPME yes|no
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "server/client/client.h"
#include "server/client/client_info.h"
#include "server/client/client_registry.h"
#include "server/command/command_context.h"
#include "server/server.h"

namespace latchkey::commands {

class ClientFilter {
 public:
  // CLIENT LIST and CLIENT KILL differ in the errors for invalid client ids, and in whether they
  // include the calling client when SKIPME is not given.
  enum class Purpose : uint8_t { kList, kKill };
  explicit ClientFilter(Purpose purpose) : purpose_(purpose), skip_me_(purpose == Purpose::kKill) {}

  // Reads the options from the context's second argument on. False when an error has been sent.
  bool read(server::CommandContext& ctx);

  bool matches(server::Client& client, const server::Client& me) const;

  // Calls fn(Client&), which may close the client, for each client that matches: in the order of
  // the ids if ID is given, else oldest first.
  template <typename Fn>
  void for_each(server::CommandContext& ctx, Fn&& fn) const {
    server::ClientRegistry& clients = ctx.server.clients();
    const auto visit = [&](server::Client& client) {
      if (matches(client, ctx.client)) fn(client);
    };
    if (!ids_) return clients.for_each(visit);
    for (const int64_t id : *ids_) {
      server::Client* client = id > 0 ? clients.find(static_cast<uint64_t>(id)) : nullptr;
      if (client != nullptr) visit(*client);
    }
  }

 private:
  bool read_ids(server::CommandContext& ctx, server::ArgReader& options);
  bool read_type(server::CommandContext& ctx, std::string_view name);
  bool read_user(server::CommandContext& ctx, std::string_view name);
  bool read_age(server::CommandContext& ctx, std::string_view text);

  Purpose purpose_;
  bool skip_me_;
  std::optional<std::vector<int64_t>> ids_;
  std::optional<server::ClientType> type_;
  std::optional<std::string_view> user_;
  std::optional<std::string_view> address_;
  std::optional<std::string_view> local_address_;
  int64_t least_age_s_ = 0;
};

}  // namespace latchkey::commands

// Selects clients for CLIENT LIST and CLIENT KILL: all given options must match.
//
//     ID id [id ...] | TYPE type | USER name | ADDR address | LADDR address | MAXAGE seconds |
//     SKIPME yes|no
//
// and Valkey's: FLAGS letters | NAME name | IDLE seconds | LIB-NAME name | LIB-VER version |
// DB number | CAPA letters | IP address. NOT- before the name turns all but MAXAGE, IDLE and SKIPME
// round; one that emulates an older release has none of these, and as Redis fewer (read()). Of an
// option that is given twice the last counts; ids add up.
#pragma once

#include <cstdint>
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
    const std::vector<int64_t>* ids = wanted_ids();
    if (ids == nullptr) return clients.for_each(visit);
    for (const int64_t id : *ids) {
      server::Client* client = id > 0 ? clients.find(static_cast<uint64_t>(id)) : nullptr;
      if (client != nullptr) visit(*client);
    }
  }

 private:
  struct Kind;
  static const Kind kKinds[];

  struct Condition {
    const Kind* kind = nullptr;
    bool negated = false;
    std::string_view text;
    int64_t number = 0;
    server::ClientType type{};
    std::vector<int64_t> ids;
  };
  // One option. `holds` asks nothing of `negated`.
  struct Kind {
    std::string_view name;
    bool can_be_negated;
    bool is_new;  // of Valkey 9.0, as is every negation
    // Checks the text of the condition, and reads what it means; false when an error has been sent.
    bool (*read)(server::CommandContext& ctx, Condition& condition);
    bool (*holds)(const Condition& condition, server::Client& client);
  };

  // The option that a word names, without the NOT- before it. Null when it names none.
  static const Kind* find_kind(const server::Edition& edition, std::string_view word,
                               bool* negated);
  Condition& condition_of(const Kind& kind, bool negated);
  bool read_ids(server::CommandContext& ctx, server::ArgReader& options, Condition& condition);
  const std::vector<int64_t>* wanted_ids() const;

  Purpose purpose_;
  bool skip_me_;
  std::vector<Condition> conditions_;
};

}  // namespace latchkey::commands

#include "commands/server/client_filter.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "base/number.h"
#include "server/acl/access_control.h"

namespace latchkey::commands {

using namespace server;

namespace {

bool is_option(std::string_view word) {
  constexpr std::string_view kOptions[] = {"ID",    "TYPE",   "USER",  "ADDR",
                                           "LADDR", "MAXAGE", "SKIPME"};
  return std::any_of(std::begin(kOptions), std::end(kOptions),
                     [&](std::string_view option) { return is_word(word, option); });
}

}  // namespace

bool ClientFilter::read(CommandContext& ctx) {
  for (ArgReader options(ctx.args, 2); options.more();) {
    std::string_view value;
    bool right = true;
    if (options.left() >= 2 && options.word("ID")) {
      right = read_ids(ctx, options);
    } else if (options.word("TYPE", &value)) {
      right = read_type(ctx, value);
    } else if (options.word("USER", &value)) {
      right = read_user(ctx, value);
    } else if (options.word("ADDR", &value)) {
      address_ = value;
    } else if (options.word("LADDR", &value)) {
      local_address_ = value;
    } else if (options.word("MAXAGE", &value)) {
      right = read_age(ctx, value);
    } else if (options.word("SKIPME", &value) && (is_word(value, "YES") || is_word(value, "NO"))) {
      skip_me_ = is_word(value, "YES");
    } else {
      ctx.syntax_error();
      return false;
    }
    if (!right) return false;
  }
  return true;
}

bool ClientFilter::read_ids(CommandContext& ctx, ArgReader& options) {
  const bool kill = purpose_ == Purpose::kKill;
  if (!ids_) ids_.emplace();
  for (bool first = true; options.more(); first = false) {
    const std::string_view word = options.peek();
    int64_t id = 0;
    const bool is_number = base::parse_int64(word, &id);
    // Other options may follow the first id.
    if (!is_number && !first && (kill || is_option(word))) return true;
    if (!is_number || (kill && id < 1)) {
      ctx.reply.error(kill ? "ERR client-id should be greater than 0" : "ERR Invalid client ID");
      return false;
    }
    ids_->push_back(id);
    options.next();
  }
  return true;
}

bool ClientFilter::read_type(CommandContext& ctx, std::string_view name) {
  type_ = find_client_type(name);
  if (type_) return true;
  ctx.reply.error("ERR Unknown client type '" + std::string(name) + "'");
  return false;
}

bool ClientFilter::read_user(CommandContext& ctx, std::string_view name) {
  user_ = name;
  if (ctx.server.access().find(name) != nullptr) return true;
  ctx.reply.error("ERR No such user '" + std::string(name) + "'");
  return false;
}

bool ClientFilter::read_age(CommandContext& ctx, std::string_view text) {
  if (!ctx.read_int64(text, &least_age_s_, "ERR maxage is not an integer or out of range"))
    return false;
  if (least_age_s_ > 0) return true;
  ctx.reply.error("ERR maxage should be greater than 0");
  return false;
}

bool ClientFilter::matches(Client& client, const Client& me) const {
  if (skip_me_ && &client == &me) return false;
  if (type_ && client_type(client) != *type_) return false;
  if (user_ && (client.user == nullptr || client.user->name != *user_)) return false;
  if (address_ && client.peer_address() != *address_) return false;
  if (local_address_ && client.local_address() != *local_address_) return false;
  return (client.server.machine_ms() - client.created_ms) / 1000 >= least_age_s_;
}

}  // namespace latchkey::commands

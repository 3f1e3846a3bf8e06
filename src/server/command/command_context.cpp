#include "server/command/command_context.h"

#include <limits>
#include <string>

#include "base/text/number.h"
#include "net/connection.h"
#include "server/client/client.h"
#include "server/command/command_table.h"
#include "server/server.h"

namespace latchkey::server {

bool is_word_of_same_size(std::string_view argument, std::string_view upper_case_name) {
  for (size_t i = 0; i < argument.size(); ++i) {
    const char c = argument[i];
    const char upper = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    if (upper != upper_case_name[i]) return false;
  }
  return true;
}

bool read_flush_lazily(const CommandContext& ctx, ArgReader& args) {
  if (args.word("ASYNC")) return true;
  if (args.word("SYNC")) return false;
  return ctx.server.settings().lazyfree_lazy_user_flush;
}

void reply_string(resp::ReplyBuilder& reply, const store::Entry& entry) {
  if (entry.is_integer()) {
    reply.bulk(entry.integer());
  } else if (entry.is_blob()) {
    reply.bulk(entry.blob());
  } else {
    reply.bulk(entry.text());
  }
}

void CommandContext::wrong_arity() {
  reply.error("ERR wrong number of arguments for '" + command.full_name + "' command");
}

base::Blob* CommandContext::take_large_argument(std::string_view argument) {
  net::Connection* const connection = client.connection();
  return connection == nullptr ? nullptr : connection->give_input(argument);
}

bool CommandContext::read_int64(std::string_view text, int64_t* value, std::string_view error) {
  if (base::parse_int64(text, value)) return true;
  reply.error(error.empty() ? "ERR value is not an integer or out of range" : error);
  return false;
}

bool CommandContext::read_int64_in(std::string_view text, int64_t low, int64_t high, int64_t* value,
                                   std::string_view error) {
  if (!read_int64(text, value, error)) return false;
  if (*value >= low && *value <= high) return true;
  if (!error.empty()) {
    reply.error(error);
  } else {
    reply.error("ERR value is out of range, value must between " + std::to_string(low) + " and " +
                std::to_string(high));
  }
  return false;
}

bool CommandContext::read_timeout_ms(std::string_view text, int64_t* deadline_ms) {
  int64_t timeout_ms = 0;
  if (!read_int64(text, &timeout_ms, "ERR timeout is not an integer or out of range")) return false;
  if (timeout_ms < 0) {
    reply.error("ERR timeout is negative");
    return false;
  }
  if (timeout_ms > std::numeric_limits<int64_t>::max() - now_ms()) {
    reply.error("ERR timeout is out of range");
    return false;
  }
  *deadline_ms = now_ms() + timeout_ms;
  return true;
}

bool CommandContext::read_wait_ms(std::string_view text, int64_t* deadline_ms) {
  if (!read_timeout_ms(text, deadline_ms)) return false;
  if (*deadline_ms == now_ms()) *deadline_ms = 0;
  return true;
}

bool CommandContext::read_double(std::string_view text, double* value, std::string_view error) {
  // Valkey takes decimal digits only since 9.1.
  const bool is_readable = !server.edition().is_valkey_since({9, 1}) ||
                           text.find_first_of("xX") == std::string_view::npos;
  if (is_readable && base::parse_double(text, value)) return true;
  reply.error(error.empty() ? "ERR value is not a valid float" : error);
  return false;
}

}  // namespace latchkey::server

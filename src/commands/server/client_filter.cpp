#include "commands/server/client_filter.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "base/text/number.h"
#include "base/time_units.h"
#include "net/address_text.h"
#include "server/acl/access_control.h"
#include "server/emulation/edition.h"

namespace latchkey::commands {

using namespace server;

namespace {

bool all_within(std::string_view letters, std::string_view allowed) {
  return letters.find_first_not_of(allowed) == std::string_view::npos;
}

bool read_positive(CommandContext& ctx, std::string_view text, const std::string& what,
                   int64_t* number) {
  const std::string not_a_number = "ERR " + what + " is not an integer or out of range";
  if (!ctx.read_int64(text, number, not_a_number.c_str())) return false;
  return *number > 0 || ctx.refuse("ERR " + what + " should be greater than 0");
}

int64_t seconds_since(const Client& client, int64_t time_ms) {
  // Of whole seconds, as they are shown.
  return client.server.machine_ms() / base::kMsPerSecond - time_ms / base::kMsPerSecond;
}

// "ERR Unknown flags found in the NOT-FLAGS filter: q"
std::string unknown(const std::string& what, const std::string& option, bool negated,
                    std::string_view text) {
  return "ERR Unknown " + what + " found in the " + (negated ? "NOT-" + option : "provided") +
         " filter: " + std::string(text);
}

}  // namespace

const ClientFilter::Kind ClientFilter::kKinds[] = {
    // read_ids() reads them.
    {"ID", true, false, nullptr,
     [](const Condition& wanted, Client& client) {
       return std::find(wanted.ids.begin(), wanted.ids.end(), static_cast<int64_t>(client.id)) !=
              wanted.ids.end();
     }},
    {"TYPE", true, false,
     [](CommandContext& ctx, Condition& wanted) {
       const auto type = find_client_type(wanted.text);
       const bool is_valkeys = is_word(wanted.text, "PRIMARY");
       if (!type || (is_valkeys && !ctx.server.edition().has(kNever, {8, 0})))
         return ctx.refuse("ERR Unknown client type '" + std::string(wanted.text) + "'");
       wanted.type = *type;
       return true;
     },
     [](const Condition& wanted, Client& client) { return client_type(client) == wanted.type; }},
    {"USER", true, false,
     [](CommandContext& ctx, Condition& wanted) {
       return ctx.server.access().find(wanted.text) != nullptr ||
              ctx.refuse("ERR No such user '" + std::string(wanted.text) + "'");
     },
     [](const Condition& wanted, Client& client) {
       return client.user != nullptr && client.user->name == wanted.text;
     }},
    {"ADDR", true, false, nullptr,
     [](const Condition& wanted, Client& client) { return client.peer_address() == wanted.text; }},
    {"LADDR", true, false, nullptr,
     [](const Condition& wanted, Client& client) { return client.local_address() == wanted.text; }},
    {"MAXAGE", false, false,
     [](CommandContext& ctx, Condition& wanted) {
       return read_positive(ctx, wanted.text, "maxage", &wanted.number);
     },
     [](const Condition& wanted, Client& client) {
       return seconds_since(client, client.created_ms) >= wanted.number;
     }},
    {"FLAGS", true, true,
     [](CommandContext& ctx, Condition& wanted) {
       return all_within(wanted.text, kFlagLetters) ||
              ctx.refuse(unknown("flags", "FLAGS", wanted.negated, wanted.text));
     },
     [](const Condition& wanted, Client& client) {
       return all_within(wanted.text, flag_letters(client));
     }},
    {"NAME", true, true, nullptr,
     [](const Condition& wanted, Client& client) {
       return !client.name.empty() && client.name == wanted.text;
     }},
    {"IDLE", false, true,
     [](CommandContext& ctx, Condition& wanted) {
       return read_positive(ctx, wanted.text, "idle", &wanted.number);
     },
     [](const Condition& wanted, Client& client) {
       return seconds_since(client, client.last_interaction_ms) >= wanted.number;
     }},
    {"LIB-NAME", true, true, nullptr,
     [](const Condition& wanted, Client& client) {
       return client.library != nullptr && !client.library->name.empty() &&
              client.library->name == wanted.text;
     }},
    {"LIB-VER", true, true, nullptr,
     [](const Condition& wanted, Client& client) {
       return client.library != nullptr && !client.library->version.empty() &&
              client.library->version == wanted.text;
     }},
    {"DB", true, true,
     [](CommandContext& ctx, Condition& wanted) {
       const std::string option = wanted.negated ? "NOT-DB" : "DB";
       if (!base::parse_int64(wanted.text, &wanted.number))
         return ctx.refuse("ERR " + option + " is not an integer or out of range");
       const int last = ctx.server.database_count() - 1;
       return (wanted.number >= 0 && wanted.number <= last) ||
              ctx.refuse("ERR " + option + " number should be between 0 and " +
                         std::to_string(last));
     },
     [](const Condition& wanted, Client& client) { return client.database == wanted.number; }},
    {"CAPA", true, true,
     [](CommandContext& ctx, Condition& wanted) {
       return all_within(wanted.text, "r") ||
              ctx.refuse(unknown("capa", "CAPA", wanted.negated, wanted.text));
     },
     [](const Condition& wanted, Client& client) {
       return wanted.text.empty() || client.has(kClientRedirects);
     }},
    {"IP", true, true, nullptr,
     [](const Condition& wanted, Client& client) {
       return net::ip_of(client.peer_address()) == wanted.text;
     }},
};

const ClientFilter::Kind* ClientFilter::find_kind(const Edition& edition, std::string_view word,
                                                  bool* negated) {
  constexpr std::string_view kNot = "NOT-";
  *negated = is_word(word.substr(0, kNot.size()), kNot);
  if (*negated) word.remove_prefix(kNot.size());
  const auto* const found =
      std::find_if(std::begin(kKinds), std::end(kKinds),
                   [&](const Kind& kind) { return is_word(word, kind.name); });
  if (found == std::end(kKinds) || (*negated && !found->can_be_negated)) return nullptr;
  const bool is_new = *negated || found->is_new;
  return is_new && !edition.has(kNever, {9, 0}) ? nullptr : found;
}

ClientFilter::Condition& ClientFilter::condition_of(const Kind& kind, bool negated) {
  for (Condition& condition : conditions_) {
    if (condition.kind == &kind && condition.negated == negated) return condition;
  }
  Condition& added = conditions_.emplace_back();
  added.kind = &kind;
  added.negated = negated;
  return added;
}

bool ClientFilter::read(CommandContext& ctx) {
  // Redis's CLIENT LIST takes one type or ids, and nothing beside them.
  const bool is_list_of_redis =
      purpose_ == Purpose::kList && !ctx.server.edition().has(kNever, {8, 1});
  if (is_list_of_redis && ctx.args.size() > 2) {
    const bool has_type = ctx.args.size() == 4 && is_word(ctx.args[2], "TYPE");
    const bool has_ids = ctx.args.size() > 3 && is_word(ctx.args[2], "ID");
    if (!has_type && !has_ids) {
      ctx.syntax_error();
      return false;
    }
  }
  for (ArgReader options(ctx.args, 2); options.more();) {
    std::string_view value;
    if (options.word("SKIPME", &value)) {
      skip_me_ = is_word(value, "YES");
      if (skip_me_ || is_word(value, "NO")) continue;
      ctx.syntax_error();
      return false;
    }
    bool negated = false;
    const Kind* const kind =
        options.left() < 2 ? nullptr : find_kind(ctx.server.edition(), options.next(), &negated);
    if (kind == nullptr) {
      ctx.syntax_error();
      return false;
    }
    Condition& condition = condition_of(*kind, negated);
    if (kind == &kKinds[0]) {
      if (!read_ids(ctx, options, condition)) return false;
      continue;
    }
    condition.text = options.next();
    if (kind->read != nullptr && !kind->read(ctx, condition)) return false;
  }
  return true;
}

bool ClientFilter::read_ids(CommandContext& ctx, ArgReader& options, Condition& condition) {
  const bool kill = purpose_ == Purpose::kKill;
  const bool takes_many = ctx.server.edition().has(kNever, {8, 1});
  // Redis's CLIENT KILL takes one id, the last that is given.
  if (kill && !takes_many) condition.ids.clear();
  for (bool first = true; options.more(); first = false) {
    if (kill && !takes_many && !first) return true;
    const std::string_view word = options.peek();
    int64_t id = 0;
    const bool is_number = base::parse_int64(word, &id);
    // Other options may follow the first id.
    bool negated = false;
    const bool is_option =
        takes_many &&
        (is_word(word, "SKIPME") || find_kind(ctx.server.edition(), word, &negated) != nullptr);
    if (!is_number && !first && (kill || is_option)) return true;
    if (!is_number && ctx.server.edition().is_valkey()) return ctx.refuse("ERR syntax error");
    const bool must_be_positive = kill || ctx.server.edition().is_valkey_since({9, 1});
    if (!is_number || (must_be_positive && id < 1))
      return ctx.refuse(must_be_positive ? "ERR client-id should be greater than 0"
                                         : "ERR Invalid client ID");
    condition.ids.push_back(id);
    options.next();
  }
  return true;
}

const std::vector<int64_t>* ClientFilter::wanted_ids() const {
  for (const Condition& condition : conditions_) {
    if (condition.kind == &kKinds[0] && !condition.negated) return &condition.ids;
  }
  return nullptr;
}

bool ClientFilter::matches(Client& client, const Client& me) const {
  if (skip_me_ && &client == &me) return false;
  return std::all_of(conditions_.begin(), conditions_.end(), [&](const Condition& condition) {
    return condition.kind->holds(condition, client) != condition.negated;
  });
}

}  // namespace latchkey::commands

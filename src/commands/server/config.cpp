// CONFIG GET, SET, REWRITE, RESETSTAT, HELP.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "commands/groups.h"
#include "server/client/client.h"
#include "server/command/command_context.h"
#include "server/command/help.h"
#include "server/emulation/valkey_words.h"
#include "server/server.h"

namespace latchkey::commands {

using namespace server;

namespace {

void config_get(CommandContext& ctx) {
  const auto found = ctx.server.config().get(ctx.args.subspan(kFirstArgument));
  ctx.reply.map(found.size());
  for (const auto& [name, value] : found) {
    ctx.reply.bulk(name);
    ctx.reply.bulk(value);
  }
}

// Whether all directives are known and one of them cannot be set while the dataset is loading.
bool must_wait(const Config& config, const std::vector<Config::NameAndValue>& pairs) {
  const auto is_known = [&](const auto& pair) { return config.find(pair.first) != nullptr; };
  const auto waits = [&](const auto& pair) { return config.waits_for_loading(pair.first); };
  return std::all_of(pairs.begin(), pairs.end(), is_known) &&
         std::any_of(pairs.begin(), pairs.end(), waits);
}

void config_set(CommandContext& ctx) {
  ArgReader arguments(ctx.args, kFirstArgument);
  if (arguments.left() % 2 != 0) return ctx.syntax_error();
  std::vector<Config::NameAndValue> pairs;
  while (arguments.more()) {
    std::string name(arguments.next());
    pairs.emplace_back(std::move(name), arguments.next());
  }
  net::Connection* connection = ctx.client.connection();
  const Config::SetRequest request{
      .from_local_client = connection == nullptr || connection->peer_is_local(),
      .loading = (ctx.server.state() & (kStateLoading | kStateAsyncLoading)) != 0,
  };
  if (request.loading && must_wait(ctx.server.config(), pairs))
    return ctx.reply.error(
        in_words_of(ctx.server, "LOADING Redis is loading the dataset in memory"));
  if (const auto set = ctx.server.config().set(pairs, request); !set)
    return ctx.reply.error("ERR " + set.error());
  ctx.reply.ok();
}

// Positions of the values of sensitive directives, such as passwords.
void find_config_secrets(const Config& config, Arguments words, std::vector<size_t>* positions) {
  for (size_t i = kFirstArgument; i + 1 < words.size(); i += 2) {
    if (config.is_sensitive(words[i])) positions->push_back(i + 1);
  }
}

void config_rewrite(CommandContext& ctx) {
  if (const auto rewritten = ctx.server.config().rewrite(); !rewritten) {
    ctx.server.log().warning("CONFIG REWRITE failed: " + rewritten.error());
    return ctx.reply.error("ERR " + rewritten.error());
  }
  ctx.server.log().notice("CONFIG REWRITE executed with success.");
  ctx.reply.ok();
}

void config_resetstat(CommandContext& ctx) {
  ctx.server.reset_stats();
  ctx.reply.ok();
}

void config_help(CommandContext& ctx) {
  reply_help(ctx, {
                      "GET <pattern>",
                      "    List the parameters whose names match a <pattern>, with their values.",
                      "SET <directive> <value>",
                      "    Change a <directive> while the server runs.",
                      "RESETSTAT",
                      "    Start the counters of INFO at zero again.",
                      "REWRITE",
                      "    Write the settings in force to the configuration file.",
                  });
}

constexpr CommandRow kConfigSubcommands[] = {
    {"GET",
     config_get,
     "parameter...",
     kAdmin | kNoScript | kLoading | kStale,
     {},
     0,
     Group::kServer,
     "2.0.0",
     "O(N) when N is the number of configuration parameters provided",
     "Returns the effective values of configuration parameters.",
     {.history = "7.0.0 Added the ability to pass multiple pattern parameters in one call"}},
    help_row(config_help, 0, Group::kServer, "5.0.0"),
    {"RESETSTAT",
     config_resetstat,
     "",
     kAdmin | kNoScript | kLoading | kStale,
     {},
     0,
     Group::kServer,
     "2.0.0",
     "O(1)",
     "Resets the server's statistics.",
     {.tips = "request_policy:all_nodes response_policy:all_succeeded"}},
    {"REWRITE",
     config_rewrite,
     "",
     kAdmin | kNoScript | kLoading | kStale,
     {},
     0,
     Group::kServer,
     "2.8.0",
     "O(1)",
     "Persists the effective configuration to file.",
     {.tips = "request_policy:all_nodes response_policy:all_succeeded"}},
    {"SET",
     config_set,
     "{data=parameter value}...",
     kAdmin | kNoScript | kLoading | kStale,
     {},
     0,
     Group::kServer,
     "2.0.0",
     "O(N) when N is the number of configuration parameters provided",
     "Sets configuration parameters in-flight.",
     {.tips = "request_policy:all_nodes response_policy:all_succeeded",
      .history = "7.0.0 Added the ability to set multiple parameters in one call.",
      .find_secrets = find_config_secrets}},
};

constexpr CommandRow kConfigRows[] = {
    {"CONFIG",
     nullptr,
     "",
     0,
     {},
     0,
     Group::kServer,
     "2.0.0",
     "Depends on subcommand.",
     "A container for server configuration commands.",
     {.subcommands = kConfigSubcommands}},
};

}  // namespace

std::span<const CommandRow> config_rows() {
  return kConfigRows;
}

}  // namespace latchkey::commands

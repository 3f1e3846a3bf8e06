#include "sentinel/set_commands.h"

#include <string>
#include <vector>

#include "base/text/glob.h"
#include "base/text/number.h"
#include "base/text/text.h"
#include "sentinel/directives.h"
#include "sentinel/sentinel_server.h"
#include "server/server.h"

namespace latchkey::sentinel {

using namespace server;
using base::LogLevel;

namespace {

Sentinel& sentinel_of(CommandContext& ctx) {
  return ctx.server.layer<SentinelServer>().sentinel();
}

// Has connections be made anew, with another password.
void reconnect(Instance& instance) {
  instance.link->close();
}

std::string quoted(std::string_view text) {
  return '\'' + std::string(text) + '\'';
}

bool read_positive(std::string_view text, int64_t most, int64_t* value) {
  return base::parse_int64(text, value) && *value > 0 && *value <= most;
}

// ---- SENTINEL SET

enum class Outcome { kSet, kInvalid, kDenied, kNoScript, kNoReconfigScript };

Outcome set_number(Master& master, Sentinel& sentinel, std::string_view option,
                   std::string_view value) {
  const bool small = option == "parallel-syncs" || option == "quorum";
  int64_t number = 0;
  if (option.ends_with("-reboot-down-after-period")) {
    if (!base::parse_int64(value, &number) || number < 0 || number > kLongestPeriodMs)
      return Outcome::kInvalid;
    master.reboot_down_after_ms = number;
    return Outcome::kSet;
  }
  if (!read_positive(value, small ? INT32_MAX : kLongestPeriodMs, &number))
    return Outcome::kInvalid;
  if (option == "down-after-milliseconds") sentinel.set_down_after(master, number);
  if (option == "failover-timeout") master.failover_timeout_ms = number;
  if (option == "parallel-syncs") master.parallel_syncs = static_cast<int>(number);
  if (option == "quorum") master.quorum = static_cast<unsigned>(number);
  return Outcome::kSet;
}

Outcome set_script(Master& master, Sentinel& sentinel, std::string_view option,
                   std::string_view value) {
  const bool notifies = option == "notification-script";
  if (sentinel.settings().deny_scripts_reconfig) return Outcome::kDenied;
  if (!value.empty() && !is_executable(std::string(value)))
    return notifies ? Outcome::kNoScript : Outcome::kNoReconfigScript;
  (notifies ? master.notification_script : master.reconfig_script) = value;
  return Outcome::kSet;
}

Outcome set_credential(Master& master, std::string_view option, std::string_view value) {
  (option == "auth-pass" ? master.auth_pass : master.auth_user) = value;
  reconnect(master);
  for (const auto& [name, replica] : master.replicas) reconnect(*replica);
  return Outcome::kSet;
}

Outcome set_rename(Master& master, std::string_view from, std::string_view to) {
  if (from.empty() || to.empty()) return Outcome::kInvalid;
  const std::string name(from);
  master.renamed_commands.erase(name);
  if (!base::equal_ignoring_case(from, to)) master.renamed_commands.emplace(name, to);
  return Outcome::kSet;
}

std::string refusal(Outcome outcome, std::string_view option, std::string_view value) {
  switch (outcome) {
    case Outcome::kDenied:
      return "ERR Reconfiguration of scripts path is denied for security reasons. Check the "
             "deny-scripts-reconfig configuration directive in your Sentinel configuration";
    case Outcome::kNoScript:
      return "ERR Notification script seems non existing or non executable";
    case Outcome::kNoReconfigScript:
      return "ERR Client reconfiguration script seems non existing or non executable";
    case Outcome::kSet:
    case Outcome::kInvalid:
      break;
  }
  return "ERR Invalid argument " + quoted(value) + " for SENTINEL SET " + quoted(option);
}

// The number of values of an option; 0: the release has none of that name.
size_t values_of(std::string_view option, const Edition& edition) {
  constexpr std::string_view kOptions[] = {
      "down-after-milliseconds",
      "failover-timeout",
      "parallel-syncs",
      "notification-script",
      "client-reconfig-script",
      "auth-pass",
      "auth-user",
      "quorum",
      "master-reboot-down-after-period",
  };
  if (option == "rename-command") return 2;
  if (option == "primary-reboot-down-after-period") return edition.has(kNever, {8, 0}) ? 1 : 0;
  for (const std::string_view known : kOptions) {
    if (option == known) return 1;
  }
  return 0;
}

Outcome set_option(Master& master, Sentinel& sentinel, const std::string& option,
                   Arguments values) {
  if (option == "rename-command") return set_rename(master, values[0], values[1]);
  if (option.ends_with("-script")) return set_script(master, sentinel, option, values[0]);
  if (option.starts_with("auth-")) return set_credential(master, option, values[0]);
  return set_number(master, sentinel, option, values[0]);
}

}  // namespace

Master* find_named_master(CommandContext& ctx) {
  Master* const master = sentinel_of(ctx).find_master(ctx.args[2]);
  if (master == nullptr) ctx.reply.error("ERR No such master with that name");
  return master;
}

void reply_saved(CommandContext& ctx) {
  if (ctx.server.layer<SentinelServer>().save()) return ctx.reply.ok();
  ctx.reply.error("ERR Failed to save config file. Check server logs.");
}

// What stands before the first wrong option is set, as the reference does it.
void sentinel_set(CommandContext& ctx) {
  Master* const master = find_named_master(ctx);
  if (master == nullptr) return;
  Sentinel& sentinel = sentinel_of(ctx);
  bool changed = false;
  const auto refuse = [&](const std::string& error) {
    if (changed) ctx.server.layer<SentinelServer>().save();
    ctx.reply.error(error);
  };
  for (ArgReader options(ctx.args, 3); options.more();) {
    const std::string_view given = options.next();
    const std::string option = base::lower_case(given);
    const size_t count = values_of(option, ctx.server.edition());
    if (count == 0 || options.left() < count) {
      return refuse("ERR Unknown option or number of arguments for SENTINEL SET " + quoted(given));
    }
    const Arguments values = options.rest().first(count);
    const Outcome outcome = set_option(*master, sentinel, option, values);
    if (outcome != Outcome::kSet) {
      // Of two values, the one that is wrong.
      const std::string_view wrong = values[0].empty() ? values[0] : values.back();
      return refuse(refusal(outcome, given, wrong));
    }
    changed = true;
    std::string shown = ' ' + std::string(given);
    for (const std::string_view value : values) {
      options.next();
      shown += ' ' + (option == "auth-pass" ? "******" : std::string(value));
    }
    sentinel.event(LogLevel::kWarning, "+set", *master, shown);
  }
  reply_saved(ctx);
}

// ---- SENTINEL MONITOR

void sentinel_monitor(CommandContext& ctx) {
  Sentinel& sentinel = sentinel_of(ctx);
  int64_t quorum = 0;
  int64_t port = 0;
  if (!ctx.read_int64(ctx.args[5], &quorum, "ERR Invalid quorum")) return;
  if (!ctx.read_int64(ctx.args[4], &port, "ERR Invalid port")) return;
  if (quorum <= 0 || quorum > INT32_MAX) return ctx.reply.error("ERR Quorum must be 1 or greater.");
  if (!is_port(port)) return ctx.reply.error("ERR Invalid port number.");
  const std::string name(ctx.args[2]);
  const Address address = sentinel.make_address(std::string(ctx.args[3]), static_cast<int>(port));
  if (address.ip.empty()) return ctx.reply.error("ERR Invalid IP address or hostname specified");
  if (sentinel.find_master(name) != nullptr) return ctx.reply.error("ERR Duplicate master name.");
  Master& master = sentinel.add_master(name, address, static_cast<unsigned>(quorum));
  sentinel.event(LogLevel::kWarning, "+monitor", master, " quorum " + std::to_string(quorum));
  reply_saved(ctx);
}

// ---- SENTINEL CONFIG

namespace {

constexpr std::string_view kConfigOptions[] = {
    "resolve-hostnames", "announce-hostnames", "announce-ip", "announce-port",
    "sentinel-user",     "sentinel-pass",      "loglevel",
};

std::string log_level(CommandContext& ctx) {
  constexpr std::string_view kName = "loglevel";
  return ctx.server.config().get(std::span(&kName, 1)).at(0).second;
}

std::string config_value(CommandContext& ctx, std::string_view option) {
  const Settings& settings = sentinel_of(ctx).settings();
  if (option == "resolve-hostnames") return settings.resolve_hostnames ? "yes" : "no";
  if (option == "announce-hostnames") return settings.announce_hostnames ? "yes" : "no";
  if (option == "announce-ip") return settings.announce_ip;
  if (option == "announce-port") return std::to_string(settings.announce_port);
  if (option == "sentinel-user") return settings.sentinel_user;
  if (option == "sentinel-pass") return settings.sentinel_pass;
  return log_level(ctx);
}

bool is_valid(std::string_view option, std::string_view value) {
  if (option == "resolve-hostnames" || option == "announce-hostnames")
    return base::equal_ignoring_case(value, "yes") || base::equal_ignoring_case(value, "no");
  if (option == "announce-port") {
    int64_t port = 0;
    return base::parse_int64(value, &port) && is_port(port);
  }
  if (option != "loglevel") return true;
  for (const std::string_view level : {"debug", "verbose", "notice", "warning", "nothing"}) {
    if (base::equal_ignoring_case(value, level)) return true;
  }
  return false;
}

void set_config(CommandContext& ctx, std::string_view option, const std::string& value) {
  Sentinel& sentinel = sentinel_of(ctx);
  Settings& settings = sentinel.settings();
  const bool yes = base::equal_ignoring_case(value, "yes");
  if (option == "resolve-hostnames") settings.resolve_hostnames = yes;
  if (option == "announce-hostnames") settings.announce_hostnames = yes;
  if (option == "announce-ip") settings.announce_ip = value;
  if (option == "announce-port") settings.announce_port = std::stoi(value);
  if (option == "sentinel-user") settings.sentinel_user = value;
  if (option == "sentinel-pass") settings.sentinel_pass = value;
  if (option.starts_with("sentinel-")) {
    for (const auto& [name, master] : sentinel.masters()) {
      for (const auto& [id, other] : master->sentinels) reconnect(*other);
    }
  }
  if (option == "loglevel") {
    const std::vector<Config::NameAndValue> pairs = {{"loglevel", value}};
    // is_valid() has let nothing through that could be refused.
    static_cast<void>(ctx.server.config().set(pairs, {}));
  }
}

void config_set(CommandContext& ctx) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (ArgReader words(ctx.args, 3); words.more();) {
    const std::string_view given = words.next();
    const std::string option = base::lower_case(given);
    if (std::find(std::begin(kConfigOptions), std::end(kConfigOptions), option) ==
        std::end(kConfigOptions)) {
      return ctx.reply.error("ERR Invalid argument " + quoted(given) + " to SENTINEL CONFIG SET");
    }
    for (const auto& [name, value] : pairs) {
      if (name == option) {
        return ctx.reply.error("ERR Duplicate argument " + quoted(given) +
                               " to SENTINEL CONFIG SET");
      }
    }
    if (!words.more()) return ctx.reply.error("ERR Missing argument " + quoted(given) + " value");
    const std::string_view value = words.next();
    if (!is_valid(option, value)) {
      return ctx.reply.error("ERR Invalid value " + quoted(value) + " to SENTINEL CONFIG SET " +
                             quoted(given));
    }
    pairs.emplace_back(option, value);
  }
  for (const auto& [option, value] : pairs) set_config(ctx, option, value);
  reply_saved(ctx);
}

void config_get(CommandContext& ctx) {
  std::vector<std::string_view> shown;
  for (const std::string_view text : ctx.args.subspan(3)) {
    const base::GlobPattern pattern(text, /*ignore_case=*/true);
    for (const std::string_view option : kConfigOptions) {
      if (pattern.matches(option) && std::find(shown.begin(), shown.end(), option) == shown.end()) {
        shown.push_back(option);
      }
    }
  }
  ctx.reply.map(shown.size());
  for (const std::string_view option : shown) {
    ctx.reply.bulk(option);
    ctx.reply.bulk(config_value(ctx, option));
  }
}

}  // namespace

void sentinel_config(CommandContext& ctx) {
  constexpr size_t kMinForSet = 5;
  if (is_word(ctx.args[2], "SET") && ctx.args.size() >= kMinForSet) return config_set(ctx);
  if (is_word(ctx.args[2], "GET")) return config_get(ctx);
  ctx.reply.error(
      "ERR Only SENTINEL CONFIG GET <param> [<param> <param> ...] / SET <param> <value> [<param> "
      "<value> ...] are supported.");
}

// ---- SENTINEL DEBUG

void sentinel_debug(CommandContext& ctx) {
  Periods& periods = sentinel_of(ctx).periods();
  if (ctx.args.size() == 2) {
    ctx.reply.map(Periods::names().size());
    for (const Periods::Name& known : Periods::names()) {
      ctx.reply.bulk(known.name);
      ctx.reply.bulk(periods.*known.member);
    }
    return;
  }
  for (ArgReader words(ctx.args, 2); words.more();) {
    const std::string_view given = words.next();
    const Periods::Name* found = nullptr;
    for (const Periods::Name& known : Periods::names()) {
      if (base::equal_ignoring_case(given, known.name)) found = &known;
    }
    if (found == nullptr || !words.more()) {
      return ctx.reply.error("ERR Unknown option or number of arguments for SENTINEL DEBUG " +
                             quoted(given));
    }
    const std::string_view value = words.next();
    int64_t period_ms = 0;
    if (!read_positive(value, INT32_MAX, &period_ms)) {
      return ctx.reply.error("ERR Invalid argument " + quoted(value) + " for SENTINEL DEBUG " +
                             quoted(given));
    }
    periods.*(found->member) = period_ms;
  }
  ctx.reply.ok();
}

}  // namespace latchkey::sentinel

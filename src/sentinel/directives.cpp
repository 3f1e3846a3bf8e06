#include "sentinel/directives.h"

#include <unistd.h>

#include <algorithm>
#include <span>

#include "base/text/number.h"
#include "base/text/text.h"
#include "sentinel/hello.h"
#include "sentinel/sentinel.h"
#include "server/config/config_parse.h"

namespace latchkey::sentinel {

using base::fail;
using base::fail_with;
using base::Result;
using server::ConfigError;
using server::DeferredDirective;

bool is_executable(const std::string& path) {
  return access(path.c_str(), X_OK) == 0;
}

namespace {

constexpr char kUnrecognized[] = "Unrecognized sentinel configuration statement.";
constexpr char kNoSuchMaster[] = "No such master with specified name.";
constexpr char kRebootDownAfter[] = "master-reboot-down-after-period";
constexpr char kRebootDownAfterOfValkey[] = "primary-reboot-down-after-period";
constexpr char kInvalidPort[] = "Invalid port number.";
constexpr char kNotANumber[] = "argument must be a number within range.";

using Words = std::span<const std::string>;

bool read_number(const std::string& text, int64_t least, int64_t most, int64_t* value) {
  return base::parse_int64(text, value) && *value >= least && *value <= most;
}

bool read_epoch(const std::string& text, uint64_t* epoch) {
  int64_t number = 0;
  if (!read_number(text, 0, kMaxKeptEpoch, &number)) return false;
  *epoch = static_cast<uint64_t>(number);
  return true;
}

bool read_yes_no(const std::string& text, bool* value) {
  *value = base::equal_ignoring_case(text, "yes");
  return *value || base::equal_ignoring_case(text, "no");
}

bool read_port(const std::string& text, int* port) {
  int64_t number = 0;
  if (!base::parse_int64(text, &number) || !is_port(number)) return false;
  *port = static_cast<int>(number);
  return true;
}

// ---- Of the Sentinel itself

template <std::string Settings::*Member>
Result<> text_setting(Sentinel& sentinel, Words words) {
  sentinel.settings().*Member = words[0];
  return {};
}

Result<> announce_port(Sentinel& sentinel, Words words) {
  if (read_port(words[0], &sentinel.settings().announce_port)) return {};
  return fail(kInvalidPort);
}

Result<> deny_scripts_reconfig(Sentinel& sentinel, Words words) {
  if (read_yes_no(words[0], &sentinel.settings().deny_scripts_reconfig)) return {};
  return fail("Please specify yes or no for the deny-scripts-reconfig options.");
}

Result<> resolve_hostnames(Sentinel& sentinel, Words words) {
  if (read_yes_no(words[0], &sentinel.settings().resolve_hostnames)) return {};
  return fail("Please specify yes or no for the resolve-hostnames option.");
}

Result<> announce_hostnames(Sentinel& sentinel, Words words) {
  if (read_yes_no(words[0], &sentinel.settings().announce_hostnames)) return {};
  return fail("Please specify yes or no for the announce-hostnames option.");
}

Result<> my_id(Sentinel& sentinel, Words words) {
  if (!is_id(words[0])) return fail("Malformed Sentinel id in myid option.");
  sentinel.set_id(words[0]);
  return {};
}

Result<> current_epoch(Sentinel& sentinel, Words words) {
  uint64_t epoch = 0;
  if (!read_epoch(words[0], &epoch)) return fail(kNotANumber);
  sentinel.set_current_epoch(std::max(sentinel.current_epoch(), epoch));
  return {};
}

// A name that cannot be resolved now may be later.
bool may_keep(Sentinel& sentinel, const Address& address) {
  return !address.ip.empty() || sentinel.settings().resolve_hostnames;
}

Result<> monitor(Sentinel& sentinel, Words words) {
  int64_t quorum = 0;
  if (!read_number(words[3], 1, INT32_MAX, &quorum)) return fail("Quorum must be 1 or greater.");
  int port = 0;
  if (!read_port(words[2], &port)) return fail(kInvalidPort);
  if (sentinel.find_master(words[0]) != nullptr) return fail("Duplicate master name.");
  const Address address = sentinel.make_address(words[1], port);
  if (!may_keep(sentinel, address)) return fail("Can't resolve instance hostname.");
  sentinel.add_master(words[0], address, static_cast<unsigned>(quorum));
  return {};
}

// ---- Of a master: the words begin with its name

template <int64_t Master::*Member>
Result<> positive_time(Master& master, Words words) {
  if (read_number(words[1], 1, kLongestPeriodMs, &(master.*Member))) return {};
  return fail("negative or zero time parameter.");
}

Result<> reboot_down_after(Master& master, Words words) {
  if (read_number(words[1], 0, kLongestPeriodMs, &master.reboot_down_after_ms)) return {};
  return fail("negative time parameter.");
}

Result<> parallel_syncs(Master& master, Words words) {
  int64_t number = 0;
  if (!read_number(words[1], 1, INT32_MAX, &number)) return fail(kNotANumber);
  master.parallel_syncs = static_cast<int>(number);
  return {};
}

Result<> notification_script(Master& master, Words words) {
  if (!is_executable(words[1]))
    return fail("Notification script seems non existing or non executable.");
  master.notification_script = words[1];
  return {};
}

Result<> reconfig_script(Master& master, Words words) {
  if (!is_executable(words[1]))
    return fail("Client reconfiguration script seems non existing or non executable.");
  master.reconfig_script = words[1];
  return {};
}

template <std::string Master::*Member>
Result<> master_text(Master& master, Words words) {
  master.*Member = words[1];
  return {};
}

template <uint64_t Master::*Member>
Result<> master_epoch(Master& master, Words words) {
  if (!read_epoch(words[1], &(master.*Member))) return fail(kNotANumber);
  return {};
}

Result<> rename_command(Master& master, Words words) {
  if (words[1].empty() || words[2].empty()) return fail(kUnrecognized);
  if (master.renamed_commands.emplace(words[1], words[2]).second) return {};
  return fail("Same command renamed multiple times with rename-command.");
}

// ---- The table

enum class Phase { kSettings, kMasters, kOfMasters };

struct Option {
  std::string_view name;
  size_t words;  // behind the option's name
  Phase phase;
  Result<> (*apply)(Sentinel& sentinel, Words words);
};

// Finds the master that the first word names.
template <Result<> (*Apply)(Master& master, Words words)>
Result<> of_master(Sentinel& sentinel, Words words) {
  Master* const master = sentinel.find_master(words[0]);
  if (master == nullptr) return fail(kNoSuchMaster);
  return Apply(*master, words);
}

Result<> down_after(Sentinel& sentinel, Words words) {
  Master* const master = sentinel.find_master(words[0]);
  if (master == nullptr) return fail(kNoSuchMaster);
  int64_t period_ms = 0;
  if (!read_number(words[1], 1, kLongestPeriodMs, &period_ms))
    return fail("negative or zero time parameter.");
  sentinel.set_down_after(*master, period_ms);
  return {};
}

Result<> known_replica(Sentinel& sentinel, Words words) {
  Master* const master = sentinel.find_master(words[0]);
  if (master == nullptr) return fail(kNoSuchMaster);
  int port = 0;
  if (!read_port(words[2], &port)) return fail(kInvalidPort);
  const Address address = sentinel.make_address(words[1], port);
  if (!may_keep(sentinel, address)) return fail("Wrong hostname or port for replica.");
  if (sentinel.add_replica(*master, address) != nullptr) return {};
  return fail("Duplicate hostname and port for replica.");
}

Result<> known_sentinel(Sentinel& sentinel, Words words) {
  Master* const master = sentinel.find_master(words[0]);
  if (master == nullptr) return fail(kNoSuchMaster);
  int port = 0;
  if (!read_port(words[2], &port)) return fail(kInvalidPort);
  // Without an id: its first hello message will have it.
  if (words.size() < 4) return {};
  const Address address = sentinel.make_address(words[1], port);
  if (!may_keep(sentinel, address)) return fail("Wrong hostname or port for sentinel.");
  if (master->sentinels.contains(words[3])) return fail("Duplicate runid for sentinel.");
  sentinel.add_sentinel(*master, words[3], address);
  return {};
}

constexpr Option kOptions[] = {
    {"announce-ip", 1, Phase::kSettings, text_setting<&Settings::announce_ip>},
    {"announce-port", 1, Phase::kSettings, announce_port},
    {"sentinel-user", 1, Phase::kSettings, text_setting<&Settings::sentinel_user>},
    {"sentinel-pass", 1, Phase::kSettings, text_setting<&Settings::sentinel_pass>},
    {"deny-scripts-reconfig", 1, Phase::kSettings, deny_scripts_reconfig},
    {"resolve-hostnames", 1, Phase::kSettings, resolve_hostnames},
    {"announce-hostnames", 1, Phase::kSettings, announce_hostnames},
    {"myid", 1, Phase::kSettings, my_id},
    {"current-epoch", 1, Phase::kSettings, current_epoch},
    {"monitor", 4, Phase::kMasters, monitor},
    {"down-after-milliseconds", 2, Phase::kOfMasters, down_after},
    {"failover-timeout", 2, Phase::kOfMasters,
     of_master<positive_time<&Master::failover_timeout_ms>>},
    {kRebootDownAfter, 2, Phase::kOfMasters, of_master<reboot_down_after>},
    {kRebootDownAfterOfValkey, 2, Phase::kOfMasters, of_master<reboot_down_after>},
    {"parallel-syncs", 2, Phase::kOfMasters, of_master<parallel_syncs>},
    {"notification-script", 2, Phase::kOfMasters, of_master<notification_script>},
    {"client-reconfig-script", 2, Phase::kOfMasters, of_master<reconfig_script>},
    {"auth-pass", 2, Phase::kOfMasters, of_master<master_text<&Master::auth_pass>>},
    {"auth-user", 2, Phase::kOfMasters, of_master<master_text<&Master::auth_user>>},
    {"config-epoch", 2, Phase::kOfMasters, of_master<master_epoch<&Master::config_epoch>>},
    {"leader-epoch", 2, Phase::kOfMasters, of_master<master_epoch<&Master::leader_epoch>>},
    {"rename-command", 3, Phase::kOfMasters, of_master<rename_command>},
    {"known-replica", 3, Phase::kOfMasters, known_replica},
    {"known-slave", 3, Phase::kOfMasters, known_replica},
    {"known-sentinel", 3, Phase::kOfMasters, known_sentinel},
    {"known-sentinel", 4, Phase::kOfMasters, known_sentinel},
};

const Option* find_option(const std::vector<std::string>& words) {
  for (const Option& option : kOptions) {
    if (base::equal_ignoring_case(words[0], option.name) && words.size() == option.words + 1)
      return &option;
  }
  return nullptr;
}

}  // namespace

Result<void, ConfigError> apply_directives(const std::vector<DeferredDirective>& directives,
                                           Sentinel* sentinel) {
  for (const Phase phase : {Phase::kSettings, Phase::kMasters, Phase::kOfMasters}) {
    for (const DeferredDirective& directive : directives) {
      const Option* const option = find_option(directive.arguments);
      if (option == nullptr) return fail_with(ConfigError::at(directive, kUnrecognized));
      if (option->phase != phase) continue;
      auto applied = option->apply(*sentinel, std::span(directive.arguments).subspan(1));
      if (!applied) return fail_with(ConfigError::at(directive, std::move(applied).error()));
    }
  }
  // An epoch in which this Sentinel has voted, or a configuration was made, has been.
  for (const auto& [name, master] : sentinel->masters()) {
    sentinel->set_current_epoch(
        std::max({sentinel->current_epoch(), master->config_epoch, master->leader_epoch}));
  }
  return {};
}

// ---- Writing

namespace {

class Lines {
 public:
  void add(std::string_view option, const std::vector<std::string>& words) {
    std::string line = "sentinel " + std::string(option);
    for (const std::string& word : words) line += ' ' + server::quote_if_needed(word);
    lines_.push_back(std::move(line));
  }
  // Unless it is empty.
  void add_text(std::string_view option, const std::vector<std::string>& words) {
    if (!words.back().empty()) add(option, words);
  }
  std::vector<std::string> take() { return std::move(lines_); }

 private:
  std::vector<std::string> lines_;
};

void add_settings(const Settings& settings, Lines* lines) {
  const Settings defaults;
  const auto add_flag = [&](std::string_view option, bool value, bool usual) {
    if (value != usual) lines->add(option, {value ? "yes" : "no"});
  };
  add_flag("deny-scripts-reconfig", settings.deny_scripts_reconfig, defaults.deny_scripts_reconfig);
  add_flag("resolve-hostnames", settings.resolve_hostnames, defaults.resolve_hostnames);
  add_flag("announce-hostnames", settings.announce_hostnames, defaults.announce_hostnames);
  lines->add_text("announce-ip", {settings.announce_ip});
  if (settings.announce_port != 0)
    lines->add("announce-port", {std::to_string(settings.announce_port)});
  lines->add_text("sentinel-user", {settings.sentinel_user});
  lines->add_text("sentinel-pass", {settings.sentinel_pass});
}

void add_master_settings(const Master& master, const server::Edition& edition, Lines* lines) {
  const Periods usual;
  const std::string& name = master.name;
  const auto add_number = [&](std::string_view option, int64_t value, int64_t usual_value) {
    if (value != usual_value) lines->add(option, {name, std::to_string(value)});
  };
  add_number("down-after-milliseconds", master.down_after_ms, usual.default_down_after);
  add_number("failover-timeout", master.failover_timeout_ms, usual.default_failover_timeout);
  add_number("parallel-syncs", master.parallel_syncs, 1);
  add_number(edition.is_valkey_since({8, 0}) ? kRebootDownAfterOfValkey : kRebootDownAfter,
             master.reboot_down_after_ms, 0);
  lines->add_text("notification-script", {name, master.notification_script});
  lines->add_text("client-reconfig-script", {name, master.reconfig_script});
  lines->add_text("auth-pass", {name, master.auth_pass});
  lines->add_text("auth-user", {name, master.auth_user});
  for (const auto& [from, to] : master.renamed_commands)
    lines->add("rename-command", {name, from, to});
}

void add_master(Sentinel& sentinel, const Master& master, const server::Edition& edition,
                Lines* lines) {
  const std::string& name = master.name;
  // A replica that was promoted is the master already, and the master will be its replica.
  const Address& current = Sentinel::current_address(master);
  const auto host = [&](const Address& address) { return sentinel.announced_host(address); };
  lines->add("monitor",
             {name, host(current), std::to_string(current.port), std::to_string(master.quorum)});
  add_master_settings(master, edition, lines);
  lines->add("config-epoch", {name, std::to_string(master.config_epoch)});
  lines->add("leader-epoch", {name, std::to_string(master.leader_epoch)});
  for (const auto& [key, replica] : master.replicas) {
    const Address& address = replica->address == current ? master.address : replica->address;
    lines->add("known-replica", {name, host(address), std::to_string(address.port)});
  }
  for (const auto& [id, other] : master.sentinels) {
    lines->add("known-sentinel",
               {name, host(other->address), std::to_string(other->address.port), id});
  }
}

}  // namespace

std::vector<std::string> directive_lines(Sentinel& sentinel, const server::Edition& edition) {
  Lines lines;
  lines.add("myid", {sentinel.id()});
  add_settings(sentinel.settings(), &lines);
  for (const auto& [name, master] : sentinel.masters())
    add_master(sentinel, *master, edition, &lines);
  lines.add("current-epoch", {std::to_string(sentinel.current_epoch())});
  return lines.take();
}

}  // namespace latchkey::sentinel

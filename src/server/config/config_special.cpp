// Directives with a syntax of their own.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "base/port.h"
#include "base/text/number.h"
#include "base/text/text.h"
#include "server/config/cluster_shutdown.h"
#include "server/config/config.h"
#include "server/config/config_kinds.h"
#include "server/config/config_parse.h"
#include "server/emulation/later_directives.h"
#include "server/emulation/release_defaults.h"

namespace latchkey::server {

using base::fail;
using base::Result;

namespace {

constexpr size_t kMaxBindAddresses = 16;
constexpr int64_t kMaxOomScore = 2000;
constexpr int kSlowestHz = 1;
constexpr int kFastestHz = 500;
constexpr int64_t kSmallestBacklogBytes = 16 * 1024;
constexpr unsigned kMaxPermissions = 0777;

std::string join(const std::vector<std::string>& words) {
  std::string joined;
  for (const auto& word : words) joined.append(joined.empty() ? "" : " ").append(word);
  return joined;
}

std::string or_empty_quotes(std::string value) {
  return value.empty() ? "\"\"" : value;
}

// A row whose line in the file is `""` for an empty value.
Directive list_row(Names names, unsigned flags, decltype(Directive::parse) parse,
                   decltype(Directive::format) format, bool always_written = false) {
  Directive row = special(names, flags | kManyValues, std::move(parse), std::move(format));
  row.rewrite = [name = names.name, show = row.format, always_written](
                    const ConfigValues& values, const ConfigValues& defaults) {
    const std::string value = show(values);
    return std::vector<RewriteLine>{{std::string(name) + ' ' + or_empty_quotes(value),
                                     always_written || value != show(defaults)}};
  };
  return row;
}

using Addresses = std::vector<std::string>;

constexpr char kNoRdma[] = "No RDMA building support.";

Result<Addresses> parse_addresses(DirectiveArguments arguments) {
  if (arguments.size() > kMaxBindAddresses) return fail("Too many bind addresses specified.");
  // A single empty address means no address at all.
  if (arguments.size() == 1 && arguments[0].empty()) return Addresses();
  return Addresses(arguments.begin(), arguments.end());
}

Directive addresses(const char* name, Addresses ConfigValues::*member, unsigned flags,
                    decltype(Directive::parse) parse) {
  Directive row = special(name, flags | kManyValues, std::move(parse),
                          [=](const ConfigValues& values) { return join(values.*member); });
  row.rewrite = [=](const ConfigValues& values, const ConfigValues& defaults) {
    std::string line = name;
    if ((values.*member).empty()) line.append(" \"\"");
    for (const auto& address : values.*member) line.append(" ").append(quote_if_needed(address));
    return std::vector<RewriteLine>{{std::move(line), values.*member != defaults.*member}};
  };
  return row;
}

}  // namespace

Directive bind_directive() {
  return addresses("bind", &ConfigValues::bind, 0,
                   [](DirectiveArguments arguments, DirectiveContext& context) -> Result<> {
                     auto parsed = parse_addresses(arguments);
                     if (!parsed) return parsed.failure();
                     context.values.bind = std::move(*parsed);
                     return {};
                   });
}

Directive rdma_bind_directive() {
  return addresses("rdma-bind", &ConfigValues::rdma_bind, kOfValkey,
                   [](DirectiveArguments arguments, DirectiveContext& context) -> Result<> {
                     auto parsed = parse_addresses(arguments);
                     if (!parsed) return parsed.failure();
                     if (!context.from_file) return fail(kNoRdma);
                     context.values.rdma_bind = std::move(*parsed);
                     return {};
                   });
}

Directive rdma_port_directive() {
  return special(
      "rdma-port", kOfValkey,
      [](DirectiveArguments arguments, DirectiveContext& context) -> Result<> {
        auto port = parse_whole(arguments[0], 0, base::kLastPort);
        if (!port) return port.failure();
        if (!context.from_file && *port != context.values.rdma_port) return fail(kNoRdma);
        context.values.rdma_port = static_cast<int>(*port);
        return {};
      },
      [](const ConfigValues& values) { return std::to_string(values.rdma_port); });
}

namespace {

constexpr std::array<std::string_view, 3> kBufferClasses = {"normal", "slave", "pubsub"};
constexpr std::array<std::string_view, 3> kBufferClassesInFile = {"normal", "replica", "pubsub"};

int buffer_class(std::string_view word) {
  for (size_t i = 0; i < kBufferClasses.size(); ++i) {
    if (base::equal_ignoring_case(word, kBufferClasses[i]) ||
        base::equal_ignoring_case(word, kBufferClassesInFile[i])) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

Result<> parse_buffer_limits(DirectiveArguments arguments, DirectiveContext& context) {
  constexpr size_t kWords = 4;
  if (arguments.size() % kWords != 0) {
    return fail("Wrong number of arguments in buffer limit configuration.");
  }
  for (size_t at = 0; at < arguments.size(); at += kWords) {
    const int index = buffer_class(arguments[at]);
    if (index < 0) {
      return fail("Invalid client class specified in buffer limit configuration.");
    }
    const auto hard = parse_memory(arguments[at + 1]);
    const auto soft = parse_memory(arguments[at + 2]);
    int64_t seconds = 0;
    if (!hard || !soft || !base::parse_int64(arguments[at + 3], &seconds) || seconds < 0) {
      return fail("Error in hard, soft or soft_seconds setting in buffer limit configuration.");
    }
    context.values.client_output_buffer_limit[static_cast<size_t>(index)] = {*hard, *soft, seconds};
  }
  return {};
}

std::vector<RewriteLine> buffer_limit_lines(const ConfigValues& values,
                                            const ConfigValues& defaults) {
  std::vector<RewriteLine> lines;
  for (size_t i = 0; i < kBufferClasses.size(); ++i) {
    const auto& limit = values.client_output_buffer_limit[i];
    std::string line = "client-output-buffer-limit ";
    line.append(kBufferClassesInFile[i]).append(" ");
    line.append(format_memory(limit.hard_limit_bytes)).append(" ");
    line.append(format_memory(limit.soft_limit_bytes)).append(" ");
    line.append(std::to_string(limit.soft_limit_seconds));
    lines.push_back({std::move(line), limit != defaults.client_output_buffer_limit[i]});
  }
  return lines;
}

}  // namespace

Directive client_output_buffer_limit_directive() {
  Directive row = special("client-output-buffer-limit", kManyValues, parse_buffer_limits,
                          [](const ConfigValues& values) {
                            std::string shown;
                            for (size_t i = 0; i < kBufferClasses.size(); ++i) {
                              const auto& limit = values.client_output_buffer_limit[i];
                              shown.append(shown.empty() ? "" : " ").append(kBufferClasses[i]);
                              shown.append(" ").append(std::to_string(limit.hard_limit_bytes));
                              shown.append(" ").append(std::to_string(limit.soft_limit_bytes));
                              shown.append(" ").append(std::to_string(limit.soft_limit_seconds));
                            }
                            return shown;
                          });
  row.rewrite = buffer_limit_lines;
  return row;
}

Directive dir_directive() {
  Directive row = special(
      "dir", kProtectedDirective | kDenyLoading,
      [](DirectiveArguments arguments, DirectiveContext& context) -> Result<> {
        if (auto changed = context.directory.change(arguments[0]); !changed) return changed;
        context.values.dir = context.directory.current();
        return {};
      },
      [](const ConfigValues& values) { return values.dir; });
  row.rewrite = [](const ConfigValues& values, const ConfigValues&) {
    return std::vector<RewriteLine>{{"dir " + quote_argument(values.dir), true}};
  };
  return row;
}

Directive emulate_directive() {
  return special(
      "emulate", kImmutable | kHidden | kManyValues,
      [](DirectiveArguments arguments, DirectiveContext& context) -> Result<> {
        std::string name;
        for (const std::string& word : arguments) name.append(name.empty() ? "" : " ").append(word);
        const auto edition = Edition::parse(name);
        if (!edition) return fail(not_one_of(Edition::known()));
        change_edition(*edition, &context.values);
        return {};
      },
      [](const ConfigValues& values) { return values.edition.text(); });
}

Directive hz_directive() {
  return special(
      "hz", 0,
      [](DirectiveArguments arguments, DirectiveContext& context) -> Result<> {
        auto hz = parse_whole(arguments[0], 0, kMaxInt);
        if (!hz) return hz.failure();
        context.values.hz = static_cast<int>(std::clamp<int64_t>(*hz, kSlowestHz, kFastestHz));
        return {};
      },
      [](const ConfigValues& values) { return std::to_string(values.hz); });
}

namespace {

Result<> parse_percentiles(DirectiveArguments arguments, DirectiveContext& context) {
  std::vector<double> percentiles;
  for (const auto& word : arguments) {
    double percentile = 0;
    if (!base::parse_double(word, &percentile)) {
      return fail("Invalid latency-tracking-info-percentiles parameters");
    }
    if (percentile < 0.0 || percentile > 100.0) {
      return fail("latency-tracking-info-percentiles parameters should sit between [0.0,100.0]");
    }
    percentiles.push_back(percentile);
  }
  context.values.latency_tracking_info_percentiles = std::move(percentiles);
  return {};
}

std::string format_percentiles(const ConfigValues& values) {
  std::vector<std::string> words;
  for (const double percentile : values.latency_tracking_info_percentiles) {
    std::array<char, 32> text{};
    snprintf(text.data(), text.size(), "%g", percentile);
    words.emplace_back(text.data());
  }
  return join(words);
}

}  // namespace

Directive latency_percentiles_directive() {
  return list_row("latency-tracking-info-percentiles", 0, parse_percentiles, format_percentiles,
                  true);
}

Directive bytes_or_percent_directive(const char* name, int64_t ConfigValues::*member) {
  Directive row = special(
      name, 0,
      [member](DirectiveArguments arguments, DirectiveContext& context) -> Result<> {
        constexpr uint64_t kWhole = 100;
        std::string_view amount = arguments[0];
        if (!amount.ends_with('%')) {
          const auto bytes = parse_memory(amount);
          if (!bytes) return fail("argument must be a memory or percent value");
          // The reference takes larger numbers for negative ones, which are percentages.
          if (*bytes > static_cast<uint64_t>(kMaxInt64))
            return fail("percentage argument must be less or equal to 100");
          context.values.*member = static_cast<int64_t>(*bytes);
          return {};
        }
        amount.remove_suffix(1);
        uint64_t percent = 0;
        if (!base::parse_uint64(amount, &percent)) {
          return fail("argument must be a memory or percent value");
        }
        if (percent > kWhole) {
          return fail("percentage argument must be less or equal to 100");
        }
        context.values.*member = -static_cast<int64_t>(percent);
        return {};
      },
      [member](const ConfigValues& values) {
        const int64_t amount = values.*member;
        return amount < 0 ? std::to_string(-amount) + '%' : std::to_string(amount);
      });
  row.rewrite = [name = std::string(name), member](const ConfigValues& values,
                                                   const ConfigValues& defaults) {
    const int64_t amount = values.*member;
    std::string shown =
        amount < 0 ? std::to_string(-amount) + '%' : format_memory(static_cast<uint64_t>(amount));
    return std::vector<RewriteLine>{{name + " " + shown, amount != defaults.*member}};
  };
  return row;
}

namespace {

struct EventClass {
  char letter;
  unsigned bit;
};

// The classes in the order of CONFIG GET.
constexpr std::array<EventClass, 15> kEventClasses = {{
    {'g', kNotifyGeneric},
    {'$', kNotifyString},
    {'l', kNotifyList},
    {'s', kNotifySet},
    {'h', kNotifyHash},
    {'z', kNotifySortedSet},
    {'x', kNotifyExpired},
    {'e', kNotifyEvicted},
    {'t', kNotifyStream},
    {'d', kNotifyModule},
    {'a', kNotifyArray},
    {'n', kNotifyNewKey},
    {'o', kNotifyOverwritten},
    {'c', kNotifyTypeChanged},
    {'A', kNotifyAll},
}};

// Shown after kEventClasses, even when those are abbreviated as A.
constexpr std::array<EventClass, 7> kLastEventClasses = {{
    {'K', kNotifyKeyspace},
    {'E', kNotifyKeyevent},
    {'m', kNotifyKeyMiss},
    {'S', kNotifySubkeyspace},
    {'T', kNotifySubkeyevent},
    {'I', kNotifySubkeyspaceItem},
    {'V', kNotifySubkeyspaceEvent},
}};

unsigned event_bit(char letter) {
  for (const auto& event : kEventClasses) {
    if (event.letter == letter) return event.bit;
  }
  for (const auto& event : kLastEventClasses) {
    if (event.letter == letter) return event.bit;
  }
  return 0;
}

std::string format_events(unsigned events) {
  std::string letters;
  if ((events & kNotifyAll) == kNotifyAll) {
    letters.push_back('A');
  } else {
    for (const auto& event : kEventClasses) {
      if (event.bit != kNotifyAll && (events & event.bit) != 0) letters.push_back(event.letter);
    }
  }
  for (const auto& event : kLastEventClasses) {
    if ((events & event.bit) != 0) letters.push_back(event.letter);
  }
  return letters;
}

}  // namespace

Directive notify_keyspace_events_directive() {
  Directive row = special(
      // The text does not tell whether there is an n beside A.
      "notify-keyspace-events", kActsAlways,
      [](DirectiveArguments arguments, DirectiveContext& context) -> Result<> {
        unsigned events = 0;
        for (const char letter : arguments[0]) {
          const unsigned bit = event_bit(letter);
          if (bit == 0 || !has_event_class(context.values.edition, letter)) {
            return fail("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.");
          }
          events |= bit;
        }
        // Who names all classes that there were before arrays means A.
        constexpr unsigned kWithoutArrays = kNotifyAll & ~kNotifyArray;
        if ((events & kWithoutArrays) == kWithoutArrays) events |= kNotifyArray;
        context.values.notify_keyspace_events = events;
        return {};
      },
      [](const ConfigValues& values) { return format_events(values.notify_keyspace_events); });
  row.rewrite = [](const ConfigValues& values, const ConfigValues& defaults) {
    const unsigned events = values.notify_keyspace_events;
    return std::vector<RewriteLine>{
        {"notify-keyspace-events " + quote_argument(format_events(events)),
         events != defaults.notify_keyspace_events}};
  };
  return row;
}

Directive cluster_slot_stats_directive() {
  static constexpr std::pair<std::string_view, unsigned> kWords[] = {{"no", 0},
                                                                     {"yes", kSlotStatsAll},
                                                                     {"cpu", kSlotStatsCpu},
                                                                     {"net", kSlotStatsNetwork},
                                                                     {"mem", kSlotStatsMemory}};
  return list_row(
      "cluster-slot-stats-enabled", 0,
      [](DirectiveArguments arguments, DirectiveContext& context) -> Result<> {
        unsigned bits = 0;
        for (const std::string& argument : arguments) {
          const auto known = std::find_if(
              std::begin(kWords), std::end(kWords),
              [&](const auto& word) { return base::equal_ignoring_case(argument, word.first); });
          if (known == std::end(kWords)) return fail(not_one_of("no, yes, cpu, net, mem"));
          bits |= known->second;
        }
        if (arguments.empty()) return fail(not_one_of("no, yes, cpu, net, mem"));
        context.values.cluster_slot_stats_enabled = bits;
        return {};
      },
      [](const ConfigValues& values) {
        const unsigned bits = values.cluster_slot_stats_enabled;
        if (bits == 0) return std::string("no");
        if (bits == kSlotStatsAll) return std::string("yes");
        std::vector<std::string> words;
        for (const auto& [word, bit] : kWords) {
          if (bit != 0 && bit != kSlotStatsAll && (bits & bit) != 0) words.emplace_back(word);
        }
        return join(words);
      });
}

Directive oom_score_adj_values_directive() {
  return list_row(
      "oom-score-adj-values", 0,
      [](DirectiveArguments arguments, DirectiveContext& context) -> Result<> {
        auto& scores = context.values.oom_score_adj_values;
        if (arguments.size() != scores.size()) return fail("wrong number of arguments");
        for (size_t i = 0; i < scores.size(); ++i) {
          int64_t score = 0;
          if (!base::parse_int64(arguments[i], &score) || score < -kMaxOomScore ||
              score > kMaxOomScore) {
            return fail("Invalid oom-score-adj-values, elements must be between -2000 and 2000.");
          }
          scores[i] = static_cast<int>(score);
        }
        return {};
      },
      [](const ConfigValues& values) {
        std::vector<std::string> words;
        for (const int score : values.oom_score_adj_values) words.push_back(std::to_string(score));
        return join(words);
      });
}

// `auto` is shown as the port that the system gave, and written as `auto` again.
Directive port_directive() {
  Directive row = special(
      "port", 0,
      [](DirectiveArguments arguments, DirectiveContext& context) -> Result<> {
        ConfigValues& values = context.values;
        if (base::equal_ignoring_case(arguments[0], "auto")) {
          // A server that has been given a port keeps it.
          if (!values.port_auto || context.from_file) values.port = 0;
          values.port_auto = true;
          return {};
        }
        auto port = parse_whole(arguments[0], 0, base::kLastPort);
        if (!port) return port.failure();
        values.port = static_cast<int>(*port);
        values.port_auto = false;
        return {};
      },
      [](const ConfigValues& values) {
        return values.port_auto && values.port == 0 ? "auto" : std::to_string(values.port);
      });
  row.rewrite = [](const ConfigValues& values, const ConfigValues& defaults) {
    const std::string port = values.port_auto ? "auto" : std::to_string(values.port);
    return std::vector<RewriteLine>{
        {"port " + port, values.port_auto || values.port != defaults.port}};
  };
  return row;
}

Directive repl_backlog_size_directive() {
  Directive row = memory("repl-backlog-size", &ConfigValues::repl_backlog_size, 1,
                         static_cast<uint64_t>(kMaxInt64));
  row.parse = [parse = std::move(row.parse)](DirectiveArguments arguments,
                                             DirectiveContext& context) -> Result<> {
    if (auto parsed = parse(arguments, context); !parsed) return parsed;
    auto& bytes = context.values.repl_backlog_size;
    if (!context.from_file) bytes = std::max(bytes, kSmallestBacklogBytes);
    return {};
  };
  return row;
}

Directive replicaof_directive() {
  Directive row = special(
      {"replicaof", "slaveof"}, kImmutable | kManyValues,
      [](DirectiveArguments arguments, DirectiveContext& context) -> Result<> {
        if (arguments.size() != 2) return fail("wrong number of arguments");
        int64_t port = 0;
        std::string host;
        if (!base::equal_ignoring_case(arguments[0], "no") ||
            !base::equal_ignoring_case(arguments[1], "one")) {
          if (!base::parse_int64(arguments[1], &port) || port < 0 || port > base::kLastPort) {
            return fail("Invalid master port");
          }
          host = arguments[0];
        }
        context.values.replicaof_host = std::move(host);
        context.values.replicaof_port = static_cast<int>(port);
        return {};
      },
      [](const ConfigValues& values) {
        if (values.replicaof_host.empty()) return std::string();
        return values.replicaof_host + ' ' + std::to_string(values.replicaof_port);
      });
  row.rewrite = [](const ConfigValues& values, const ConfigValues&) {
    std::vector<RewriteLine> lines;
    // In a cluster the cluster's own file stores the master of a replica.
    if (!values.replicaof_host.empty() && !values.cluster_enabled) {
      lines.push_back({"replicaof " + quote_if_needed(values.replicaof_host) + ' ' +
                           std::to_string(values.replicaof_port),
                       true});
    }
    return lines;
  };
  return row;
}

namespace {

// More lenient than other numbers, as the reference is: accepts leading spaces and zeros, a plus
// sign, and an empty word for 0.
bool parse_save_number(const std::string& word, int64_t* value) {
  char* end = nullptr;
  errno = 0;
  *value = strtoll(word.c_str(), &end, 10);
  return *end == '\0' && errno == 0;
}

Result<> parse_save(DirectiveArguments arguments, DirectiveContext& context) {
  std::vector<SavePoint> points;
  const bool none = arguments.empty() || (arguments.size() == 1 && arguments[0].empty());
  if (!none) {
    if (arguments.size() % 2 != 0) return fail("Invalid save parameters");
    for (size_t at = 0; at < arguments.size(); at += 2) {
      SavePoint point;
      if (!parse_save_number(arguments[at], &point.seconds) || point.seconds < 1 ||
          !parse_save_number(arguments[at + 1], &point.changes) || point.changes < 0) {
        return fail("Invalid save parameters");
      }
      points.push_back(point);
    }
  }
  auto& save = context.values.save;
  // Lines of one configuration add up, except that `save ""` clears those before it.
  const bool adds = context.from_file && !context.first_line && !none;
  if (!adds) save.clear();
  save.insert(save.end(), points.begin(), points.end());
  return {};
}

std::string format_save(const ConfigValues& values) {
  std::vector<std::string> words;
  for (const auto& point : values.save) {
    words.push_back(std::to_string(point.seconds) + ' ' + std::to_string(point.changes));
  }
  return join(words);
}

}  // namespace

Directive save_directive() {
  Directive row = special("save", kManyValues, parse_save, format_save);
  row.rewrite = [](const ConfigValues& values, const ConfigValues&) {
    std::vector<RewriteLine> lines;
    for (const auto& point : values.save) {
      lines.push_back(
          {"save " + std::to_string(point.seconds) + ' ' + std::to_string(point.changes), true});
    }
    if (lines.empty()) lines.push_back({"save \"\"", true});
    return lines;
  };
  return row;
}

namespace {

struct ShutdownWord {
  std::string_view word;
  unsigned bit;
  Version redis = {};
  Version valkey = {};
};

constexpr std::array<ShutdownWord, 7> kShutdownWords = {{
    {"default", 0},
    {"save", kShutdownSave},
    {"nosave", kShutdownNosave},
    {"now", kShutdownNow},
    {"force", kShutdownForce},
    {"safe", kShutdownSafe, kNever, {9, 0}},
    {"failover", kShutdownFailover, kNever, {9, 0}},
}};

// The words that the emulated release has: "default, save, nosave".
std::string known_shutdown_words(const Edition& edition) {
  std::string words;
  for (const auto& known : kShutdownWords) {
    if (!edition.has(known.redis, known.valkey)) continue;
    if (!words.empty()) words += ", ";
    words += known.word;
  }
  return words;
}

bool parse_shutdown_word(const Edition& edition, std::string_view word, unsigned* bits) {
  for (const auto& known : kShutdownWords) {
    if (!base::equal_ignoring_case(word, known.word)) continue;
    if (!edition.has(known.redis, known.valkey)) continue;
    *bits |= known.bit;
    return true;
  }
  return false;
}

}  // namespace

Directive shutdown_directive(Names names, unsigned ConfigValues::*member) {
  return special(
      names, kManyValues,
      [=](DirectiveArguments arguments, DirectiveContext& context) -> Result<> {
        unsigned bits = 0;
        bool known = !arguments.empty();
        const Edition& edition = context.values.edition;
        for (const auto& word : arguments)
          known = known && parse_shutdown_word(edition, word, &bits);
        if (!known) return fail(not_one_of(known_shutdown_words(edition)));
        if ((bits & kShutdownSave) != 0 && (bits & kShutdownNosave) != 0) {
          return fail("shutdown options SAVE and NOSAVE can't be used simultaneously");
        }
        context.values.*member = bits;
        return {};
      },
      [=](const ConfigValues& values) {
        std::vector<std::string> words;
        for (const auto& known : kShutdownWords) {
          if ((values.*member & known.bit) != 0) words.emplace_back(known.word);
        }
        return words.empty() ? "default" : join(words);
      });
}

Directive unixsocketperm_directive() {
  return special(
      "unixsocketperm", kImmutable,
      [](DirectiveArguments arguments, DirectiveContext& context) -> Result<> {
        char* end = nullptr;
        const std::string& word = arguments[0];
        const long permissions = strtol(word.c_str(), &end, 8);
        if (*end != '\0') return fail("argument couldn't be parsed as an octal number");
        if (permissions < 0 || permissions > static_cast<long>(kMaxPermissions)) {
          return fail(out_of_range("0", "777"));
        }
        context.values.unixsocketperm = static_cast<unsigned>(permissions);
        return {};
      },
      [](const ConfigValues& values) {
        std::array<char, 16> octal{};
        snprintf(octal.data(), octal.size(), "%o", values.unixsocketperm);
        return std::string(octal.data());
      });
}

}  // namespace latchkey::server

#include "composition/config_check.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "composition/whole_server.h"
#include "server/config/config.h"
#include "server/process/ping.h"
#include "server/process/write_advice.h"

namespace latchkey::composition {

using server::ConfigError;

namespace {

// Data that cannot be written is noticed late, by the first save.
void check_directory(const server::ConfigValues& values, std::vector<ConfigError>* problems) {
  const bool writes = !values.save.empty() || values.appendonly || values.cluster_enabled;
  if (!writes || values.sentinel_mode || access(values.dir.c_str(), W_OK) == 0) return;
  const int error = errno;
  problems->push_back(
      ConfigError::of(ConfigError::Kind::kWhole,
                      "Data cannot be written to " + values.dir + ": " + strerror(error)));
  problems->back().hint = server::advise_on_write_error(values.dir, error);
}

int lines_of(std::string_view text) {
  const auto newlines = static_cast<int>(std::count(text.begin(), text.end(), '\n'));
  return newlines + (text.empty() || text.ends_with('\n') ? 0 : 1);
}

// How many lines each part of a configuration has; the options follow as one text.
struct PartLines {
  int file = 0;
  int input = 0;
};

class Report {
 public:
  Report(std::string path, PartLines lines) : path_(std::move(path)), lines_(lines) {}

  void add(const ConfigError& problem) {
    if (problem.line > 0) {
      text_.append(place_of(problem)).append(problem.line_text).append("\n  ");
    }
    // Beside the reason that a start would log, its message is that the server stops.
    const bool reason_in_hint = problem.kind == ConfigError::Kind::kFile && !problem.hint.empty();
    if (!reason_in_hint) text_.append(problem.message).append("\n  ");
    text_.append(problem.hint);
    text_.erase(text_.find_last_not_of("\n ") + 1);
    text_.append("\n");
  }

  std::string take() { return std::move(text_); }

 private:
  std::string place_of(const ConfigError& problem) const {
    const auto at = [](const std::string& place, int line) {
      return place + ":" + std::to_string(line) + ": ";
    };
    const bool included = !problem.file.empty() && problem.file != path_;
    if (included) return at(problem.file, problem.line);
    if (problem.line <= lines_.file) return at(path_, problem.line);
    const int after_file = problem.line - lines_.file;
    if (after_file <= lines_.input) return at("standard input", after_file);
    return "command line: ";
  }

  std::string path_;
  PartLines lines_;
  std::string text_;
};

}  // namespace

ConfigCheck check_configuration(const server::CommandLine& line) {
  auto config = std::make_unique<server::Config>();
  if (line.sentinel) config->be_sentinel();
  const std::string input =
      line.read_stdin ? base::read_all(STDIN_FILENO).value_or("") : std::string();
  std::vector<ConfigError> problems = config->check(line.config_path, line.configuration(input));
  const PartLines lines{.file = config->lines_of_file(), .input = lines_of(input)};
  check_directory(config->values(), &problems);

  base::Logger log;
  log.set_level(base::LogLevel::kNothing);
  base::SystemClock clock;
  for (ConfigError& problem : WholeServer::check(std::move(config), {.clock = clock, .log = log}))
    problems.push_back(std::move(problem));

  Report report(line.config_path, lines);
  for (const ConfigError& problem : problems) report.add(problem);
  ConfigCheck check{.fine = problems.empty(), .report = report.take()};
  const std::string count = std::to_string(problems.size());
  check.report.append(problems.empty()       ? "No problems found"
                      : problems.size() == 1 ? "1 problem"
                                             : count + " problems");
  check.report.append("\n");
  return check;
}

int ping_server(const server::CommandLine& line) {
  server::Config config;
  if (line.sentinel) config.be_sentinel();
  const std::string input =
      line.read_stdin ? base::read_all(STDIN_FILENO).value_or("") : std::string();
  // Contradictions and the log file are the server's business, which may serve in spite of them.
  for (const ConfigError& problem : config.check(line.config_path, line.configuration(input))) {
    if (problem.kind == ConfigError::Kind::kWhole) continue;
    std::fputs(problem.report().c_str(), stderr);
    return 1;
  }
  const server::PingResult result = server::ping(config.values());
  std::fputs((result.text + "\n").c_str(), result.serves ? stdout : stderr);
  return result.serves ? 0 : 1;
}

}  // namespace latchkey::composition

// Whole servers in one process, on virtual time, from a seed.
//
//   simulate --seeds N [--first S]   runs of N seeds, from S (1) on; prints those that fail and, at
//                                    last, "N passed, N failed"
//   simulate --seed S [--logs PATH]  one, with a line for each step, the servers' logs in PATH0,
//   ...
//
// A seed that ends the process (an assertion, a sanitizer, a minute without an end) is named on a
// line "died in seed S" with the last steps.
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "base/assert.h"
#include "simulation/steps.h"
#include "simulation/world.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace latchkey::simulation {

namespace {

constexpr unsigned kMaxSecondsPerSeed = 60;

// For reports of death.
uint64_t current_seed = 0;
const Steps* current_steps = nullptr;

void report_death() {
  if (current_steps == nullptr) return;
  std::printf("died in seed %llu; the last steps:\n%s",
              static_cast<unsigned long long>(current_seed), current_steps->last().c_str());
  std::fflush(stdout);
  current_steps = nullptr;
}

void on_signal(int number) {
  report_death();
  std::signal(number, SIG_DFL);
  std::raise(number);
}

void watch_over_process() {
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGALRM, on_signal);
  std::signal(SIGABRT, on_signal);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_set_death_callback(report_death);
#else
  std::signal(SIGSEGV, on_signal);
#endif
}

std::string own_directory() {
  std::string pattern = std::filesystem::temp_directory_path() / "latchkey-simulation-XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) {
    std::perror("mkdtemp");
    std::exit(2);
  }
  return pattern;
}

// False when a check has failed.
bool run_seed(uint64_t seed, bool aloud, const std::string& logs) {
  const std::string directory = own_directory();
  Steps steps(aloud);
  current_seed = seed;
  current_steps = &steps;
  alarm(kMaxSecondsPerSeed);
  bool passed = true;
  try {
    World world(seed, directory, steps, logs);
    world.run();
  } catch (const std::exception& failure) {
    passed = false;
    std::printf("seed %llu failed: %s\nthe last steps:\n%s", static_cast<unsigned long long>(seed),
                failure.what(), steps.last().c_str());
  }
  if (aloud) {
    std::printf("%zu steps, digest %016llx\n", steps.count(),
                static_cast<unsigned long long>(steps.digest()));
  }
  alarm(0);
  current_steps = nullptr;
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
  std::fflush(stdout);
  return passed;
}

bool read_number(std::string_view text, uint64_t* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

int main(int argc, char** argv) {
  uint64_t first = 1;
  uint64_t count = 0;
  bool aloud = false;
  std::string logs;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view option = argv[i];
    uint64_t number = 0;
    const bool has_number = i + 1 < argc && read_number(argv[i + 1], &number);
    if (option == "--seeds" && has_number) {
      count = number;
    } else if (option == "--first" && has_number) {
      first = number;
    } else if (option == "--seed" && has_number) {
      first = number;
      count = 1;
      aloud = true;
    } else if (option == "--logs" && i + 1 < argc) {
      logs = argv[i + 1];
    } else {
      std::fprintf(stderr, "usage: simulate --seeds N [--first S] | --seed S [--logs PATH]\n");
      return 2;
    }
  }
  watch_over_process();
  uint64_t failed = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    if (!run_seed(seed, aloud, logs)) ++failed;
  }
  std::printf("%llu passed, %llu failed\n", static_cast<unsigned long long>(count - failed),
              static_cast<unsigned long long>(failed));
  return failed == 0 ? 0 : 1;
}

}  // namespace

}  // namespace latchkey::simulation

int main(int argc, char** argv) {
  return latchkey::simulation::main(argc, argv);
}

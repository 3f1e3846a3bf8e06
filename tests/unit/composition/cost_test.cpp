// What an empty whole server costs. The figures are printed by
//
//     unit-tests "[cost]"
#include <cstdio>
#include <ctime>
#include <memory>
#include <vector>

#include "composition/whole_server.h"
#include "unit/catch.h"
#include "unit/composition/allocated_bytes.h"
#include "unit/required.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

using composition::WholeServer;

constexpr size_t kServers = 100;

struct Cost {
  size_t bytes = 0;
  double make_us = 0;
  double destroy_us = 0;
};

// CPU time of this thread, which others on the machine do not add to.
double cpu_us() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

// Of each of many servers on one loop, the first left out, which makes what all share.
Cost measure(std::string_view settings) {
  base::VirtualClock clock;
  base::Logger log;
  log.set_level(base::LogLevel::kNothing);
  net::Loop loop;
  const auto make = [&] {
    return required(WholeServer::make_space(settings, {.clock = clock, .log = log, .loop = &loop}));
  };
  const auto first = make();
  std::vector<std::unique_ptr<WholeServer>> servers;
  servers.reserve(kServers);
  Cost cost;
  const size_t before = allocated_bytes();
  double start = cpu_us();
  for (size_t i = 0; i < kServers; ++i) servers.push_back(make());
  cost.make_us = (cpu_us() - start) / kServers;
  cost.bytes = (allocated_bytes() - before) / kServers;
  start = cpu_us();
  servers.clear();
  loop.run_once();
  cost.destroy_us = (cpu_us() - start) / kServers;
  return cost;
}

}  // namespace

TEST_CASE("An empty whole server is small", "[composition]") {
  constexpr size_t kMaxBytes = 64 * 1024;
  CHECK(measure("").bytes < kMaxBytes);
}

TEST_CASE("What an empty whole server costs", "[.cost]") {
  const auto print = [](const char* what, const Cost& cost) {
    std::printf("%-13s %6zu bytes, %6.1f us of CPU to make, %6.1f us to destroy\n", what,
                cost.bytes, cost.make_us, cost.destroy_us);
  };
  print("16 databases:", measure(""));
  print("1 database:", measure("databases 1\n"));
}

}  // namespace latchkey::tests

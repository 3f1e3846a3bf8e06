#include "composition/space_host.h"

#include <utility>

#include "base/log.h"
#include "composition/whole_server.h"

namespace latchkey::composition {

using base::fail;
using base::Result;

namespace {

constexpr char kNotHere[] = "a space has none of its own";

class SpaceHost final : public testing::SpaceServer {
 public:
  static Result<std::unique_ptr<SpaceServer>, server::ConfigError> make(
      WholeServer& main, const server::Edition& edition, base::Clock& clock, net::Loop& loop) {
    std::unique_ptr<SpaceHost> host(new SpaceHost);
    host->log_.set_level(main.server().log().level());
    host->log_.set_file(main.server().log().file());
    host->log_.set_format(main.server().settings().log_format,
                          main.server().settings().log_timestamp_format);
    host->log_.set_standard_stream(main.server().log().standard_stream());
    auto made =
        WholeServer::make_space("emulate " + edition.text() + '\n',
                                {.clock = clock, .log = host->log_, .loop = &loop}, &main.config());
    if (!made) return made.failure();
    host->whole_ = *std::move(made);
    host->protect_as(main.config().values());
    host->refuse_settings(main.config().values());
    return host;
  }

  server::Server& server() override { return whole_->server(); }

 private:
  SpaceHost() = default;

  // What can harm the process is as protected as in the first server, whatever the release has for
  // a default.
  void protect_as(const server::ConfigValues& main) {
    server::ConfigValues& values = whole_->config().mutable_values();
    values.enable_debug_command = main.enable_debug_command;
    values.enable_protected_configs = main.enable_protected_configs;
  }

  // Settings of what a space does not have can be read, and set to what they are.
  void refuse_settings(const server::ConfigValues& main) {
    server::Config& config = whole_->config();
    const auto refuse = []() -> Result<> { return fail(kNotHere); };
    config.check_change({"port", "tls-port", "tls-replication", "tls-cluster", "bind",
                         "exit-when-idle", "jemalloc-bg-thread"},
                        refuse);
    config.check_change({"max-spaces", "space-maxmemory", "space-linger-ms"},
                        []() -> Result<> { return fail("only the first server has spaces"); });
    config.check_change({"maxmemory"}, [&config, &main]() -> Result<> {
      const uint64_t limit = main.space_maxmemory;
      const uint64_t wanted = config.values().maxmemory;
      if (limit == 0 || (wanted != 0 && wanted <= limit)) return {};
      return fail("a space may have as much as space-maxmemory allows");
    });
    config.check_change({"save", "appendonly"}, [&config]() -> Result<> {
      if (config.values().save.empty() && !config.values().appendonly) return {};
      return fail(kNotHere);
    });
  }

  base::Logger log_;
  std::unique_ptr<WholeServer> whole_;
};

}  // namespace

std::unique_ptr<testing::Spaces> make_spaces(WholeServer& main, base::Clock& clock,
                                             net::Loop& loop) {
  return std::make_unique<testing::Spaces>(main.server(), [&](const server::Edition& edition) {
    return SpaceHost::make(main, edition, clock, loop);
  });
}

}  // namespace latchkey::composition

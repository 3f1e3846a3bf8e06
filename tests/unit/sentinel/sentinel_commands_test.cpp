// SENTINEL's commands: what they refuse, and that the file is written when they change something.
#include <memory>
#include <string>
#include <utility>

#include "composition/whole_server.h"
#include "unit/catch.h"
#include "unit/required.h"
#include "unit/server_fixture.h"
#include "unit/temporary_directory.h"

namespace latchkey::tests {

namespace {

// A Sentinel without a network.
class CommandedSentinel {
 public:
  CommandedSentinel() {
    log_.set_level(base::LogLevel::kNothing);
    directory_.write(kFile, "");
    auto config = std::make_unique<server::Config>(std::make_unique<server::PrivateDirectory>(),
                                                   base::disk());
    config->be_sentinel();
    REQUIRE(config->load(directory_.path() / kFile, directory_.setting()));
    whole_ =
        required(composition::WholeServer::make(std::move(config), {.clock = clock_, .log = log_}));
    client_ = std::make_unique<TestClient>(whole_->server());
  }

  std::string run(std::string_view request) { return client_->run(request); }
  // Whether the file was written since the last call.
  bool was_saved() {
    const bool written = !directory_.read(kFile).empty();
    directory_.write(kFile, "");
    return written;
  }

 private:
  static constexpr char kFile[] = "sentinel.conf";
  TemporaryDirectory directory_;
  base::VirtualClock clock_;
  base::Logger log_;
  std::unique_ptr<composition::WholeServer> whole_;
  std::unique_ptr<TestClient> client_;
};

}  // namespace

TEST_CASE("SENTINEL RESET writes the file if it has reset anything", "[sentinel]") {
  CommandedSentinel sentinel;
  CHECK(sentinel.run("SENTINEL MONITOR one 10.0.0.1 6379 2") == kOk);
  CHECK(sentinel.was_saved());
  CHECK(sentinel.run("SENTINEL RESET other*") == integer(0));
  CHECK_FALSE(sentinel.was_saved());
  CHECK(sentinel.run("SENTINEL RESET on*") == integer(1));
  CHECK(sentinel.was_saved());
}

TEST_CASE("SENTINEL CKQUORUM counts who can be reached", "[sentinel]") {
  CommandedSentinel sentinel;
  sentinel.run("SENTINEL MONITOR alone 10.0.0.1 6379 1");
  CHECK(sentinel.run("SENTINEL CKQUORUM alone") ==
        status("OK 1 usable Sentinels. Quorum and failover authorization can be reached"));
  sentinel.run("SENTINEL MONITOR two 10.0.0.2 6379 2");
  CHECK(sentinel.run("SENTINEL CKQUORUM two") ==
        error("NOQUORUM 1 usable Sentinels. Not enough available Sentinels to reach the specified "
              "quorum for this master"));
  CHECK(sentinel.run("SENTINEL CKQUORUM nosuch") == error("ERR No such master with that name"));
}

TEST_CASE("SENTINEL SET sets what stands before the first option that is wrong", "[sentinel]") {
  CommandedSentinel sentinel;
  sentinel.run("SENTINEL MONITOR one 10.0.0.1 6379 2");
  const auto has = [&](const std::string& field, std::string_view value) {
    return sentinel.run("SENTINEL MASTER one").find(bulk(field) + bulk(value)) != std::string::npos;
  };
  CHECK(sentinel.run("SENTINEL SET one quorum 3") == kOk);
  CHECK(has("quorum", "3"));
  sentinel.was_saved();
  CHECK(sentinel.run("SENTINEL SET one rename-command CONFIG") ==
        error("ERR Unknown option or number of arguments for SENTINEL SET 'rename-command'"));
  CHECK_FALSE(sentinel.was_saved());
  CHECK(sentinel.run("SENTINEL SET one quorum 4 parallel-syncs 2 nosuch 1") ==
        error("ERR Unknown option or number of arguments for SENTINEL SET 'nosuch'"));
  CHECK(has("quorum", "4"));
  CHECK(has("parallel-syncs", "2"));
  CHECK(sentinel.was_saved());
  CHECK(sentinel.run("SENTINEL SET one rename-command CONFIG HIDDEN") == kOk);
}

TEST_CASE("Numbers that a Sentinel could not count to are refused", "[sentinel]") {
  CommandedSentinel server;
  server.run("SENTINEL MONITOR one 10.0.0.1 6379 2");
  const auto is_refused = [&](const std::string& request) {
    return server.run(request).starts_with("-ERR");
  };
  CHECK(is_refused("SENTINEL MONITOR two 10.0.0.2 6379 2147483648"));
  for (const std::string option : {"quorum", "parallel-syncs"}) {
    CHECK_FALSE(is_refused("SENTINEL SET one " + option + " 2147483647"));
    CHECK(is_refused("SENTINEL SET one " + option + " 2147483648"));
  }
  for (const std::string option :
       {"down-after-milliseconds", "failover-timeout", "master-reboot-down-after-period"}) {
    CHECK_FALSE(is_refused("SENTINEL SET one " + option + " 1125899906842624"));
    CHECK(is_refused("SENTINEL SET one " + option + " 1125899906842625"));
  }
  CHECK_FALSE(is_refused("SENTINEL DEBUG ping-period 2147483647"));
  CHECK(is_refused("SENTINEL DEBUG ping-period 2147483648"));
  CHECK_FALSE(is_refused("SENTINEL IS-MASTER-DOWN-BY-ADDR 10.0.0.1 2147483647 0 *"));
  CHECK(is_refused("SENTINEL IS-MASTER-DOWN-BY-ADDR 10.0.0.1 2147483648 0 *"));
  CHECK(is_refused("SENTINEL IS-MASTER-DOWN-BY-ADDR 10.0.0.1 6379 -1 *"));
}

}  // namespace latchkey::tests

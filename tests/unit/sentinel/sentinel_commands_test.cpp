// SENTINEL's commands: what they refuse, and that the file is written when they change something.
#include <memory>
#include <string>
#include <utility>

#include "composition/whole_server.h"
#include "sentinel/sentinel_server.h"
#include "unit/catch.h"
#include "unit/required.h"
#include "unit/server_fixture.h"
#include "unit/temporary_directory.h"

namespace latchkey::tests {

namespace {

// A Sentinel without a network.
class CommandedSentinel {
 public:
  // `settings`: lines of the configuration.
  explicit CommandedSentinel(const std::string& settings = {}) {
    log_.set_level(base::LogLevel::kNothing);
    directory_.write(kFile, "");
    auto config = std::make_unique<server::Config>(std::make_unique<server::PrivateDirectory>(),
                                                   base::disk());
    config->be_sentinel();
    REQUIRE(config->load(directory_.path() / kFile, directory_.setting() + settings));
    whole_ =
        required(composition::WholeServer::make(std::move(config), {.clock = clock_, .log = log_}));
    client_ = std::make_unique<TestClient>(whole_->server());
  }

  std::string run(std::string_view request) { return client_->run(request); }
  void advance_ms(int64_t delta_ms) { clock_.advance_ms(delta_ms); }
  sentinel::Sentinel& sentinel() {
    return whole_->server().layer<sentinel::SentinelServer>().sentinel();
  }
  sentinel::Master& master(std::string_view name) { return *sentinel().find_master(name); }
  // A replica of the master "one".
  sentinel::Replica& add_replica(const std::string& ip) {
    return *sentinel().add_replica(master("one"), sentinel().make_address(ip, 6380));
  }
  std::string file() const { return directory_.read(kFile); }
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

// What such a Sentinel publishes at that address.
std::string hello(const std::string& ip, const std::string& id, const std::string& name = "one",
                  int epoch = 0) {
  return "PUBLISH __sentinel__:hello " + ip + ",26379," + id + "," + std::to_string(epoch) + "," +
         name + ",10.0.0.1,6379,0";
}

const std::string kOther(40, 'a');
const std::string kThird(40, 'b');

// A field of the only instance in the reply; "none" when there is no such field.
std::string field(const std::string& reply, std::string_view name) {
  const std::string start = bulk(name);
  const size_t at = reply.find(start);
  if (at == std::string::npos) return "none";
  const size_t value = reply.find("\r\n", at + start.size()) + 2;
  return reply.substr(value, reply.find("\r\n", value) - value);
}

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
  CHECK(is_refused("SENTINEL IS-MASTER-DOWN-BY-ADDR 10.0.0.1 6379 4611686018427387904 *"));
}

TEST_CASE("SENTINEL MASTER tells of a master what is known and when it was", "[sentinel]") {
  CommandedSentinel sentinel;
  sentinel.run("SENTINEL MONITOR one 10.0.0.1 6379 2");
  sentinel::Master& master = sentinel.master("one");
  const auto told = [&](std::string_view name) {
    return field(sentinel.run("SENTINEL MASTER one"), name);
  };
  CHECK(told("name") == "one");
  CHECK(told("ip") == "10.0.0.1");
  CHECK(told("port") == "6379");
  CHECK(told("num-slaves") == "0");
  CHECK(told("num-other-sentinels") == "0");
  CHECK(told("quorum") == "2");
  CHECK(told("failover-timeout") == "180000");
  CHECK(told("down-after-milliseconds") == "30000");
  CHECK(told("parallel-syncs") == "1");
  CHECK(told("config-epoch") == "0");
  CHECK(told("role-reported") == "master");
  CHECK(told("link-refcount") == "1");
  CHECK(told("info-refresh") == "0");
  for (const char* absent : {"failover-state", "s-down-time", "o-down-time", "notification-script",
                             "client-reconfig-script", "slave-priority", "voted-leader"})
    CHECK(told(absent) == "none");

  master.set(sentinel::kSdown, true);
  master.set(sentinel::kOdown, true);
  master.set(sentinel::kFailover, true);
  master.sdown_since_ms = sentinel.sentinel().now_ms() - 5000;
  master.odown_since_ms = sentinel.sentinel().now_ms() - 3000;
  master.info_received_ms = sentinel.sentinel().now_ms() - 700;
  master.role_reported_ms = sentinel.sentinel().now_ms() - 900;
  master.link->last_available_ms = sentinel.sentinel().now_ms() - 40;
  master.link->last_pong_ms = sentinel.sentinel().now_ms() - 50;
  master.link->unanswered_ping_ms = sentinel.sentinel().now_ms() - 60;
  master.notification_script = "/bin/tell";
  master.reconfig_script = "/bin/change";
  sentinel.advance_ms(1);
  CHECK(told("flags") == "s_down,o_down,master,disconnected,failover_in_progress");
  CHECK(told("s-down-time") == "5001");
  CHECK(told("o-down-time") == "3001");
  CHECK(told("info-refresh") == "701");
  CHECK(told("role-reported-time") == "901");
  CHECK(told("last-ok-ping-reply") == "41");
  CHECK(told("last-ping-reply") == "51");
  CHECK(told("last-ping-sent") == "61");
  CHECK(told("notification-script") == "/bin/tell");
  CHECK(told("client-reconfig-script") == "/bin/change");
  using State = sentinel::FailoverState;
  for (const auto& [state, name] : {std::pair{State::kNone, "none"},
                                    {State::kWaitStart, "wait_start"},
                                    {State::kSelectReplica, "select_slave"},
                                    {State::kSendReplicaOfNoOne, "send_slaveof_noone"},
                                    {State::kWaitPromotion, "wait_promotion"},
                                    {State::kReconfReplicas, "reconf_slaves"},
                                    {State::kUpdateConfig, "update_config"}}) {
    master.failover_state = state;
    CHECK(told("failover-state") == name);
  }
}

TEST_CASE("SENTINEL MASTERS and REPLICAS tell of all, but for replicas that are not announced",
          "[sentinel]") {
  CommandedSentinel sentinel;
  CHECK(sentinel.run("SENTINEL MASTERS") == array({}));
  sentinel.run("SENTINEL MONITOR one 10.0.0.1 6379 2");
  CHECK(sentinel.run("SENTINEL REPLICAS one") == array({}));
  CHECK(sentinel.run("SENTINEL MASTERS").starts_with("*1\r\n"));
  sentinel.run("SENTINEL MONITOR two 10.0.0.2 6379 2");
  const std::string masters = sentinel.run("SENTINEL MASTERS");
  CHECK(masters.starts_with("*2\r\n"));
  CHECK(masters.find(bulk("name") + bulk("one")) < masters.find(bulk("name") + bulk("two")));

  sentinel::Replica& replica = sentinel.add_replica("10.0.0.3");
  const auto told = [&](std::string_view name) {
    return field(sentinel.run("SENTINEL REPLICAS one"), name);
  };
  CHECK(told("name") == "10.0.0.3:6380");
  CHECK(told("flags") == "slave,disconnected");
  CHECK(told("role-reported") == "slave");
  CHECK(told("master-link-down-time") == "0");
  CHECK(told("master-link-status") == "err");
  CHECK(told("master-host") == "?");
  CHECK(told("master-port") == "0");
  CHECK(told("slave-priority") == "100");
  CHECK(told("slave-repl-offset") == "0");
  CHECK(told("replica-announced") == "1");
  CHECK(told("quorum") == "none");
  replica.master_link_up = true;
  replica.master_host = "10.0.0.9";
  replica.master_port = 6390;
  replica.master_link_down_ms = 4000;
  replica.priority = 7;
  replica.replication_offset = 1234;
  replica.role_reported = sentinel::Role::kMaster;
  CHECK(told("master-link-status") == "ok");
  CHECK(told("master-host") == "10.0.0.9");
  CHECK(told("master-port") == "6390");
  CHECK(told("master-link-down-time") == "4000");
  CHECK(told("slave-priority") == "7");
  CHECK(told("slave-repl-offset") == "1234");
  CHECK(told("role-reported") == "master");

  sentinel.add_replica("10.0.0.4").announced = false;
  CHECK(sentinel.run("SENTINEL REPLICAS one").starts_with("*1\r\n"));
  sentinel.add_replica("10.0.0.5");
  CHECK(sentinel.run("SENTINEL SLAVES one").starts_with("*2\r\n"));
  CHECK(field(sentinel.run("SENTINEL MASTER one"), "num-slaves") == "3");
  CHECK(sentinel.run("SENTINEL REPLICAS none") == error("ERR No such master with that name"));
}

TEST_CASE("The flags of an instance are named in their order", "[sentinel]") {
  CommandedSentinel sentinel;
  sentinel.run("SENTINEL MONITOR one 10.0.0.1 6379 2");
  sentinel::Replica& replica = sentinel.add_replica("10.0.0.3");
  for (const auto flag : {sentinel::kMasterDown, sentinel::kPromoted, sentinel::kReconfSent,
                          sentinel::kReconfInProgress, sentinel::kReconfDone, sentinel::kForced,
                          sentinel::kScriptKillSent, sentinel::kRebooting, sentinel::kCoordinated})
    replica.set(flag, true);
  CHECK(field(sentinel.run("SENTINEL REPLICAS one"), "flags") ==
        "slave,disconnected,master_down,promoted,reconf_sent,reconf_inprog,reconf_done,"
        "force_failover,script_kill_sent,master_reboot,coordinated_failover");
}

TEST_CASE("Hello messages that clients publish are taken", "[sentinel]") {
  CommandedSentinel sentinel;
  sentinel.run("SENTINEL MONITOR one 10.0.0.1 6379 2");
  sentinel.run("SENTINEL MONITOR two 10.0.0.1 6390 2");
  sentinel.was_saved();
  CHECK(sentinel.run("PUBLISH news " + kOther) ==
        error("ERR Only HELLO messages are accepted by Sentinel instances."));
  CHECK(sentinel.run("SENTINEL SENTINELS one") == array({}));
  CHECK(sentinel.run(hello("10.0.1.2", kOther, "one", 5)) == integer(1));
  CHECK(sentinel.was_saved());
  const auto told = [&](const std::string& master, std::string_view name) {
    return field(sentinel.run("SENTINEL SENTINELS " + master), name);
  };
  sentinel.advance_ms(250);
  CHECK(told("one", "name") == kOther);
  CHECK(told("one", "ip") == "10.0.1.2");
  CHECK(told("one", "port") == "26379");
  CHECK(told("one", "flags").starts_with("sentinel"));
  CHECK(told("one", "last-hello-message") == "250");
  CHECK(told("one", "voted-leader") == "?");
  CHECK(told("one", "voted-leader-epoch") == "0");
  CHECK(told("one", "info-refresh") == "none");
  CHECK(told("one", "link-refcount") == "1");
  CHECK(sentinel.sentinel().current_epoch() == 5);
  CHECK(told("two", "name") == "none");
  sentinel.master("one").sentinels.at(kOther)->leader = kThird;
  sentinel.master("one").sentinels.at(kOther)->leader_epoch = 4;
  CHECK(told("one", "voted-leader") == kThird);
  CHECK(told("one", "voted-leader-epoch") == "4");

  SECTION("one Sentinel has one link, whatever it watches") {
    sentinel.run(hello("10.0.1.2", kOther, "two"));
    CHECK(told("one", "link-refcount") == "2");
    CHECK(told("two", "link-refcount") == "2");
    // The same again changes nothing.
    sentinel.was_saved();
    sentinel.run(hello("10.0.1.2", kOther, "two"));
    CHECK_FALSE(sentinel.was_saved());
    CHECK(told("two", "last-hello-message") == "0");
    SECTION("it moves, and is at its new place for all masters") {
      sentinel.run(hello("10.0.1.7", kOther, "two"));
      CHECK(sentinel.was_saved());
      CHECK(told("one", "ip") == "10.0.1.7");
      CHECK(told("two", "ip") == "10.0.1.7");
    }
    SECTION("another one is at its place, and it is gone for all masters") {
      sentinel.run(hello("10.0.1.2", kThird, "one"));
      CHECK(told("one", "name") == kThird);
      CHECK(sentinel.run("SENTINEL SENTINELS one").starts_with("*1\r\n"));
      CHECK(sentinel.run("SENTINEL SENTINELS two") == array({}));
    }
  }
  SECTION("with another address the link is another one") {
    sentinel.run(hello("10.0.1.3", kOther, "two"));
    CHECK(told("one", "link-refcount") == "1");
    CHECK(told("one", "ip") == "10.0.1.2");
    CHECK(told("two", "ip") == "10.0.1.3");
  }
  SECTION("what is no hello message, or of no master, is ignored") {
    CHECK(sentinel.run(hello("10.0.1.4", kThird, "nosuch")) == integer(1));
    CHECK(sentinel.run("PUBLISH __sentinel__:hello nonsense") == integer(1));
    CHECK(sentinel.run(hello("10.0.1.4", sentinel.sentinel().id())) == integer(1));
    CHECK(sentinel.run("SENTINEL SENTINELS one").starts_with("*1\r\n"));
  }
}

TEST_CASE("SENTINEL CKQUORUM tells what the Sentinels that are left are too few for",
          "[sentinel]") {
  CommandedSentinel sentinel;
  sentinel.run("SENTINEL MONITOR one 10.0.0.1 6379 1");
  sentinel.run(hello("10.0.1.2", kOther));
  const std::string majority =
      "Not enough available Sentinels to reach the majority and authorize a failover";
  CHECK(sentinel.run("SENTINEL CKQUORUM one") == error("NOQUORUM 1 usable Sentinels. " + majority));
  sentinel.run("SENTINEL SET one quorum 2");
  CHECK(sentinel.run("SENTINEL CKQUORUM one") ==
        error("NOQUORUM 1 usable Sentinels. Not enough available Sentinels to reach the specified "
              "quorum for this master. " +
              majority));
}

TEST_CASE("SENTINEL INFO-CACHE shows the last INFO of masters and their replicas", "[sentinel]") {
  CommandedSentinel sentinel;
  sentinel.run("SENTINEL MONITOR one 10.0.0.1 6379 1");
  sentinel.run("SENTINEL MONITOR two 10.0.0.2 6379 1");
  const std::string nothing = array({integer(0), std::string(kNull)});
  CHECK(sentinel.run("SENTINEL INFO-CACHE one two") ==
        array({bulk("one"), array({nothing}), bulk("two"), array({nothing})}));
  sentinel::Replica& replica = sentinel.add_replica("10.0.0.3");
  replica.info = "role:slave";
  replica.info_received_ms = sentinel.sentinel().now_ms();
  sentinel.advance_ms(300);
  // A name twice, and one that is not known.
  CHECK(sentinel.run("SENTINEL INFO-CACHE one one nosuch") ==
        array({bulk("one"), array({nothing, array({integer(300), bulk("role:slave")})})}));
  CHECK(sentinel.run("SENTINEL INFO-CACHE nosuch") == array({}));
}

TEST_CASE("Scripts that wait are shown by SENTINEL PENDING-SCRIPTS", "[sentinel]") {
  CommandedSentinel sentinel;
  sentinel.run("SENTINEL MONITOR one 10.0.0.1 6379 1");
  const std::string denied = error(
      "ERR Reconfiguration of scripts path is denied for security reasons. Check the "
      "deny-scripts-reconfig configuration directive in your Sentinel configuration");
  CHECK(sentinel.run("SENTINEL SET one notification-script /bin/sh") == denied);
  CHECK(sentinel.run("SENTINEL PENDING-SCRIPTS") == array({}));
  sentinel.sentinel().settings().deny_scripts_reconfig = false;
  CHECK(sentinel.run("SENTINEL SET one notification-script /no/such/script") ==
        error("ERR Notification script seems non existing or non executable"));
  CHECK(sentinel.run("SENTINEL SET one client-reconfig-script /no/such/script") ==
        error("ERR Client reconfiguration script seems non existing or non executable"));
  CHECK(sentinel.run("SENTINEL SET one notification-script /bin/sh") == kOk);
  CHECK(field(sentinel.run("SENTINEL MASTER one"), "notification-script") == "/bin/sh");
  CHECK(field(sentinel.run("SENTINEL MASTER one"), "client-reconfig-script") == "none");
  CHECK(sentinel.run("SENTINEL SET one client-reconfig-script /bin/sh") == kOk);
  CHECK(sentinel.run("SENTINEL RESET one") == integer(1));
  const auto waiting = [](std::string_view type, std::string_view message) {
    return array({bulk("argv"), bulks({"/bin/sh", type, message}), bulk("flags"), bulk("scheduled"),
                  bulk("pid"), bulk("0"), bulk("run-delay"), bulk("0"), bulk("retry-num"),
                  bulk("0")});
  };
  const std::string about = "master one 10.0.0.1 6379";
  CHECK(sentinel.run("SENTINEL PENDING-SCRIPTS") ==
        array({waiting("+set", about + " notification-script /bin/sh"),
               waiting("+set", about + " client-reconfig-script /bin/sh"),
               waiting("+reset-master", about)}));
  // Without a script nothing waits.
  CHECK(sentinel.run("SENTINEL SET one notification-script ") == kOk);
  CHECK(field(sentinel.run("SENTINEL MASTER one"), "notification-script") == "none");
}

TEST_CASE("SENTINEL SIMULATE-FAILURE notes what is to fail, and INFO shows it", "[sentinel]") {
  CommandedSentinel sentinel;
  const auto flags = [&] {
    const std::string info = sentinel.run("INFO sentinel");
    const std::string name = "sentinel_simulate_failure_flags:";
    const size_t at = info.find(name) + name.size();
    return info.substr(at, info.find("\r\n", at) - at);
  };
  CHECK(flags() == "0");
  CHECK(sentinel.run("SENTINEL SIMULATE-FAILURE crash-after-election") == kOk);
  CHECK(flags() == "1");
  CHECK(sentinel.run("SENTINEL SIMULATE-FAILURE CRASH-AFTER-PROMOTION") == kOk);
  CHECK(flags() == "2");
  CHECK(sentinel.run("SENTINEL SIMULATE-FAILURE crash-after-election crash-after-promotion") ==
        kOk);
  CHECK(flags() == "3");
  CHECK(sentinel.run("SENTINEL SIMULATE-FAILURE help") ==
        bulks({"crash-after-election", "crash-after-promotion"}));
  CHECK(sentinel.run("SENTINEL SIMULATE-FAILURE crash") ==
        error("ERR Unknown failure simulation specified"));
  CHECK(flags() == "3");
}

TEST_CASE("INFO tells of the masters that a Sentinel watches", "[sentinel]") {
  CommandedSentinel sentinel;
  sentinel.run("SENTINEL MONITOR one 10.0.0.1 6379 1");
  sentinel.run("SENTINEL MONITOR two 10.0.0.2 6380 1");
  sentinel.add_replica("10.0.0.3");
  sentinel.run(hello("10.0.1.2", kOther));
  const auto has = [&](const std::string& line) {
    return sentinel.run("INFO sentinel").find("\r\n" + line + "\r\n") != std::string::npos;
  };
  CHECK(has("sentinel_masters:2"));
  CHECK(has("sentinel_tilt:0"));
  CHECK(has("sentinel_tilt_since_seconds:-1"));
  CHECK(has("sentinel_total_tilt:0"));
  CHECK(has("sentinel_running_scripts:0"));
  CHECK(has("sentinel_scripts_queue_length:0"));
  CHECK(has("master0:name=one,status=ok,address=10.0.0.1:6379,slaves=1,sentinels=2"));
  CHECK(has("master1:name=two,status=ok,address=10.0.0.2:6380,slaves=0,sentinels=1"));
  sentinel.master("one").set(sentinel::kSdown, true);
  CHECK(has("master0:name=one,status=sdown,address=10.0.0.1:6379,slaves=1,sentinels=2"));
  sentinel.master("one").set(sentinel::kOdown, true);
  CHECK(has("master0:name=one,status=odown,address=10.0.0.1:6379,slaves=1,sentinels=2"));
}

TEST_CASE("SENTINEL FAILOVER is refused without a replica, and while one goes on", "[sentinel]") {
  CommandedSentinel sentinel;
  sentinel.run("SENTINEL MONITOR one 10.0.0.1 6379 1");
  CHECK(sentinel.run("SENTINEL FAILOVER one") ==
        error("NOGOODSLAVE No suitable replica to promote"));
  // It is not connected.
  sentinel.add_replica("10.0.0.3");
  CHECK(sentinel.run("SENTINEL FAILOVER one") ==
        error("NOGOODSLAVE No suitable replica to promote"));
  sentinel.master("one").set(sentinel::kFailover, true);
  CHECK(sentinel.run("SENTINEL FAILOVER one") == error("INPROG Failover already in progress"));
  CHECK(sentinel.run("SENTINEL FAILOVER nosuch") == error("ERR No such master with that name"));
  CHECK(sentinel.run("SENTINEL FAILOVER one COORDINATED") ==
        error("INPROG Failover already in progress"));
  CHECK(sentinel.run("SENTINEL FAILOVER one foo") ==
        error("ERR Unknown failover option specified"));
  CHECK(sentinel.run("SENTINEL FAILOVER one COORDINATED x") ==
        error("ERR wrong number of arguments for 'sentinel|failover' command"));
}

TEST_CASE("SENTINEL tells who it is, and what its subcommands are", "[sentinel]") {
  CommandedSentinel sentinel;
  CHECK(sentinel.run("SENTINEL MYID") == bulk(sentinel.sentinel().id()));
  CHECK(sentinel.sentinel().id().size() == 40);
  CHECK(sentinel.run("SENTINEL CONFIG GET loglevel") == bulks({"loglevel", "notice"}));
  const std::string help = sentinel.run("SENTINEL HELP");
  CHECK(help.find(status("CKQUORUM <master-name>")) != std::string::npos);
  CHECK(help.find(status("MONITOR <name> <ip> <port> <quorum>")) != std::string::npos);
  CHECK(help.find(status("HELP")) != std::string::npos);
}

TEST_CASE("Commands and settings have Valkey's names where the release has them", "[sentinel]") {
  const auto sentinel_of = [](const std::string& release) {
    auto sentinel = std::make_unique<CommandedSentinel>("emulate " + release + "\n");
    sentinel->run("SENTINEL MONITOR one 10.0.0.1 6379 2");
    return sentinel;
  };
  for (const std::string release : {"no", "\"valkey 8.1\"", "\"valkey 9.1\""}) {
    INFO(release);
    const auto sentinel = sentinel_of(release);
    CHECK(field(sentinel->run("SENTINEL PRIMARIES"), "name") == "one");
    CHECK(field(sentinel->run("SENTINEL PRIMARY one"), "port") == "6379");
    CHECK(sentinel->run("SENTINEL GET-PRIMARY-ADDR-BY-NAME one") == bulks({"10.0.0.1", "6379"}));
    CHECK(sentinel->run("SENTINEL GET-MASTER-ADDR-BY-NAME one") == bulks({"10.0.0.1", "6379"}));
    CHECK(sentinel->run("SENTINEL IS-PRIMARY-DOWN-BY-ADDR 10.0.0.1 6379 0 *") ==
          array({integer(0), bulk("*"), integer(0)}));
    CHECK(sentinel->run("SENTINEL HELP").find("+PRIMARIES\r\n") != std::string::npos);
    CHECK(sentinel->run("SENTINEL SET one primary-reboot-down-after-period 7") == kOk);
    CHECK(sentinel->master("one").reboot_down_after_ms == 7);
    CHECK(sentinel->run("SENTINEL SET one primary-reboot-down-after-period -1") ==
          error("ERR Invalid argument '-1' for SENTINEL SET 'primary-reboot-down-after-period'"));
    CHECK(sentinel->run("SENTINEL SET one master-reboot-down-after-period 8") == kOk);
    const bool of_valkey = release != "no";
    const std::string name = of_valkey ? "primary" : "master";
    CHECK(sentinel->file().find("sentinel " + name + "-reboot-down-after-period one 8\n") !=
          std::string::npos);
    CHECK((sentinel->run("SENTINEL HELP").find("+MASTERS\r\n") == std::string::npos) == of_valkey);
  }
  const auto sentinel = sentinel_of("\"redis 8.6\"");
  CHECK(sentinel->run("SENTINEL PRIMARIES") ==
        error("ERR unknown subcommand 'PRIMARIES'. Try SENTINEL HELP."));
  CHECK(sentinel->run("SENTINEL SET one primary-reboot-down-after-period 7") ==
        error("ERR Unknown option or number of arguments for SENTINEL SET "
              "'primary-reboot-down-after-period'"));
  CHECK(sentinel->run("SENTINEL HELP").find("PRIMARIES") == std::string::npos);
}

}  // namespace latchkey::tests

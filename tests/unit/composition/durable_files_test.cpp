// The files that whole servers write beside the dataset, on a disk of which each call fails in
// turn: CONFIG REWRITE, ACL SAVE, what a Sentinel has learnt, a cluster node's state.
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>

#include "cluster/cluster.h"
#include "cluster/node_file.h"
#include "composition/whole_server.h"
#include "sentinel/sentinel_server.h"
#include "unit/catch.h"
#include "unit/faulty_disk.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

using composition::WholeServer;

// A process started with a configuration file.
struct Process {
  Process(const TemporaryDirectory& directory, base::FileSystem& disk, bool is_sentinel = false)
      : logs_(std::make_unique<TemporaryDirectory>()) {
    log.set_level(base::LogLevel::kNotice);
    log.set_file(logs_->path() / "log");
    auto config =
        std::make_unique<server::Config>(std::make_unique<server::PrivateDirectory>(), disk);
    if (is_sentinel) config->be_sentinel();
    REQUIRE(config->load(directory.path() / "server.conf", directory.setting()));
    auto made = WholeServer::make(std::move(config), {.clock = clock, .log = log});
    if (!made) return;
    whole = *std::move(made);
    client = std::make_unique<TestClient>(whole->server());
  }
  std::string run(std::string_view line) { return client->run(line); }
  bool log_has(std::string_view text) const {
    return logs_->read("log").find(text) != std::string::npos;
  }

  base::VirtualClock clock;
  base::Logger log;
  std::unique_ptr<WholeServer> whole;
  std::unique_ptr<TestClient> client;

 private:
  std::unique_ptr<TemporaryDirectory> logs_;
};

std::string reason(const Trial& trial) {
  return strerror(trial.fault.kind == FaultKind::kFull ? ENOSPC : EIO);
}

// The text of a file, without where it stands.
std::string text_of(const TemporaryDirectory& directory, const std::string& file) {
  std::string text = directory.read(file);
  const std::string path = directory.path();
  for (size_t at = text.find(path); at != std::string::npos; at = text.find(path))
    text.replace(at, path.size(), "DIRECTORY");
  return text;
}

// Has `change` change something and write it to `file` while the disk fails, and checks that the
// file is the one before or the one after, which it is for good if `change` said so, and that the
// next attempt succeeds. `change` returns whether it said that all was well.
template <typename Change>
size_t fail_each_call_of(const TemporaryDirectory& initial, const std::string& file,
                         bool is_sentinel, Change change) {
  const std::string before = initial.read(file);
  std::string after;
  {
    TemporaryDirectory directory;
    std::filesystem::copy(initial.path(), directory.path(),
                          std::filesystem::copy_options::recursive);
    Process process(directory, base::disk(), is_sentinel);
    REQUIRE(process.whole != nullptr);
    REQUIRE(change(process, Trial{}));
    after = text_of(directory, file);
    REQUIRE(after != before);
  }
  return fail_each_call([&](const Trial& trial) {
    TemporaryDirectory directory;
    std::filesystem::copy(initial.path(), directory.path(),
                          std::filesystem::copy_options::recursive);
    FaultyDisk disk(directory.path());
    bool done = false;
    const size_t descriptors = open_descriptors();
    {
      Process process(directory, disk, is_sentinel);
      REQUIRE(process.whole != nullptr);
      disk.fail(trial.fault);
      done = change(process, trial);
      CAPTURE(told(trial, disk), done);
      if (!disk.has_failed()) CHECK(done);
      if (trial.fault.kind == FaultKind::kOnce) CHECK(files_with(directory.path(), ".tmp").empty());
      disk.cut_power();
    }
    CAPTURE(told(trial, disk), done);
    CHECK(open_descriptors() == descriptors);
    disk.restore(trial.lost);
    const std::string found = text_of(directory, file);
    Process process(directory, disk, is_sentinel);
    REQUIRE(process.whole != nullptr);
    CHECK(change(process, trial));
    CHECK((found == after || (found == before && !done)));
    return disk.has_failed();
  });
}

}  // namespace

TEST_CASE("CONFIG REWRITE on a disk that fails", "[durable-files]") {
  TemporaryDirectory initial;
  initial.write("server.conf", "# mine\nmaxmemory 1mb\n");
  const size_t count =
      fail_each_call_of(initial, "server.conf", false, [](Process& process, const Trial& trial) {
        CHECK(process.run("CONFIG SET maxmemory 2mb") == kOk);
        const std::string reply = process.run("CONFIG REWRITE");
        if (reply != kOk) CHECK(reply == error("ERR Rewriting config file: " + reason(trial)));
        return reply == kOk;
      });
  CHECK(count > 40);
}

TEST_CASE("ACL SAVE on a disk that fails", "[durable-files]") {
  TemporaryDirectory initial;
  initial.write("server.conf", "aclfile users.acl\n");
  initial.write("users.acl", "user default on nopass ~* &* +@all\n");
  const size_t count =
      fail_each_call_of(initial, "users.acl", false, [](Process& process, const Trial& trial) {
        CHECK(process.run("ACL SETUSER anna on nopass +get") == kOk);
        const std::string reply = process.run("ACL SAVE");
        if (reply == kOk) return true;
        CHECK(reply == error("ERR There was an error trying to save the ACLs. Please check the "
                             "server logs for more information"));
        CHECK(process.log_has("Writing the ACL file for ACL SAVE: " + reason(trial)));
        return false;
      });
  CHECK(count > 30);
}

TEST_CASE("A Sentinel on a disk that fails", "[durable-files]") {
  TemporaryDirectory initial;
  initial.write("server.conf", "sentinel myid " + std::string(40, 'a') +
                                   "\nsentinel monitor m 127.0.0.1 6379 2\n");
  const size_t count =
      fail_each_call_of(initial, "server.conf", true, [](Process& process, const Trial& trial) {
        const std::string reply = process.run("SENTINEL SET m quorum 3");
        if (reply == kOk) return true;
        CHECK(reply == error("ERR Failed to save config file. Check server logs."));
        CHECK(process.log_has(
            "WARNING: Sentinel was not able to save the new configuration on disk!!!: " +
            reason(trial)));
        // In memory it is set all the same.
        CHECK(process.run("SENTINEL MASTER m").find(bulk("quorum") + bulk("3")) !=
              std::string::npos);
        return false;
      });
  CHECK(count > 40);
}

TEST_CASE("A node's state on a disk that fails", "[durable-files]") {
  TemporaryDirectory initial;
  initial.write("server.conf", "cluster-enabled yes\nport 7000\n");
  { Process process(initial, base::disk()); }
  REQUIRE(initial.exists("nodes.conf"));
  const size_t count =
      fail_each_call_of(initial, "nodes.conf", false, [](Process& process, const Trial& trial) {
        const std::string reply = process.run("CLUSTER ADDSLOTS 1");
        if (reply != kOk && reply.find("Slot 1 is already busy") == std::string::npos) {
          CHECK(reply == error("ERR error saving the cluster node config: " + reason(trial)));
          return false;
        }
        return true;
      });
  CHECK(count > 30);
}

TEST_CASE("A node that could not save its state tries again at the end of the turn, or stops",
          "[durable-files]") {
  TemporaryDirectory directory;
  directory.write("server.conf", "cluster-enabled yes\nport 7000\n");
  FaultyDisk disk(directory.path());
  Process process(directory, disk);
  server::Server& server = process.whole->server();
  disk.fail({.kind = FaultKind::kForGood});
  CHECK(process.run("CLUSTER ADDSLOTS 1").starts_with("-ERR error saving the cluster node config"));
  SECTION("saved") {
    disk.heal();
    server.layer<cluster::Cluster>().tick();
    CHECK(directory.read("nodes.conf").find(" connected 1\n") != std::string::npos);
    CHECK_FALSE(server.stop_requested());
  }
  SECTION("stopped") {
    server.layer<cluster::Cluster>().tick();
    CHECK(server.stop_requested());
    CHECK(process.log_has("Fatal: can't update cluster config file: Input/output error"));
  }
}

TEST_CASE("A node's file stays locked when replacing it fails", "[durable-files]") {
  const size_t count = fail_each_call([](const Trial& trial) {
    TemporaryDirectory directory;
    FaultyDisk disk(directory.path());
    const std::string path = directory.path() / "nodes.conf";
    const size_t descriptors = open_descriptors();
    {
      cluster::NodeFile file(path, disk);
      REQUIRE(file.open());
      REQUIRE(file.replace("old"));
      disk.fail(trial.fault);
      const bool done = static_cast<bool>(file.replace("new"));
      CAPTURE(told(trial, disk), done);
      CHECK((done || disk.has_failed()));
      if (trial.fault.kind != FaultKind::kPowerCut) {
        disk.heal();
        cluster::NodeFile other(path, disk);
        const base::Result<std::string> opened = other.open();
        REQUIRE_FALSE(opened);
        CHECK(opened.error().find("already used by a different") != std::string::npos);
        CHECK(file.replace("next"));
        CHECK_FALSE(other.open());
        CHECK(directory.read("nodes.conf") == "next");
      }
    }
    CHECK(open_descriptors() == descriptors);
    return disk.has_failed();
  });
  CHECK(count > 30);
}

TEST_CASE("A node's file that is too large is not read", "[durable-files]") {
  TemporaryDirectory directory;
  const std::string path = directory.path() / "nodes.conf";
  directory.write("nodes.conf", "");
  // A hole.
  std::filesystem::resize_file(path, (uintmax_t{64} << 20) + 1);
  cluster::NodeFile file(path, base::disk());
  const base::Result<std::string> text = file.open();
  REQUIRE_FALSE(text);
  CHECK(text.error() == "Can't read " + path + ": File too large");
}

TEST_CASE("A node's file that cannot be opened or read is not taken for an empty one",
          "[durable-files]") {
  const size_t count = fail_each_call([](const Trial& trial) {
    TemporaryDirectory directory;
    directory.write("nodes.conf", "text");
    FaultyDisk disk(directory.path());
    const size_t descriptors = open_descriptors();
    disk.fail(trial.fault);
    {
      cluster::NodeFile file(directory.path() / "nodes.conf", disk);
      const base::Result<std::string> text = file.open();
      CAPTURE(told(trial, disk), (text ? "" : text.error()));
      CHECK(bool(text) == (!disk.has_failed() || disk.failed_call().starts_with("close")));
      if (text) CHECK(*text == "text");
      if (!text) CHECK(text.error().find(reason(trial)) != std::string::npos);
    }
    CHECK(open_descriptors() == descriptors);
    return disk.has_failed();
  });
  CHECK(count > 5);
}

}  // namespace latchkey::tests

#include "persist/aof/append_only_file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>

#include "commands/groups.h"
#include "unit/catch.h"
#include "unit/persist/aof/aof_directory_fixture.h"

namespace latchkey::tests {

namespace {

using persist::AppendOnlyFile;

// "SET name value" as it stands in the file.
const std::string kSelect = request({"SELECT", "0"});

struct Appending {
  explicit Appending(const std::string& settings = {})
      : server({commands::string_rows(), commands::key_rows(), commands::transaction_rows(),
                commands::database_rows()},
               directory.setting() + settings),
        client(server),
        file(server.server, worker, [this] { ++fatal; }) {
    file.on_problem_changed([this](const std::string& text) { problem = text; });
    file.start();
    open("file");
  }
  void open(const std::string& name) {
    const int descriptor =
        ::open((directory.path() / name).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    REQUIRE(descriptor >= 0);
    file.open(descriptor, 0);
  }
  std::string set(std::string_view value) {
    client.run_words({"SET", "name", value});
    return request({"SET", "name", value});
  }
  std::string contents() const { return directory.read("file"); }

  TemporaryDirectory directory;
  ServerFixture server;
  TestClient client;
  base::Worker worker{"disk"};
  AppendOnlyFile file;
  int fatal = 0;
  std::string problem;
};

// No file of this process grows past `bytes` while it lives.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int);
};

}  // namespace

TEST_CASE("The effects of a turn are written at its end, in one piece") {
  Appending a;
  const std::string first = a.set("one");
  const std::string second = a.set("two");
  CHECK(a.contents().empty());
  a.file.flush();
  CHECK(a.contents() == kSelect + first + second);
  CHECK(a.file.dataset_bytes() == a.contents().size());
  CHECK(a.file.buffered_bytes() == 0);
}

TEST_CASE("How long a write took is told when it was long") {
  Appending a;
  const server::LatencyMonitor& monitor = a.server.server.latency_monitor();
  constexpr int64_t kHourMs = 3'600'000;
  for (const auto& [threshold_ms, is_told] :
       {std::pair<int64_t, bool>{kHourMs, false}, {5, true}}) {
    a.server.server.latency_monitor().set_threshold_ms(threshold_ms);
    a.file.set_flush_pause_us(20'000);
    a.set("one");
    a.file.flush();
    for (const char* event : {"aof-write", "aof-write-alone"}) {
      REQUIRE((monitor.find(event) != nullptr) == is_told);
      if (!is_told) continue;
      CHECK(monitor.find(event)->worst_ms >= 10);
      CHECK(monitor.find(event)->worst_ms < kHourMs);
    }
  }
}

TEST_CASE("A new file begins with the database it is about") {
  Appending a;
  a.set("one");
  a.file.flush();
  a.open("next");
  const std::string later = a.set("two");
  a.file.flush();
  CHECK(a.directory.read("next") == kSelect + later);
}

TEST_CASE("appendfsync always has everything synced when a turn ends") {
  Appending a("appendfsync always");
  a.set("one");
  a.client.run("MULTI");
  a.client.run("SET a 1");
  a.client.run("SET b 2");
  a.client.run("EXEC");
  CHECK(a.server.server.replication_offset() == 3);
  CHECK(a.file.synced_offset() == 0);
  a.file.flush();
  CHECK(a.file.synced_offset() == 3);
}

TEST_CASE("appendfsync everysec syncs about once a second, in the background") {
  Appending a("appendfsync everysec");
  int told = 0;
  a.file.on_synced([&] { ++told; });
  a.set("one");
  a.file.flush();
  a.worker.drain();
  CHECK(a.file.synced_offset() == 0);
  a.server.advance_ms(1000);
  a.file.flush();
  a.worker.drain();
  CHECK(a.file.synced_offset() == 1);
  a.file.tick();
  CHECK(told == 1);
}

TEST_CASE("appendfsync everysec goes on syncing when the clock is set back") {
  Appending a("appendfsync everysec");
  a.set("one");
  a.server.advance_ms(1000);
  a.file.flush();
  a.worker.drain();
  REQUIRE(a.file.synced_offset() == 1);
  a.server.step_ms(-3'600'000);
  a.server.advance_ms(1000);
  a.set("two");
  a.file.flush();
  a.worker.drain();
  CHECK(a.file.synced_offset() == 2);
}

TEST_CASE("A clock that is set back does not extend the wait for a sync that goes on") {
  Appending a("appendfsync everysec");
  a.set("one");
  a.file.flush();
  std::mutex disk;
  disk.lock();
  // Delays the sync.
  a.worker.run([&] { std::lock_guard wait(disk); });
  a.server.advance_ms(1000);
  a.file.flush();
  REQUIRE(a.file.pending_syncs() == 1);
  const std::string before = a.contents();
  a.set("two");
  a.file.flush();
  CHECK(a.contents() == before);
  a.server.step_ms(-3'600'000);
  a.server.advance_ms(2000);
  a.file.flush();
  CHECK(a.contents().size() > before.size());
  disk.unlock();
  a.worker.drain();
}

TEST_CASE("appendfsync no leaves syncing to the system") {
  Appending a("appendfsync no");
  a.set("one");
  a.server.advance_ms(5000);
  a.file.flush();
  a.worker.drain();
  CHECK(a.contents().size() > 0);
  CHECK(a.file.synced_offset() == 0);
}

TEST_CASE("Writes wait for a sync that goes on, but for two seconds at most") {
  Appending a("appendfsync everysec");
  a.set("one");
  a.file.flush();
  std::mutex disk;
  disk.lock();
  // Stands in the way of the sync.
  a.worker.run([&] { std::lock_guard wait(disk); });
  a.server.advance_ms(1000);
  a.file.flush();
  CHECK(a.file.pending_syncs() == 1);
  const std::string before = a.contents();
  a.set("two");
  a.file.flush();
  a.server.advance_ms(1999);
  a.file.flush();
  CHECK(a.contents() == before);
  CHECK(a.file.delayed_syncs() == 0);
  a.server.advance_ms(1);
  a.file.flush();
  CHECK(a.contents().size() > before.size());
  CHECK(a.file.delayed_syncs() == 1);
  a.set("three");
  a.file.flush(AppendOnlyFile::Wait::kForDisk);
  CHECK(a.file.buffered_bytes() == 0);
  disk.unlock();
}

TEST_CASE("no-appendfsync-on-rewrite leaves the disk to the child that writes") {
  Appending a("appendfsync always\nno-appendfsync-on-rewrite yes");
  bool child = true;
  a.file.on_child_running([&] { return child; });
  a.set("one");
  a.file.flush();
  CHECK(a.file.synced_offset() == 0);
  child = false;
  a.file.flush();
  CHECK(a.file.synced_offset() == 1);
}

TEST_CASE("A write that fails leaves no half request, and succeeds when there is room") {
  Appending a("appendfsync everysec");
  const std::string first = kSelect + a.set("one");
  a.file.flush();
  const std::string second = a.set(std::string(1000, 'x'));
  {
    FileSizeLimit limit(first.size() + 100);
    a.file.flush();
    CHECK(a.contents() == first);
    CHECK(a.file.last_write_failed());
    CHECK(a.problem == "No space left on device");
    a.file.flush();
    CHECK(a.contents() == first);
  }
  const std::string third = a.set("three");
  a.file.tick();
  CHECK(a.contents() == first + second + third);
  CHECK_FALSE(a.file.last_write_failed());
  CHECK(a.problem.empty());
  CHECK(a.fatal == 0);
}

TEST_CASE("With appendfsync always a write that fails ends the server") {
  Appending a("appendfsync always");
  FileSizeLimit limit(10);
  a.set("one");
  a.file.flush();
  CHECK(a.fatal == 1);
}

TEST_CASE("aof-timestamp-enabled has the second written before its effects") {
  Appending a("aof-timestamp-enabled yes");
  const int64_t now_s = a.server.now_ms() / 1000;
  const std::string first = a.set("one");
  const std::string second = a.set("two");
  a.server.advance_ms(2000);
  const std::string third = a.set("three");
  a.file.flush();
  CHECK(a.contents() == persist::aof_timestamp(now_s) + kSelect + first + second +
                            persist::aof_timestamp(now_s + 2) + third);
}

TEST_CASE("What was written before the base is there does not count as safe") {
  Appending a("appendfsync always");
  a.file.confirm(false);
  a.set("one");
  a.file.flush();
  CHECK(a.file.synced_offset() == -1);
  a.file.confirm(true);
  a.file.flush();
  CHECK(a.file.synced_offset() == 1);
}

TEST_CASE("The database of a transaction is chosen within it, before Redis 7.2 ahead of it") {
  const bool before = GENERATE(false, true);
  Appending a(before ? "emulate \"redis 7.0\"" : "emulate \"redis 7.2\"");
  for (const char* line : {"MULTI", "SET a 1", "SET b 2", "EXEC"}) a.client.run(line);
  a.file.flush();
  const std::string multi = request({"MULTI"});
  CHECK(a.contents().starts_with(before ? kSelect + multi : multi + kSelect));
}

}  // namespace latchkey::tests

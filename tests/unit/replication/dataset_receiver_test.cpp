#include "replication/dataset_receiver.h"

#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/clock.h"
#include "base/file.h"
#include "unit/catch.h"
#include "unit/faulty_disk.h"
#include "unit/temporary_directory.h"

namespace latchkey::tests {

namespace {

using replication::DatasetReceiver;
using Result = DatasetReceiver::Result;

const std::string kMark(40, 'm');

struct Receiving {
  explicit Receiving(replication::DatasetShape shape)
      : path(std::filesystem::temp_directory_path() /
             ("latchkey-receiver-" + std::to_string(getpid()))) {
    log.set_level(base::LogLevel::kNothing);
    receiver = DatasetReceiver::create(std::move(shape), path, log, base::disk(), clock);
  }
  ~Receiving() { unlink(path.c_str()); }

  // What is left of the bytes.
  std::string take(std::string_view bytes) {
    result = receiver->take(&bytes);
    return std::string(bytes);
  }
  std::string path;
  base::Logger log;
  base::VirtualClock clock;
  std::unique_ptr<DatasetReceiver> receiver;
  Result result = Result::kWantsMore;
};

}  // namespace

TEST_CASE("A dataset of a known size ends there, and what follows stays") {
  Receiving receiving({.mark = "", .size = 10});
  CHECK(receiving.take("12345").empty());
  CHECK(receiving.result == Result::kWantsMore);
  CHECK(receiving.take("67890rest") == "rest");
  CHECK(receiving.result == Result::kDone);
  REQUIRE(receiving.receiver->keep());
  CHECK(base::read_file(receiving.path) == "1234567890");
}

TEST_CASE("A dataset with a mark ends before it, however the bytes come") {
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{1000}}) {
    Receiving receiving({.mark = kMark, .size = 0});
    const std::string bytes = "data" + kMark.substr(0, 5) + "data" + kMark;
    for (size_t i = 0; i < bytes.size(); i += piece) {
      CHECK(receiving.result == Result::kWantsMore);
      CHECK(receiving.take(bytes.substr(i, piece)).empty());
    }
    CHECK(receiving.result == Result::kDone);
    REQUIRE(receiving.receiver->keep());
    CHECK(base::read_file(receiving.path) == "data" + kMark.substr(0, 5) + "data");
  }
}

TEST_CASE("The file of a dataset that never came whole is removed") {
  Receiving receiving({.mark = "", .size = 10});
  receiving.take("12345");
  receiving.receiver.reset();
  CHECK_FALSE(base::read_file(receiving.path));
}

TEST_CASE("The progress of a received dataset is logged by the injected clock") {
  TemporaryDirectory directory;
  base::Logger log;
  log.set_file(directory.path() / "log");
  base::VirtualClock clock;
  const auto receiver = DatasetReceiver::create(
      {.mark = "", .size = 10}, directory.path() / "received", log, base::disk(), clock);
  std::string_view first = "12345";
  REQUIRE(receiver->take(&first) == Result::kWantsMore);
  CHECK(directory.read("log").empty());
  clock.advance_ms(2000);
  std::string_view second = "678";
  REQUIRE(receiver->take(&second) == Result::kWantsMore);
  CHECK(directory.read("log").find("80 %, 8B of 10B, 4B/s") != std::string::npos);
}

TEST_CASE("A dataset is received whole, or not at all when the disk fails", "[receiver-faults]") {
  const size_t count = fail_each_call([](const Trial& trial) {
    TemporaryDirectory directory;
    TemporaryDirectory logs;
    // Power is not lost, so it need not keep what was synced.
    FaultyDisk disk(logs.path());
    base::Logger log;
    log.set_file(logs.path() / "log");
    const size_t descriptors = open_descriptors();
    const std::string path = directory.path() / "temp.rdb";
    // Larger than what is synced on the way.
    const std::string piece(3 << 20, 'x');
    disk.fail(trial.fault);
    bool kept = false;
    const base::VirtualClock clock;
    if (auto receiver =
            DatasetReceiver::create({.mark = kMark, .size = 0}, path, log, disk, clock)) {
      Result result = Result::kWantsMore;
      for (int i = 0; i < 3 && result == Result::kWantsMore; ++i) {
        std::string_view bytes = piece;
        result = receiver->take(&bytes);
      }
      std::string_view bytes = kMark;
      if (result == Result::kWantsMore) result = receiver->take(&bytes);
      kept = result == Result::kDone && receiver->keep();
    }
    CAPTURE(told(trial, disk), kept);
    CHECK(open_descriptors() == descriptors);
    CHECK(kept == !disk.has_failed());
    if (kept) CHECK(directory.read("temp.rdb").size() == 3 * piece.size());
    if (!kept) {
      CHECK(logs.read("log").find(trial.fault.kind == FaultKind::kFull
                                      ? "No space left on device"
                                      : "Input/output error") != std::string::npos);
    }
    return disk.has_failed();
  });
  CHECK(count > 30);
}

}  // namespace latchkey::tests

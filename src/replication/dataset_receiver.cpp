#include "replication/dataset_receiver.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/file.h"

namespace latchkey::replication {

namespace {

// Syncs now and then, so that the last sync is short.
constexpr uint64_t kSyncEvery = uint64_t{8} << 20;

}  // namespace

std::unique_ptr<DatasetReceiver> DatasetReceiver::create(DatasetShape shape, std::string path,
                                                         base::Logger& log, base::FileSystem& files,
                                                         const base::Clock& clock) {
  const int descriptor = files.open(path, O_CREAT | O_WRONLY | O_EXCL, 0644);
  if (descriptor < 0) {
    log.warning("Opening the temp file needed for MASTER <-> REPLICA synchronization: " +
                std::string(strerror(errno)));
    return nullptr;
  }
  return std::unique_ptr<DatasetReceiver>(
      new DatasetReceiver(std::move(shape), std::move(path), descriptor, log, files, clock));
}

DatasetReceiver::DatasetReceiver(DatasetShape shape, std::string path, int descriptor,
                                 base::Logger& log, base::FileSystem& files,
                                 const base::Clock& clock)
    : shape_(std::move(shape)),
      path_(std::move(path)),
      descriptor_(descriptor),
      log_(log),
      files_(files),
      clock_(clock),
      progress_(&log, /*terminal=*/-1, "Receiving the master's dataset",
                server::ProgressUnit::kBytes, shape_.has_mark() ? 0 : shape_.size,
                clock.monotonic_us()) {}

DatasetReceiver::~DatasetReceiver() {
  if (descriptor_ < 0) return;
  files_.close(descriptor_);
  files_.remove(path_);
}

bool DatasetReceiver::fail(const char* what) {
  log_.warning(std::string(what) +
               " for the MASTER <-> REPLICA synchronization: " + strerror(errno));
  return false;
}

bool DatasetReceiver::write(std::string_view bytes) {
  received_ += bytes.size();
  progress_.at(received_, clock_.monotonic_us());
  if (!base::write_all(descriptor_, bytes, files_))
    return fail("Write error or short write writing to the DB dump file needed");
  if (received_ - synced_ < kSyncEvery) return true;
  synced_ = received_;
  return files_.sync_data(descriptor_) || fail("Failed trying to sync the temp DB to disk");
}

void DatasetReceiver::note_end(std::string_view bytes) {
  tail_.append(bytes.substr(bytes.size() - std::min(bytes.size(), shape_.mark.size())));
  if (tail_.size() > shape_.mark.size()) tail_.erase(0, tail_.size() - shape_.mark.size());
}

DatasetReceiver::Result DatasetReceiver::take(std::string_view* bytes) {
  size_t mine = bytes->size();
  // After a mark the master sends nothing until it is acknowledged.
  if (!shape_.has_mark())
    mine = static_cast<size_t>(std::min<uint64_t>(mine, shape_.size - received_));
  const std::string_view taken = bytes->substr(0, mine);
  if (!write(taken)) return Result::kFailed;
  bytes->remove_prefix(mine);
  if (!shape_.has_mark()) return received_ == shape_.size ? Result::kDone : Result::kWantsMore;
  note_end(taken);
  if (tail_ != shape_.mark) return Result::kWantsMore;
  if (files_.truncate(descriptor_, received_ - shape_.mark.size())) return Result::kDone;
  fail("Error truncating the RDB file received from the master");
  return Result::kFailed;
}

bool DatasetReceiver::keep() {
  const bool synced = files_.sync(descriptor_);
  const bool closed = files_.close(std::exchange(descriptor_, -1));
  return (synced && closed) || fail("Failed trying to sync the temp DB to disk");
}

}  // namespace latchkey::replication

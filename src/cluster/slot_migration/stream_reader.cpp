#include "cluster/slot_migration/stream_reader.h"

#include "server/server.h"
#include "server/tasks.h"

namespace latchkey::cluster {

namespace {

// Bytes that are kept while others are run; beyond them the socket is not read.
constexpr size_t kMaxBytesAhead = 4 * 1024 * 1024;

}  // namespace

bool StreamReader::must_wait() const {
  constexpr uint32_t kWaits =
      server::kStateBusy | server::kStateLoading | server::kStateAsyncLoading;
  return (server_.state() & kWaits) != 0 || server_.tasks().any();
}

StreamReader::Progress StreamReader::read(std::span<char> bytes, size_t most, const Run& run) {
  using Status = resp::RequestParser::Status;
  const resp::RequestParser::Limits limits{
      .max_bulk_size = static_cast<size_t>(server_.settings().proto_max_bulk_len)};
  Progress progress;
  bool incomplete = false;
  for (bool goes_on = true; goes_on && progress.used < most && progress.used < bytes.size();) {
    words_.clear();
    size_t size = 0;
    const Status status = parser_.parse(bytes.subspan(progress.used), limits, words_, &size);
    if (status == Status::kRequest) {
      progress.used += size;
      goes_on = run(words_, size);
      continue;
    }
    incomplete = status == Status::kIncomplete;
    if (status == Status::kError) progress.error = parser_.error();
    break;
  }
  const size_t left = bytes.size() - progress.used;
  progress.has_more = left > 0 && !incomplete;
  // The rest of an incomplete request has yet to come, however large it is.
  progress.is_far_ahead = left > kMaxBytesAhead && !incomplete;
  return progress;
}

}  // namespace latchkey::cluster

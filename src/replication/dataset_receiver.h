// A dataset on its way from a master into a temporary file beside the dump file.
//
// Nothing that the master has said of it is believed further than it shows: memory is not reserved
// for it, and it ends where it was said to end or not at all.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/log.h"
#include "replication/dataset_shape.h"

namespace latchkey::replication {

class DatasetReceiver {
 public:
  // Null, with the reason in the log, when there can be no file at `path`.
  static std::unique_ptr<DatasetReceiver> create(DatasetShape shape, std::string path,
                                                 base::Logger& log);
  // Removes the file, unless keep() was called.
  ~DatasetReceiver();
  DatasetReceiver(const DatasetReceiver&) = delete;
  DatasetReceiver& operator=(const DatasetReceiver&) = delete;

  enum class Result : uint8_t {
    kWantsMore,
    kDone,    // the file is whole
    kFailed,  // it cannot be written; the log says why
  };
  // Takes what belongs to the dataset off the front of `bytes`.
  Result take(std::string_view* bytes);

  // Closes the file and leaves it to the caller. False when that fails.
  bool keep();
  const std::string& path() const { return path_; }
  const DatasetShape& shape() const { return shape_; }
  uint64_t received() const { return received_; }

 private:
  DatasetReceiver(DatasetShape shape, std::string path, int descriptor, base::Logger& log);
  bool write(std::string_view bytes);
  void note_end(std::string_view bytes);
  bool fail(const char* what);

  DatasetShape shape_;
  std::string path_;
  int descriptor_;
  base::Logger& log_;
  uint64_t received_ = 0;  // of the dataset and its mark
  uint64_t synced_ = 0;
  std::string tail_;  // the last bytes, as many as the mark has
};

}  // namespace latchkey::replication

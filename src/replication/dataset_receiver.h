// Receives a dataset from a master into a temporary file beside the dump file.
//
// The master's announcement is not trusted: no memory is reserved by it, and the dataset ends
// exactly where it was announced to end, or it fails.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/file_system.h"
#include "base/log.h"
#include "replication/dataset_shape.h"
#include "server/observe/progress.h"

namespace latchkey::replication {

class DatasetReceiver {
 public:
  // Null, with the reason logged, when the file cannot be created. `log`, `files` and `clock` must
  // outlive it; by `clock` the progress is logged.
  static std::unique_ptr<DatasetReceiver> create(DatasetShape shape, std::string path,
                                                 base::Logger& log, base::FileSystem& files,
                                                 const base::Clock& clock);
  // Removes the file, unless keep() was called.
  ~DatasetReceiver();
  DatasetReceiver(const DatasetReceiver&) = delete;
  DatasetReceiver& operator=(const DatasetReceiver&) = delete;

  enum class Result : uint8_t {
    kWantsMore,
    kDone,    // the file is complete
    kFailed,  // the file cannot be written; the reason is logged
  };
  // Takes the bytes of the dataset off the front of `bytes`.
  Result take(std::string_view* bytes);

  // Closes the file, which the caller then owns. False when that fails.
  bool keep();
  const std::string& path() const { return path_; }
  const DatasetShape& shape() const { return shape_; }
  uint64_t received() const { return received_; }

 private:
  DatasetReceiver(DatasetShape shape, std::string path, int descriptor, base::Logger& log,
                  base::FileSystem& files, const base::Clock& clock);
  bool write(std::string_view bytes);
  void note_end(std::string_view bytes);
  bool fail(const char* what);

  DatasetShape shape_;
  std::string path_;
  int descriptor_;
  base::Logger& log_;
  base::FileSystem& files_;
  const base::Clock& clock_;
  server::Progress progress_;
  uint64_t received_ = 0;  // bytes of the dataset and its mark
  uint64_t synced_ = 0;
  std::string tail_;  // the last bytes, at most as many as the mark has
};

}  // namespace latchkey::replication

// A dataset read straight from the master's socket while it is loaded. Whoever is served meanwhile
// is served between two reads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "persist/byte_stream.h"
#include "replication/dataset_shape.h"

namespace latchkey::replication {

class SocketSource final : public persist::ByteSource {
 public:
  // `begun`: what has come already. `meanwhile` is called while nothing comes, and stops the
  // reading when it returns false; so does `timeout_ms` without a byte.
  SocketSource(int descriptor, std::string_view begun, DatasetShape shape, int64_t timeout_ms,
               std::function<bool()> meanwhile);

  // When the dataset has been read: that it ends where the master said it would. Nothing is left
  // in the source then.
  bool ends_well();
  // What had come behind the dataset already.
  const std::string& left_over() const { return begun_; }

 private:
  static constexpr size_t kBuffer = 64 << 10;
  std::optional<std::string_view> fetch() override;
  // False when nothing can be read any more.
  bool wait();

  int descriptor_;
  std::string begun_;
  DatasetShape shape_;
  int64_t timeout_ms_;
  std::function<bool()> meanwhile_;
  std::unique_ptr<char[]> buffer_;
  uint64_t received_ = 0;
};

}  // namespace latchkey::replication

// A dataset that is read from the master's connection while it is loaded.
//
// The loop continues to receive: bytes stay with the connection (MasterConnection's stage kLoads)
// until they are needed, up to kMaxKept bytes; beyond that the socket is not read. The task that
// loads waits while there are none. Bytes after the dataset stay with the connection.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "persist/rdb/byte_stream.h"
#include "replication/dataset_shape.h"
#include "server/tasks.h"

namespace latchkey::server {
class Server;
}

namespace latchkey::replication {

class MasterConnection;

class ConnectionSource final : public persist::ByteSource {
 public:
  static constexpr size_t kMaxKept = 1 << 20;

  // REQUIRES: `from` is in stage kLoads, and lives until this is destroyed or cut() is called.
  ConnectionSource(server::Server& server, MasterConnection& from, DatasetShape shape);

  // Called when more bytes have arrived, or no more will: resumes the task.
  void input_arrived();
  // Makes all further reads fail with `error` as errno.
  void cut(int error);
  // Since when the task has been waiting for bytes (Unix time); 0: it is not waiting.
  int64_t waiting_since_ms() const { return waiting_since_ms_; }

  // Whether cut() was called.
  bool is_cut() const { return from_ == nullptr; }
  // Whether reading has failed because the connection broke, or was cut.
  bool broke() const;
  // To be called after the dataset was read: whether it ends where the master announced. Consumes
  // the rest of it.
  bool is_complete();

 private:
  static constexpr size_t kBuffer = 64 << 10;
  std::optional<std::string_view> fetch(std::span<char> place) override;
  // False when no more bytes can come.
  bool wait();

  server::Server& server_;
  MasterConnection* from_;  // null: cut
  DatasetShape shape_;
  std::unique_ptr<char[]> buffer_;
  uint64_t received_ = 0;
  int cut_by_ = 0;  // errno
  server::Tasks::Task* waiting_ = nullptr;
  int64_t waiting_since_ms_ = 0;
};

}  // namespace latchkey::replication

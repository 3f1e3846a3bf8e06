// A dataset read from the master's connection while it is loaded.
//
// The loop goes on receiving: what has come stands with the connection (MasterConnection's stage
// kLoads) until it is wanted, up to kMaxKept bytes; then nothing more is read from the socket. The
// task that loads waits while there is nothing. What stands behind the dataset stays with the
// connection.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "persist/byte_stream.h"
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

  // `from` is in stage kLoads, and lives until the source has gone or cut() was called.
  ConnectionSource(server::Server& server, MasterConnection& from, DatasetShape shape);

  // More has come, or no more will: the task goes on.
  void came();
  // Nothing is to be read any more. `error`: what errno is to say of it.
  void cut(int error);
  // Since when the task has been waiting for bytes, in Unix time; 0: it does not.
  int64_t waiting_since_ms() const { return waiting_since_ms_; }

  // When the dataset has been read: that it ends where the master said it would. Nothing is left
  // in the source then.
  bool ends_well();

 private:
  static constexpr size_t kBuffer = 64 << 10;
  std::optional<std::string_view> fetch() override;
  // False when there is no use in waiting.
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

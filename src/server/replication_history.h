// The replication id of a dataset's history, which a master and its replicas share: servers at the
// same offset of the same history have the same dataset.
//
// A server whose history has branched off another one keeps the other's id as well, with the offset
// up to which both are equal, so that replicas of the other history can continue here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace latchkey::server {

class RandomSource;

// A byte of a history, and the database that its stream has selected there.
struct StreamPlace {
  std::string id;
  int64_t offset = 0;
  int database = 0;
};

class ReplicationHistory {
 public:
  static constexpr size_t kIdDigits = 40;

  // A new history. Ids come from `random`, which must outlive the history.
  explicit ReplicationHistory(RandomSource& random);

  const std::string& id() const { return id_; }
  // Zeros when there is none.
  const std::string& second_id() const { return second_id_; }
  // The first byte that is not the same in both; -1 when there is no second.
  int64_t second_end() const { return second_end_; }
  bool has_second() const { return second_end_ >= 0; }

  // Whether the bytes of history `id` before `offset`, the first one that a replica lacks, are part
  // of this history.
  bool covers(std::string_view id, int64_t offset) const;

  // Begins a new history.
  void begin();
  // Continues under a new id after byte `offset`; the present id becomes the second one.
  void branch(int64_t offset);
  // Takes the history of another server.
  void adopt(std::string_view id);
  // The same, of a history that branched off this one after byte `offset`.
  void adopt_branch(std::string_view id, int64_t offset);
  // Makes `id` the second id: a file that was loaded has that history up to byte `offset`.
  void remember(std::string_view id, int64_t offset);

 private:
  RandomSource& random_;
  std::string id_;
  std::string second_id_;
  int64_t second_end_ = -1;
};

}  // namespace latchkey::server

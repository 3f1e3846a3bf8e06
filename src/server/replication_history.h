// The name of a dataset's history, which a server and those who follow it share: whoever is at an
// offset of the same history holds the same dataset.
//
// A server whose history has branched off another one keeps the other's name as well, with the
// offset up to which both are one: who was following there goes on here.
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

  // One that nobody else knows. New names come from `names`, which must outlive the history.
  explicit ReplicationHistory(RandomSource& names);

  const std::string& id() const { return id_; }
  // Zeros when there is none.
  const std::string& second_id() const { return second_id_; }
  // The first byte that is not the same in both; -1 when there is no second.
  int64_t second_end() const { return second_end_; }
  bool has_second() const { return second_end_ >= 0; }

  // Whether a follower that asks for `offset`, the first byte it lacks, of the history `id` is
  // where this one has been.
  bool covers(std::string_view id, int64_t offset) const;

  // A history that nobody else knows.
  void begin();
  // It goes on under a new name behind byte `offset`.
  void branch(int64_t offset);
  // It is that of another server.
  void adopt(std::string_view id);
  // The same, which goes on behind byte `offset` from what this one was.
  void adopt_branch(std::string_view id, int64_t offset);
  // What was saved up to byte `offset` was of that history.
  void remember(std::string_view id, int64_t offset);

 private:
  RandomSource& names_;
  std::string id_;
  std::string second_id_;
  int64_t second_end_ = -1;
};

}  // namespace latchkey::server

// The manifest of a multi-part append-only file: which files hold the dataset, in what order.
//
//     file appendonly.aof.2.base.rdb seq 2 type b
//     file appendonly.aof.1.incr.aof seq 1 type h
//     file appendonly.aof.2.incr.aof seq 2 type i startoffset 17
//
// At most one base (b), files that were replaced and wait to be removed (h), and increments (i),
// which are loaded behind the base in this order. Names with unusual characters stand in double
// quotes, as in a configuration file. Lines that begin with '#' are skipped, and so are words this
// version does not know.
//
// A manifest is text and knows nothing of the disk (persist/aof_directory.h does). Costs are
// proportional to the number of files, which is small.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace latchkey::persist {

enum class AofFileType : char { kBase = 'b', kHistory = 'h', kIncrement = 'i' };

struct AofFile {
  std::string name;
  int64_t sequence = 0;
  AofFileType type = AofFileType::kIncrement;
  // Where in the replication stream an increment begins, and where it ends when it was closed in
  // good order; -1: not known.
  int64_t start_offset = -1;
  int64_t end_offset = -1;
};

struct AofManifestError {
  int line = 0;  // counted from 1; 0: not a matter of one line
  std::string text;
  std::string message;
  // As the reference's log tells it.
  std::vector<std::string> log_lines() const;
};

class AofManifest {
 public:
  // Longest line, its end included.
  static constexpr size_t kMaxLine = 1024;

  // `file_name`: appendfilename, which the names of new files begin with.
  explicit AofManifest(std::string file_name) : file_name_(std::move(file_name)) {}

  // Reads what format() has written, or another server. False, with nothing changed, when it is
  // damaged.
  bool parse(std::string_view text, AofManifestError* error);
  std::string format() const;

  const std::optional<AofFile>& base() const { return base_; }
  const std::vector<AofFile>& increments() const { return increments_; }
  const std::vector<AofFile>& history() const { return history_; }
  // No base and no increments.
  bool empty() const { return !base_ && increments_.empty(); }
  // Whether `name` is the last file to be loaded.
  bool is_last(std::string_view name) const;
  // The file that effects are being appended to. REQUIRES: there is one.
  AofFile& last_increment() { return increments_.back(); }

  // "appendonly.aof.3.base.rdb" or ".aof" takes the place of the base, which becomes history.
  const std::string& add_base(bool as_rdb);
  // A single file of older servers is the base.
  void add_base_named(std::string name);
  // "appendonly.aof.3.incr.aof" follows the increments that are there. `start_offset`: see AofFile.
  const std::string& add_increment(int64_t start_offset);
  // What the next add_increment() would be called.
  std::string next_increment_name() const;
  // Increments become history, all or all but the last one: a new base has what they hold.
  void retire_increments(bool keep_last);
  // Takes the history out.
  std::vector<AofFile> take_history();
  // The increment that was added last goes again.
  void remove_last_increment();

 private:
  std::string file_name_;
  std::optional<AofFile> base_;
  std::vector<AofFile> history_;
  std::vector<AofFile> increments_;
  int64_t base_sequence_ = 0;
  int64_t increment_sequence_ = 0;
};

}  // namespace latchkey::persist

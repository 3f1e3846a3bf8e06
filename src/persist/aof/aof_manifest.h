// The manifest of a multi-part append-only file: which files hold the dataset, in what order.
//
//     file appendonly.aof.2.base.rdb seq 2 type b
//     file appendonly.aof.1.incr.aof seq 1 type h
//     file appendonly.aof.2.incr.aof seq 2 type i startoffset 17
//
// At most one base (b), files that were replaced and will be removed (h), and increments (i), which
// are loaded after the base in this order. Names with unusual characters are in double quotes, as
// in a configuration file. Sequence numbers are positive; those of the increments grow. Lines that
// begin with '#' are skipped, and so are words this version does not know.
//
// A manifest is text without access to the disk (persist/aof/aof_directory.h has that). Costs are
// proportional to the number of files, which is small.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace latchkey::persist {

enum class AofFileType : char { kBase = 'b', kHistory = 'h', kIncrement = 'i' };

struct AofFile {
  std::string name;
  int64_t sequence = 0;
  AofFileType type = AofFileType::kIncrement;
  // The replication offset at which an increment begins, and the one at which it was closed
  // cleanly; -1: not known.
  int64_t start_offset = -1;
  int64_t end_offset = -1;
};

struct AofManifestError {
  int line = 0;  // counted from 1; 0: the error concerns no single line
  std::string text;
  std::string message;
  // The error in the words of the reference's log.
  std::vector<std::string> log_lines() const;
};

class AofManifest {
 public:
  // Longest line, including its end.
  static constexpr size_t kMaxLine = 1024;

  // `file_name`: appendfilename, the prefix of the names of new files.
  explicit AofManifest(std::string file_name) : file_name_(std::move(file_name)) {}

  // Parses the output of format() or another server's manifest. Fails, with nothing changed, when
  // it is damaged.
  base::Result<void, AofManifestError> parse(std::string_view text);
  std::string format() const;

  const std::optional<AofFile>& base() const { return base_; }
  const std::vector<AofFile>& increments() const { return increments_; }
  const std::vector<AofFile>& history() const { return history_; }
  // No base and no increments.
  bool empty() const { return !base_ && increments_.empty(); }
  // Whether `name` is the last file to be loaded.
  bool is_last(std::string_view name) const;
  // The file to which propagated commands are appended. REQUIRES: there is one.
  AofFile& last_increment() { return increments_.back(); }

  // Whether any line, of history too, names the file.
  bool names(std::string_view name) const;

  // Adds "appendonly.aof.3.base.rdb" or ".aof" as the base; the old base becomes history. Takes the
  // next number whose name no other file has in this manifest.
  const std::string& add_base(bool as_rdb);
  // Has new files numbered after this one. False when it is not named as one of them would be.
  bool number_after(std::string_view file);
  // Makes a single file of an older server the base.
  void add_base_named(std::string name);
  // Adds "appendonly.aof.3.incr.aof", numbered likewise, after the present increments.
  // `start_offset`: see AofFile.
  const std::string& add_increment(int64_t start_offset);
  // Turns all increments, or all but the last one, into history, because a new base contains them.
  void retire_increments(bool keep_last);
  // Removes the history from the manifest and returns it.
  std::vector<AofFile> take_history();

 private:
  void renumber_increments();

  std::string file_name_;
  std::optional<AofFile> base_;
  std::vector<AofFile> history_;
  std::vector<AofFile> increments_;
  int64_t base_sequence_ = 0;
  int64_t increment_sequence_ = 0;
};

}  // namespace latchkey::persist

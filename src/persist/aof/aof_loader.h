// Runs the requests of append-only files on a server to restore the dataset.
//
// A file begins with RDB or with the first request; annotations (lines that begin with '#') are
// skipped. Requests between MULTI and EXEC run when EXEC has been read, so that an incomplete
// transaction has no effect. Requests go to their handlers directly: they are not counted in
// statistics, nothing is refused, and replies are dropped. Error replies are logged and counted.
//
// A file may end in the middle of a request, when the server died while writing. If it is the last
// file, it is truncated after the last complete unit (aof-load-truncated). Any other malformed
// request, and an unknown command, stops loading: requests already run stay, and the log says where
// loading stopped.
//
// Costs what the requests cost, plus a copy of their words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "persist/rdb/byte_stream.h"

namespace latchkey::server {
class Client;
struct Command;
class Server;
}  // namespace latchkey::server

namespace latchkey::persist {

class LoadingScope;

class AofLoader {
 public:
  enum class Result : uint8_t {
    kDone,
    kEmpty,      // the file has no bytes
    kTruncated,  // done, and the file was cut
    kFailed,     // the log says why
    kStopped,    // the server has been asked to stop
  };
  struct File {
    std::string name;  // for the log
    std::string path;
    bool is_last = true;
    // Whether it is a single file of an older server, or the base of a newer one; for the log.
    bool is_old_style = false;
    uint64_t bytes_before = 0;  // of the files loaded before
  };

  explicit AofLoader(server::Server& server);

  // REQUIRES: propagation is muted. `scope`: the state of loading.
  Result load(const File& file, LoadingScope& scope);

  // Loads from memory, for tests; truncates nothing. Sets *valid to the size of the complete
  // requests.
  Result load_bytes(std::string_view bytes, uint64_t* valid);

 private:
  enum class Step : uint8_t { kRan, kEnd, kCutShort, kMalformed, kRefused, kFailed, kStopped };
  enum class Read : uint8_t { kOk, kCutShort, kMalformed };

  // The words of requests, concatenated in one buffer.
  struct Words {
    std::string bytes;
    std::vector<size_t> ends;
    void clear() {
      bytes.clear();
      ends.clear();
    }
    // Appends views of all words from index `first` on.
    void views(size_t first, std::vector<std::string_view>* out) const;
  };

  void begin();
  // Runs the file's requests until the first Step other than kRan.
  Step run_all(ByteSource& source);
  Step run_one(ByteSource& source);
  Read read_request(ByteSource& source);
  Read read_number(ByteSource& source, int64_t* number);
  Read skip_annotation(ByteSource& source);
  Step run_words(uint64_t end);
  bool run(std::span<const std::string_view> words);
  // Counts and logs the error that a request was replied, and ends the process where
  // `propagation-error-behavior` says so.
  void failed(std::string_view error);
  bool read_preamble(ByteSource& source, const File& file, LoadingScope& scope);
  // Handle a file that ends in the middle of a request, and one whose bytes from `offset` on are
  // not a request: truncate it or fail, as the settings say.
  Result cut(const File& file);
  Result cut_malformed(const File& file, uint64_t offset);
  // Removes all bytes behind `valid_`.
  bool truncate_file(const File& file);
  Result result_of(Step step, const File& file, ByteSource& source);
  std::string refusal_of(const File& file) const;
  bool explains_refusals() const;

  server::Server& server_;
  server::Client& client_;
  Words words_;
  std::vector<std::string_view> views_;
  std::string room_;
  // Whether a MULTI without its EXEC has been read.
  bool in_transaction_ = false;
  Words queued_words_;
  std::vector<size_t> queued_ends_;  // in queued_words_.ends
  LoadingScope* scope_ = nullptr;
  uint64_t requests_ = 0;
  uint64_t valid_ = 0;   // offset of the end of the last complete unit
  std::string refusal_;  // why the last request could not be run
};

}  // namespace latchkey::persist

// Runs the requests of append-only files on a server, so that it comes to the dataset they hold.
//
// A file begins with RDB, or with the first request; annotations (lines that begin with '#') are
// passed over. What stands between MULTI and EXEC is run when EXEC has been read, so that a
// transaction cut short leaves nothing. Requests go to their handlers directly: they are counted
// nowhere, nothing is refused, and what they reply is dropped, as is an error.
//
// A file may end in the middle of a request, when the server died while it wrote. The rest is cut
// off then (aof-load-truncated), if it is the last file. Anything else that is no request, and a
// command that is not known, ends loading: what has been run stays, the log says where it ended.
//
// Costs what the requests cost, and a copy of their words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "persist/byte_stream.h"

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
    kStopped,    // the server is to end
  };
  struct File {
    std::string name;  // for the log
    std::string path;
    bool is_last = true;
    // A single file of an older server, or the base of a newer one; for the log.
    bool is_old_style = false;
    uint64_t bytes_before = 0;  // of the files loaded before
  };

  explicit AofLoader(server::Server& server);

  // REQUIRES: effects are muted. `scope`: the state of loading.
  Result load(const File& file, LoadingScope& scope);

  // The same from memory, for tests: no file, nothing cut. Tells in *valid how many bytes were
  // whole requests.
  Result load_bytes(std::string_view bytes, uint64_t* valid);

 private:
  enum class Step : uint8_t { kRan, kEnd, kCutShort, kMalformed, kUnknown, kFailed, kStopped };
  enum class Read : uint8_t { kOk, kCutShort, kMalformed };

  // Words of requests, one after the other in one buffer.
  struct Words {
    std::string bytes;
    std::vector<size_t> ends;
    void clear() {
      bytes.clear();
      ends.clear();
    }
    // Appends views of all words from that one on.
    void views(size_t first, std::vector<std::string_view>* out) const;
  };

  void begin();
  // Runs the file's requests until one cannot be.
  Step run_all(ByteSource& source);
  Step run_one(ByteSource& source);
  Read read_request(ByteSource& source);
  Read read_number(ByteSource& source, int64_t* number);
  Read skip_annotation(ByteSource& source);
  Step run_words(uint64_t end);
  bool run(std::span<const std::string_view> words);
  bool read_preamble(ByteSource& source, const File& file, LoadingScope& scope);
  Result cut(const File& file);
  Result result_of(Step step, const File& file, ByteSource& source);

  server::Server& server_;
  server::Client& client_;
  Words words_;
  std::vector<std::string_view> views_;
  std::string room_;
  // Between MULTI and EXEC.
  bool in_transaction_ = false;
  Words queued_words_;
  std::vector<size_t> queued_ends_;  // in queued_words_.ends
  LoadingScope* scope_ = nullptr;
  uint64_t requests_ = 0;
  uint64_t valid_ = 0;   // bytes up to the end of the last whole unit
  std::string unknown_;  // the command that is not known
};

}  // namespace latchkey::persist

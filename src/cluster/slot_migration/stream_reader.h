// Parses the requests by which another node sends slots, and has them run in pieces, between which
// other clients are served. What a request means is its owner's business (Importer, JobReceiver).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "resp/request_parser.h"

namespace latchkey::server {
class Server;
}

namespace latchkey::cluster {

class StreamReader {
 public:
  // Bytes that are run in a turn of the loop.
  static constexpr size_t kPiece = 256 * 1024;
  // Time until the next attempt when must_wait().
  static constexpr uint64_t kRetryMs = 10;

  explicit StreamReader(server::Server& server) : server_(server) {}

  // Whether something is in the middle, so that nothing may be run: a script, a task, or the
  // loading of a dataset.
  bool must_wait() const;

  struct Progress {
    size_t used = 0;  // bytes consumed
    // Whether the rest holds requests that read() can run in the next turn.
    bool has_more = false;
    // Whether these are so many bytes that the socket should not be read until they are run.
    bool is_far_ahead = false;
    // Why the rest is no request; empty: nothing is wrong. Valid until the next call.
    std::string_view error;
  };
  // Gets a request and its size in bytes; an empty line is a request without words. Returns false
  // to stop.
  using Run = std::function<bool(std::span<const std::string_view> words, size_t size)>;
  // Runs the requests at the front of `bytes` until `most` bytes or more are consumed. What was not
  // consumed must be at the front of the next call's bytes. REQUIRES: !must_wait().
  Progress read(std::span<char> bytes, size_t most, const Run& run);

  // As RequestParser::wanted_size().
  size_t wanted_size() const { return parser_.wanted_size(); }

 private:
  server::Server& server_;
  resp::RequestParser parser_;
  resp::ArgumentVector words_;
};

}  // namespace latchkey::cluster

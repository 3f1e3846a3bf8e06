// A connection to another server that the server waits on, with a limit of time on each step: what
// MIGRATE sends keys through.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace latchkey::replication {

class PeerSocket {
 public:
  // Waits up to `timeout_ms` for the connection. Null when there is no such host, or when the time
  // is over; a peer that refuses shows when it is written to.
  static std::unique_ptr<PeerSocket> connect(const std::string& host, const std::string& port,
                                             int64_t timeout_ms);
  ~PeerSocket();
  PeerSocket(const PeerSocket&) = delete;
  PeerSocket& operator=(const PeerSocket&) = delete;

  // Each waits up to `timeout_ms` at a time for the peer to take or give something. False on
  // failure; timed_out() tells why.
  bool write(std::string_view bytes, int64_t timeout_ms);
  // Without the line's end.
  bool read_line(std::string* line, int64_t timeout_ms);
  bool timed_out() const { return timed_out_; }

 private:
  explicit PeerSocket(int descriptor) : descriptor_(descriptor) {}
  bool wait(short events, int64_t timeout_ms);

  int descriptor_;
  bool timed_out_ = false;
  std::string received_;
};

}  // namespace latchkey::replication

// Readiness: reports the server's address to the program that started the process, as soon as the
// server takes requests, which is when the dataset is loaded. Nobody needs to poll the port:
//
//   port-file   a file of two lines that a shell can read as it is, there only when it is whole,
//               and removed at exit:
//                   port=40123
//                   url=redis://127.0.0.1:40123
//   ready-fd    the URL and a newline, written to a descriptor that was inherited and is closed
//               behind it
//   print-url   the same on standard output, which then ends; the log goes to standard error
//
// In the URL stand the first address of `bind` (for every address, that of this machine) and the
// port, or `unix://` and the path of the socket where there is no port. What a shell would not take
// as it is is percent-encoded.
#pragma once

#include <string>
#include <string_view>

#include "base/log.h"
#include "base/result.h"
#include "server/config/config.h"

namespace latchkey::server {

// The URL for clients. `address`: Listeners::address().
std::string url_of(std::string_view address, const ConfigValues& values);

class Readiness {
 public:
  explicit Readiness(base::Logger& log) : log_(log) {}

  // To be called before the process has opened files that stay open: makes sure that ready-fd is a
  // descriptor that was inherited, and removes a port-file that an earlier server has left.
  base::Result<void, ConfigError> prepare(const Config& config);

  // False, with the reason logged, when the port-file cannot be written: nobody would find the
  // server. Other failures are only logged, because the reader has gone.
  bool announce(std::string_view address);
  // The server's port or address has changed; nothing before announce().
  void moved(std::string_view address);
  // Removes the port-file, unless another server has put its own in that place.
  void withdraw();

 private:
  bool write_port_file(std::string_view address);
  void write_url(int descriptor, const std::string& url, const char* directive);

  base::Logger& log_;
  const Config* config_ = nullptr;
  std::string port_file_;  // an absolute path; empty: none
  std::string written_;    // what was written there last
};

}  // namespace latchkey::server

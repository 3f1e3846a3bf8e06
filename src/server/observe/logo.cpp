#include "server/observe/logo.h"

#include <unistd.h>

#include <cstdio>

#include "base/version.h"

namespace latchkey::server {

namespace {

constexpr const char* kPicture = R"(
       .--------.
      / .------. \         Latchkey %s, speaks Redis %s
     / /        \ \
     | |        | |        Running in standalone mode
    _| |________| |_       Port: %d
   .' |_|      |_| '.      PID: %d
   |      .--.      |
   |      \  /      |
   |       ||       |
   '.______''______.'

)";

}  // namespace

void show_logo(const ConfigValues& values, base::Logger& log) {
  const std::string mode(server_mode(values));
  const int port = values.port != 0 ? values.port : values.tls_port;
  const bool on_terminal =
      values.logfile.empty() && !values.syslog_enabled && isatty(log.standard_stream()) != 0;
  if (!values.always_show_logo && !on_terminal) {
    log.logf(base::LogLevel::kNotice, "Running mode=%s, port=%d.", mode.c_str(), port);
    return;
  }
  char text[1024];
  std::snprintf(text, sizeof(text), kPicture, base::kLatchkeyVersion, base::kReferenceVersion, port,
                static_cast<int>(getpid()));
  log.raw(text);
}

}  // namespace latchkey::server

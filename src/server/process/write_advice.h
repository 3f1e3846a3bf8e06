// Advice for the log when a file cannot be written.
#pragma once

#include <string>

#include "base/log.h"

namespace latchkey::server {

// The name of the user that the process runs as, or its number.
std::string own_user_name();

// A sentence for the log after a write to `path` (a file, or the directory that it was to be made
// in) has failed with `error`: how much room the file system has, or whose directory it is. Empty
// when errno's own text says all there is to say.
std::string advise_on_write_error(const std::string& path, int error);
// Logs it, if there is any, at warning level.
void log_write_advice(base::Logger& log, const std::string& path, int error);

}  // namespace latchkey::server

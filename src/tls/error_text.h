// OpenSSL's errors as text.
#pragma once

#include <openssl/err.h>

#include <string>

namespace latchkey::tls {

// The earliest error of OpenSSL's queue, in its own form ("error:0A0000C7:SSL routines::peer did
// not return a certificate"); empties the queue.
inline std::string take_error_text() {
  char text[256];
  ERR_error_string_n(ERR_get_error(), text, sizeof text);
  ERR_clear_error();
  return text;
}

}  // namespace latchkey::tls

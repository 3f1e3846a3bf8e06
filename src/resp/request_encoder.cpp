#include "resp/request_encoder.h"

namespace latchkey::resp {

void append_request(std::string* out, std::span<const std::string_view> words) {
  char header[kMaxHeader];
  out->append(header, put_header(header, '*', words.size()));
  for (const std::string_view word : words) {
    out->append(header, put_header(header, '$', word.size()));
    out->append(word).append("\r\n");
  }
}

std::string encode_request(std::span<const std::string_view> words) {
  std::string request;
  request.reserve(request_bytes(words));
  append_request(&request, words);
  return request;
}

}  // namespace latchkey::resp

// Writes requests to a sink, word by word, so that none has to be in memory as a whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "base/text/number.h"
#include "persist/rdb/byte_stream.h"
#include "resp/request_encoder.h"

namespace latchkey::persist {

class RequestWriter {
 public:
  explicit RequestWriter(ByteSink& sink) : sink_(sink) {}

  ByteSink& sink() { return sink_; }
  // Begins a request of so many words, which must follow.
  void begin(size_t words) { header('*', words); }
  void word(std::string_view text) {
    header('$', text.size());
    sink_.write(text);
    sink_.write("\r\n");
  }
  void word(int64_t number) {
    char digits[base::kMaxInt64Text];
    word(std::string_view(digits, base::format_int64(number, digits)));
  }
  // A whole request.
  void request(std::initializer_list<std::string_view> words) {
    begin(words.size());
    for (const std::string_view each : words) word(each);
  }

 private:
  void header(char type, size_t value) {
    char text[resp::kMaxHeader];
    sink_.write(std::string_view(text, resp::put_header(text, type, value)));
  }

  ByteSink& sink_;
};

}  // namespace latchkey::persist

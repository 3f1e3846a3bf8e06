// The protocol as a client sees it (RESP2): requests to bytes, bytes to replies.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace latchkey::resp {
class OutputBuffer;
}

namespace latchkey::simulation {

using Words = std::vector<std::string>;

std::string encode(const Words& words);
// What is to be replied, as protocol text.
std::string bulk(std::string_view bytes);
std::string integer(int64_t value);
inline constexpr std::string_view kOk = "+OK\r\n";
inline constexpr std::string_view kQueued = "+QUEUED\r\n";
inline constexpr std::string_view kNull = "$-1\r\n";
inline constexpr std::string_view kNullArray = "*-1\r\n";

// The size of the reply that `bytes` begin with; 0 when its end has not come. Throws CheckFailed
// when they are no reply.
size_t reply_size(std::string_view bytes);
// The elements of an array, each a reply. REQUIRES: a whole array.
std::vector<std::string> elements(std::string_view reply);
// What a bulk string holds, or a line says.
std::string content(std::string_view reply);

}  // namespace latchkey::simulation

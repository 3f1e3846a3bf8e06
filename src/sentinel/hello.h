// The message by which Sentinels find each other and agree on who is a master's address, sent to
// the channel __sentinel__:hello of masters and replicas, and to each other by PUBLISH:
//
//     ip,port,id,current epoch,master's name,its ip,its port,its configuration epoch
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace latchkey::sentinel {

// The greatest epoch that is taken from others. Epochs are signed in the replies of votes, and this
// Sentinel counts on from what others say.
inline constexpr int64_t kMaxToldEpoch = INT64_MAX / 2;
// What it may have counted to since, so that a file may have it.
inline constexpr int64_t kMaxKeptEpoch = kMaxToldEpoch + (int64_t{1} << 48);

inline constexpr std::string_view kHelloChannel = "__sentinel__:hello";

struct Hello {
  std::string ip;
  int port = 0;
  std::string id;
  uint64_t current_epoch = 0;
  std::string master_name;
  std::string master_host;
  int master_port = 0;
  uint64_t master_config_epoch = 0;
};

std::string format_hello(const Hello& hello);

// Nothing for anything that no Sentinel would send: another number of fields, ports out of range
// (1 .. 65535), epochs that are no numbers, an id that is not one, an address that is empty or
// longer than a host name.
std::optional<Hello> parse_hello(std::string_view text);

// An id of a Sentinel or a server: 40 hexadecimal digits.
bool is_id(std::string_view text);

}  // namespace latchkey::sentinel

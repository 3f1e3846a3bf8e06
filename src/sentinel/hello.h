// The message by which Sentinels discover each other and agree on the address of a master. They
// publish it to the channel __sentinel__:hello of masters and replicas, and send it to each other
// by PUBLISH:
//
//     ip,port,id,current epoch,master's name,its ip,its port,its configuration epoch
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace latchkey::sentinel {

// The greatest epoch that is accepted from other Sentinels. Epochs are signed in the replies of
// votes, and this Sentinel increments the epochs that it receives.
inline constexpr int64_t kMaxReceivedEpoch = INT64_MAX / 2;
// The greatest epoch that is accepted from the configuration file: this Sentinel may have
// incremented a received one since.
inline constexpr int64_t kMaxKeptEpoch = kMaxReceivedEpoch + (int64_t{1} << 48);

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

// The messages between nodes of a cluster as bytes, in the reference's format. All numbers are big
// endian.
//
//     4      "RCmb"
//     4      length of the message, this header included
//     2 2 2  version (1), the sender's first port, type
//     2      entries of gossip
//     8 8 8  current epoch, configuration epoch, offset of the stream
//     40     the sender's id
//     2048   slots of the sender, or of its master if it is a replica
//     40     its master's id; zeros: it is a master
//     46     its ip as text, ended by a zero; empty: the connection's address
//     2 30   number of extensions, unused
//     2 2 2  the sender's second port, bus port, flags (NodeFlag)
//     1 3    1: the cluster is down for the sender; message flags
//
// After this header of 2256 bytes follows the content of the type.
//
//     PING PONG MEET   entries of gossip, 104 bytes each: 40 id, 4 4 seconds of the last ping sent
//                      and pong received, 46 ip, 2 2 2 first port, bus port, flags, 2 second port,
//                      2 unused; then extensions: 4 length (a multiple of 8, with these 8), 2 kind,
//                      2 unused, value
//     FAIL             40 id of the failed node
//     UPDATE           8 configuration epoch, 40 id, 2048 slots of another node
//     PUBLISH ...      4 4 lengths of channel and message, both
//
// Decoding checks everything: a decoded message is consistent, and its texts have only valid
// characters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/node.h"
#include "cluster/slot_set.h"

namespace latchkey::cluster {

enum class MessageType : uint16_t {
  kPing,
  kPong,
  kMeet,
  kFail,
  kPublish,
  kAskForVote,
  kVote,
  kUpdate,
  kManualFailover,  // a replica asks its master to hand over
  kModule,
  kPublishToShard,
};
// Which of a node's ports is the first one in messages, for clients without TLS or with it: all
// nodes of a cluster have the same tls-cluster, which decides.
enum class FirstPort : uint8_t { kPlain, kTls };
// Whose nodes understand the messages: a kind of extension means different things to them.
enum class Dialect : uint8_t { kRedis, kValkey };

inline constexpr size_t kMessageTypes = 11;
// The name in CLUSTER INFO: "ping".
std::string_view name_of(MessageType type);

enum MessageFlag : uint8_t {
  kWritesPaused = 1u << 0,  // the sender has paused writes for a manual failover; its offset does
                            // not change
  kVoteThoughUp = 1u << 1,  // vote even if the master is not failing
  kKnowsExtensions = 1u << 2,  // the sender understands extensions
};

struct GossipEntry {
  std::string id;
  uint32_t ping_sent_s = 0;
  uint32_t pong_received_s = 0;
  NodeAddress address;
  uint16_t flags = 0;
};

struct ForgottenNode {
  std::string id;
  uint64_t seconds = 0;  // how long the node stays forgotten
};

struct Extensions {
  std::optional<std::string> hostname;
  std::optional<std::string> human_name;
  std::vector<ForgottenNode> forgotten;
  std::optional<std::string> shard_id;
  std::optional<std::string> secret;
  // Addresses and ports for clients.
  std::optional<std::string> client_ipv4;
  std::optional<std::string> client_ipv6;
  std::optional<uint16_t> client_port;
  std::optional<uint16_t> client_tls_port;
  std::optional<std::string> availability_zone;
};

struct Message {
  MessageType type = MessageType::kPing;
  uint64_t current_epoch = 0;
  uint64_t config_epoch = 0;
  uint64_t offset = 0;
  std::string sender;
  SlotSet slots;
  std::string master;  // empty: none
  NodeAddress address;
  uint16_t flags = 0;
  bool down = false;
  uint8_t message_flags = 0;

  std::vector<GossipEntry> gossip;  // kPing, kPong, kMeet
  Extensions extensions;            // kPing, kPong, kMeet
  std::string subject;              // kFail, kUpdate: the id of the node it is about
  uint64_t subject_epoch = 0;       // kUpdate
  SlotSet subject_slots;            // kUpdate
  std::string channel;              // kPublish, kPublishToShard
  std::string content;

  bool has(MessageFlag flag) const { return (message_flags & flag) != 0; }
};

inline constexpr size_t kHeaderBytes = 2256;
// Bytes that are needed to read a message's length.
inline constexpr size_t kLengthPrefix = 8;

std::string encode(const Message& message, FirstPort first = FirstPort::kPlain,
                   Dialect dialect = Dialect::kRedis);

// The length in the first kLengthPrefix bytes; nothing when they do not begin a message.
std::optional<size_t> announced_length(std::string_view bytes);
// The type of a message by its header, also of one whose content is malformed; nothing when there
// is no such type. REQUIRES: bytes.size() is the announced length.
std::optional<MessageType> announced_type(std::string_view bytes);
// Nothing when the message is malformed. REQUIRES: bytes.size() is the announced length.
std::optional<Message> decode(std::string_view bytes, FirstPort first = FirstPort::kPlain,
                              Dialect dialect = Dialect::kRedis);

}  // namespace latchkey::cluster

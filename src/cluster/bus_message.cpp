#include "cluster/bus_message.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>

#include "base/text/up_to_nul.h"

namespace latchkey::cluster {

namespace {

constexpr std::string_view kSignature = "RCmb";
constexpr uint16_t kVersion = 1;
constexpr size_t kIpBytes = 46;
constexpr size_t kUnusedBytes = 30;
constexpr size_t kGossipUnusedBytes = 2;
constexpr size_t kExtensionHeader = 8;
constexpr size_t kExtensionUnit = 8;
constexpr size_t kMessageFlagBytes = 3;
constexpr size_t kLongestHostname = 255;

enum ExtensionKind : uint16_t {
  kHostname,
  kHumanName,
  kForgotten,
  kShardId,
  kSecret,  // of Redis
  // Of Valkey.
  kValkeyClientIpv4 = 4,
  kValkeyClientIpv6,
  kValkeyClientPort,
  kValkeyClientTlsPort,
  kValkeyAvailabilityZone,
  // Of Latchkey: what has another number, or none, in the dialect spoken.
  kOwnSecret = 0x4c4b,
  kOwnClientIpv4,
  kOwnClientIpv6,
  kOwnClientPort,
  kOwnClientTlsPort,
  kOwnAvailabilityZone,
};

bool has_gossip(MessageType type) {
  return type == MessageType::kPing || type == MessageType::kPong || type == MessageType::kMeet;
}

bool is_published(MessageType type) {
  return type == MessageType::kPublish || type == MessageType::kPublishToShard;
}

// --- Writing ------------------------------------------------------------------------------------

class Writer {
 public:
  explicit Writer(std::string* out) : out_(*out) {}
  template <typename Integer>
  void number(Integer value) {
    for (size_t i = sizeof(Integer); i-- > 0;)
      out_ += static_cast<char>(static_cast<uint64_t>(value) >> (8 * i) & 0xff);
  }
  void port(int value) { number(static_cast<uint16_t>(value)); }
  void bytes(std::string_view text) { out_ += text; }
  // Writes a field of `size` bytes: the text, cut if it is too long, and zeros.
  void field(std::string_view text, size_t size) {
    text = text.substr(0, size);
    out_.append(text).append(size - text.size(), '\0');
  }

 private:
  std::string& out_;
};

class ExtensionWriter {
 public:
  void text(ExtensionKind kind, const std::optional<std::string>& value) {
    // Texts are ended by a zero.
    if (value) add(kind, *value + '\0');
  }
  void fixed(ExtensionKind kind, const std::optional<std::string>& value) {
    if (value) add(kind, *value);
  }
  void port(ExtensionKind kind, const std::optional<uint16_t>& value) {
    if (!value) return;
    std::string bytes;
    Writer(&bytes).number(*value);
    add(kind, bytes);
  }
  void forgotten(const ForgottenNode& node) {
    std::string value;
    Writer writer(&value);
    writer.field(node.id, kIdDigits);
    writer.number(node.seconds);
    add(kForgotten, value);
  }
  uint16_t count() const { return count_; }
  const std::string& bytes() const { return bytes_; }

 private:
  void add(ExtensionKind kind, std::string_view value) {
    const size_t padded = (value.size() + kExtensionUnit - 1) / kExtensionUnit * kExtensionUnit;
    Writer writer(&bytes_);
    writer.number(static_cast<uint32_t>(kExtensionHeader + padded));
    writer.number(static_cast<uint16_t>(kind));
    writer.number(uint16_t{0});
    writer.field(value, padded);
    ++count_;
  }
  std::string bytes_;
  uint16_t count_ = 0;
};

ExtensionWriter extensions_of(const Extensions& extensions, Dialect dialect) {
  ExtensionWriter writer;
  writer.text(kHostname, extensions.hostname);
  writer.text(kHumanName, extensions.human_name);
  for (const ForgottenNode& node : extensions.forgotten) writer.forgotten(node);
  writer.fixed(kShardId, extensions.shard_id);
  const bool valkey = dialect == Dialect::kValkey;
  writer.fixed(valkey ? kOwnSecret : kSecret, extensions.secret);
  writer.text(valkey ? kValkeyClientIpv4 : kOwnClientIpv4, extensions.client_ipv4);
  writer.text(valkey ? kValkeyClientIpv6 : kOwnClientIpv6, extensions.client_ipv6);
  writer.port(valkey ? kValkeyClientPort : kOwnClientPort, extensions.client_port);
  writer.port(valkey ? kValkeyClientTlsPort : kOwnClientTlsPort, extensions.client_tls_port);
  writer.text(valkey ? kValkeyAvailabilityZone : kOwnAvailabilityZone,
              extensions.availability_zone);
  return writer;
}

int first_of(const NodeAddress& address, FirstPort first) {
  return address.port_for(first == FirstPort::kTls);
}

int second_of(const NodeAddress& address, FirstPort first) {
  return address.port_for(first != FirstPort::kTls);
}

int& first_of(NodeAddress& address, FirstPort first) {
  return first == FirstPort::kTls ? address.tls_port : address.port;
}

int& second_of(NodeAddress& address, FirstPort first) {
  return first == FirstPort::kTls ? address.port : address.tls_port;
}

void write_gossip(Writer& writer, const GossipEntry& entry, FirstPort first) {
  writer.field(entry.id, kIdDigits);
  writer.number(entry.ping_sent_s);
  writer.number(entry.pong_received_s);
  writer.field(entry.address.ip, kIpBytes);
  writer.port(first_of(entry.address, first));
  writer.port(entry.address.bus_port);
  writer.number(entry.flags);
  writer.port(second_of(entry.address, first));
  writer.field({}, kGossipUnusedBytes);
}

std::string body_of(const Message& message, FirstPort first) {
  std::string body;
  Writer writer(&body);
  for (const GossipEntry& entry : message.gossip) write_gossip(writer, entry, first);
  if (message.type == MessageType::kFail) writer.field(message.subject, kIdDigits);
  if (message.type == MessageType::kUpdate) {
    writer.number(message.subject_epoch);
    writer.field(message.subject, kIdDigits);
    writer.bytes(message.subject_slots.bytes());
  }
  if (is_published(message.type)) {
    writer.number(static_cast<uint32_t>(message.channel.size()));
    writer.number(static_cast<uint32_t>(message.content.size()));
    writer.bytes(message.channel);
    writer.bytes(message.content);
  }
  return body;
}

// --- Reading ------------------------------------------------------------------------------------

// A read past the end returns zeros and sets failed().
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  bool failed() const { return failed_; }
  size_t left() const { return bytes_.size(); }

  std::string_view bytes(size_t size) {
    if (size > bytes_.size()) {
      failed_ = true;
      bytes_ = {};
      return {};
    }
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }
  template <typename Integer>
  Integer number() {
    uint64_t value = 0;
    for (const char byte : bytes(sizeof(Integer))) value = value << 8 | static_cast<uint8_t>(byte);
    return static_cast<Integer>(value);
  }
  void skip(size_t size) { bytes(size); }
  // Reads a field up to its first zero.
  std::string text(size_t size) { return std::string(base::up_to_nul(bytes(size))); }
  std::string id() {
    const std::string_view text = bytes(kIdDigits);
    failed_ |= !is_id(text);
    return std::string(text);
  }
  void fail() { failed_ = true; }

 private:
  std::string_view bytes_;
  bool failed_ = false;
};

bool is_of(std::string_view text, std::string_view others) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           others.find(c) != others.npos;
  });
}

// An announced ip may be a host name.
bool is_ip(std::string_view text) {
  return text.size() < kIpBytes && is_of(text, ".:%-_");
}

bool is_hostname(std::string_view text) {
  return text.size() <= kLongestHostname && is_of(text, ".-");
}

std::string read_ip(Reader& reader) {
  std::string ip = reader.text(kIpBytes);
  if (!is_ip(ip)) reader.fail();
  return ip;
}

// Nothing for what is no address: nodes of the other dialect mean something else.
std::optional<std::string> read_client_ip(Reader& reader, int family) {
  std::string ip = reader.text(reader.left());
  unsigned char address[sizeof(in6_addr)];
  if (inet_pton(family, ip.c_str(), address) != 1) return std::nullopt;
  return ip;
}

// Nothing for a name or a zone that would damage the node file: some versions of Redis and Valkey
// send any text.
std::optional<std::string> read_safe_text(Reader& reader) {
  std::string text = reader.text(reader.left());
  if (!is_safe_in_nodes_file(text)) return std::nullopt;
  return text;
}

GossipEntry read_gossip(Reader& reader, FirstPort first) {
  GossipEntry entry;
  entry.id = reader.id();
  entry.ping_sent_s = reader.number<uint32_t>();
  entry.pong_received_s = reader.number<uint32_t>();
  entry.address.ip = read_ip(reader);
  first_of(entry.address, first) = reader.number<uint16_t>();
  entry.address.bus_port = reader.number<uint16_t>();
  entry.flags = reader.number<uint16_t>();
  second_of(entry.address, first) = reader.number<uint16_t>();
  reader.skip(kGossipUnusedBytes);
  return entry;
}

// A kind that only one dialect has, as the kind that both have.
uint16_t common_kind(uint16_t kind, Dialect dialect) {
  if (dialect == Dialect::kRedis) return kind == kSecret ? uint16_t{kOwnSecret} : kind;
  switch (kind) {
    case kValkeyClientIpv4:
      return kOwnClientIpv4;
    case kValkeyClientIpv6:
      return kOwnClientIpv6;
    case kValkeyClientPort:
      return kOwnClientPort;
    case kValkeyClientTlsPort:
      return kOwnClientTlsPort;
    case kValkeyAvailabilityZone:
      return kOwnAvailabilityZone;
    default:
      return kind;
  }
}

void read_extension(Reader& reader, Dialect dialect, Extensions* extensions) {
  const auto length = reader.number<uint32_t>();
  const auto kind = reader.number<uint16_t>();
  reader.skip(sizeof(uint16_t));
  if (length < kExtensionHeader || length % kExtensionUnit != 0) return reader.fail();
  Reader value(reader.bytes(length - kExtensionHeader));
  const size_t size = value.left();
  switch (common_kind(kind, dialect)) {
    case kHostname:
      extensions->hostname = value.text(size);
      if (!is_hostname(*extensions->hostname)) reader.fail();
      break;
    case kHumanName:
      extensions->human_name = read_safe_text(value);
      break;
    case kForgotten: {
      ForgottenNode& node = extensions->forgotten.emplace_back();
      node.id = value.id();
      node.seconds = value.number<uint64_t>();
      break;
    }
    case kShardId:
      extensions->shard_id = value.id();
      break;
    case kOwnClientIpv4:
      extensions->client_ipv4 = read_client_ip(value, AF_INET);
      break;
    case kOwnClientIpv6:
      extensions->client_ipv6 = read_client_ip(value, AF_INET6);
      break;
    case kOwnClientPort:
      extensions->client_port = value.number<uint16_t>();
      break;
    case kOwnClientTlsPort:
      extensions->client_tls_port = value.number<uint16_t>();
      break;
    case kOwnAvailabilityZone:
      extensions->availability_zone = read_safe_text(value);
      break;
    case kOwnSecret:
      extensions->secret = value.id();
      break;
    default:  // of a newer version of the protocol
      break;
  }
  if (value.failed()) reader.fail();
}

void read_update(Reader& reader, Message* message) {
  message->subject_epoch = reader.number<uint64_t>();
  message->subject = reader.id();
  const std::string_view slots = reader.bytes(SlotSet::kBytes);
  if (!reader.failed()) message->subject_slots = SlotSet::of_bytes(slots);
}

void read_published(Reader& reader, Message* message) {
  const auto channel = reader.number<uint32_t>();
  const auto content = reader.number<uint32_t>();
  message->channel = reader.bytes(channel);
  message->content = reader.bytes(content);
}

}  // namespace

std::string_view name_of(MessageType type) {
  static constexpr std::string_view kNames[kMessageTypes] = {
      "ping",     "pong",   "meet",    "fail",   "publish",     "auth-req",
      "auth-ack", "update", "mfstart", "module", "publishshard"};
  return kNames[static_cast<size_t>(type)];
}

std::string encode(const Message& message, FirstPort first, Dialect dialect) {
  const ExtensionWriter extensions = extensions_of(message.extensions, dialect);
  const std::string body = body_of(message, first);
  std::string out;
  out.reserve(kHeaderBytes + body.size() + extensions.bytes().size());
  Writer writer(&out);
  writer.bytes(kSignature);
  writer.number(static_cast<uint32_t>(kHeaderBytes + body.size() + extensions.bytes().size()));
  writer.number(kVersion);
  writer.port(first_of(message.address, first));
  writer.number(static_cast<uint16_t>(message.type));
  // For messages with one subject the count is 1.
  const bool has_subject = !has_gossip(message.type) && !body.empty();
  writer.number(static_cast<uint16_t>(has_subject ? 1 : message.gossip.size()));
  writer.number(message.current_epoch);
  writer.number(message.config_epoch);
  writer.number(message.offset);
  writer.field(message.sender, kIdDigits);
  writer.bytes(message.slots.bytes());
  writer.field(message.master, kIdDigits);
  writer.field(message.address.ip, kIpBytes);
  writer.number(extensions.count());
  writer.field({}, kUnusedBytes);
  writer.port(second_of(message.address, first));
  writer.port(message.address.bus_port);
  writer.number(message.flags);
  writer.number(static_cast<uint8_t>(message.down));
  writer.number(message.message_flags);
  writer.field({}, kMessageFlagBytes - 1);
  return out + body + extensions.bytes();
}

std::optional<size_t> announced_length(std::string_view bytes) {
  Reader reader(bytes);
  if (reader.bytes(kSignature.size()) != kSignature) return std::nullopt;
  const auto length = reader.number<uint32_t>();
  if (reader.failed() || length < kHeaderBytes) return std::nullopt;
  return length;
}

std::optional<MessageType> announced_type(std::string_view bytes) {
  Reader reader(bytes);
  reader.skip(kLengthPrefix + sizeof(kVersion) + sizeof(uint16_t));
  const auto type = reader.number<uint16_t>();
  if (reader.failed() || type >= kMessageTypes) return std::nullopt;
  return static_cast<MessageType>(type);
}

std::optional<Message> decode(std::string_view bytes, FirstPort first, Dialect dialect) {
  Reader reader(bytes);
  Message message;
  reader.skip(kLengthPrefix);
  if (reader.number<uint16_t>() != kVersion) return std::nullopt;
  first_of(message.address, first) = reader.number<uint16_t>();
  const auto type = reader.number<uint16_t>();
  if (type >= kMessageTypes) return std::nullopt;
  message.type = static_cast<MessageType>(type);
  const auto count = reader.number<uint16_t>();
  message.current_epoch = reader.number<uint64_t>();
  message.config_epoch = reader.number<uint64_t>();
  message.offset = reader.number<uint64_t>();
  message.sender = reader.id();
  const std::string_view slots = reader.bytes(SlotSet::kBytes);
  if (reader.failed()) return std::nullopt;
  message.slots = SlotSet::of_bytes(slots);
  message.master = reader.text(kIdDigits);
  if (!message.master.empty() && !is_id(message.master)) return std::nullopt;
  message.address.ip = read_ip(reader);
  const auto extensions = reader.number<uint16_t>();
  reader.skip(kUnusedBytes);
  second_of(message.address, first) = reader.number<uint16_t>();
  message.address.bus_port = reader.number<uint16_t>();
  message.flags = reader.number<uint16_t>();
  message.down = reader.number<uint8_t>() != 0;
  message.message_flags = reader.number<uint8_t>();
  reader.skip(kMessageFlagBytes - 1);

  if (has_gossip(message.type)) {
    for (size_t i = 0; i < count && !reader.failed(); ++i)
      message.gossip.push_back(read_gossip(reader, first));
    for (size_t i = 0; i < extensions && !reader.failed(); ++i)
      read_extension(reader, dialect, &message.extensions);
  } else if (message.type == MessageType::kFail) {
    message.subject = reader.id();
  } else if (message.type == MessageType::kUpdate) {
    read_update(reader, &message);
  } else if (is_published(message.type)) {
    read_published(reader, &message);
  }
  if (reader.failed() || (reader.left() > 0 && message.type != MessageType::kModule))
    return std::nullopt;
  return message;
}

}  // namespace latchkey::cluster

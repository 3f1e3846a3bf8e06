#include "cluster/bus_message.h"

#include <algorithm>
#include <string>

#include "unit/catch.h"

namespace latchkey::cluster {

namespace {

Message ping() {
  Message message;
  message.type = MessageType::kPing;
  message.current_epoch = 0x0102030405060708;
  message.config_epoch = 3;
  message.offset = 99;
  message.sender = std::string(40, 'a');
  message.slots.add(0);
  message.slots.add(9);
  message.master = std::string(40, 'b');
  message.address = {.ip = "10.0.0.1", .port = 7000, .bus_port = 17000};
  message.flags = kReplica | kMyself;
  message.down = true;
  message.message_flags = kKnowsExtensions;
  message.gossip.push_back({.id = std::string(40, 'c'),
                            .ping_sent_s = 1,
                            .pong_received_s = 2,
                            .address = {.ip = "::1", .port = 7001, .bus_port = 17001},
                            .flags = kMaster | kExtensions});
  message.extensions.hostname = "host-one.com";
  message.extensions.human_name = "nodey";
  message.extensions.forgotten.push_back({std::string(40, 'd'), 59});
  message.extensions.shard_id = std::string(40, 'e');
  message.extensions.secret = std::string(40, 'f');
  return message;
}

void patch(std::string& bytes, size_t at, char value) {
  bytes[at] = value;
}

}  // namespace

TEST_CASE("a message says the same at the other end", "[cluster]") {
  const std::string bytes = encode(ping());
  REQUIRE(announced_length(bytes) == bytes.size());
  const auto read = decode(bytes);
  REQUIRE(read);
  CHECK(encode(*read) == bytes);
  CHECK(read->sender == std::string(40, 'a'));
  CHECK(read->slots.text() == " 0 9");
  CHECK(read->gossip.at(0).address.ip == "::1");
  CHECK(*read->extensions.hostname == "host-one.com");
  CHECK(read->extensions.forgotten.at(0).seconds == 59);
}

TEST_CASE("the port that comes first is the one that tls-cluster is for", "[cluster]") {
  Message message = ping();
  message.address.port = 0x1234;
  message.address.tls_port = 0x5678;
  message.gossip.at(0).address.port = 1;
  message.gossip.at(0).address.tls_port = 2;
  constexpr size_t kFirst = 10;
  constexpr size_t kSecond = 2246;
  const std::string plain = encode(message);
  CHECK(plain.substr(kFirst, 2) == "\x12\x34");
  CHECK(plain.substr(kSecond, 2) == "\x56\x78");
  const std::string secure = encode(message, FirstPort::kTls);
  CHECK(secure.substr(kFirst, 2) == "\x56\x78");
  CHECK(secure.substr(kSecond, 2) == "\x12\x34");
  for (const FirstPort first : {FirstPort::kPlain, FirstPort::kTls}) {
    const auto read = decode(encode(message, first), first);
    REQUIRE(read);
    CHECK(read->address == message.address);
    CHECK(read->gossip.at(0).address == message.gossip.at(0).address);
  }
  // Nodes that disagree take one for the other.
  CHECK(decode(secure)->address.port == 0x5678);
}

// Offsets as a node of the reference was seen to send them.
TEST_CASE("a message stands as the reference's nodes read it", "[cluster]") {
  const std::string bytes = encode(ping());
  CHECK(bytes.substr(0, 4) == "RCmb");
  CHECK(bytes.substr(8, 8) == std::string("\0\1\x1b\x58\0\0\0\1", 8));
  CHECK(bytes.substr(16, 8) == "\1\2\3\4\5\6\7\x8");
  CHECK(bytes.substr(40, 40) == std::string(40, 'a'));
  CHECK(bytes.substr(80, 2) == "\1\2");
  CHECK(bytes.substr(2128, 40) == std::string(40, 'b'));
  CHECK(bytes.substr(2214, 2) == std::string("\0\5", 2));
  CHECK(bytes.substr(2248, 5) == std::string("\x42\x68\0\x12\1", 5));
  CHECK(bytes.substr(2256 + 104, 24) == std::string("\0\0\0\x18\0\0\0\0host-one.com\0\0\0\0", 24));
  // The headers, one entry, and what follows: 24, 16, 56, 48 and 48 bytes.
  CHECK(bytes.size() == 2256 + 104 + 192);
}

TEST_CASE("messages of each type come across", "[cluster]") {
  Message fail = ping();
  fail.gossip.clear();
  fail.extensions = {};
  fail.type = MessageType::kFail;
  fail.subject = std::string(40, '1');
  CHECK(decode(encode(fail))->subject == fail.subject);

  Message update = fail;
  update.type = MessageType::kUpdate;
  update.subject_epoch = 8;
  update.subject_slots.add(77);
  const auto read = decode(encode(update));
  CHECK(read->subject_epoch == 8);
  CHECK(read->subject_slots.text() == " 77");

  Message publish = fail;
  publish.type = MessageType::kPublishToShard;
  publish.channel = "news";
  publish.content = std::string(100'000, 'x');
  CHECK(decode(encode(publish))->content == publish.content);
  CHECK(decode(encode(publish))->channel == "news");

  Message vote = fail;
  vote.type = MessageType::kVote;
  CHECK(encode(vote).size() == kHeaderBytes);
  CHECK(decode(encode(vote))->type == MessageType::kVote);
}

TEST_CASE("what is no message is refused", "[cluster]") {
  CHECK_FALSE(announced_length("GET / HT"));
  CHECK_FALSE(announced_length(std::string("RCmb\0\0\0\x10", 8)));
  const std::string good = encode(ping());
  for (const size_t cut : {good.size() - 1, kHeaderBytes, kHeaderBytes + 50, size_t{100}})
    CHECK_FALSE(decode(good.substr(0, cut)));
  CHECK_FALSE(decode(good + "x"));
  struct Damage {
    size_t at;
    char value;
  };
  for (const Damage& damage : {Damage{9, 2},                     // another version
                               Damage{13, 11},                   // no such type
                               Damage{15, 9},                    // more gossip than there is
                               Damage{40, '\n'},                 // an id that is none
                               Damage{2128, 'Z'},                // the same of the master
                               Damage{2168, ' '},                // an ip that would break the file
                               Damage{2215, 9},                  // more extensions
                               Damage{2256 + 104 + 3, 0x11},     // a length that is not padded
                               Damage{2256 + 104 + 8, '\n'}}) {  // a hostname that is none
    std::string bad = good;
    patch(bad, damage.at, damage.value);
    INFO(damage.at);
    CHECK_FALSE(decode(bad));
  }
}

TEST_CASE("An ip ends within its field", "[cluster]") {
  constexpr size_t kIpBytes = 46;
  std::string bytes = encode(ping());
  const size_t place = bytes.find("::1");
  bytes.replace(place, kIpBytes - 1, kIpBytes - 1, 'a');
  REQUIRE(decode(bytes));
  CHECK(decode(bytes)->gossip.at(0).address.ip == std::string(kIpBytes - 1, 'a'));
  patch(bytes, place + kIpBytes - 1, 'a');
  CHECK_FALSE(decode(bytes));
}

TEST_CASE("The length of an extension covers its header and is a multiple of eight", "[cluster]") {
  Message message = ping();
  message.extensions = {};
  message.extensions.hostname = "host";
  const std::string good = encode(message);
  constexpr size_t kExtensionBytes = 16;
  const size_t last_byte_of_length = good.size() - kExtensionBytes + 3;
  REQUIRE(decode(good));
  REQUIRE(good[last_byte_of_length] == kExtensionBytes);
  // Each message ends where the extension says that it ends.
  for (const size_t length : {0, 4, 7, 9, 12, 15}) {
    std::string bad = good.substr(0, good.size() - kExtensionBytes + std::max(length, size_t{8}));
    patch(bad, last_byte_of_length, static_cast<char>(length));
    INFO(length);
    CHECK_FALSE(decode(bad));
  }
  std::string empty = good.substr(0, good.size() - 8);
  patch(empty, last_byte_of_length, 8);
  const auto read = decode(empty);
  REQUIRE(read);
  CHECK(read->extensions.hostname == "");
}

TEST_CASE("What Redis takes for the secret is something else to Valkey", "[cluster]") {
  Message message = ping();
  const std::string secret(cluster::kIdDigits, '5');
  message.extensions.secret = secret;
  const auto by = [&](cluster::Dialect written, cluster::Dialect read) {
    const auto back = decode(encode(message, cluster::FirstPort::kPlain, written),
                             cluster::FirstPort::kPlain, read);
    REQUIRE(back);
    return back->extensions.secret;
  };
  using enum cluster::Dialect;
  CHECK(by(kRedis, kRedis) == secret);
  CHECK(by(kValkey, kValkey) == secret);
  CHECK_FALSE(by(kRedis, kValkey));
}

TEST_CASE("Addresses for clients are told in both dialects, and checked", "[cluster]") {
  Message message = ping();
  message.extensions.client_ipv4 = "203.0.113.5";
  message.extensions.client_ipv6 = "2001:db8::5";
  for (const auto dialect : {cluster::Dialect::kRedis, cluster::Dialect::kValkey}) {
    const auto back = decode(encode(message, cluster::FirstPort::kPlain, dialect),
                             cluster::FirstPort::kPlain, dialect);
    REQUIRE(back);
    CHECK(back->extensions.client_ipv4 == "203.0.113.5");
    CHECK(back->extensions.client_ipv6 == "2001:db8::5");
  }
  for (const auto* wrong : {"2001:db8::5", "host.example", "1.2.3", "1.2.3.4,x", "", "1.2.3.4 "}) {
    INFO(wrong);
    message.extensions.client_ipv4 = wrong;
    message.extensions.client_ipv6 = "1.2.3.4";
    const auto back = decode(encode(message));
    REQUIRE(back);
    CHECK_FALSE(back->extensions.client_ipv4);
    CHECK_FALSE(back->extensions.client_ipv6);
  }
}

TEST_CASE("Ports for clients and the zone of a node are told in both dialects", "[cluster]") {
  Message message = ping();
  message.extensions.client_port = 6401;
  message.extensions.client_tls_port = 6402;
  message.extensions.availability_zone = "zone-a";
  for (const auto dialect : {cluster::Dialect::kRedis, cluster::Dialect::kValkey}) {
    const auto back = decode(encode(message, cluster::FirstPort::kPlain, dialect),
                             cluster::FirstPort::kPlain, dialect);
    REQUIRE(back);
    CHECK(back->extensions.client_port == 6401);
    CHECK(back->extensions.client_tls_port == 6402);
    CHECK(back->extensions.availability_zone == "zone-a");
  }
  // As Valkey's nodes say it: kinds 6, 7 and 8, two bytes each for the ports.
  const std::string bytes = encode(message, cluster::FirstPort::kPlain, cluster::Dialect::kValkey);
  const auto extension = [](char kind, std::string_view value) {
    const char header[] = {0, 0, 0, 16, 0, kind, 0, 0};
    std::string text(header, sizeof header);
    return text.append(value).append(8 - value.size(), '\0');
  };
  CHECK(bytes.ends_with(extension(6, "\x19\x01") + extension(7, "\x19\x02") +
                        extension(8, "zone-a")));
  // A zone that would damage the file of nodes is not taken.
  for (const auto* wrong : {"a b", "a,b", "a=b", "a\nb"}) {
    INFO(wrong);
    message.extensions.availability_zone = wrong;
    const auto back = decode(encode(message));
    REQUIRE(back);
    CHECK_FALSE(back->extensions.availability_zone);
  }
}

TEST_CASE("A name that would damage the file of nodes is not taken, but the message is",
          "[cluster]") {
  Message message = ping();
  const auto read_name = [&](const std::string& name) {
    message.extensions.human_name = name;
    const auto back = decode(encode(message));
    REQUIRE(back);
    CHECK(back->extensions.hostname == message.extensions.hostname);
    return back->extensions.human_name;
  };
  for (const std::string& name :
       {std::string("a b"), std::string("a,b"), std::string("a=b"), std::string("a\"b"),
        std::string("a\nb"), std::string("a\x7f"), std::string(256, 'n')}) {
    INFO(name);
    CHECK_FALSE(read_name(name));
  }
  // Bytes beyond ASCII, of whichever encoding, damage nothing.
  for (const std::string& name : {std::string("n\xc5\x93ud-1"), std::string("\x80\xff"),
                                  std::string("a'b`/"), std::string(255, 'n')}) {
    INFO(name);
    CHECK(read_name(name) == name);
  }
}

TEST_CASE("The type of a malformed message is known, and ids may have any small letters",
          "[cluster]") {
  Message message = ping();
  message.sender = std::string(40, 'z');
  const std::string bytes = encode(message);
  REQUIRE(decode(bytes));
  CHECK(decode(bytes)->sender == message.sender);
  std::string damaged = bytes;
  constexpr size_t kCountOfGossip = 14;
  damaged[kCountOfGossip] = 100;
  CHECK_FALSE(decode(damaged));
  CHECK(announced_type(damaged) == MessageType::kPing);
  constexpr size_t kType = 12;
  damaged[kType] = 100;
  CHECK_FALSE(announced_type(damaged));
  message.sender = std::string(40, 'Z');
  CHECK_FALSE(decode(encode(message)));
}

}  // namespace latchkey::cluster

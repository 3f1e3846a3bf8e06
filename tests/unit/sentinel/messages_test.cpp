// What others send: INFO, hello messages, replies.
#include <string>

#include "sentinel/hello.h"
#include "sentinel/info_reply.h"
#include "sentinel/reply.h"
#include "unit/catch.h"

namespace latchkey::sentinel {
namespace {

const std::string kId(40, 'a');

TEST_CASE("INFO of a master names its replicas", "[sentinel]") {
  const InfoReply info = parse_info(
      "# Server\r\nrun_id:" + kId +
      "\r\nrole:master\r\nslave0:ip=10.0.0.2,port=6379,state=online,offset=1,lag=0\r\n"
      "slave1:ip=::1,port=7000\r\nslaves:3\r\nslave2:ip=,port=1\r\nslave3:ip=h,port=0\r\n");
  CHECK(info.run_id == kId);
  CHECK(info.role == InfoReply::Role::kMaster);
  REQUIRE(info.replicas.size() == 2);
  CHECK(info.replicas[0].host == "10.0.0.2");
  CHECK(info.replicas[1].host == "::1");
  CHECK(info.replicas[1].port == 7000);
}

TEST_CASE("INFO of a replica tells how it follows its master", "[sentinel]") {
  const InfoReply info = parse_info(
      "role:slave\nmaster_host:m\nmaster_port:1\nmaster_link_status:down\n"
      "master_link_down_since_seconds:7\nslave_priority:5\nslave_repl_offset:99\n"
      "replica_announced:0");
  CHECK(info.role == InfoReply::Role::kReplica);
  CHECK(info.master_host == "m");
  CHECK(info.master_port == 1);
  CHECK(info.master_link_up == false);
  CHECK(info.master_link_down_s == 7);
  CHECK(info.priority == 5);
  CHECK(info.replication_offset == 99u);
  CHECK(info.announced == false);
}

TEST_CASE("Fields of INFO that make no sense are skipped", "[sentinel]") {
  const InfoReply info = parse_info(
      "run_id:short\nrole:prince\nmaster_port:65536\nslave_priority:-1\n"
      "master_link_down_since_seconds:999999999999999\nslave_repl_offset:-3\nmaster_host:\n");
  CHECK(info.run_id.empty());
  CHECK_FALSE(info.role.has_value());
  CHECK_FALSE(info.master_port.has_value());
  CHECK_FALSE(info.priority.has_value());
  CHECK_FALSE(info.master_link_down_s.has_value());
  CHECK_FALSE(info.replication_offset.has_value());
  CHECK_FALSE(info.master_host.has_value());
}

TEST_CASE("A hello message is read as it was written", "[sentinel]") {
  const std::string text = "10.0.1.1,26379," + kId + ",7,mymaster,10.0.0.1,6379,3";
  const auto hello = parse_hello(text);
  REQUIRE(hello.has_value());
  CHECK(hello->ip == "10.0.1.1");
  CHECK(hello->port == 26379);
  CHECK(hello->current_epoch == 7);
  CHECK(hello->master_name == "mymaster");
  CHECK(hello->master_config_epoch == 3);
  CHECK(format_hello(*hello) == text);
}

TEST_CASE("A hello message with absurd fields is ignored", "[sentinel]") {
  const std::string wrong = GENERATE_COPY(
      std::string(), std::string("a,b"), "10.0.1.1,0," + kId + ",7,m,10.0.0.1,6379,3",
      "10.0.1.1,26379,short,7,m,10.0.0.1,6379,3", "10.0.1.1,26379," + kId + ",-1,m,10.0.0.1,6379,3",
      "10.0.1.1,26379," + kId + ",7,m,10.0.0.1,70000,3",
      "10.0.1.1,26379," + kId + ",18446744073709551615,m,10.0.0.1,6379,3",
      "10.0.1.1,26379," + kId + ",7,m,10.0.0.1,6379,9999999999999999999",
      "10.0.1.1,26379," + kId + ",4611686018427387904,m,10.0.0.1,6379,3",
      "10.0.1.1,26379," + kId + ",7,m,10.0.0.1,6379,4611686018427387904",
      "10.0.1.1,26379," + kId + ",7,,10.0.0.1,6379,3", ",26379," + kId + ",7,m,10.0.0.1,6379,3",
      "10.0.1.1,26379," + kId + ",7,m,10.0.0.1,6379,3,4",
      std::string(300, 'x') + ",26379," + kId + ",7,m,10.0.0.1,6379,3",
      "10.0.1.1\r\n,26379," + kId + ",7,m,10.0.0.1,6379,3");
  CHECK_FALSE(parse_hello(wrong).has_value());
}

Parse parse(std::string_view bytes, Reply* reply) {
  size_t used = 0;
  size_t wanted = 0;
  return parse_reply(bytes, reply, &used, &wanted);
}

TEST_CASE("Replies are read when they are whole", "[sentinel]") {
  Reply reply;
  const std::string whole = "*3\r\n:1\r\n$1\r\n*\r\n:-5\r\n";
  for (size_t size = 0; size < whole.size(); ++size)
    CHECK(parse(std::string_view(whole).substr(0, size), &reply) == Parse::kIncomplete);
  REQUIRE(parse(whole, &reply) == Parse::kDone);
  REQUIRE(reply.elements.size() == 3);
  CHECK(reply.elements[0].integer == 1);
  CHECK(reply.elements[1].text == "*");
  CHECK(reply.elements[2].integer == -5);
  CHECK(parse("-ERR no\r\n", &reply) == Parse::kDone);
  CHECK(reply.is(Reply::Type::kError));
  CHECK(parse("$-1\r\n", &reply) == Parse::kDone);
  CHECK(reply.is(Reply::Type::kNull));
}

TEST_CASE("Bytes that are no reply are refused", "[sentinel]") {
  Reply reply;
  const std::string wrong =
      GENERATE(std::string("HTTP/1.1 200 OK\r\n"), std::string("$-2\r\n"), std::string("$x\r\n"),
               std::string("*99999999\r\n"), std::string("$999999999999\r\n"),
               std::string("$1\r\nabc"), std::string("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n"));
  CHECK(parse(wrong, &reply) == Parse::kMalformed);
}

TEST_CASE("A reply tells the bytes it took, and those it wants", "[sentinel]") {
  Reply reply;
  size_t used = 9;
  size_t wanted = 9;
  CHECK(parse_reply("$5\r\nhello\r\n:1\r\n", &reply, &used, &wanted) == Parse::kDone);
  CHECK(used == 11);
  CHECK(wanted == 0);
  CHECK(parse_reply("*2\r\n:1\r\n$5\r\nhel", &reply, &used, &wanted) == Parse::kIncomplete);
  CHECK(used == 0);
  CHECK(wanted == 19);
  CHECK(parse_reply("*2\r\n:1\r\n$5\r\nhello\r", &reply, &used, &wanted) == Parse::kIncomplete);
  CHECK(wanted == 19);
  CHECK(parse_reply("+O", &reply, &used, &wanted) == Parse::kIncomplete);
  CHECK(wanted == 0);
}

TEST_CASE("A reply is read up to its limits and not beyond", "[sentinel]") {
  Reply reply;
  // Nothing and null, bulk strings and arrays of no length.
  CHECK(parse("$0\r\n\r\n", &reply) == Parse::kDone);
  CHECK(reply.is(Reply::Type::kBulk));
  CHECK(parse("*0\r\n", &reply) == Parse::kDone);
  CHECK(reply.is(Reply::Type::kArray));
  CHECK(parse("*-1\r\n", &reply) == Parse::kDone);
  CHECK(reply.is(Reply::Type::kNull));
  CHECK(parse("*-2\r\n", &reply) == Parse::kMalformed);
  CHECK(parse(":\r\n", &reply) == Parse::kMalformed);

  const auto nested = [](int depth) {
    std::string bytes;
    for (int i = 1; i < depth; ++i) bytes += "*1\r\n";
    return bytes + ":1\r\n";
  };
  CHECK(parse(nested(kDeepestReply), &reply) == Parse::kDone);
  CHECK(parse(nested(kDeepestReply + 1), &reply) == Parse::kMalformed);

  const auto elements = [](size_t count) {
    std::string bytes = "*" + std::to_string(count) + "\r\n";
    for (size_t i = 0; i < count; ++i) bytes += ":1\r\n";
    return bytes;
  };
  CHECK(parse(elements(kMaxElements), &reply) == Parse::kDone);
  CHECK(reply.elements.size() == kMaxElements);
  CHECK(parse(elements(kMaxElements + 1), &reply) == Parse::kMalformed);

  // The line after its first byte.
  constexpr size_t kLongestLine = 65536;
  CHECK(parse("+" + std::string(kLongestLine, 'x'), &reply) == Parse::kIncomplete);
  CHECK(parse("+" + std::string(kLongestLine + 1, 'x'), &reply) == Parse::kMalformed);

  CHECK(parse("$" + std::to_string(kLongestReply) + "\r\n", &reply) == Parse::kIncomplete);
  CHECK(parse("$" + std::to_string(kLongestReply + 1) + "\r\n", &reply) == Parse::kMalformed);
  // Two strings that are too long together.
  std::string two = "*2\r\n";
  for (int i = 0; i < 2; ++i)
    two += "$" + std::to_string(kLongestReply / 2) + "\r\n" + std::string(kLongestReply / 2, 'x') +
           "\r\n";
  CHECK(parse(std::string_view(two).substr(0, kLongestReply), &reply) == Parse::kIncomplete);
  CHECK(parse(std::string_view(two).substr(0, kLongestReply + 1), &reply) == Parse::kMalformed);
}

}  // namespace
}  // namespace latchkey::sentinel

// RESTORE of bytes that nobody has written: a type and a body, behind which stands a valid footer.
// What is restored is used by the commands of its type, and what it then is must survive DUMP and
// RESTORE.
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "commands/groups.h"
#include "input.h"
#include "persist/rdb/rdb_format.h"
#include "persist/rdb/rdb_modules.h"
#include "persist/rdb/rdb_vector_set.h"
#include "persist/rows.h"
#include "reply_check.h"
#include "server/observe/dataset_digest.h"
#include "unit/server_fixture.h"

namespace {

using namespace latchkey;
using fuzz::Input;
using fuzz::require;

class World {
 public:
  World() : server_({}, "proto-max-bulk-len 1mb\nrdbcompression no\n") {
    commands::add_all(server_.server.commands());
    server_.server.commands().add(persist::dump_rows());
    client_ = std::make_unique<tests::TestClient>(server_);
  }

  void run(Input input) {
    send({"FLUSHALL"});
    choose_limits(input.byte());
    uint8_t type = input.byte() % (persist::kLastRdbType + 1);
    const std::string head = head_of(&type, input);
    const std::string dump =
        payload(std::string(1, static_cast<char>(type)) + head + std::string(input.rest()));
    if (send({"RESTORE", "key", "0", dump}) != tests::kOk) return;
    require_survival();
    use();
    require_survival();
    // Another time, by other limits.
    choose_limits(static_cast<uint8_t>(~choice_));
    send({"RESTORE", "other", "0", dump});
    server_.advance_ms(1000);
    server_.tick();
  }

 private:
  void choose_limits(uint8_t choice) {
    choice_ = choice;
    auto& limits = server_.server.environment().limits;
    limits = {};
    if ((choice & 1) == 0) return;
    limits.hash_max_listpack_entries = 2;
    limits.hash_max_listpack_value = 8;
    limits.set_max_intset_entries = 2;
    limits.set_max_listpack_entries = 3;
    limits.zset_max_listpack_entries = 2;
    limits.list_max_listpack_size = 2;
    limits.list_compress_depth = (choice & 2) != 0 ? 1 : 0;
  }

  // The id of a module whose values are read: that of vector sets, or by the type of values that no
  // longer exist, that of any, chosen by another byte.
  static std::string head_of(uint8_t* type, Input& input) {
    constexpr auto kModule = static_cast<uint8_t>(persist::RdbType::kModule2);
    constexpr auto kOldModule = static_cast<uint8_t>(persist::RdbType::kModule1);
    if (*type != kModule && *type != kOldModule) return {};
    const auto modules = persist::module_types();
    const uint64_t id = std::exchange(*type, kModule) == kOldModule
                            ? modules[input.byte() % modules.size()].id
                            : persist::kVectorSetModule;
    std::string head;
    persist::StringSink sink(head);
    persist::RdbWriter(sink, false).length(id);
    sink.flush();
    return head;
  }

  // Without a checksum, which is as good as a right one.
  static std::string payload(std::string body) {
    body += static_cast<char>(persist::kRdbVersion);
    return body + std::string(9, '\0');
  }

  std::string send(std::initializer_list<std::string_view> words) {
    std::string reply = client_->run_words(words);
    require(fuzz::ReplyCheck(reply).count() == 1);
    return reply;
  }

  // What the key holds is the same behind DUMP and RESTORE.
  void require_survival() {
    const std::string dumped = send({"DUMP", "key"});
    if (dumped == tests::kNull) return;
    const size_t start = dumped.find("\r\n") + 2;
    const std::string dump = dumped.substr(start, dumped.size() - start - 2);
    require(send({"RESTORE", "copy", "0", dump, "REPLACE"}) == tests::kOk);
    require(send({"DEBUG", "DIGEST-VALUE", "key"}) == send({"DEBUG", "DIGEST-VALUE", "copy"}));
  }

  void use() {
    const std::string type = send({"TYPE", "key"});
    send({"OBJECT", "ENCODING", "key"});
    send({"MEMORY", "USAGE", "key"});
    send({"COPY", "key", "copy", "REPLACE"});
    if (type == "+string\r\n") return use_string();
    if (type == "+list\r\n") return use_list();
    if (type == "+set\r\n") return use_set();
    if (type == "+hash\r\n") return use_hash();
    if (type == "+zset\r\n") return use_sorted_set();
    if (type == "+array\r\n") return use_array();
    use_stream();
    use_vector_set();
  }

  void use_string() {
    send({"GET", "key"});
    send({"PFCOUNT", "key"});
    send({"APPEND", "key", "tail"});
    send({"SETRANGE", "key", "3", "middle"});
    send({"BITCOUNT", "key"});
  }

  void use_array() {
    send({"ARGETRANGE", "key", "0", "100"});
    send({"ARINSERT", "key", "appended"});
    send({"ARSET", "key", "70", "a", std::string(300, 'b'), "17"});
    send({"ARGREP", "key", "-", "+", "RE", "^(a|b)+$"});
    send({"AROP", "key", "0", "18446744073709551614", "SUM"});
    send({"ARRING", "key", "5", "x", "y"});
    send({"ARLASTITEMS", "key", "9"});
    send({"ARDELRANGE", "key", "0", "2"});
    send({"ARINFO", "key", "FULL"});
  }

  void use_list() {
    send({"LRANGE", "key", "0", "-1"});
    send({"LPUSH", "key", "head", "1"});
    send({"RPUSH", "key", std::string(300, 't'), "-70000"});
    send({"LINSERT", "key", "AFTER", "head", "behind"});
    send({"LSET", "key", "1", "set"});
    send({"LPOS", "key", "set", "RANK", "-1"});
    send({"LREM", "key", "0", "head"});
    send({"LTRIM", "key", "1", "-2"});
    send({"RPOP", "key"});
    send({"SORT", "key", "ALPHA"});
  }

  void use_set() {
    send({"SMEMBERS", "key"});
    send({"SRANDMEMBER", "key", "-5"});
    send({"SADD", "key", "7", "eight", "9"});
    send({"SINTERCARD", "2", "key", "copy"});
    send({"SUNIONSTORE", "union", "key", "copy"});
    send({"SREM", "key", "eight", "1"});
    send({"SPOP", "key", "2"});
  }

  void use_hash() {
    send({"HGETALL", "key"});
    send({"HRANDFIELD", "key", "-5", "WITHVALUES"});
    send({"HSET", "key", "field", "value", "1", std::string(70, 'v')});
    send({"HPEXPIRE", "key", "100", "FIELDS", "2", "field", "a"});
    send({"HPTTL", "key", "FIELDS", "2", "field", "1"});
    server_.advance_ms(200);
    server_.tick();
    send({"HDEL", "key", "1", "a"});
    send({"HINCRBY", "key", "number", "3"});
    send({"HPERSIST", "key", "FIELDS", "1", "number"});
  }

  void use_sorted_set() {
    send({"ZRANGE", "key", "0", "-1", "WITHSCORES"});
    send({"ZADD", "key", "1", "one", "-inf", "least", "2.5", "more"});
    send({"ZINCRBY", "key", "3", "one"});
    send({"ZRANK", "key", "more"});
    send({"ZCOUNT", "key", "-1", "(3"});
    send({"ZRANGEBYSCORE", "key", "-inf", "+inf", "LIMIT", "1", "3"});
    send({"ZREMRANGEBYRANK", "key", "1", "2"});
    send({"ZRANDMEMBER", "key", "-3"});
    send({"ZUNIONSTORE", "union", "2", "key", "copy"});
    send({"ZPOPMAX", "key"});
  }

  void use_stream() {
    send({"XRANGE", "key", "-", "+"});
    send({"XREVRANGE", "key", "+", "-", "COUNT", "3"});
    send({"XINFO", "STREAM", "key", "FULL"});
    send({"XADD", "key", "*", "field", "value"});
    send({"XGROUP", "CREATE", "key", "new", "0"});
    for (const std::string_view group : {"g", "new"}) {
      send({"XREADGROUP", "GROUP", group, "c", "COUNT", "2", "STREAMS", "key", ">"});
      send({"XREADGROUP", "GROUP", group, "c", "STREAMS", "key", "0"});
      send({"XPENDING", "key", group});
      send({"XAUTOCLAIM", "key", group, "d", "0", "0"});
      send({"XACK", "key", group, "1-1"});
      send({"XGROUP", "DELCONSUMER", "key", group, "c"});
    }
    send({"XDEL", "key", "1-1", "1-2"});
    send({"XTRIM", "key", "MAXLEN", "1"});
  }

  void use_vector_set() {
    send({"VINFO", "key"});
    send({"VRANDMEMBER", "key", "-3"});
    send({"VRANGE", "key", "-", "+"});
    send({"VEMB", "key", "a"});
    send({"VLINKS", "key", "a", "WITHSCORES"});
    send({"VSIM", "key", "ELE", "a", "WITHSCORES", "FILTER", ".a > 1"});
    for (const std::string_view quantization : {"Q8", "NOQUANT", "BIN"}) {
      for (const std::string_view element : {"a", "new"})
        send({"VADD", "key", "VALUES", "2", "1", "-2", element, quantization, "M", "4"});
    }
    send({"VSETATTR", "key", "a", "{}"});
    send({"VREM", "key", "a"});
    send({"VSIM", "key", "VALUES", "2", "3", "4"});
    send({"VREM", "key", "new"});
  }

  tests::ServerFixture server_;
  std::unique_ptr<tests::TestClient> client_;
  uint8_t choice_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kLongestInput = 8'192;
  if (size > kLongestInput) return 0;
  static World world;
  world.run(Input(data, size));
  return 0;
}

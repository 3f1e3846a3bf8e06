// Requests to a whole server: any command that stays within the server, with words that mean
// something to commands and words that do not. Each must be answered by one well-formed reply.
#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "commands/groups.h"
#include "input.h"
#include "reply_check.h"
#include "script/engine.h"
#include "script/rows.h"
#include "server/command_table.h"
#include "unit/server_fixture.h"

namespace {

using namespace latchkey;
using fuzz::Input;
using fuzz::require;

// Commands that stop, close the connection or change what a later input would meet.
constexpr std::string_view kLeftOut[] = {"acl",   "debug", "shutdown", "config",  "client",
                                         "quit",  "eval",  "eval_ro",  "lolwut",  "reset",
                                         "hello", "info",  "memory",   "command", "monitor"};

constexpr std::string_view kWords[] = {"NX",
                                       "XX",
                                       "GT",
                                       "LT",
                                       "CH",
                                       "INCR",
                                       "WITHSCORES",
                                       "WITHSCORE",
                                       "BYSCORE",
                                       "BYLEX",
                                       "REV",
                                       "LIMIT",
                                       "COUNT",
                                       "MATCH",
                                       "TYPE",
                                       "RANK",
                                       "MAXLEN",
                                       "LEFT",
                                       "RIGHT",
                                       "BEFORE",
                                       "AFTER",
                                       "EX",
                                       "PX",
                                       "EXAT",
                                       "PXAT",
                                       "GET",
                                       "KEEPTTL",
                                       "PERSIST",
                                       "WEIGHTS",
                                       "MIN",
                                       "MAX",
                                       "SUM",
                                       "AGGREGATE",
                                       "STORE",
                                       "BY",
                                       "ALPHA",
                                       "ASC",
                                       "DESC",
                                       "FIELDS",
                                       "FNX",
                                       "FXX",
                                       "REPLACE",
                                       "DB",
                                       "WITHVALUES",
                                       "NOVALUES",
                                       "IFEQ",
                                       "IFNE",
                                       "LEN",
                                       "FROMMEMBER",
                                       "FROMLONLAT",
                                       "BYRADIUS",
                                       "BYBOX",
                                       "STOREDIST",
                                       "WITHDIST",
                                       "WITHHASH",
                                       "WITHCOORD",
                                       "ANY",
                                       "km",
                                       "13.36",
                                       "85.05",
                                       "DECODE",
                                       "GETREG",
                                       "TODENSE",
                                       "IDX",
                                       "MINMATCHLEN",
                                       "WITHMATCHLEN",
                                       "AND",
                                       "XOR",
                                       "NOT",
                                       "DIFF",
                                       "ONE",
                                       "BIT",
                                       "SET",
                                       "INCRBY",
                                       "OVERFLOW",
                                       "SAT",
                                       "FAIL",
                                       "u8",
                                       "i5",
                                       "u63",
                                       "i64",
                                       "#3",
                                       "ASYNC",
                                       "SYNC",
                                       "-",
                                       "+",
                                       "[a",
                                       "(a",
                                       "[z",
                                       "(1",
                                       "-inf",
                                       "+inf",
                                       "inf",
                                       "nan",
                                       "*",
                                       "?",
                                       "[a-c]*",
                                       "0",
                                       "1",
                                       "2",
                                       "3",
                                       "-1",
                                       "-2",
                                       "5",
                                       "10",
                                       "1.5",
                                       "-0.25",
                                       "1e300",
                                       "9223372036854775807",
                                       "-9223372036854775808",
                                       "18446744073709551615",
                                       "1700000000",
                                       "1700000000000",
                                       "MINID",
                                       "~",
                                       "=",
                                       "NOMKSTREAM",
                                       "MKSTREAM",
                                       "STREAMS",
                                       "GROUP",
                                       "NOACK",
                                       "BLOCK",
                                       "IDLE",
                                       "TIME",
                                       "RETRYCOUNT",
                                       "FORCE",
                                       "JUSTID",
                                       "LASTID",
                                       "FULL",
                                       "KEEPREF",
                                       "DELREF",
                                       "ACKED",
                                       "IDS",
                                       "ENTRIESREAD",
                                       "ENTRIESADDED",
                                       "MAXDELETEDID",
                                       "$",
                                       ">",
                                       "0-0",
                                       "0-1",
                                       "1-1",
                                       "1-*",
                                       "(0-1",
                                       "5-18446744073709551615"};

constexpr std::string_view kKeys[] = {"a", "b", "c", "d", "list", "hash", "set", "zset"};

// Requests that chance would seldom make: "<key>" stands for a key, a group or a consumer, "<word>"
// for any word.
constexpr std::string_view kShapes[] = {
    "XADD <key> * <word> <word>",
    "XADD <key> <word> <word> <word>",
    "XADD <key> MAXLEN <word> <word> * a b",
    "XADD <key> MINID ~ <word> LIMIT <word> <word> <word> * a b",
    "XGROUP CREATE <key> <key> <word> MKSTREAM",
    "XGROUP CREATE <key> <key> 0",
    "XGROUP SETID <key> <key> <word> ENTRIESREAD <word>",
    "XREAD COUNT <word> STREAMS <key> <word>",
    "XREAD BLOCK <word> STREAMS <key> <key> <word> <word>",
    "XREADGROUP GROUP <key> <key> STREAMS <key> >",
    "XREADGROUP GROUP <key> <key> NOACK STREAMS <key> >",
    "XREADGROUP GROUP <key> <key> COUNT <word> BLOCK 1 STREAMS <key> <word>",
    "XCLAIM <key> <key> <key> 0 <word> <word> <word>",
    "XAUTOCLAIM <key> <key> <key> 0 <word> COUNT <word>",
    "XPENDING <key> <key> IDLE <word> - + 10 <key>",
    "XACK <key> <key> <word> <word>",
    "XACKDEL <key> <key> <word> IDS 1 <word>",
    "XDELEX <key> <word> IDS 1 <word>",
    "XTRIM <key> MAXLEN <word> <word>",
    "XSETID <key> <word> ENTRIESADDED <word> MAXDELETEDID <word>",
    "XINFO STREAM <key> FULL",
};

class World {
 public:
  // Strings of bits would be so long otherwise that only making them takes too long.
  World() : server_({}, "proto-max-bulk-len 1mb\n") {
    commands::add_all(server_.server.commands());
    server_.server.commands().add(script::script_rows());
    server_.server.set_scripts(std::make_shared<script::Engine>(server_.server));
    client_ = std::make_unique<tests::TestClient>(server_, 3);
    for (const auto& command : server_.server.commands().all()) {
      const std::string_view name = command->full_name;
      const std::string_view first = name.substr(0, name.find('|'));
      if (command->is_container()) continue;
      if (std::find(std::begin(kLeftOut), std::end(kLeftOut), first) != std::end(kLeftOut))
        continue;
      names_.push_back(name);
    }
  }

  void run(Input input) {
    begin(input);
    while (!input.empty()) request(input);
  }

 private:
  // Leaves nothing of the input before.
  void begin(Input& input) {
    client_->run("DISCARD");
    client_->run("UNWATCH");
    client_->run("UNSUBSCRIBE");
    client_->run("PUNSUBSCRIBE");
    client_->run("SUNSUBSCRIBE");
    client_->run("FLUSHALL");
    client_->run("SELECT 0");
    client_->run((input.byte() & 1) != 0 ? "HELLO 3" : "HELLO 2");
    // Both the small encodings and the large.
    auto& limits = server_.server.environment().limits;
    limits = {};
    if ((input.byte() & 1) == 0) return;
    limits.hash_max_listpack_entries = 2;
    limits.set_max_intset_entries = 2;
    limits.set_max_listpack_entries = 4;
    limits.zset_max_listpack_entries = 2;
    limits.list_max_listpack_size = 2;
    limits.list_compress_depth = 1;
    limits.stream_node_max_entries = 2;
  }

  void request(Input& input) {
    std::vector<std::string> texts = input.byte() < 64 ? shaped(input) : formless(input);
    const std::vector<std::string_view> words(texts.begin(), texts.end());
    std::string output = client_->run_words(words);
    server::Client& client = **client_;
    if (client.has(server::kClientBlocked)) {
      // Nobody else is there to serve it.
      require(output.empty());
      client.unblock(server::BlockEnd::kTimeout);
      output = client_->take_output();
    }
    const auto replies = fuzz::ReplyCheck(output).count();
    require(replies.has_value());
    // Each channel that is subscribed to has its own.
    if (texts[0].find("subscribe") == std::string::npos) require(*replies == 1);
    if ((input.byte() & 15) == 0) server_.advance_ms(input.byte());
  }

  std::vector<std::string> formless(Input& input) const {
    const std::string_view name = names_[(input.byte() << 8 | input.byte()) % names_.size()];
    std::vector<std::string> texts;
    const size_t bar = name.find('|');
    texts.emplace_back(name.substr(0, bar));
    if (bar != std::string_view::npos) texts.emplace_back(name.substr(bar + 1));
    const size_t count = input.byte() % 9;
    for (size_t i = 0; i < count; ++i) texts.push_back(word(input, i == 0));
    return texts;
  }

  static std::vector<std::string> shaped(Input& input) {
    std::string_view shape = kShapes[input.byte() % std::size(kShapes)];
    std::vector<std::string> texts;
    while (!shape.empty()) {
      const std::string_view part = shape.substr(0, shape.find(' '));
      shape.remove_prefix(std::min(part.size() + 1, shape.size()));
      if (part == "<key>") {
        texts.push_back(word(input, true));
      } else if (part == "<word>") {
        texts.push_back(word(input, false));
      } else {
        texts.emplace_back(part);
      }
    }
    return texts;
  }

  static std::string word(Input& input, bool is_first) {
    const uint8_t choice = input.byte();
    if (is_first || choice < 64) return std::string(kKeys[choice % std::size(kKeys)]);
    if (choice < 192) return std::string(kWords[input.byte() % std::size(kWords)]);
    return input.text();
  }

  tests::ServerFixture server_;
  std::unique_ptr<tests::TestClient> client_;
  std::vector<std::string_view> names_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kLongestInput = 4'096;
  if (size > kLongestInput) return 0;
  static World world;
  world.run(Input(data, size));
  return 0;
}

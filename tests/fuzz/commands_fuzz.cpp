// Requests of several clients to a whole server: any command there is, with words that mean
// something to commands and words that do not, also in transactions and scripts, with clients that
// wait, listen, follow as replicas, are closed by others. Each request must be answered by one
// well-formed reply, as far as its client is to get any.
//
// Left out are, besides what ends the process on purpose (the rest of DEBUG):
//   BGSAVE, BGREWRITEAOF, BACKUP START   fork; what the child does is in rdb_fuzz and aof_fuzz
//   SCRIPT DEBUG           forks, and talks to its user by the socket, which there is not
//   MIGRATE                connects to whoever is named
// CONFIG SET leaves alone what makes the server fork (appendonly, save) and what lets strings be so
// long that only making them takes too long. Files are written to a directory that goes with the
// process.
#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "all_commands.h"
#include "base/text/text.h"
#include "input.h"
#include "locks/lock_watch.h"
#include "persist/persistence.h"
#include "reply_check.h"
#include "script/engine.h"
#include "server/client/blocking.h"
#include "server/client/pause.h"
#include "server/command/command_table.h"
#include "testing/calls.h"
#include "testing/checkpoints.h"
#include "testing/clock_control.h"
#include "testing/faults.h"
#include "unit/replication/replication_fixture.h"
#include "unit/temporary_directory.h"

namespace {

using namespace latchkey;
using fuzz::Input;
using fuzz::require;

constexpr std::string_view kLeftOut[] = {"bgsave",  "bgrewriteaof", "backup|start",
                                         "migrate", "debug",        "script|debug"};
constexpr std::string_view kSettingsLeftOut[] = {"appendonly", "save", "proto-max-bulk-len",
                                                 "loglevel"};

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

// Requests that chance would seldom make: "<key>" stands for a key, a group, a user, a channel,
// "<word>" for any word, "<command>" for all words of any request.
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
    "VADD <key> VALUES 2 1 <word> <word> SETATTR <word>",
    "VADD <key> REDUCE 2 VALUES 3 1 2 <word> <word> M <word>",
    "VADD <key> FP32 <word> <word> EF <word>",
    "VSIM <key> ELE <word> COUNT <word> FILTER <word>",
    "VSIM <key> VALUES 2 <word> <word> WITHSCORES TRUTH",
    "VREM <key> <word>",
    "VSETATTR <key> <word> <word>",
    "VRANGE <key> <word> <word> <word>",
    "VLINKS <key> <word>",
    "EVAL <script> 1 <key> <word> <word>",
    "EVAL_RO <script> 1 <key> <word> <word>",
    "EVAL <calls> 1 <key> <command>",
    "EVAL <calls> 1 <key> SET <key> <word> <word> PX <word>",
    "EVAL <calls> 1 <key> SET <key> <word> <word> <word> PXAT <word>",
    "SET <key> <word> <word> EX <word>",
    "SET <key> <word> <word> <word> EXAT <word>",
    "EVAL <calls> 0 <command>",
    "SCRIPT LOAD <script>",
    "EVALSHA <sha> 1 <key> <word>",
    "FUNCTION LOAD REPLACE <library>",
    "FCALL f 1 <key> <word>",
    "FCALL g 1 <key> <command>",
    "FCALL_RO f 1 <key> <word>",
    "MULTI",
    "MULTI",
    "EXEC",
    "EXEC",
    "WATCH <key> <key>",
    "BLPOP <key> <key> 1",
    "BLMOVE <key> <key> LEFT RIGHT 0",
    "BLMPOP 0 2 <key> <key> LEFT COUNT <word>",
    "BZPOPMIN <key> <key> 0.1",
    "BZMPOP 1 1 <key> MAX",
    "BRPOPLPUSH <key> <key> 1",
    "CONFIG SET <setting> <word>",
    "CONFIG SET <setting> <word> <setting> <word>",
    "CONFIG GET <setting>",
    "CLIENT KILL ID <client>",
    "CLIENT UNBLOCK <client> ERROR",
    "CLIENT UNBLOCK <client>",
    "CLIENT TRACKING ON",
    "CLIENT TRACKING ON BCAST PREFIX <key>",
    "CLIENT TRACKING ON REDIRECT <client>",
    "CLIENT TRACKING ON OPTIN",
    "CLIENT CACHING YES",
    "CLIENT REPLY OFF",
    "CLIENT REPLY SKIP",
    "CLIENT REPLY ON",
    "CLIENT PAUSE <word>",
    "CLIENT PAUSE 1000 WRITE",
    "CLIENT NO-TOUCH ON",
    "CLIENT SETINFO LIB-NAME <word>",
    "ACL SETUSER <key> on nopass ~<key> +@all -@<word>",
    "ACL SETUSER <key> on nopass %R~<key> +get +@read (+set ~<key>)",
    "ACL SETUSER default -@all +acl +<name>",
    "ACL DRYRUN <key> <command>",
    "ACL DELUSER <key>",
    "AUTH <key> <word>",
    "HELLO 3 AUTH <key> <word> SETNAME <word>",
    "SUBSCRIBE <key> <key>",
    "PSUBSCRIBE *",
    "SSUBSCRIBE <key>",
    "PUBLISH <key> <word>",
    "MONITOR",
    "REPLCONF capa eof capa psync2",
    "PSYNC ? -1",
    "REPLCONF ACK <word>",
    "WAIT 1 1",
    "WAITAOF 0 1 1",
    "DEBUG CHANGE-REPL-ID",
    "DEBUG DIGEST",
    "DEBUG DIGEST-VALUE <key> <key>",
    "DEBUG DICT-RESIZING 0",
    "DEBUG DICT-RESIZING 1",
    "DEBUG ERROR <word>",
    "DEBUG HELP",
    "DEBUG HTSTATS <word>",
    "DEBUG HTSTATS-KEY <key> full",
    "DEBUG LISTPACK <key>",
    "DEBUG OBJECT <key>",
    "DEBUG PAUSE-CRON <word>",
    "DEBUG POPULATE 20 <key> <word>",
    "DEBUG PROTOCOL <protocol>",
    "DEBUG QUICKLIST <key> 1",
    "DEBUG QUICKLIST-PACKED-THRESHOLD 8",
    "DEBUG RELOAD",
    "DEBUG RELOAD NOFLUSH MERGE",
    "DEBUG REPLICATE <word> <command>",
    "DEBUG REPLYBUFFER peak-reset-time <word>",
    "DEBUG SDSLEN <key>",
    "DEBUG SET-ACTIVE-EXPIRE <word>",
    "DEBUG SET-DISABLE-DENY-SCRIPTS 1",
    "DEBUG STRUCTSIZE",
    "COMMAND GETKEYS <command>",
    "COMMAND GETKEYSANDFLAGS <command>",
    "COMMAND INFO <name> <name>",
    "COMMAND DOCS <name>",
    "MEMORY USAGE <key> SAMPLES <word>",
    "INFO <word> everything",
    "OBJECT ENCODING <key>",
    "CHECKPOINT CREATE",
    "CHECKPOINT CREATE <key>",
    "CHECKPOINT ROLLBACK",
    "CHECKPOINT ROLLBACK <key>",
    "CHECKPOINT DROP <key>",
    "SHUTDOWN NOSAVE",
    "SHUTDOWN ABORT",
    "REPLICAOF NO ONE",
    "REPLICAOF master <word>",
};

constexpr std::string_view kScripts[] = {
    "return KEYS[1]",
    "return {KEYS[1], ARGV[1], 1.5, false, true, {err='E x'}, {ok='fine'}}",
    "return redis.call('get', KEYS[1])",
    "return redis.pcall('set', KEYS[1], ARGV[1] or 'x', ARGV[2] or 'NX')",
    "redis.setresp(3) return redis.call('hgetall', KEYS[1])",
    "redis.call('set', KEYS[1], 'v') return redis.call('incr', KEYS[1])",
    "return redis.error_reply(ARGV[1] or 'none')",
    "for i = 1, 10 do redis.call('rpush', KEYS[1], i) end return redis.call('lrange', KEYS[1], 0, "
    "-1)",
    "redis.set_repl(redis.REPL_NONE) return redis.call('append', KEYS[1], 'x')",
    "return redis.acl_check_cmd('set', KEYS[1], 'v')",
    "return cjson.encode({KEYS[1], ARGV[1]})",
    "return cmsgpack.unpack(cmsgpack.pack({KEYS[1], ARGV[1]}))",
    "#!lua flags=no-writes\nreturn redis.call('get', KEYS[1])",
    "#!lua flags=allow-oom,allow-cross-slot-keys\nreturn redis.call('set', KEYS[1], 'x')",
    "error({err='MY error'})",
    "local function f() return f() + 1 end return f()",
};
// Runs its arguments, one way and the other.
constexpr std::string_view kCalls[] = {
    "return redis.call(unpack(ARGV))",
    "return redis.pcall(unpack(ARGV))",
    "redis.setresp(3) return redis.pcall(unpack(ARGV))",
    "return {redis.pcall(unpack(ARGV)), redis.pcall(unpack(ARGV))}",
};
constexpr std::string_view kLibraries[] = {
    "#!lua name=one\n"
    "redis.register_function('f', function(keys, args) return redis.call('get', keys[1]) end)\n"
    "redis.register_function('g', function(keys, args) return redis.pcall(unpack(args)) end)",
    "#!lua name=two\n"
    "redis.register_function{function_name='f', flags={'no-writes'},\n"
    "  callback=function(keys, args) return {keys[1], args[1]} end}",
    "#!lua name=one\nredis.register_function('h', function() return 1 end) error('no')",
};
constexpr std::string_view kProtocols[] = {"string", "integer", "double", "null", "array",
                                           "set",    "map",     "attrib", "push", "verbatim",
                                           "true",   "false",   "bignum"};

// One end of a client's connection, which others may close.
class End {
 public:
  explicit End(tests::ServerFixture& server, int protocol)
      : server_(server), client_(server, protocol), id_(client_->id) {}
  bool is_there() const { return server_.server.clients().find(id_) != nullptr; }
  bool has(uint32_t flags) { return client_->has(flags); }
  tests::TestClient& client() { return client_; }
  uint64_t id() const { return id_; }

 private:
  tests::ServerFixture& server_;
  tests::TestClient client_;
  uint64_t id_;
};

struct Server : tests::TemporaryDirectory, tests::ReplicationFixture {
  Server()
      : ReplicationFixture({}, setting() +
                                   "save \"\"\nproto-max-bulk-len 1mb\n"
                                   "enable-debug-command yes\n") {
    add_all_commands(server);
    persistence = std::make_shared<persist::Persistence>(server, persist::ChildProcessParts{});
    server.add_layer(persistence);
    server.add_layer(std::make_shared<script::Engine>(server));
    server.add_layer(std::make_shared<testing::Checkpoints>(server));
    server.add_layer(std::make_shared<testing::ClockControl>(server));
    const auto calls = std::make_shared<testing::Calls>(server);
    server.add_layer(calls);
    server.set_call_listener(calls.get());
    const auto faults = std::make_shared<testing::Faults>(server);
    server.add_layer(faults);
    server.set_fault_injector(faults.get());
    server.add_layer(std::make_shared<locks::LockWatch>(server));
  }
  std::shared_ptr<persist::Persistence> persistence;
};

class World {
 public:
  World() {
    admin_ = std::make_unique<tests::TestClient>(server_);
    (*admin_)->user = nullptr;
    for (const auto& command : server_.server.commands().all()) {
      const std::string_view name = command->full_name;
      if (command->is_container() || is_one_of(kLeftOut, name)) continue;
      names_.push_back(name);
    }
    const std::string_view all = "*";
    for (const auto& [name, value] : server_.server.config().get(std::span(&all, 1))) {
      if (!is_one_of(kSettingsLeftOut, name)) settings_.push_back(name);
    }
  }

  // Whether something is left that a later input would meet.
  bool is_dirty() const { return dirty_; }

  void run(Input input) {
    begin(input);
    constexpr int kMaxRequests = 300;
    for (int i = 0; i < kMaxRequests && !input.empty(); ++i) {
      auto& end = ends_[input.byte() % ends_.size()];
      if (end == nullptr || !end->is_there())
        end = std::make_unique<End>(server_, (input.byte() & 1) != 0 ? 3 : 2);
      request(*end, input);
    }
    finish();
  }

 private:
  template <size_t kCount>
  static bool is_one_of(const std::string_view (&names)[kCount], std::string_view name) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
  }

  void begin(Input& input) {
    // A server is made anew after an input that changes more than its dataset, which takes most of
    // the time then.
    may_change_server_ = input.byte() % 4 == 0;
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

  void unpause() {
    using Reason = server::PauseControl::Reason;
    for (const auto reason : {Reason::kClient, Reason::kShutdown, Reason::kFailover})
      server_.server.pauses().unpause(reason);
    server_.tick();
  }

  // Leaves nothing to the next input.
  void finish() {
    unpause();
    for (auto& end : ends_) {
      if (end != nullptr && end->is_there()) end->client()->close();
      end.reset();
    }
    if (server_.snapshots->is_busy()) server_.snapshots->end(false);
    server_.tick();
    require(server_.server.clients().size() == 1);
    require(server_.server.clients().blocked() == 0);
    require(server_.server.blocking().keys() == 0);
    require(server_.replication->replicas().empty());
    if (server_.server.layer<testing::Checkpoints>().size() != 0)
      admin_->run("CHECKPOINT ROLLBACK");
    while (server_.server.layer<testing::Checkpoints>().size() != 0) admin_->run("CHECKPOINT DROP");
    for (const std::string_view line : {"FLUSHALL", "FUNCTION FLUSH", "SCRIPT FLUSH"})
      admin_->run(line);
  }

  void request(End& end, Input& input) {
    server::Client& client = *end.client();
    if (end.has(server::kClientBlocked)) return go_on(end);
    std::vector<std::string> texts = input.byte() < 128 ? shaped(input, end) : formless(input);
    // In a transaction the reference lets these leave a hole in the reply of EXEC, and so does this
    // server.
    if (end.has(server::kClientInMulti) && says_nothing(texts)) texts = {"PING"};
    if (changes_server(texts)) {
      if (may_change_server_) dirty_ = true;
      if (!may_change_server_) texts = {"PING"};
    }
    const std::vector<std::string_view> words(texts.begin(), texts.end());
    // What it was sent as a listener, or by others' deeds.
    const std::string before = end.client().take_output();
    if (!is_raw(client)) require(fuzz::ReplyCheck(before).count().has_value());
    const bool may_be_silent = is_silent(client) || says_nothing(texts);
    const bool listens = is_listener(client);
    const std::string output = end.client().run_words(words);
    if (!end.is_there() || is_raw(client)) return;
    const auto replies = fuzz::ReplyCheck(output).count();
    require(replies.has_value());
    const bool is_over = (input.byte() & 15) == 0;
    if (!end.has(server::kClientBlocked) && !listens && !is_listener(client)) {
      const bool subscribes = is_subscription(texts);
      const size_t least = may_be_silent || subscribes || is_silent(client) ? 0 : 1;
      require(*replies >= least && (*replies <= 1 || subscribes));
    }
    client.on_flushed();
    if (is_over) {
      server_.advance_ms(input.byte() * 8);
      server_.tick();
    }
  }

  // Nobody else may come to serve it.
  void go_on(End& end) {
    if (end.has(server::kClientPostponed)) {
      unpause();
      if (!end.is_there() || !end.has(server::kClientBlocked)) return;
    }
    end.client()->unblock(server::BlockEnd::kTimeout);
  }

  // Is sent the stream, or the dataset.
  static bool is_raw(const server::Client& client) { return client.has(server::kClientReplica); }
  static bool is_silent(const server::Client& client) {
    return client.has(server::kClientReplyOff | server::kClientReplySkip |
                      server::kClientReplySkipNext);
  }
  static bool is_listener(const server::Client& client) {
    return client.has(server::kClientSubscribed | server::kClientMonitor | server::kClientTracking);
  }
  static bool says_nothing(const std::vector<std::string>& texts) {
    static constexpr std::string_view kNames[] = {"client", "replconf", "shutdown", "sync",
                                                  "psync"};
    return is_one_of(kNames, base::lower_case(texts[0]));
  }
  // Each channel is answered for by itself, by a push in RESP3; also in transactions.
  static bool is_subscription(const std::vector<std::string>& texts) {
    const std::string name = base::lower_case(texts[0]);
    return name.find("subscribe") != std::string::npos || name == "exec";
  }
  static bool changes_server(const std::vector<std::string>& texts) {
    static constexpr std::string_view kNames[] = {
        "acl", "config", "debug", "psync", "failover", "replicaof", "slaveof", "sync", "shutdown"};
    return std::any_of(texts.begin(), texts.end(), [](const std::string& text) {
      return is_one_of(kNames, base::lower_case(text));
    });
  }

  void add_command(Input& input, std::vector<std::string>* texts) const {
    const std::string_view name = any_name(input);
    const size_t bar = name.find('|');
    texts->emplace_back(name.substr(0, bar));
    if (bar != std::string_view::npos) texts->emplace_back(name.substr(bar + 1));
    const size_t count = input.byte() % 9;
    for (size_t i = 0; i < count; ++i) texts->push_back(word(input, i == 0));
  }
  std::string_view any_name(Input& input) const {
    const size_t high = input.byte();
    return names_[(high << 8 | input.byte()) % names_.size()];
  }

  std::vector<std::string> formless(Input& input) const {
    std::vector<std::string> texts;
    do {
      texts.clear();
      add_command(input, &texts);
    } while (is_left_alone(texts));
    return texts;
  }
  // CONFIG SET only of settings that are chosen for it.
  static bool is_left_alone(const std::vector<std::string>& texts) {
    return texts.size() > 1 && texts[0] == "config" && texts[1] == "set";
  }

  std::vector<std::string> shaped(Input& input, const End& end) {
    std::string_view shape = kShapes[input.byte() % std::size(kShapes)];
    std::vector<std::string> texts;
    while (!shape.empty()) {
      const std::string_view part = shape.substr(0, shape.find(' '));
      shape.remove_prefix(std::min(part.size() + 1, shape.size()));
      if (part == "<command>") {
        const auto command = formless(input);
        texts.insert(texts.end(), command.begin(), command.end());
        continue;
      }
      const size_t open = part.find('<');
      const size_t close = part.find('>');
      if (open == std::string_view::npos) {
        texts.emplace_back(part);
        continue;
      }
      texts.push_back(std::string(part.substr(0, open)) +
                      value(input, part.substr(open, close + 1 - open), end) +
                      std::string(part.substr(close + 1)));
    }
    return texts;
  }

  template <size_t kCount>
  static std::string one_of(const std::string_view (&texts)[kCount], Input& input) {
    return std::string(texts[input.byte() % kCount]);
  }

  std::string value(Input& input, std::string_view kind, const End& end) {
    if (kind == "<key>") return word(input, true);
    if (kind == "<script>") return one_of(kScripts, input);
    if (kind == "<calls>") return one_of(kCalls, input);
    if (kind == "<library>") return one_of(kLibraries, input);
    if (kind == "<protocol>") return one_of(kProtocols, input);
    if (kind == "<name>") return std::string(any_name(input));
    if (kind == "<setting>")
      return settings_[(input.byte() << 8 | input.byte()) % settings_.size()];
    if (kind == "<sha>") {
      const std::string reply = admin_->run_words({"SCRIPT", "LOAD", one_of(kScripts, input)});
      return reply.substr(reply.find('\n') + 1, 40);
    }
    if (kind == "<client>") {
      const auto& other = ends_[input.byte() % ends_.size()];
      return std::to_string(other != nullptr ? other->id() : end.id());
    }
    return word(input, false);
  }

  static std::string word(Input& input, bool is_first) {
    const uint8_t choice = input.byte();
    if (is_first || choice < 64) return std::string(kKeys[choice % std::size(kKeys)]);
    if (choice < 192) return one_of(kWords, input);
    return input.text();
  }

  Server server_;
  std::unique_ptr<tests::TestClient> admin_;
  std::array<std::unique_ptr<End>, 4> ends_;
  std::vector<std::string_view> names_;
  std::vector<std::string> settings_;
  bool may_change_server_ = false;
  bool dirty_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kLongestInput = 4'096;
  if (size > kLongestInput) return 0;
  static std::unique_ptr<World> world;
  if (world == nullptr || world->is_dirty()) world = std::make_unique<World>();
  world->run(Input(data, size));
  return 0;
}

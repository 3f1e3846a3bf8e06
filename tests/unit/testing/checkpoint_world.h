// A server whose requests, checkpoints and moves of the clock somebody else chooses, and which
// checks after each rollback that everything is as it was when the checkpoint was created:
//
//     CheckpointWorld world([&](size_t bound) { return random.below(bound); });
//     while (...) world.step();
//     std::string difference = world.difference();   // empty: none so far
//
// Another server is fed with the replication stream and must have the same dataset in the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/digest/sha1.h"
#include "base/random.h"
#include "composition/whole_server.h"
#include "persist/rdb/dump_payload.h"
#include "server/command/propagation.h"
#include "server/observe/dataset_digest.h"
#include "store/keyspace.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

class CheckpointWorld final : server::PropagationSink {
 public:
  // A number below the bound, which is positive.
  using Choose = std::function<size_t(size_t bound)>;

  explicit CheckpointWorld(Choose choose)
      : choose_(std::move(choose)),
        server_(make()),
        shadow_(make()),
        client_(server_->server()),
        observer_(server_->server()),
        follower_(shadow_->server()) {
    // Gets what a replica gets, which removes nothing by itself.
    shadow_->server().set_state(server::kStateApplyingMaster, true);
    server_->server().environment().random = base::Random(choose_(1000));
    server_->server().propagation().add_sink(*this);
  }
  ~CheckpointWorld() override { server_->server().propagation().remove_sink(*this); }
  CheckpointWorld(const CheckpointWorld&) = delete;
  CheckpointWorld& operator=(const CheckpointWorld&) = delete;

  // Sends a request, or moves the clock, or creates, rolls back to or drops a checkpoint.
  void step() {
    const size_t choice = choose_(64);
    if (choice == 0) return create();
    if (choice == 1) return rollback();
    if (choice == 2) return drop();
    if (choice == 3) return advance();
    if (choice == 4) return evict();
    request();
  }
  // Rolls back to the oldest checkpoint, and compares the two servers.
  void finish() {
    if (!checkpoints_.empty()) rollback_to(0);
    compare_shadow();
  }

  const std::string& difference() const { return difference_; }
  size_t rollbacks() const { return rollbacks_; }
  size_t requests() const { return requests_; }

  // server::PropagationSink
  void on_propagated(std::span<const server::PropagatedCommand> unit) override {
    encoder_.append(unit, &stream_);
  }

 private:
  static constexpr int kDatabases = 3;
  static constexpr size_t kScripts = 4;

  // All that a checkpoint covers, as text.
  using State = std::map<std::string, std::string>;
  struct Expected {
    std::string name;
    int64_t now_ms;
    State state;
  };

  std::unique_ptr<composition::WholeServer> make() {
    log_.set_level(base::LogLevel::kNothing);
    auto whole = composition::WholeServer::make_space(
        "databases 3\nenable-debug-command yes\nhash-max-listpack-entries "
        "3\nset-max-listpack-entries 3\n"
        "set-max-intset-entries 3\nzset-max-listpack-entries 3\nlist-max-listpack-size 3\n"
        "stream-node-max-entries 3\n",
        {.clock = clock_, .log = log_});
    if (!whole) throw std::runtime_error(whole.error().report());
    return *std::move(whole);
  }

  // --- What there is
  // ------------------------------------------------------------------------------

  static std::string hex(const server::Digest& digest) {
    return {reinterpret_cast<const char*>(digest.data()), digest.size()};
  }

  State state() {
    State all;
    server::Server& server = server_->server();
    for (int i = 0; i < kDatabases; ++i) {
      server.database(i).table().for_each([&](store::Entry* entry) {
        std::string& text = all["db" + std::to_string(i) + " " + std::string(entry->key())];
        text.append(entry->encoding_name()).append(" ");
        text.append(std::to_string(entry->deadline_ms())).append(" ");
        text.append(hex(server::value_digest(*entry)));
        if (entry->is_string()) return;
        // Packed collections have no deadlines.
        text.append(std::to_string(entry->is_packed() ? -1 : entry->value()->first_deadline_ms()));
        // The digest knows nothing of groups.
        if (entry->type() == store::Type::kStream)
          text.append(persist::make_dump(*entry, false, persist::kRdbVersion));
      });
      observe_series(i, &all);
      const store::Keyspace& keyspace = server.database(i);
      all["figures " + std::to_string(i)] = std::to_string(keyspace.size()) + " " +
                                            std::to_string(keyspace.volatile_size()) + " " +
                                            std::to_string(keyspace.volatile_elements_size());
    }
    for (const std::string_view line :
         {"DEBUG DIGEST", "FUNCTION LIST WITHCODE", "ACL LIST", "CONFIG GET maxmemory*",
          "CONFIG GET *listpack*", "CONFIG GET requirepass", "INFO keysizes"})
      all[std::string(line)] = client_.run(line);
    for (size_t i = 0; i < kScripts; ++i) {
      all["script " + std::to_string(i)] =
          client_.run("SCRIPT EXISTS " + base::sha1_hex(script(i)));
    }
    return all;
  }

  // What the digest of a series does not know: what its rules have collected of the newest bucket,
  // and the labels it is found by.
  void observe_series(int database, State* all) {
    const std::string number = std::to_string(database);
    observer_.run("SELECT " + number);
    server_->server().database(database).table().for_each([&](store::Entry* entry) {
      if (entry->type() != store::Type::kTimeSeries) return;
      const std::string key(entry->key());
      (*all)["db" + number + " " + key] += observer_.run("TS.RANGE " + key + " - + LATEST");
    });
    for (const std::string_view labels : {"a=(a,b,c)", "b=(d,e,f)"}) {
      (*all)["index " + number + " " + std::string(labels)] =
          observer_.run("TS.QUERYINDEX " + std::string(labels));
    }
  }

  void compare(const Expected& expected) {
    const State now = state();
    if (now == expected.state || !difference_.empty()) return;
    difference_ =
        "after " + std::to_string(requests_) + " requests, back at " + expected.name + ":";
    for (const auto& [what, text] : expected.state) {
      const auto found = now.find(what);
      if (found == now.end()) difference_ += "\n  " + what + " is missing";
      if (found != now.end() && found->second != text)
        difference_ += "\n  " + what + " was " + text + ", is " + found->second;
    }
    for (const auto& [what, text] : now) {
      if (!expected.state.contains(what)) difference_ += "\n  " + what + " is new";
    }
  }

  // The follower hides nothing that is past its deadline.
  static void remove_expired(store::Keyspace& keyspace) {
    std::vector<std::string> keys;
    keyspace.table().for_each([&](store::Entry* entry) { keys.emplace_back(entry->key()); });
    for (const std::string& key : keys) keyspace.find(key, store::Keyspace::kPeek);
  }

  void compare_shadow() {
    server::Server& server = server_->server();
    for (int i = 0; i < kDatabases; ++i) remove_expired(server.database(i));
    follow();
    if (server::dataset_digest(server) == server::dataset_digest(shadow_->server())) return;
    if (!difference_.empty()) return;
    difference_ = "after " + std::to_string(requests_) + " requests the follower differs:";
    for (int i = 0; i < kDatabases; ++i) {
      compare_database(server.database(i), shadow_->server().database(i));
    }
  }

  void compare_database(store::Keyspace& one, store::Keyspace& other) {
    const auto where = "\n  db" + std::to_string(one.index()) + " ";
    one.table().for_each([&](store::Entry* entry) {
      const store::Entry* same = other.table().find_item(entry->key());
      if (same == nullptr) difference_ += where + std::string(entry->key()) + " is missing";
      if (same != nullptr && (server::value_digest(*same) != server::value_digest(*entry) ||
                              same->has_deadline() != entry->has_deadline()))
        difference_ += where + std::string(entry->key()) + " differs";
    });
    other.table().for_each([&](store::Entry* entry) {
      if (one.table().find_item(entry->key()) == nullptr)
        difference_ += where + std::string(entry->key()) + " is too much";
    });
  }

  void follow() { follower_.send(std::exchange(stream_, {})); }

  // --- What is done
  // -------------------------------------------------------------------------------

  void create() {
    // Within a transaction, and when there are too many, it is refused.
    if (in_transaction_ || checkpoints_.size() == 5) return;
    const std::string name = "level" + std::to_string(++named_);
    State before = state();
    client_.run("CHECKPOINT CREATE " + name);
    checkpoints_.push_back({name, clock_.wall_us() / 1000, std::move(before)});
  }

  void rollback() {
    if (in_transaction_ || checkpoints_.empty()) return;
    rollback_to(choose_(checkpoints_.size()));
    compare_shadow();
  }

  void rollback_to(size_t level) {
    if (in_transaction_) client_.run("DISCARD");
    in_transaction_ = false;
    const Expected& expected = checkpoints_[level];
    client_.run("CHECKPOINT ROLLBACK " + expected.name);
    ++rollbacks_;
    // What was due meanwhile is not due any more.
    clock_.advance_ms(expected.now_ms - clock_.wall_us() / 1000);
    server_->server().refresh_clock();
    shadow_->server().refresh_clock();
    compare(expected);
    checkpoints_.resize(level + 1);
  }

  void drop() {
    if (in_transaction_ || checkpoints_.empty()) return;
    const size_t level = choose_(checkpoints_.size());
    client_.run("CHECKPOINT DROP " + checkpoints_[level].name);
    checkpoints_.resize(level);
  }

  void advance() {
    clock_.advance_ms(static_cast<int64_t>(1 + choose_(200)));
    shadow_->server().refresh_clock();
    server_->server().tick();
  }

  // As under memory pressure, and as the fault EVICT does: a key goes, whatever keeps it.
  void evict() {
    if (in_transaction_) return;
    store::Keyspace& keyspace = server_->server().database(static_cast<int>(choose_(kDatabases)));
    const store::Entry* entry = keyspace.random_entry();
    if (entry == nullptr) return;
    const std::string key(entry->key());
    store::KeyRef ref = keyspace.find(key, store::Keyspace::kPeek);
    if (!ref) return;
    keyspace.erase(ref);
    server_->server().propagation().add_removal(keyspace.index(), key, true);
  }

  void request() {
    ++requests_;
    std::string_view shape = kShapes[choose_(std::size(kShapes))];
    std::vector<std::string> texts;
    while (!shape.empty()) {
      const std::string_view part = shape.substr(0, shape.find(' '));
      shape.remove_prefix(std::min(part.size() + 1, shape.size()));
      texts.push_back(word(part));
    }
    if (texts[0] == "MULTI") in_transaction_ = true;
    if (texts[0] == "EXEC") in_transaction_ = false;
    const std::vector<std::string_view> words(texts.begin(), texts.end());
    client_.run_words(words);
  }

  static std::string script(size_t number) {
    return "return redis.call('SET', KEYS[1], 'script " + std::to_string(number) + "')";
  }

  std::string word(std::string_view part) {
    if (part == "K") return "key" + std::to_string(choose_(8));
    if (part == "M") return std::string(1, static_cast<char>('a' + choose_(6)));
    if (part == "N") return std::to_string(static_cast<int>(choose_(12)) - 2);
    if (part == "D") return std::to_string(choose_(kDatabases));
    if (part == "V") return std::string(choose_(4) == 0 ? 300 : choose_(70), 'v');
    if (part == "T") return std::to_string(choose_(100));
    if (part == "S") return script(choose_(kScripts));
    if (part == "J") return choose_(2) == 0 ? word("N") : document();
    if (part == "P") return std::string(kPaths[choose_(std::size(kPaths))]);
    if (part == "L") {
      const std::string name = word("M");
      return "#!lua name=" + name + "\nredis.register_function('" + name +
             "', function(keys) return redis.call('INCR', keys[1]) end)";
    }
    return std::string(part);
  }

  std::string document() {
    return "{\"a\":" + word("N") + ",\"b\":[" + word("N") + ",true,{\"c\":null}],\"c\":\"" +
           word("V") + "\"}";
  }

  static constexpr std::string_view kPaths[] = {"$", "$.a", "$.b", "$..c", "$.b[0]", "$.b[-1]"};
  static constexpr std::string_view kShapes[] = {
      "SET K V",
      "SET K N",
      "SET K V PX 100",
      "SET K V KEEPTTL",
      "SET K V XX GET",
      "SET K V NX",
      "SETEX K 1 V",
      "GETSET K V",
      "GETDEL K",
      "GETEX K PX 90",
      "GETEX K PERSIST",
      "MSET K V K N",
      "MSETNX K V K V",
      "INCR K",
      "INCRBYFLOAT K 1.5",
      "DECRBY K N",
      "APPEND K V",
      "SETRANGE K 300 V",
      "SETRANGE K 2 M",
      "SETBIT K 77 1",
      "SETBIT K 4000 1",
      "BITOP AND K K K",
      "BITOP NOT K K",
      "BITFIELD K SET u8 #2 N",
      "BITFIELD K INCRBY i16 3 N",
      "PFADD K M M",
      "PFCOUNT K",
      "PFMERGE K K K",
      "GET K",
      "MGET K K",
      "DEL K",
      "UNLINK K K",
      "EXPIRE K 1",
      "PEXPIRE K 50",
      "PEXPIRE K 1",
      "EXPIRE K -1",
      "PERSIST K",
      "RENAME K K",
      "RENAMENX K K",
      "MOVE K D",
      "COPY K K",
      "COPY K K REPLACE",
      "COPY K K DB D REPLACE",
      "SELECT D",
      "SWAPDB D D",
      "FLUSHDB",
      "FLUSHALL",
      "FLUSHALL ASYNC",
      "FLUSHDB SYNC",
      "SORT K ALPHA STORE K",
      "RPUSH K M M V",
      "LPUSH K M",
      "LPUSHX K V",
      "LPOP K",
      "RPOP K 2",
      "LREM K 0 M",
      "LINSERT K BEFORE M V",
      "LSET K 0 V",
      "LTRIM K 1 3",
      "LMOVE K K LEFT RIGHT",
      "LMPOP 2 K K LEFT COUNT 2",
      "LRANGE K 0 -1",
      "SADD K M M N",
      "SADD K N N N",
      "SREM K M",
      "SPOP K",
      "SPOP K 2",
      "SMOVE K K M",
      "SINTERSTORE K K K",
      "SUNIONSTORE K K K",
      "SDIFFSTORE K K K",
      "SMEMBERS K",
      "ZADD K N M N M",
      "ZADD K GT CH N M",
      "ZINCRBY K N M",
      "ZREM K M",
      "ZPOPMIN K",
      "ZPOPMAX K 2",
      "ZREMRANGEBYSCORE K 0 4",
      "ZUNIONSTORE K 2 K K",
      "ZRANGESTORE K K 0 2",
      "ZMPOP 1 K MIN",
      "GEOADD K 1 2 M",
      "GEOSEARCHSTORE K K FROMMEMBER M "
      "BYRADIUS 9 km",
      "HSET K M V",
      "HSET K M V M N M V M V",
      "HDEL K M",
      "HINCRBY K M N",
      "HINCRBYFLOAT K M 0.5",
      "HSETNX K M V",
      "HPEXPIRE K 40 FIELDS 1 M",
      "HPEXPIRE K 400 FIELDS 2 M M",
      "HEXPIRE K 0 FIELDS 1 M",
      "HPERSIST K FIELDS 1 M",
      "HGETALL K",
      "HGET K M",
      "HRANDFIELD K",
      "HGETDEL K FIELDS 1 M",
      "HGETEX K PX 60 FIELDS 1 M",
      "HSETEX K PX 70 FIELDS 1 M V",
      "VADD K VALUES 2 N 1 M",
      "VADD K VALUES 2 N -1 M SETATTR V",
      "VSETATTR K M V",
      "VREM K M",
      "VSIM K ELE M",
      "VRANGE K - +",
      "XADD K * M V",
      "XADD K MAXLEN 4 * M V",
      "XTRIM K MAXLEN 2",
      "XGROUP CREATE K M 0 MKSTREAM",
      "XGROUP DESTROY K M",
      "XGROUP SETID K M $",
      "XGROUP CREATECONSUMER K M M",
      "XREADGROUP GROUP M M COUNT 2 STREAMS K >",
      "XREADGROUP GROUP M M STREAMS K 0",
      "XAUTOCLAIM K M M 0 0",
      "XINFO STREAM K FULL",
      "XDEL K 1-1",
      "XSETID K 99999999999999-1",
      "JSON.SET K $ J",
      "JSON.SET K P J",
      "JSON.MSET K $ J K P J",
      "JSON.MERGE K P J",
      "JSON.DEL K P",
      "JSON.CLEAR K P",
      "JSON.NUMINCRBY K P N",
      "JSON.ARRAPPEND K P J J",
      "JSON.ARRPOP K P",
      "JSON.ARRTRIM K P 0 1",
      "JSON.STRAPPEND K P \"M\"",
      "JSON.TOGGLE K P",
      "JSON.GET K P",
      "TS.CREATE K DUPLICATE_POLICY SUM LABELS M M",
      "TS.CREATE K CHUNK_SIZE 48 ENCODING UNCOMPRESSED DUPLICATE_POLICY LAST",
      "TS.CREATE K RETENTION 40 LABELS M M M M",
      "TS.ADD K T N",
      "TS.ADD K * N",
      "TS.ADD K T N ON_DUPLICATE MAX LABELS M M",
      "TS.MADD K T N K T N",
      "TS.INCRBY K N TIMESTAMP T",
      "TS.DEL K T T",
      "TS.ALTER K LABELS M M",
      "TS.CREATERULE K K AGGREGATION sum 10",
      "TS.CREATERULE K K AGGREGATION twa 7 3",
      "TS.DELETERULE K K",
      "TS.GET K LATEST",
      "BF.RESERVE K 0.1 2",
      "BF.ADD K M",
      "BF.INSERT K CAPACITY 3 ITEMS M N V",
      "CF.RESERVE K 4 BUCKETSIZE 1",
      "CF.ADD K M",
      "CF.ADDNX K N",
      "CF.DEL K M",
      "CF.COMPACT K",
      "CMS.INITBYDIM K 3 2",
      "CMS.INCRBY K M N M T",
      "CMS.MERGE K 2 K K",
      "TOPK.RESERVE K 2 4 2 0.000001",
      "TOPK.ADD K M N",
      "TOPK.INCRBY K M T",
      "TDIGEST.CREATE K COMPRESSION 10",
      "TDIGEST.ADD K N T T",
      "TDIGEST.MERGE K 1 K",
      "TDIGEST.RESET K",
      "RESTORE K 0 nothing",
      "TOUCH K",
      "RANDOMKEY",
      "MULTI",
      "EXEC",
      "EXEC",
      "EVAL S 1 K",
      "SCRIPT LOAD S",
      "SCRIPT FLUSH",
      "FUNCTION LOAD REPLACE L",
      "FUNCTION FLUSH",
      "FUNCTION DELETE M",
      "FCALL a 1 K",
      "CONFIG SET maxmemory-policy allkeys-lru",
      "CONFIG SET maxmemory-policy noeviction",
      "CONFIG SET maxmemory-samples 7 hash-max-listpack-entries 9",
      "CONFIG SET hash-max-listpack-entries 2",
      "ACL SETUSER M on nopass ~M* +@read",
      "ACL SETUSER M reset",
      "ACL DELUSER M",
      "EXISTS K K",
      "OBJECT ENCODING K",
  };

  Choose choose_;
  base::VirtualClock clock_;
  base::Logger log_;
  std::unique_ptr<composition::WholeServer> server_;
  std::unique_ptr<composition::WholeServer> shadow_;
  TestClient client_;
  TestClient observer_;
  TestClient follower_;
  server::PropagationEncoder encoder_{server::kPropagateToReplicas};
  std::string stream_;
  std::vector<Expected> checkpoints_;
  std::string difference_;
  bool in_transaction_ = false;
  size_t named_ = 0;
  size_t requests_ = 0;
  size_t rollbacks_ = 0;
};

}  // namespace latchkey::tests

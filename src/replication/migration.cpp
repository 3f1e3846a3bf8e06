#include "replication/migration.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "net/loop.h"
#include "persist/rdb/dump_payload.h"
#include "replication/replication.h"
#include "replication/rows.h"
#include "resp/request_encoder.h"
#include "server/command/command_context.h"
#include "server/process/secure_transport.h"
#include "server/server.h"

namespace latchkey::replication {

using namespace server;
using resp::append_request;
using store::KeyRef;

// The parsed arguments.
struct MigrationOrder {
  std::string host;
  std::string port;
  std::vector<std::string_view> keys;  // existing ones
  int64_t database = 0;
  int64_t timeout_ms = 0;
  bool copy = false;
  bool replace = false;
  std::vector<std::string_view> login;  // words after AUTH; none: no AUTH

  std::string place() const { return host + ":" + port; }
};

namespace {

constexpr size_t kKeyAt = 3;
constexpr size_t kFirstOption = 6;
constexpr int64_t kDefaultTimeoutMs = 1000;

// Reads the options; order->keys are all keys of the arguments. False when an error has been sent.
bool read_options(CommandContext& ctx, MigrationOrder* order) {
  order->host = ctx.args[1];
  order->port = ctx.args[2];
  order->keys = {ctx.args[kKeyAt]};
  std::string_view word;
  for (ArgReader options(ctx.args, kFirstOption); options.more();) {
    if (options.word("COPY")) {
      order->copy = true;
    } else if (options.word("REPLACE")) {
      order->replace = true;
    } else if (options.word("AUTH", &word)) {
      order->login = {word};
    } else if (options.left() >= 3 && options.word("AUTH2")) {
      const std::string_view user = options.next();
      order->login = {user, options.next()};
    } else if (options.word("KEYS")) {
      if (!ctx.args[kKeyAt].empty())
        return ctx.refuse(
            "ERR When using MIGRATE KEYS option, the key argument must be set to the empty string");
      const Arguments keys = options.rest();
      order->keys.assign(keys.begin(), keys.end());
      break;
    } else {
      ctx.syntax_error();
      return false;
    }
  }
  if (!ctx.read_int64(ctx.args[5], &order->timeout_ms)) return false;
  if (!ctx.read_int64(ctx.args[4], &order->database)) return false;
  if (order->timeout_ms <= 0) order->timeout_ms = kDefaultTimeoutMs;
  return true;
}

// Appends a RESTORE of the key's value with its remaining time to live.
void append_restore(CommandContext& ctx, const MigrationOrder& order, std::string_view key,
                    const KeyRef& ref, std::string* out) {
  const int64_t left_ms =
      ref->has_deadline() ? std::max<int64_t>(ref->deadline_ms() - ctx.now_ms(), 1) : 0;
  const std::string ttl = std::to_string(left_ms);
  const std::string dump = persist::make_dump(*ref, ctx.server.settings().rdbcompression,
                                              ctx.server.edition().rdb_version());
  // The other node only imports the slot; it does not own it.
  const std::string_view name = ctx.server.in_cluster() ? "RESTORE-ASKING" : "RESTORE";
  std::vector<std::string_view> words = {name, key, ttl, dump};
  if (order.replace) words.push_back("REPLACE");
  append_request(out, words);
}

// Deletes the keys that have arrived.
void remove_keys(CommandContext& ctx, const std::vector<std::string_view>& keys) {
  std::vector<std::string_view> gone;
  for (const std::string_view key : keys) {
    KeyRef ref = ctx.db.find_to_replace(key);
    if (!ref) continue;
    ctx.db.erase(ref);
    ctx.removed(key);
    gone.push_back(key);
  }
  if (!gone.empty()) ctx.propagate({"DEL"}, gone);
}

}  // namespace

void Migration::migrate(CommandContext& ctx) {
  MigrationOrder order;
  if (!read_options(ctx, &order)) return;
  std::erase_if(order.keys, [&](std::string_view key) { return !ctx.db.find(key); });
  if (order.keys.empty()) return ctx.reply.status("NOKEY");
  // A kept connection may have been closed by the other server: tries once more.
  if (attempt(ctx, order) == Outcome::kTryAnew) attempt(ctx, order);
}

Migration::Outcome Migration::attempt(CommandContext& ctx, const MigrationOrder& order) {
  Peer* peer = peer_for(ctx, order);
  if (peer == nullptr) return Outcome::kDone;
  const bool must_select = peer->database != order.database;
  const auto fail = [&](const char* step) {
    const bool try_anew = !peer->is_fresh && !peer->socket->timed_out();
    peers_.erase(order.place());
    if (try_anew) return Outcome::kTryAnew;
    return ctx.refuse("IOERR error or timeout " + std::string(step) + " to target instance",
                      Outcome::kDone);
  };

  std::string requests;
  if (!order.login.empty()) {
    std::vector<std::string_view> words = {"AUTH"};
    words.insert(words.end(), order.login.begin(), order.login.end());
    append_request(&requests, words);
  }
  if (must_select) append_request(&requests, {"SELECT", std::to_string(order.database)});
  for (const std::string_view key : order.keys)
    append_restore(ctx, order, key, ctx.db.find(key, store::Keyspace::kPeek), &requests);
  if (!peer->socket->write(requests, order.timeout_ms)) return fail("writing");

  std::string problem;
  bool misplaced = false;  // AUTH or SELECT failed: keys are not restored, or in another database
  std::vector<std::string_view> arrived;
  const size_t before_keys = (order.login.empty() ? 0 : 1) + (must_select ? 1 : 0);
  for (size_t i = 0; i < before_keys + order.keys.size(); ++i) {
    std::string line;
    if (!peer->socket->read_line(&line, order.timeout_ms)) {
      // Does not send the arrived keys again.
      if (!arrived.empty()) peer->is_fresh = true;
      if (!order.copy) remove_keys(ctx, arrived);
      return fail("reading");
    }
    const bool is_error = line.starts_with('-');
    if (is_error && problem.empty()) problem = line.substr(1);
    if (is_error && i < before_keys) misplaced = true;
    if (i >= before_keys && !is_error && !misplaced) arrived.push_back(order.keys[i - before_keys]);
  }
  if (!order.copy) remove_keys(ctx, arrived);
  peer->is_fresh = false;
  peer->used_ms = ctx.now_ms();
  peer->database = problem.empty() ? order.database : -1;
  if (!problem.empty()) {
    ctx.reply.error("ERR Target instance replied with error: " + problem);
  } else {
    ctx.reply.ok();
  }
  return Outcome::kDone;
}

Migration::Peer* Migration::peer_for(CommandContext& ctx, const MigrationOrder& order) {
  const auto found = peers_.find(order.place());
  if (found != peers_.end()) return &found->second;
  auto socket = PeerSocket::connect(order.host, order.port, order.timeout_ms,
                                    ctx.server.secure_transport().for_cluster());
  if (socket == nullptr)
    return ctx.refuse("IOERR error or timeout connecting to the client", nullptr);
  // A server, or a space, of this process cannot reply while it is waited for.
  const auto place = socket->place_at_this_machine();
  if (place && ctx.server.loop() != nullptr &&
      ctx.server.loop()->listens_at(place->ip, place->port))
    return ctx.refuse(
        "ERR MIGRATE cannot send keys to a server of the same process. DUMP and RESTORE can",
        nullptr);
  if (peers_.size() == kMaxKept) {
    peers_.erase(std::min_element(peers_.begin(), peers_.end(), [](const auto& a, const auto& b) {
      return a.second.used_ms < b.second.used_ms;
    }));
  }
  Peer& peer = peers_[order.place()];
  peer.socket = std::move(socket);
  peer.used_ms = ctx.now_ms();
  return &peer;
}

void Migration::close_idle(int64_t now_ms) {
  std::erase_if(peers_, [&](const auto& each) { return now_ms - each.second.used_ms > kKeptMs; });
}

namespace {

void migrate(CommandContext& ctx) {
  ctx.server.layer<Replication>().migration().migrate(ctx);
}

// The key, or if it is empty the keys after KEYS.
bool find_migrate_keys(Arguments words, std::vector<KeyReference>* out) {
  constexpr uint32_t kFlags = kKeyReadWrite | kKeyAccess | kKeyDelete;
  for (ArgReader options(words, kFirstOption); options.more();) {
    std::string_view value;
    if (options.word("AUTH", &value)) continue;
    if (options.left() >= 3 && options.word("AUTH2")) {
      options.next();
      options.next();
    } else if (options.left() >= 2 && options.word("KEYS")) {
      if (!words[kKeyAt].empty()) return false;
      for (; options.more(); options.next())
        out->push_back({static_cast<uint32_t>(options.position()), kFlags});
      return true;
    } else {
      options.next();
    }
  }
  out->push_back({static_cast<uint32_t>(kKeyAt), kFlags});
  return true;
}

void find_migrate_secrets(const Config&, Arguments words, std::vector<size_t>* positions) {
  for (ArgReader options(words, kFirstOption); options.more() && !options.word("KEYS");) {
    if (options.left() >= 2 && options.word("AUTH")) {
      positions->push_back(options.position());
    } else if (options.left() >= 3 && options.word("AUTH2")) {
      positions->insert(positions->end(), {options.position(), options.position() + 1});
      options.next();
    }
    options.next();
  }
}

constexpr CommandRow kMigrateRows[] = {
    {"MIGRATE",
     migrate,
     "host port {key-selector=key|empty-string=\"\"} destination-db timeout [COPY]@3.0.0 "
     "[REPLACE]@3.0.0 [authentication=AUTH auth(password)@4.0.7|{AUTH2 auth2=username "
     "password}@6.0.0] [KEYS keys(key):key...]@3.0.6",
     kWrite,
     keys(3).rw().access().remove() +
         keys_after("KEYS", -2, -1).rw().access().remove().incomplete(),
     kAclKeyspace | kAclDangerous,
     Group::kGeneric,
     "2.6.0",
     "This command actually executes a DUMP+DEL in the source instance, and a RESTORE in the "
     "target instance. See the pages of these commands for time complexity. Also an O(N) data "
     "transfer between the two instances is performed.",
     "Atomically transfers a key from one Redis instance to another.",
     {.tips = "nondeterministic_output",
      .history = "3.0.0 Added the `COPY` and `REPLACE` options.\n3.0.6 Added the `KEYS` "
                 "option.\n4.0.7 Added the `AUTH` option.\n6.0.0 Added the `AUTH2` option.",
      .find_keys = find_migrate_keys,
      .find_secrets = find_migrate_secrets}},
};

}  // namespace

std::span<const CommandRow> migrate_rows() {
  return kMigrateRows;
}

}  // namespace latchkey::replication

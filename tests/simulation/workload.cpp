#include "simulation/workload.h"

#include <utility>
#include <vector>

namespace latchkey::simulation {

namespace {

using Kind = Request::Kind;

constexpr char kEcho[] = "return ARGV[1]";
constexpr char kSet[] = "redis.call('SET', KEYS[1], ARGV[1]) return ARGV[1]";
constexpr char kSlowSet[] =
    "local n = 0 for i = 1, tonumber(ARGV[2]) do n = n + i end "
    "redis.call('SET', KEYS[1], ARGV[1]) return ARGV[1]";
// Has written when it is interrupted.
constexpr char kSetSlowlyPush[] =
    "redis.call('SET', KEYS[1], ARGV[1]) "
    "local n = 0 for i = 1, tonumber(ARGV[2]) do n = n + i end "
    "redis.call('RPUSH', KEYS[2], ARGV[1]) return ARGV[1]";
constexpr char kEndless[] = "while true do end";
constexpr int kSilentRequests = 3;

}  // namespace

const char kLibrary[] =
    "#!lua name=simulation\n"
    "redis.register_function('echo', function(keys, args) return args[1] end)\n"
    "redis.register_function('slow_set', function(keys, args)\n"
    "  local n = 0 for i = 1, tonumber(args[2]) do n = n + i end\n"
    "  redis.call('SET', keys[1], args[1]) return args[1] end)\n"
    "redis.register_function{function_name='slow_echo', flags={'no-writes'},\n"
    "  callback=function(keys, args)\n"
    "  local n = 0 for i = 1, tonumber(args[2]) do n = n + i end return args[1] end}\n";

std::string Workload::token(Player& player) {
  std::string text = player.name() + ":" + std::to_string(player.next_token()) + ":";
  // Some are large, so that datasets come in several pieces.
  if (dice_.percent(20)) text.append(dice_.below(400), 'x');
  return text;
}

std::string Workload::key(const Player& player, const char* name) const {
  return player.name() + ":" + name;
}

Request Workload::own(Player& player) {
  const std::string text = key(player, dice_.percent(50) ? "s" : "t");
  const std::string counter = key(player, "n");
  const std::string list = key(player, "l");
  const std::string hash = key(player, "h");
  const std::string sorted_set = key(player, "z");
  const std::string field = "f" + std::to_string(dice_.below(4));
  const std::string any =
      key(player, std::vector<const char*>{"s", "n", "l", "h", "z"}[dice_.below(5)]);
  switch (dice_.below(20)) {
    case 0:
    case 1:
      return {.words = {"SET", text, token(player)}};
    case 2:
      return {.words = {"GET", text}};
    case 3:
      return {.words = {"GETSET", text, token(player)}};
    case 4:
      return {.words = {"SETNX", text, token(player)}};
    case 5:
      return {.words = {"APPEND", text, token(player)}};
    case 6:
      return {.words = {"INCR", counter}};
    case 7:
    case 8:
      return {.words = {"RPUSH", list, token(player), token(player)}};
    case 9:
      return {.words = {"LPOP", list}};
    case 10:
      return {.words = {"LRANGE", list, "0", "-1"}};
    case 11:
    case 12:
      return {.words = {"HSET", hash, field, token(player)}};
    case 13:
      return dice_.percent(50) ? Request{.words = {"HGET", hash, field}}
                               : Request{.words = {"HDEL", hash, field}};
    case 14:
      return {.words = {"ZADD", sorted_set, std::to_string(dice_.below(9)), field}};
    case 15:
      return dice_.percent(50) ? Request{.words = {"ZSCORE", sorted_set, field}}
                               : Request{.words = {"ZREM", sorted_set, field}};
    case 16:
      return {.words = {"PEXPIRE", any, std::to_string(dice_.between(1, 20'000))}};
    case 17:
      return dice_.percent(50) ? Request{.words = {"PERSIST", any}}
                               : Request{.words = {"DEL", any}};
    default:
      return {.words = {"ECHO", token(player)}};
  }
}

Request Workload::script(Player& player) {
  const std::string text = key(player, "s");
  const std::string list = key(player, "l");
  const std::string word = token(player);
  const std::string rounds = std::to_string(dice_.between(100, 12'000));
  Request request{.kind = Kind::kScript, .reply = bulk(word)};
  const Words set = {"SET", text, word};
  switch (dice_.below(12)) {
    case 0:
    case 1:
    case 2:
      request.words = {"EVAL", kEcho, "0", word};
      break;
    case 3:
    case 4:
      request.words = {"EVAL", kSet, "1", text, word};
      request.effects = {set};
      break;
    case 5:
    case 6:
      request.words = {"EVAL", kSlowSet, "1", text, word, rounds};
      request.effects = {set};
      request.may_be_killed = true;
      break;
    case 7:
      request.words = {"EVAL", kSetSlowlyPush, "2", text, list, word, rounds};
      request.effects = {set, {"RPUSH", list, word}};
      break;
    case 8:
      request.words = {"FCALL", "slow_set", "1", text, word, rounds};
      request.effects = {set};
      request.may_be_killed = true;
      break;
    case 9:
    case 10:
      request.words = {"FCALL", "echo", "0", word};
      break;
    default:
      request.words = {"EVAL", kEndless, "0"};
      request.reply.clear();
      request.may_be_killed = true;
      break;
  }
  return request;
}

Request Workload::shared(Player& player) {
  const std::string number = std::to_string(dice_.below(20));
  switch (dice_.below(9)) {
    case 0:
      return {.kind = Kind::kAnything, .words = {"INCR", "shared:n"}, .first_bytes = ":"};
    case 1:
      return {.kind = Kind::kAnything, .words = {"SADD", "shared:s", number}, .first_bytes = ":"};
    case 2:
      return {.kind = Kind::kAnything, .words = {"SPOP", "shared:s"}, .first_bytes = "$"};
    case 3:
      return {.kind = Kind::kAnything,
              .words = {"XADD", "shared:x", "MAXLEN", "20", "*", "f", number},
              .first_bytes = "$"};
    case 4:
      return {.kind = Kind::kAnything,
              .words = {"SET", "shared:" + number, token(player), "PX", "3000"},
              .first_bytes = "+"};
    case 5:
      return {.kind = Kind::kAnything,
              .words = {"JSON.MERGE", "shared:j", "$", "{\"" + number + "\":[" + number + "]}"},
              .first_bytes = "+"};
    case 6:
      return {.kind = Kind::kAnything,
              .words = {"TS.ADD", "shared:t", "*", number, "ON_DUPLICATE", "SUM"},
              .first_bytes = ":"};
    case 7:
      return {.kind = Kind::kAnything, .words = {"BF.ADD", "shared:b", number}, .first_bytes = ":"};
    default:
      return {.kind = Kind::kAnything,
              .words = {"PUBLISH", Listener::kChannel,
                        player.name() + ":" + std::to_string(player.next_token())},
              .first_bytes = ":"};
  }
}

void Workload::transaction(Player& player) {
  const bool watches = dice_.percent(40);
  const std::string watched = key(player, "s");
  if (watches) player.ask({.kind = Kind::kWatch, .words = {"WATCH", watched}});
  if (watches && dice_.percent(30)) player.ask({.words = {"SET", watched, token(player)}});
  player.ask({.kind = Kind::kMulti, .words = {"MULTI"}});
  for (size_t i = dice_.between(1, 4); i > 0; --i)
    player.ask(dice_.percent(30) ? script(player) : own(player));
  dice_.percent(90) ? player.ask({.kind = Kind::kExec, .words = {"EXEC"}})
                    : player.ask({.kind = Kind::kDiscard, .words = {"DISCARD"}});
}

void Workload::ask(Player& player) {
  const size_t choice = dice_.below(100);
  const bool uses_queue = player.database() == 0;
  if (choice < 50) return player.ask(own(player));
  if (choice < 66) return player.ask(script(player));
  if (choice < 76) return player.ask(shared(player));
  if (choice < 84) return transaction(player);
  if (may_reload_ && choice < 86) {
    return player.ask({.kind = Kind::kAnything, .words = {"DEBUG", "RELOAD"}, .first_bytes = "+"});
  }
  if (!uses_queue) return player.ask({.words = {"ECHO", token(player)}});
  if (choice < 94)
    return player.ask({.kind = Kind::kPush, .words = {"RPUSH", kQueue, token(player)}});
  if (choice < 96) return player.ask({.kind = Kind::kPop, .words = {"LPOP", kQueue}});
  const char* const timeouts[] = {"0.01", "0.5", "3"};
  player.ask({.kind = Kind::kPop, .words = {"BLPOP", kQueue, timeouts[dice_.below(3)]}});
}

void Workload::ask_replica(Player& player) {
  const std::string word = token(player);
  switch (dice_.below(6)) {
    case 0:
      return player.ask(
          {.kind = Kind::kAnything, .words = {"GET", "shared:1"}, .first_bytes = "$"});
    case 1:
      // A function may not have come yet.
      return player.ask({.kind = Kind::kAnything,
                         .words = {"FCALL_RO", "slow_echo", "0", word,
                                   std::to_string(dice_.between(100, 12'000))},
                         .first_bytes = "$-"});
    case 2:
      return player.ask(
          {.kind = Kind::kScript, .words = {"EVAL", kEcho, "0", word}, .reply = bulk(word)});
    case 3:
      return player.ask({.kind = Kind::kAnything,
                         .words = {"SET", "stray:" + player.name(), word},
                         .first_bytes = "+"});
    case 4: {
      if (!dice_.percent(30)) break;
      return player.ask(
          {.kind = Kind::kScript, .words = {"EVAL", kEndless, "0"}, .may_be_killed = true});
    }
    default:
      break;
  }
  player.ask({.words = {"ECHO", word}});
}

void Workload::ask_silently(Player& player) {
  player.ask({.kind = Kind::kNoReplies, .words = {"CLIENT", "REPLY", "OFF"}});
  for (int i = 0; i < kSilentRequests; ++i)
    player.ask({.kind = Kind::kSilent, .words = {"SET", key(player, "s"), token(player)}});
  player.ask({.kind = Kind::kAnything, .words = {"CLIENT", "REPLY", "ON"}, .first_bytes = "+"});
}

}  // namespace latchkey::simulation

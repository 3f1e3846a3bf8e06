#include "replication/handshake.h"

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

#include "base/text/number.h"
#include "resp/request_encoder.h"
#include "server/replication_history.h"
#include "server/stream_offset.h"

namespace latchkey::replication {

using resp::append_request;

namespace {

constexpr size_t kIdDigits = server::ReplicationHistory::kIdDigits;
// Of the directive `databases`.
constexpr int64_t kMaxDatabase = INT32_MAX;

bool is_id(std::string_view text) {
  return text.size() == kIdDigits && std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::isxdigit(c) != 0;
         });
}

// Removes a word and the blank after it from the text.
std::string_view take_word(std::string_view* text) {
  const size_t end = std::min(text->find(' '), text->size());
  const std::string_view word = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  return word;
}

}  // namespace

Handshake::Handshake(Introduction introduction, base::Logger& log)
    : introduction_(std::move(introduction)), log_(log) {}

std::string Handshake::begin() {
  std::string out;
  if (is_rdb_channel()) {
    authenticate(&out);
  } else {
    append_request(&out, {"PING"});
  }
  return out;
}

Handshake::Result Handshake::read(std::string_view line, std::string* out) {
  if (line.empty()) return Result::kGoesOn;
  switch (waits_for_) {
    case Step::kPing:
      return read_ping(line, out);
    case Step::kAuth:
      return read_auth(line, out);
    case Step::kPort:
    case Step::kIp:
    case Step::kCapabilities:
      return read_replconf(line, out);
    case Step::kPsync:
      return read_psync(line, out);
    case Step::kEndOffset:
      return read_end_offset(line);
    case Step::kJoin:
      return read_join(line, out);
    case Step::kChannel:
      break;
  }
  log_.warning("Unexpected reply of the master, which the RDB channel has yet to reach: '" +
               std::string(line) + "'");
  return Result::kFailed;
}

Handshake::Result Handshake::read_ping(std::string_view line, std::string* out) {
  // A master that requires a password is alive too.
  const bool answers = line.starts_with('+') || line.starts_with("-NOAUTH") ||
                       line.starts_with("-NOPERM") ||
                       line.starts_with("-ERR operation not permitted");
  if (!answers) {
    log_.warning("Error reply to PING from master: '" + std::string(line) + "'");
    return Result::kFailed;
  }
  log_.notice("Master replied to PING, replication can continue...");
  authenticate(out);
  return Result::kGoesOn;
}

void Handshake::authenticate(std::string* out) {
  if (introduction_.password.empty()) return announce(out);
  waits_for_ = Step::kAuth;
  if (introduction_.user.empty()) {
    append_request(out, {"AUTH", introduction_.password});
  } else {
    append_request(out, {"AUTH", introduction_.user, introduction_.password});
  }
}

Handshake::Result Handshake::read_auth(std::string_view line, std::string* out) {
  if (line.starts_with('-')) {
    log_.warning("Unable to AUTH to MASTER: " + std::string(line));
    return Result::kFailed;
  }
  announce(out);
  return Result::kGoesOn;
}

void Handshake::announce(std::string* out) {
  if (is_rdb_channel()) return announce_rdb_channel(out);
  waits_for_ = Step::kPort;
  append_request(out, {"REPLCONF", "listening-port", std::to_string(introduction_.port)});
  if (!introduction_.ip.empty()) append_request(out, {"REPLCONF", "ip-address", introduction_.ip});
  std::vector<std::string_view> words = {"REPLCONF", "capa", "eof",  "capa",
                                         "psync2",   "capa", "clock"};
  if (introduction_.offers_rdb_channel) words.insert(words.end(), {"capa", "rdb-channel-repl"});
  if (introduction_.offers_dual_channel) words.insert(words.end(), {"capa", "dual-channel"});
  if (!introduction_.version.empty()) words.insert(words.end(), {"version", introduction_.version});
  // The last one: an older master ignores what stands behind an option that it does not know.
  if (!introduction_.cluster_node_id.empty())
    words.insert(words.end(), {"set-cluster-node-id", introduction_.cluster_node_id});
  append_request(out, words);
}

void Handshake::announce_rdb_channel(std::string* out) {
  // By itself: a master may refuse the address, and have the replica all the same.
  waits_for_ = introduction_.ip.empty() ? Step::kCapabilities : Step::kIp;
  if (!introduction_.ip.empty()) append_request(out, {"REPLCONF", "ip-address", introduction_.ip});
  const std::string port = std::to_string(introduction_.port);
  std::vector<std::string_view> words = {"REPLCONF", "capa",        "eof", "rdb-only",
                                         "1",        "rdb-channel", "1"};
  if (!is_dual_channel())
    words.insert(words.end(), {"main-ch-client-id", introduction_.main_client_id});
  words.insert(words.end(), {"listening-port", port});
  append_request(out, words);
}

Handshake::Result Handshake::read_replconf(std::string_view line, std::string* out) {
  const char* what = "capa";
  Step next = Step::kPsync;
  if (waits_for_ == Step::kPort) {
    what = "listening-port";
    next = introduction_.ip.empty() ? Step::kCapabilities : Step::kIp;
  } else if (waits_for_ == Step::kIp) {
    what = "ip-address";
    next = Step::kCapabilities;
  }
  if (line.starts_with('-') && is_rdb_channel() && next == Step::kPsync) {
    log_.warning("The master refuses the RDB channel: " + std::string(line));
    return Result::kFailed;
  }
  if (line.starts_with('-')) {
    log_.notice(std::string("(Non critical) Master does not understand REPLCONF ") + what + ": " +
                std::string(line));
  }
  waits_for_ = next;
  if (next == Step::kPsync) ask(out);
  return Result::kGoesOn;
}

void Handshake::ask(std::string* out) {
  if (is_dual_channel()) {
    waits_for_ = Step::kEndOffset;
    return void(out->append("SYNC\r\n"));
  }
  if (!introduction_.resume) {
    if (!is_rdb_channel()) log_.notice("Partial resynchronization not possible (no cached master)");
    return append_request(out, {"PSYNC", "?", "-1"});
  }
  const Introduction::Place& place = *introduction_.resume;
  const std::string offset = std::to_string(place.offset);
  log_.notice("Trying a partial resynchronization (request " + place.id + ":" + offset + ").");
  std::vector<std::string_view> words = {"PSYNC", place.id, offset};
  if (introduction_.requests_failover) words.emplace_back("FAILOVER");
  append_request(out, words);
}

Handshake::Result Handshake::read_psync(std::string_view line, std::string* out) {
  if (line.starts_with("+FULLRESYNC")) return read_full_resync(line);
  if (line.starts_with("+CONTINUE")) return read_continue(line);
  if (introduction_.offers_rdb_channel && line.starts_with("+RDBCHANNELSYNC"))
    return read_rdb_channel(line);
  if (introduction_.offers_dual_channel && line == "+DUALCHANNELSYNC") {
    log_.notice("PSYNC is not possible, initialize RDB channel.");
    waits_for_ = Step::kChannel;
    return Result::kDualChannel;
  }
  return refused(line, out);
}

Handshake::Result Handshake::refused(std::string_view line, std::string* out) {
  // -BUSY ends with the script; falling back to SYNC because of it would lose the offsets for good.
  if (line.starts_with("-NOMASTERLINK") || line.starts_with("-LOADING") ||
      line.starts_with("-BUSY")) {
    log_.notice("Master is currently unable to PSYNC but should be in the future: " +
                std::string(line));
    return introduction_.requests_failover ? Result::kDeclined : Result::kFailed;
  }
  if (line.starts_with("-ERR")) {
    log_.notice("Master does not support PSYNC or is in error state (reply: " + std::string(line) +
                ")");
  } else {
    log_.warning("Unexpected reply to PSYNC from master: " + std::string(line));
  }
  if (introduction_.requests_failover) return Result::kDeclined;
  if (is_rdb_channel()) return Result::kFailed;
  log_.notice("Retrying with SYNC...");
  out->append("SYNC\r\n");
  return Result::kSync;
}

Handshake::Result Handshake::read_full_resync(std::string_view line) {
  take_word(&line);
  const std::string_view id = take_word(&line);
  if (!is_id(id) || !base::parse_int64(line, &offset_) || !server::is_stream_offset(offset_)) {
    log_.warning("Master replied with wrong +FULLRESYNC syntax.");
    return Result::kFailed;
  }
  id_ = id;
  log_.notice(is_rdb_channel() ? "Starting to receive RDB and replication stream in parallel."
                               : "Full resync from master: " + id_ + ":" + std::to_string(offset_));
  return Result::kFullResync;
}

Handshake::Result Handshake::read_rdb_channel(std::string_view line) {
  take_word(&line);
  main_client_id_ = take_word(&line);
  if (main_client_id_.empty()) {
    log_.warning("Master replied with wrong +RDBCHANNELSYNC syntax.");
    return Result::kFailed;
  }
  log_.notice("PSYNC is not possible, initialize RDB channel.");
  return Result::kRdbChannel;
}

Handshake::Result Handshake::read_end_offset(std::string_view line) {
  constexpr std::string_view kAnnounced = "$ENDOFF:";
  if (line.starts_with('-')) {
    log_.warning("The master refuses the RDB channel: " + std::string(line));
    return Result::kFailed;
  }
  const bool announced = line.starts_with(kAnnounced);
  line.remove_prefix(announced ? kAnnounced.size() : 0);
  const std::string_view offset = take_word(&line);
  const std::string_view id = take_word(&line);
  // -1: none was selected yet, and the stream begins with a SELECT.
  const std::string_view database = take_word(&line);
  int64_t number = 0;
  if (!announced || !base::parse_int64(offset, &offset_) || !server::is_stream_offset(offset_) ||
      !is_id(id) || !base::parse_int64(database, &number) || number < -1 || number > kMaxDatabase ||
      !base::parse_int64(line, &channel_number_) || channel_number_ <= 0) {
    log_.warning("Master replied with wrong $ENDOFF syntax.");
    return Result::kFailed;
  }
  id_ = id;
  database_ = std::max(static_cast<int>(number), 0);
  log_.notice("Full resync by an RDB channel: " + id_ + ":" + std::to_string(offset_));
  return Result::kFullResync;
}

void Handshake::join(const Handshake& channel, std::string* out) {
  introduction_.resume = Introduction::Place{channel.id_, channel.offset_ + 1};
  introduction_.requests_failover = false;
  waits_for_ = Step::kJoin;
  append_request(out, {"REPLCONF", "set-rdb-client-id", std::to_string(channel.channel_number_)});
}

Handshake::Result Handshake::read_join(std::string_view line, std::string* out) {
  if (!joined_) {
    // A master that does not know the channel any more may still have the stream.
    joined_ = true;
    if (line.starts_with('-'))
      log_.notice("The master does not know the RDB channel: " + std::string(line));
    ask(out);
    return Result::kGoesOn;
  }
  if (line.starts_with("+CONTINUE"))
    return read_continue(line) == Result::kContinue ? Result::kJoined : Result::kFailed;
  log_.warning("The master does not continue the stream beside the RDB channel: " +
               std::string(line));
  return Result::kFailed;
}

Handshake::Result Handshake::read_continue(std::string_view line) {
  if (!introduction_.resume) {
    log_.warning("The master goes on with a stream that was not asked for");
    return Result::kFailed;
  }
  take_word(&line);
  const std::string_view id = take_word(&line);
  log_.notice("Successful partial resynchronization with master.");
  id_ = is_id(id) ? std::string(id) : introduction_.resume->id;
  if (id_ != introduction_.resume->id) log_.notice("Master replication ID changed to " + id_);
  return Result::kContinue;
}

}  // namespace latchkey::replication

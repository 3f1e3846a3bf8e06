// The bytes of up to four clients, which come in pieces, late, between those of others and cut off
// in the middle. What each client is replied must be whole replies, and the same as when its bytes
// come all at once and nobody else is there.
//
// Two servers get the same streams, one whole, one in pieces. Each client has keys and channels of
// its own; only a client that is alone sends bytes that are no requests.
#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "commands/groups.h"
#include "input.h"
#include "reply_check.h"
#include "unit/server_fixture.h"

namespace {

using namespace latchkey;
using fuzz::Input;
using fuzz::require;

constexpr size_t kMaxClients = 4;

// "<key>" and "<channel>" are the client's own.
constexpr std::string_view kRequests[] = {
    "SET <key> <text>",
    "SET <key> <text> GET",
    "GET <key>",
    "GETDEL <key>",
    "APPEND <key> <text>",
    "STRLEN <key>",
    "INCR <key>",
    "MSET <key> 1 <key> 2",
    "MGET <key> <key> <key>",
    "LPUSH <key> <text> <text>",
    "RPUSH <key> <text>",
    "LPOP <key>",
    "LRANGE <key> 0 -1",
    "BLPOP <key> <key> 0",
    "BLMOVE <key> <key> LEFT RIGHT 0",
    "MULTI",
    "EXEC",
    "DISCARD",
    "WATCH <key>",
    "UNWATCH",
    "ECHO <text>",
    "PING",
    "PING <text>",
    "HELLO 2",
    "HELLO 3",
    "SUBSCRIBE <channel>",
    "UNSUBSCRIBE <channel>",
    "PUBLISH <channel> <text>",
    "SELECT 1",
    "SELECT 0",
    "RESET",
    "QUIT",
    "NOTHING <text>",
    "GET",
    "POST / HTTP/1.1",
};

// What one client sends, and how it ends.
struct Stream {
  std::string bytes;
  enum class End : uint8_t { kStays, kSendsNoMore, kFails } end = End::kStays;
};

class Streams {
 public:
  explicit Streams(Input& input) {
    streams_.resize(1 + input.byte() % kMaxClients);
    for (size_t i = 0; i < streams_.size(); ++i) streams_[i] = make(input, i);
  }
  const std::vector<Stream>& all() const { return streams_; }

 private:
  static constexpr size_t kMaxRequests = 48;

  Stream make(Input& input, size_t client) const {
    Stream stream;
    const size_t count = input.byte() % kMaxRequests;
    for (size_t i = 0; i < count; ++i) add_request(input, client, &stream.bytes);
    const uint8_t choice = input.byte();
    if (choice >= 128) stream.end = static_cast<Stream::End>(choice % 3);
    if (choice >= 192 && !stream.bytes.empty())
      stream.bytes.resize(stream.bytes.size() - input.byte() % stream.bytes.size());
    return stream;
  }

  void add_request(Input& input, size_t client, std::string* bytes) const {
    const uint8_t form = input.byte();
    if (streams_.size() == 1 && form >= 224) return add_raw(input, bytes);
    std::vector<std::string> words;
    std::string_view shape = kRequests[input.byte() % std::size(kRequests)];
    while (!shape.empty()) {
      const std::string_view part = shape.substr(0, shape.find(' '));
      shape.remove_prefix(std::min(part.size() + 1, shape.size()));
      words.push_back(word(input, client, part));
    }
    if (form % 4 == 0) return add_inline(words, bytes);
    *bytes += "*" + std::to_string(words.size()) + "\r\n";
    for (const std::string& text : words)
      bytes->append("$" + std::to_string(text.size()) + "\r\n").append(text).append("\r\n");
  }

  static void add_inline(const std::vector<std::string>& words, std::string* bytes) {
    for (const std::string& text : words) {
      constexpr char kDigits[] = "0123456789abcdef";
      *bytes += '"';
      for (const unsigned char byte : text)
        bytes->append("\\x").append({kDigits[byte >> 4], kDigits[byte & 15]});
      *bytes += "\" ";
    }
    *bytes += "\r\n";
  }

  static void add_raw(Input& input, std::string* bytes) {
    constexpr size_t kMaxBytes = 32;
    for (size_t left = input.byte() % kMaxBytes; left > 0; --left)
      *bytes += static_cast<char>(input.byte());
  }

  static std::string word(Input& input, size_t client, std::string_view part) {
    const char name = static_cast<char>('a' + client);
    if (part == "<key>") return {name, static_cast<char>('0' + input.byte() % 3)};
    if (part == "<channel>") return {'#', name};
    if (part == "<text>") return input.text();
    return std::string(part);
  }

  std::vector<Stream> streams_;
};

// What a client was sent.
struct Replies {
  std::string text;
  // The server has hung up without sending what was left.
  bool was_dropped = false;
};

// One end of a client's connection.
class Peer {
 public:
  explicit Peer(tests::ServerFixture& server)
      : server_(server), client_(server), id_(client_->id) {}

  void send(std::string_view bytes) {
    kept_ += bytes;
    go_on();
  }
  // Offers what is kept again, as a connection does.
  void go_on() {
    while (is_there() && !kept_.empty() && !is_blocked()) {
      // Of its own size, so that whoever reads behind its end is found.
      const auto offered = std::make_unique<char[]>(kept_.size());
      std::copy(kept_.begin(), kept_.end(), offered.get());
      const size_t consumed = client_->on_input({offered.get(), kept_.size()});
      require(consumed <= kept_.size());
      kept_.erase(0, consumed);
      replies_.was_dropped = !is_there();
      flush();
      if (consumed == 0) return;
    }
  }
  void end(Stream::End how) {
    if (!is_there() || how == Stream::End::kStays) return;
    how == Stream::End::kFails ? client_->on_disconnect() : client_->on_end_of_input();
    flush();
  }
  bool is_blocked() { return client_->has(server::kClientBlocked); }
  bool is_there() const { return server_.server.clients().find(id_) != nullptr; }
  void time_out() {
    client_->unblock(server::BlockEnd::kTimeout);
    go_on();
    flush();
  }
  void close() {
    if (is_there()) client_->close();
  }
  // What others' requests have had sent to it is here as well.
  void flush() {
    if (!is_there()) return;
    replies_.text += client_.take_output();
    client_->on_flushed();
  }
  const Replies& replies() const { return replies_; }

 private:
  tests::ServerFixture& server_;
  tests::TestClient client_;
  uint64_t id_;
  std::string kept_;
  Replies replies_;
};

class World {
 public:
  World()
      : server_({commands::string_rows(), commands::string_range_rows(),
                 commands::string_batch_rows(), commands::counter_rows(), commands::list_rows(),
                 commands::list_wait_rows(), commands::transaction_rows(), commands::pubsub_rows(),
                 commands::connection_rows(), commands::database_rows()}) {}

  void begin(size_t count) {
    tests::TestClient cleaner(server_);
    cleaner.run("FLUSHALL");
    cleaner->close();
    peers_.clear();
    for (size_t i = 0; i < count; ++i) peers_.push_back(std::make_unique<Peer>(server_));
  }
  Peer& peer(size_t index) { return *peers_[index]; }

  // Ends what there is to end, and gives what each client was replied.
  std::vector<Replies> finish(const std::vector<Stream>& streams) {
    for (size_t i = 0; i < peers_.size(); ++i) peers_[i]->end(streams[i].end);
    for (const auto& peer : peers_) {
      while (peer->is_there() && peer->is_blocked()) peer->time_out();
    }
    std::vector<Replies> replies;
    for (const auto& peer : peers_) {
      peer->flush();
      require(fuzz::ReplyCheck(peer->replies().text).count().has_value());
      replies.push_back(peer->replies());
      peer->close();
    }
    turn_ends();
    require(server_.server.clients().size() == 0);
    require(server_.server.clients().blocked() == 0);
    return replies;
  }
  void turn_ends() { server_.tick(); }

 private:
  tests::ServerFixture server_;
  std::vector<std::unique_ptr<Peer>> peers_;
};

std::vector<Replies> run_whole(World& world, const std::vector<Stream>& streams) {
  world.begin(streams.size());
  for (size_t i = 0; i < streams.size(); ++i) world.peer(i).send(streams[i].bytes);
  return world.finish(streams);
}

std::vector<Replies> run_in_pieces(World& world, const std::vector<Stream>& streams, Input& input) {
  world.begin(streams.size());
  std::vector<std::string_view> left;
  for (const Stream& stream : streams) left.push_back(stream.bytes);
  const auto is_over = [&] {
    return std::all_of(left.begin(), left.end(), [](auto bytes) { return bytes.empty(); });
  };
  while (!is_over()) {
    const uint8_t choice = input.byte();
    size_t who = choice % left.size();
    while (left[who].empty()) who = (who + 1) % left.size();
    const uint8_t length = input.byte();
    const size_t size = length == 0 ? left[who].size() : std::min<size_t>(length, left[who].size());
    world.peer(who).send(left[who].substr(0, size));
    left[who].remove_prefix(size);
    if (choice >= 192) world.turn_ends();
  }
  return world.finish(streams);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kLongestInput = 4'096;
  if (size > kLongestInput) return 0;
  static World whole;
  static World pieces;
  Input input(data, size);
  const Streams streams(input);
  const auto expected = run_whole(whole, streams.all());
  const auto got = run_in_pieces(pieces, streams.all(), input);
  for (size_t i = 0; i < got.size(); ++i) {
    require(got[i].was_dropped == expected[i].was_dropped);
    // What comes in pieces may have been replied to before the piece that had the client dropped.
    require(got[i].was_dropped ? got[i].text.starts_with(expected[i].text)
                               : got[i].text == expected[i].text);
  }
  return 0;
}

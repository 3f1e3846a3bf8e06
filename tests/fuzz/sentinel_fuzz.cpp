// What a Sentinel hears that no server and no Sentinel has sent: replies, INFO, hello messages.
// What can be read must say the same when it is written and read again; and a Sentinel that hears
// anything at all fails nobody over without the answers of others.
#include <string>
#include <string_view>
#include <vector>

#include "input.h"
#include "sentinel/directives.h"
#include "sentinel/sentinel.h"
#include "server/config/config_parse.h"

namespace {

using namespace latchkey;
using fuzz::Input;
using fuzz::require;

// Connections that are never made: what is sent is counted.
struct SilentHost final : sentinel::Host, sentinel::Network {
  struct Silence final : sentinel::Channel {
    explicit Silence(SilentHost* of) : host(of) {}
    void send(std::span<const std::string_view> words) override {
      host->orders += !words.empty() && words[0] == "SLAVEOF" ? 1 : 0;
    }
    std::string local_ip() override { return "127.0.0.1"; }
    SilentHost* host;
  };

  int64_t time_ms = 1'700'000'000'000;
  size_t orders = 0;

  int64_t now_ms() override { return time_ms; }
  uint64_t random_below(uint64_t) override { return 0; }
  sentinel::Network& network() override { return *this; }
  int port() override { return 26379; }
  std::string password() override { return {}; }
  std::string resolve(const std::string&) override { return {}; }
  void log(base::LogLevel, std::string_view) override {}
  void publish(std::string_view, std::string_view) override {}
  bool save() override { return true; }
  void run_script(std::vector<std::string>) override {}
  void crash() override {}
  std::unique_ptr<sentinel::Channel> open(const sentinel::Address&,
                                          sentinel::Channel::Listener&) override {
    return std::make_unique<Silence>(this);
  }
};

void read_reply(std::string_view bytes) {
  sentinel::Reply reply;
  size_t used = 0;
  size_t wanted = 0;
  const sentinel::Parse result = sentinel::parse_reply(bytes, &reply, &used, &wanted);
  require(result != sentinel::Parse::kDone || (used > 0 && used <= bytes.size()));
  require(result != sentinel::Parse::kIncomplete || wanted == 0 || wanted > bytes.size());
}

void read_hello(std::string_view text) {
  const auto hello = sentinel::parse_hello(text);
  if (!hello) return;
  const std::string written = sentinel::format_hello(*hello);
  const auto again = sentinel::parse_hello(written);
  require(again.has_value());
  require(sentinel::format_hello(*again) == written);
}

// The lines of the input are INFO of the master, INFO of its replica, and hello messages.
void hear(std::string_view text) {
  SilentHost host;
  sentinel::Sentinel heard(host);
  heard.set_id(std::string(40, 'a'));
  sentinel::Master& master =
      heard.add_master("m", heard.make_address("10.0.0.1", 6379), /*quorum=*/2);
  heard.add_replica(master, heard.make_address("10.0.0.2", 6379));
  heard.tick();
  while (!text.empty()) {
    const size_t end = std::min(text.find('\0'), text.size());
    const std::string piece(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (piece.empty()) continue;
    const std::string rest = piece.substr(1);
    if (piece[0] == 'm') heard.discovery().process_info(master, rest);
    if (piece[0] == 'r' && !master.replicas.empty())
      heard.discovery().process_info(*master.replicas.begin()->second, rest);
    if (piece[0] == 'h') heard.discovery().process_hello(rest);
    host.time_ms += 1000;
    heard.tick();
    master.link->last_available_ms = host.time_ms;
    master.link->unanswered_ping_ms = 0;
  }
  require(!master.has(sentinel::kFailover));
  // What was learned can be kept.
  std::vector<server::DeferredDirective> directives;
  for (const std::string& line : sentinel::directive_lines(heard)) {
    auto words = server::split_arguments(line);
    require(words.has_value());
    words->erase(words->begin());
    directives.push_back({std::move(*words), 1, line});
  }
  sentinel::Sentinel again(host);
  require(bool{sentinel::apply_directives(directives, &again)});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kLongestInput = 16'384;
  if (size == 0 || size > kLongestInput) return 0;
  Input input(data, size);
  switch (input.byte() % 3) {
    case 0:
      read_reply(input.rest());
      break;
    case 1:
      read_hello(input.rest());
      break;
    default:
      hear(input.rest());
  }
  return 0;
}

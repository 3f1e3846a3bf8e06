// Requests and the reference's replies to them.
//
// The files beside this one are conversations; scripts/conversations has the reference write the
// replies. A file is parts, each with an empty server of its own:
//
//     # A key's value can be cut
//     with maxmemory-policy allkeys-lfu      a directive of the server, before the first request
//     with sentinel                          the server is a Sentinel
//     > SET key "a \"value\" \x00"           a request of client 1
//         +OK|                               its reply: | ends a line, \xNN is what is not
//         printable
//     2~ SMEMBERS set                        one of client 2, whose reply has no order
//         *2|$1|a|$1|b|
//     . TIME                                 one whose reply is not compared
//     2>                                     what client 2 has been sent since
//         *3|$7|message|$1|c|$1|m|
//     wait 100                               milliseconds pass
//
// Who gets no reply waits for it half a second, here of virtual time: a request without one blocks.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "composition/whole_server.h"
#include "unit/catch.h"
#include "unit/required.h"
#include "unit/server_fixture.h"
#include "unit/temporary_directory.h"

namespace latchkey::tests {

namespace {

using composition::WholeServer;

constexpr std::string_view kReplyIndent = "    ";

int hex_digit(char digit) {
  return digit <= '9' ? digit - '0' : digit - 'a' + 10;
}

// One word of a request, from `*at` on; steps over it.
std::string read_word(std::string_view line, size_t* at) {
  const bool quoted = line[*at] == '"';
  if (quoted) ++*at;
  std::string word;
  for (; *at < line.size() && line[*at] != (quoted ? '"' : ' '); ++*at) {
    if (!quoted || line[*at] != '\\') {
      word += line[*at];
      continue;
    }
    switch (line[++*at]) {
      case 'x':
        word += static_cast<char>(hex_digit(line[*at + 1]) * 16 + hex_digit(line[*at + 2]));
        *at += 2;
        break;
      case 'n':
        word += '\n';
        break;
      case 'r':
        word += '\r';
        break;
      case 't':
        word += '\t';
        break;
      default:
        word += line[*at];
    }
  }
  if (quoted) ++*at;
  return word;
}

std::vector<std::string> read_words(std::string_view line) {
  std::vector<std::string> words;
  for (size_t at = 0; at < line.size();) {
    if (line[at] == ' ')
      ++at;
    else
      words.push_back(read_word(line, &at));
  }
  return words;
}

std::string shown(std::string_view reply) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (size_t at = 0; at < reply.size(); ++at) {
    const auto byte = static_cast<unsigned char>(reply[at]);
    if (reply.substr(at, 2) == "\r\n") {
      text += '|';
      ++at;
    } else if (byte >= ' ' && byte < 127 && byte != '|' && byte != '\\') {
      text += reply[at];
    } else {
      text.append("\\x") += kDigits[byte / 16];
      text += kDigits[byte % 16];
    }
  }
  return text;
}

// The lines of a reply, sorted.
std::vector<std::string> without_order(std::string_view reply) {
  std::vector<std::string> lines;
  while (!reply.empty()) {
    const size_t end = std::min(reply.find('|'), reply.size() - 1) + 1;
    lines.emplace_back(reply.substr(0, end));
    reply.remove_prefix(end);
  }
  std::ranges::sort(lines);
  return lines;
}

// One part of a file, with its server.
class Part {
 public:
  Part() { log_.set_level(base::LogLevel::kNothing); }

  void set(std::string_view directive) {
    if (directive == "sentinel")
      sentinel_ = true;
    else
      settings_.append(directive) += '\n';
  }
  void wait(int64_t ms) {
    clock_.advance_ms(ms);
    if (whole_ == nullptr) return;
    whole_->server().refresh_clock();
    whole_->server().tick();
  }
  std::string ask(int number, std::string_view line) {
    begin();
    auto& client = clients_[number];
    if (client == nullptr) client = std::make_unique<TestClient>(whole_->server());
    const std::vector<std::string> words = read_words(line);
    std::string request;
    if (!words.empty()) request = "*" + std::to_string(words.size()) + "\r\n";
    for (const std::string& word : words) request += bulk(word);
    std::string reply = client->send(request);
    constexpr int64_t kStepMs = 10;
    constexpr int64_t kPatienceMs = 500;
    for (int64_t passed = 0; passed < kPatienceMs && reply.empty(); passed += kStepMs) {
      wait(kStepMs);
      reply = client->take_output();
    }
    return shown(reply);
  }

 private:
  void begin() {
    if (whole_ != nullptr) return;
    if (sentinel_) return begin_sentinel();
    whole_ = required(
        WholeServer::make_space(directory_.setting() + "enable-debug-command yes\n" + settings_,
                                {.clock = clock_, .log = log_, .loop = &loop_}));
  }

  void begin_sentinel() {
    constexpr char kFile[] = "sentinel.conf";
    directory_.write(kFile, "");
    auto config = std::make_unique<server::Config>(std::make_unique<server::PrivateDirectory>(),
                                                   base::disk());
    config->be_sentinel();
    REQUIRE(config->load(directory_.path() / kFile, directory_.setting()));
    whole_ = required(WholeServer::make(std::move(config), {.clock = clock_, .log = log_}));
  }

  TemporaryDirectory directory_;
  base::VirtualClock clock_;
  base::Logger log_;
  net::Loop loop_;
  std::string settings_;
  bool sentinel_ = false;
  std::unique_ptr<WholeServer> whole_;
  std::map<int, std::unique_ptr<TestClient>> clients_;
};

class Conversation {
 public:
  explicit Conversation(const std::filesystem::path& path) : file_(path) {
    REQUIRE(file_.is_open());
  }

  void play() {
    for (std::string line; std::getline(file_, line);) {
      if (line.starts_with("#")) {
        title_ = line;
        part_ = std::make_unique<Part>();
      } else if (line.starts_with("with ")) {
        part_->set(std::string_view(line).substr(5));
      } else if (line.starts_with("wait ")) {
        part_->wait(std::stoll(line.substr(5)));
      } else if (line.starts_with(kReplyIndent)) {
        compare(line.substr(kReplyIndent.size()));
      } else if (const size_t mark = line.find_first_of(">~."); mark <= 1) {
        request_ = line;
        has_order_ = line[mark] == '>';
        reply_ = part_->ask(mark == 0 ? 1 : line[0] - '0', std::string_view(line).substr(mark + 1));
      }
    }
  }

 private:
  void compare(const std::string& expected) {
    if (reply_ == expected) return;
    if (!has_order_ && without_order(reply_) == without_order(expected)) return;
    INFO(title_);
    INFO(request_);
    CHECK(reply_ == expected);
  }

  std::ifstream file_;
  std::unique_ptr<Part> part_;
  std::string title_;
  std::string request_;
  std::string reply_;
  bool has_order_ = true;
};

}  // namespace

TEST_CASE("What the reference replies to a request is what this server replies",
          "[conversations]") {
  const std::filesystem::path directory = LATCHKEY_SOURCE_ROOT "/tests/unit/conversations";
  size_t count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (entry.path().extension() != ".txt") continue;
    INFO(entry.path().filename().string());
    Conversation(entry.path()).play();
    ++count;
  }
  CHECK(count > 0);
}

}  // namespace latchkey::tests

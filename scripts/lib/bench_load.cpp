// The load of scripts/bench: sends one command over and over, through several connections, and
// prints how often, operations per second and the 99th percentile of the latencies in milliseconds.
//
//     load PORT CLIENTS PIPELINE OPERATIONS KEYS [-x 'REQUEST']... -- WORD...
//
// Each connection sends PIPELINE requests at once, and the next ones when all are answered; so the
// last ones may be more than OPERATIONS asks for. In each request every __rand_int__ is replaced by
// twelve digits, a random number below KEYS; the numbers are the same in each run. What follows -x
// is sent first by each connection, as a line. Latency is the time from the first request of a
// batch to the last reply of it. An error reply ends the load with its text.
//
// It does little more than the system calls, so that a server on another core has always
// something to do: then its time on the core is what the work costs, and not what going to sleep
// and waking up costs, which is more for a server that is faster than its load.

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

constexpr std::string_view kPlaceholder = "__rand_int__";

struct Options {
  uint16_t port = 0;
  size_t clients = 0;
  size_t pipeline = 0;
  size_t operations = 0;
  uint64_t keys = 0;
  std::vector<std::string> first;
  std::vector<std::string> words;
};

[[noreturn]] void fail_with_errno(const char* what) {
  throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}

// Counts the replies in a stream of RESP2 or RESP3. Messages that answer nothing do not count.
class ReplyCounter {
 public:
  // Returns how many replies have become complete.
  size_t feed(std::string_view bytes) {
    size_t complete = 0;
    while (!bytes.empty()) {
      if (to_skip_ > 0) {
        const size_t skipped = std::min(to_skip_, bytes.size());
        bytes.remove_prefix(skipped);
        to_skip_ -= skipped;
        if (to_skip_ == 0) complete += end_value();
        continue;
      }
      const size_t end = bytes.find('\n');
      if (end == std::string_view::npos) {
        begun_line_.append(bytes);
        break;
      }
      if (begun_line_.empty()) {
        complete += read_line(bytes.substr(0, end));
      } else {
        begun_line_.append(bytes.substr(0, end));
        complete += read_line(begun_line_);
        begun_line_.clear();
      }
      bytes.remove_prefix(end + 1);
    }
    return complete;
  }

 private:
  // A line without its LF.
  size_t read_line(std::string_view line) {
    const char type = line.empty() ? '\0' : line.front();
    const bool is_message = type == '>' && lacking_ == 1;
    if (is_message) answers_ = false;
    switch (type) {
      case '$':
      case '=':
      case '!': {
        const int64_t size = number_in(line);
        if (size < 0) return end_value();
        to_skip_ = static_cast<size_t>(size) + 2;
        return 0;
      }
      case '*':
      case '~':
      case '>':
      case '%': {
        const int64_t count = number_in(line) * (type == '%' ? 2 : 1);
        if (count <= 0) return end_value();
        lacking_ += static_cast<size_t>(count) - 1;
        return 0;
      }
      case '-':
        throw std::runtime_error(std::string(line));
      default:
        return end_value();
    }
  }

  static int64_t number_in(std::string_view line) {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(line.data() + 1, line.data() + line.size(), number);
    if (error != std::errc()) throw std::runtime_error("not RESP: " + std::string(line));
    return number;
  }

  size_t end_value() {
    if (--lacking_ > 0) return 0;
    lacking_ = 1;
    return std::exchange(answers_, true) ? 1 : 0;
  }

  size_t lacking_ = 1;   // values that the reply still lacks
  size_t to_skip_ = 0;   // bytes of a string, with the line break behind it
  bool answers_ = true;  // whether what is being read answers a request
  std::string begun_line_;
};

// The requests of one batch, as they go over the wire, and where random digits belong.
class Batch {
 public:
  Batch(const std::vector<std::string>& words, size_t pipeline) {
    std::string request = "*" + std::to_string(words.size()) + "\r\n";
    for (const std::string& word : words)
      request += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
    for (size_t place = 0; place < pipeline; ++place) bytes_ += request;
    for (size_t at = bytes_.find(kPlaceholder); at != std::string::npos;
         at = bytes_.find(kPlaceholder, at + kPlaceholder.size()))
      places_.push_back(at);
  }

  // With other numbers than before.
  std::string_view next(uint64_t keys) {
    for (const size_t place : places_) write_digits(bytes_.data() + place, random() % keys);
    return bytes_;
  }

 private:
  // Marsaglia, "Xorshift RNGs", Journal of Statistical Software 8 (2003).
  static uint64_t random() {
    static uint64_t state = 88172645463325252;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
  }

  static void write_digits(char* to, uint64_t number) {
    for (size_t place = kPlaceholder.size(); place-- > 0; number /= 10)
      to[place] = static_cast<char>('0' + number % 10);
  }

  std::string bytes_;
  std::vector<size_t> places_;
};

class Client {
 public:
  explicit Client(uint16_t port) : descriptor_(socket(AF_INET, SOCK_STREAM, 0)) {
    if (descriptor_ < 0) fail_with_errno("socket");
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      fail_with_errno("connect");
    const int on = 1;
    setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  ~Client() { close(descriptor_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  int descriptor() const { return descriptor_; }

  void send(std::string_view bytes, size_t requests) {
    unanswered_ += requests;
    sent_ = std::chrono::steady_clock::now();
    while (!bytes.empty()) {
      const ssize_t written = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (written < 0) fail_with_errno("send");
      bytes.remove_prefix(static_cast<size_t>(written));
    }
  }

  // Reads once. Returns whether all requests are answered now.
  bool receive() {
    static char buffer[1 << 18];
    const ssize_t size = recv(descriptor_, buffer, sizeof buffer, 0);
    if (size < 0) fail_with_errno("recv");
    if (size == 0) throw std::runtime_error("the server has closed the connection");
    const size_t answered = replies_.feed({buffer, static_cast<size_t>(size)});
    unanswered_ -= answered;
    return answered > 0 && unanswered_ == 0;
  }

  void ask(std::string_view line) {
    send(std::string(line) + "\r\n", 1);
    while (!receive()) {
    }
  }

  double waited_ms() const {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - sent_)
        .count();
  }

 private:
  int descriptor_;
  ReplyCounter replies_;
  size_t unanswered_ = 0;
  std::chrono::steady_clock::time_point sent_;
};

void run(const Options& options) {
  constexpr size_t kEventsAtOnce = 512;
  const int poll = epoll_create1(0);
  if (poll < 0) fail_with_errno("epoll_create1");
  std::vector<std::unique_ptr<Client>> clients;
  for (size_t place = 0; place < options.clients; ++place) {
    Client& client = *clients.emplace_back(std::make_unique<Client>(options.port));
    for (const std::string& line : options.first) client.ask(line);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = &client;
    if (epoll_ctl(poll, EPOLL_CTL_ADD, client.descriptor(), &event) != 0)
      fail_with_errno("epoll_ctl");
  }

  Batch batch(options.words, options.pipeline);
  const size_t batches = (options.operations + options.pipeline - 1) / options.pipeline;
  std::vector<double> latencies_ms;
  latencies_ms.reserve(batches);
  const auto started = std::chrono::steady_clock::now();
  size_t sent = 0;
  for (; sent < std::min(batches, clients.size()); ++sent)
    clients[sent]->send(batch.next(options.keys), options.pipeline);
  epoll_event events[kEventsAtOnce];
  while (latencies_ms.size() < batches) {
    const int ready = epoll_wait(poll, events, kEventsAtOnce, -1);
    if (ready < 0 && errno != EINTR) fail_with_errno("epoll_wait");
    for (int place = 0; place < ready; ++place) {
      Client& client = *static_cast<Client*>(events[place].data.ptr);
      if (!client.receive()) continue;
      latencies_ms.push_back(client.waited_ms());
      if (sent == batches) continue;
      client.send(batch.next(options.keys), options.pipeline);
      ++sent;
    }
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  const auto at_99 = latencies_ms.begin() + static_cast<ptrdiff_t>(batches * 99 / 100);
  std::nth_element(latencies_ms.begin(), at_99, latencies_ms.end());
  const size_t operations = batches * options.pipeline;
  std::printf("%zu %.1f %.4f\n", operations, static_cast<double>(operations) / seconds, *at_99);
  close(poll);
}

uint64_t number(const char* word, uint64_t most) {
  const std::string_view text = word;
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value == 0 || value > most)
    throw std::runtime_error("not a number from 1 to " + std::to_string(most) + ": " + word);
  return value;
}

Options options_of(int count, char** words) {
  constexpr int kNumbers = 5;
  constexpr uint64_t kMost = 1'000'000'000;
  if (count < kNumbers + 3) throw std::runtime_error("too few words");
  Options options;
  options.port = static_cast<uint16_t>(number(words[1], UINT16_MAX));
  options.clients = number(words[2], kMost);
  options.pipeline = number(words[3], kMost);
  options.operations = number(words[4], kMost);
  options.keys = number(words[5], kMost);
  int at = kNumbers + 1;
  for (; at + 1 < count && std::string_view(words[at]) == "-x"; at += 2)
    options.first.emplace_back(words[at + 1]);
  if (at + 1 >= count || std::string_view(words[at]) != "--")
    throw std::runtime_error("no -- before a command");
  options.words.assign(words + at + 1, words + count);
  return options;
}

// As many descriptors as may be.
void raise_limit_of_descriptors() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

int main(int count, char** words) {
  try {
    raise_limit_of_descriptors();
    run(options_of(count, words));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

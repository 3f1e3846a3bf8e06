#include "script/debug_console.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/file.h"

namespace latchkey::script {

namespace {

constexpr size_t kLongestCommand = 1024 * 1024;
constexpr size_t kReadSize = 4096;

}  // namespace

DebugConsole::DebugConsole(int socket) : socket_(socket), flags_(fcntl(socket, F_GETFL)) {
  fcntl(socket_, F_SETFL, flags_ & ~O_NONBLOCK);
}

DebugConsole::~DebugConsole() {
  fcntl(socket_, F_SETFL, flags_);
}

DebugConsole::Input DebugConsole::read(std::vector<std::string_view>* words) {
  input_.erase(input_.begin(),
               input_.begin() + static_cast<ptrdiff_t>(std::exchange(consumed_, 0)));
  for (;;) {
    words->clear();
    if (!input_.empty() && input_.front() != '*') return Input::kMalformed;
    const auto status =
        parser_.parse(input_, {.max_bulk_size = kLongestCommand}, *words, &consumed_);
    if (status == resp::RequestParser::Status::kError) return Input::kMalformed;
    if (status == resp::RequestParser::Status::kRequest) return Input::kCommand;
    if (input_.size() > kLongestCommand) return Input::kMalformed;
    const size_t size = input_.size();
    input_.resize(size + kReadSize);
    ssize_t count = 0;
    do count = ::read(socket_, input_.data() + size, kReadSize);
    while (count < 0 && errno == EINTR);
    input_.resize(size + static_cast<size_t>(std::max<ssize_t>(count, 0)));
    if (count <= 0) return Input::kGone;
  }
}

void DebugConsole::say(std::string line) {
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\r' || c == '\n'; }, ' ');
  lines_.push_back(std::move(line));
}

void DebugConsole::say_at_length(std::string line) {
  if (longest_ == 0 || line.size() <= longest_) return say(std::move(line));
  line.resize(longest_);
  say(line + " ...");
  if (std::exchange(hint_given_, true)) return;
  say("<hint> The above reply was trimmed. Use 'maxlen 0' to disable trimming.");
}

void DebugConsole::send() {
  std::string text = "*" + std::to_string(lines_.size()) + "\r\n";
  for (const std::string& line : lines_) text.append("+").append(line).append("\r\n");
  lines_.clear();
  // A lost connection is found by the next read().
  base::write_all(socket_, text);
}

}  // namespace latchkey::script

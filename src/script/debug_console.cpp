#include "script/debug_console.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/file.h"
#include "resp/output_buffer.h"

namespace latchkey::script {

namespace {

constexpr size_t kLongestCommand = 1024 * 1024;
constexpr size_t kReadSize = 4096;

// Takes the bytes out of the buffer; stops when `write` returns false, and then returns false.
template <typename Write>
bool write_all_of(resp::OutputBuffer& bytes, Write write) {
  struct Piece {
    char* data;
    size_t size;
  };
  for (Piece piece; bytes.gather(&piece, 1) != 0; bytes.take(piece.size)) {
    if (!write({piece.data, piece.size})) return false;
  }
  return true;
}

}  // namespace

DebugConsole::DebugConsole(int socket, net::TransportLayer* layer)
    : socket_(socket), layer_(layer), flags_(fcntl(socket, F_GETFL)) {
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
    const ptrdiff_t count = receive(input_.data() + size, kReadSize);
    input_.resize(size + static_cast<size_t>(std::max<ptrdiff_t>(count, 0)));
    if (count <= 0) return Input::kGone;
  }
}

ptrdiff_t DebugConsole::receive(char* room, size_t size) {
  char wire[kReadSize];
  for (;;) {
    if (layer_ != nullptr) {
      const size_t plain = layer_->read(room, size);
      if (plain > 0) return static_cast<ptrdiff_t>(plain);
      // The layer may have an answer of its own.
      if (layer_->state() != net::TransportLayer::State::kOpen || !send_wire()) return 0;
    }
    ssize_t count = 0;
    do
      count =
          ::read(socket_, layer_ != nullptr ? wire : room, layer_ != nullptr ? kReadSize : size);
    while (count < 0 && errno == EINTR);
    if (layer_ == nullptr || count <= 0) return count;
    layer_->receive({wire, static_cast<size_t>(count)});
  }
}

bool DebugConsole::send_wire() {
  return write_all_of(layer_->wire(),
                      [this](std::string_view bytes) { return base::write_all(socket_, bytes); });
}

bool DebugConsole::write(resp::OutputBuffer& bytes) {
  return write_all_of(bytes, [this](std::string_view piece) { return write(piece); });
}

bool DebugConsole::write(std::string_view bytes) {
  if (layer_ == nullptr) return base::write_all(socket_, bytes);
  if (layer_->state() != net::TransportLayer::State::kOpen) return false;
  layer_->write(bytes);
  return send_wire();
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
  write(text);
}

}  // namespace latchkey::script

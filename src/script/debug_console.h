// A debugger's line to its user: the socket of the client whose script is debugged.
//
// The user sends commands as RESP arrays, and gets lines as arrays of status replies. While there
// is a console its owner waits for the user, whatever happens to others; so the socket blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "resp/request_parser.h"

namespace latchkey::script {

class DebugConsole {
 public:
  // Makes the socket wait, until the console goes.
  explicit DebugConsole(int socket);
  ~DebugConsole();
  DebugConsole(const DebugConsole&) = delete;
  DebugConsole& operator=(const DebugConsole&) = delete;

  enum class Input : uint8_t {
    kCommand,
    kMalformed,  // what came is no command
    kGone,       // the user has left
  };
  // Waits for the next command. Its words are valid until the next call.
  Input read(std::vector<std::string_view>* words);

  // Lines go when send() is called. Line ends within become spaces.
  void say(std::string line);
  // The same for a line of any length, which is cut short when it has more bytes than longest().
  void say_at_length(std::string line);
  void send();

  // 0: lines may be of any length.
  size_t longest() const { return longest_; }
  void set_longest(size_t bytes) { longest_ = bytes; }

 private:
  static constexpr size_t kLongest = 256;

  int socket_;
  int flags_;  // of the socket before
  resp::RequestParser parser_;
  std::vector<char> input_;
  size_t consumed_ = 0;  // of input_, by the command that was read last
  std::vector<std::string> lines_;
  size_t longest_ = kLongest;
  bool hint_given_ = false;
};

}  // namespace latchkey::script

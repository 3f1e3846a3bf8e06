// The connection of a script debugger to its user: the socket of the client whose script is
// debugged, and with TLS the layer before it.
//
// The user sends commands as RESP arrays and receives lines as arrays of status replies. The socket
// is blocking: the process waits for the user.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "net/transport_layer.h"
#include "resp/request_parser.h"

namespace latchkey::script {

class DebugConsole {
 public:
  // Makes the socket blocking until the console is destroyed. `layer`: what encrypts; null for
  // none. What it has to send is sent with the first line.
  DebugConsole(int socket, net::TransportLayer* layer);
  ~DebugConsole();
  DebugConsole(const DebugConsole&) = delete;
  DebugConsole& operator=(const DebugConsole&) = delete;

  enum class Input : uint8_t {
    kCommand,
    kMalformed,  // the input is not a command
    kGone,       // the user has disconnected
  };
  // Waits for the next command. Its words are valid until the next call.
  Input read(std::vector<std::string_view>* words);

  // Queues a line until send(). Line ends within become spaces.
  void say(std::string line);
  // The same for a line of any length, which is cut after longest() bytes.
  void say_at_length(std::string line);
  void send();
  // Sends bytes as they are. False when the connection is lost, which the next read() finds too.
  bool write(std::string_view bytes);
  // Sends what is in the buffer, and takes it out.
  bool write(resp::OutputBuffer& bytes);

  // 0: lines may be of any length.
  size_t longest() const { return longest_; }
  void set_longest(size_t bytes) { longest_ = bytes; }

 private:
  static constexpr size_t kLongest = 256;

  // Waits for bytes of the user. 0 or less: there will be no more.
  ptrdiff_t receive(char* room, size_t size);
  bool send_wire();

  int socket_;
  net::TransportLayer* layer_;
  int flags_;  // the socket's flags before
  resp::RequestParser parser_;
  std::vector<char> input_;
  size_t consumed_ = 0;  // bytes of input_ taken by the last command
  std::vector<std::string> lines_;
  size_t longest_ = kLongest;
  bool hint_given_ = false;
};

}  // namespace latchkey::script

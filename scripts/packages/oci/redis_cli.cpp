// The container's redis-cli: sends one command and prints its reply as redis-cli does where
// standard output is no terminal. It is there for healthchecks and scripts of people's compose
// files (`redis-cli ping`), not for a conversation.
//
//   redis-cli [-h HOST] [-p PORT] [-s SOCKET] [--user USER] [-a PASSWORD] [-n DATABASE] [-e]
//   COMMAND ARGUMENT...
//
// The environment variable REDISCLI_AUTH has the password where -a does not. Exit status 1 without
// a connection, and with -e for a reply that is an error.
#include <netdb.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace {

struct Options {
  std::string host = "127.0.0.1";
  std::string port = "6379";
  std::string socket;
  std::string user;
  std::string password;
  std::string database;
  bool error_is_failure = false;
  std::vector<std::string> command;
};

[[noreturn]] void fail(const std::string& sentence) {
  fprintf(stderr, "%s\n", sentence.c_str());
  exit(1);
}

Options read_options(int argc, char** argv) {
  Options options;
  if (const char* password = getenv("REDISCLI_AUTH")) options.password = password;
  int i = 1;
  for (; i < argc && argv[i][0] == '-'; ++i) {
    const std::string_view option = argv[i];
    std::string* value = nullptr;
    if (option == "-h") value = &options.host;
    if (option == "-p") value = &options.port;
    if (option == "-s") value = &options.socket;
    if (option == "-n") value = &options.database;
    if (option == "--user") value = &options.user;
    if (option == "-a" || option == "--pass") value = &options.password;
    if (value != nullptr && i + 1 < argc) {
      *value = argv[++i];
    } else if (option == "-e") {
      options.error_is_failure = true;
    } else if (option != "--raw" && option != "--no-auth-warning") {  // both are how this one is
      fail("redis-cli: option " + std::string(option) +
           " is not there in this container; use a redis-cli of another machine");
    }
  }
  options.command.assign(argv + i, argv + argc);
  if (options.command.empty())
    fail(
        "redis-cli: this container's sends one command, as in `redis-cli ping`; for a conversation "
        "use one of another machine");
  return options;
}

int connect_socket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) fail("redis-cli: the path of the socket is too long");
  memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    fail("Could not connect to Redis at " + path + ": " + strerror(errno));
  return descriptor;
}

int connect_host(const std::string& host, const std::string& port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int status = getaddrinfo(host.c_str(), port.c_str(), &hints, &found); status != 0)
    fail("Could not connect to Redis at " + host + ":" + port + ": " + gai_strerror(status));
  int error = 0;
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
    const int descriptor = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor >= 0 && connect(descriptor, address->ai_addr, address->ai_addrlen) == 0)
      return descriptor;
    error = errno;
    if (descriptor >= 0) close(descriptor);
  }
  fail("Could not connect to Redis at " + host + ":" + port + ": " + strerror(error));
}

class Connection {
 public:
  explicit Connection(int descriptor) : stream_(fdopen(descriptor, "r+")) {}

  void send(const std::vector<std::string>& words) {
    fprintf(stream_, "*%zu\r\n", words.size());
    for (const std::string& word : words) {
      fprintf(stream_, "$%zu\r\n", word.size());
      fwrite(word.data(), 1, word.size(), stream_);
      fputs("\r\n", stream_);
    }
    fflush(stream_);
    fseek(stream_, 0, SEEK_CUR);
  }

  // Prints a reply and the replies in it, a line each. False if it is an error.
  bool print_reply() {
    const std::string line = read_line();
    const long count = atol(line.c_str() + 1);
    switch (line[0]) {
      case '*':
        if (count <= 0) puts("");
        for (long i = 0; i < count; ++i) print_reply();
        return true;
      case '$':
        puts(count < 0 ? "" : read_bytes(static_cast<size_t>(count)).c_str());
        return true;
      default:
        puts(line.c_str() + 1);
        return line[0] != '-';
    }
  }

  // The reply of a command before the one that was asked for; an error ends the program.
  void expect_ok() {
    const std::string line = read_line();
    if (line[0] == '-') fail(line.substr(1));
  }

 private:
  std::string read_line() {
    std::string line;
    for (int c = getc(stream_); c != '\n'; c = getc(stream_)) {
      if (c == EOF) fail("Error: Server closed the connection");
      line += static_cast<char>(c);
    }
    if (line.size() < 2) fail("Error: Protocol error");
    line.pop_back();
    return line;
  }

  std::string read_bytes(size_t count) {
    std::string bytes(count, '\0');
    if (fread(bytes.data(), 1, count, stream_) != count)
      fail("Error: Server closed the connection");
    read_line_end();
    return bytes;
  }

  void read_line_end() {
    if (getc(stream_) != '\r' || getc(stream_) != '\n') fail("Error: Protocol error");
  }

  FILE* stream_;
};

}  // namespace

int main(int argc, char** argv) {
  const Options options = read_options(argc, argv);
  Connection connection(options.socket.empty() ? connect_host(options.host, options.port)
                                               : connect_socket(options.socket));
  if (!options.password.empty()) {
    if (options.user.empty()) {
      connection.send({"AUTH", options.password});
    } else {
      connection.send({"AUTH", options.user, options.password});
    }
    connection.expect_ok();
  }
  if (!options.database.empty()) {
    connection.send({"SELECT", options.database});
    connection.expect_ok();
  }
  connection.send(options.command);
  const bool succeeded = connection.print_reply();
  return options.error_is_failure && !succeeded ? 1 : 0;
}

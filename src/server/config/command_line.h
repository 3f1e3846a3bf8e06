// The command line of redis-server, and of the programs that share its binary.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace latchkey::server {

// The program that a binary acts as, by its name.
enum class Program { kServer, kSentinel, kCheckRdb, kCheckAof };

// By the last part of argv[0]: `redis-` or `latchkey-` followed by `server`, `sentinel`,
// `check-rdb` or `check-aof`. Anything else is the server.
Program program_of(std::string_view path);

// A parsed command line.
//
//   latchkey-server [FILE] [--check-config | --ping] [--directive VALUE...]... [--sentinel] [-]
//   latchkey-server --explain [DIRECTIVE]
//
// An argument that begins with `--` opens a directive, and the arguments after it are its values,
// quoted for the configuration's parser. Right after a directive without a value such an argument
// is its value, except after `--save`, whose value then is empty, and after `--print-url` and
// `--exit-with-parent`, which then mean yes. `-` as the first or the last
// argument reads standard input. `--check-config` and `--ping` stand before or
// right after FILE, or last.
struct CommandLine {
  enum class Action {
    kServe,        // run the server with the configuration below
    kCheckConfig,  // say what is wrong with the configuration below
    kPing,         // ask the server of the configuration below whether it serves
    kCheckSystem,  // print what check_system() found
    kCheckRdb,     // act as redis-check-rdb
    kCheckAof,     // act as redis-check-aof
    kExit,         // print `output` and `errors`, and end with `exit_status`
  };
  Action action = Action::kServe;
  int exit_status = 0;
  std::string output;
  std::string errors;

  bool sentinel = false;    // kServe, kCheckConfig: as a Sentinel
  std::string config_path;  // empty: none
  bool read_stdin = false;
  std::string options;  // directives, one a line; follows the file and standard input

  // The text for Config::load besides the file: standard input as it was read, then the options.
  std::string configuration(std::string_view standard_input) const;
};

// `arguments` are those of main, the program's name included. Reads no file.
CommandLine parse_command_line(std::span<const std::string> arguments);

// "Redis server v=8.0.2 sha=00000000:0 malloc=... bits=64 build=...", without a line end.
// `program`: its first words.
std::string version_line(std::string_view program = "Redis server");

}  // namespace latchkey::server

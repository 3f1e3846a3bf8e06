// Whole small files at once. Plain system calls: the stream classes of the standard library would
// make up a third of the program.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace latchkey::base {

// Everything in the file; nothing, with errno set, when it cannot be opened or read.
std::optional<std::string> read_file(const std::string& path);

// Everything until the end of an open descriptor (standard input), as above.
std::optional<std::string> read_all(int descriptor);

// Makes the file hold `text`, not atomically and without syncing. False with errno set on failure.
bool write_file(const std::string& path, std::string_view text);

// Makes sure that a file that has been made, renamed or removed there is found so after a crash.
// False with errno set.
bool sync_directory_of(const std::string& path);

}  // namespace latchkey::base

// redis-check-rdb: reads an RDB file as loading would, and reports where it is damaged. The server
// does the same with a file that it cannot load.
//
// Values are read completely and then dropped; memory is that of the largest value. Nothing else is
// changed or logged. On a terminal a line shows the progress meanwhile.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace latchkey::server {
class Progress;
}

namespace latchkey::persist {

class ByteSource;
class ProgressWatch;

// Receives a line of the report, without its end.
using CheckOutput = std::function<void(std::string_view line)>;

// Whether the file is intact. `now_ms` (Unix time) decides which keys have expired. Bytes behind
// the RDB are ignored; `end`, if not null, is set to their offset.
bool check_rdb(const std::string& path, int64_t now_ms, const CheckOutput& output,
               uint64_t* end = nullptr);

// While the result lives, updates `progress` by how much of `source` has been read, behind `base`
// bytes that were read before.
[[nodiscard]] ProgressWatch show_progress(ByteSource& source, server::Progress& progress,
                                          uint64_t base);

// Runs the program; `arguments` are those of main. Returns its exit status.
int run_check_rdb(std::span<const std::string> arguments);

}  // namespace latchkey::persist

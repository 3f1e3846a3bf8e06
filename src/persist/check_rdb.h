// redis-check-rdb: goes through an RDB file as loading it would, and says where it is damaged. The
// server does the same with a file that it cannot load.
//
// Values are read whole, and forgotten; memory is that of the largest value. Nothing else is
// changed or logged.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace latchkey::persist {

// A line of the report, without its end.
using CheckOutput = std::function<void(std::string_view line)>;

// Whether the file is intact. `now_ms` (Unix time) tells which keys have expired. What stands
// behind the RDB is left alone; `end`, if not null, is set to where it begins.
bool check_rdb(const std::string& path, int64_t now_ms, const CheckOutput& output,
               uint64_t* end = nullptr);

// The program: `arguments` are those of main. Returns its exit status.
int run_check_rdb(std::span<const std::string> arguments);

}  // namespace latchkey::persist

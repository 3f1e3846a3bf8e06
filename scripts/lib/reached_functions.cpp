// Linked into the unit tests of scripts/mutate, which are built with
// -fsanitize-coverage=func,inline-bool-flag,pc-table: tells which functions a process and its
// children have reached. Clang's documentation ("SanitizerCoverage") describes the calls that it
// makes.
//
// At its end each process appends to the file that LATCHKEY_REACHED names: the offsets, from the
// start of the program, of the functions that were reached, as numbers of eight bytes in the
// machine's order, in one write. A child's counts of -fprofile-instr-generate are written as well.

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <vector>

extern "C" const char __executable_start;
extern "C" int __llvm_profile_write_file();

namespace {

struct Function {
  std::uintptr_t address;
  std::uintptr_t flags;
};

const bool* reached = nullptr;
const Function* functions = nullptr;
const Function* functions_end = nullptr;

void append_reached() {
  const char* path = std::getenv("LATCHKEY_REACHED");
  if (path == nullptr) return;
  std::vector<std::uint64_t> offsets;
  for (const Function* function = functions; function != functions_end; ++function) {
    if (!reached[function - functions]) continue;
    offsets.push_back(function->address - reinterpret_cast<std::uintptr_t>(&__executable_start));
  }
  const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const std::size_t size = offsets.size() * sizeof(offsets[0]);
  if (file < 0 || write(file, offsets.data(), size) != static_cast<ssize_t>(size)) abort();
  close(file);
}

}  // namespace

extern "C" {

void __sanitizer_cov_bool_flag_init(bool* first, bool* /*end*/) {
  reached = first;
}

void __sanitizer_cov_pcs_init(const std::uintptr_t* first, const std::uintptr_t* end) {
  functions = reinterpret_cast<const Function*>(first);
  functions_end = reinterpret_cast<const Function*>(end);
  static bool registered = false;
  if (!registered) std::atexit(append_reached);
  registered = true;
}

// In place of the C library's: children that a test forks end by it, without what atexit() has
// registered.
void _exit(int status) {
  append_reached();
  __llvm_profile_write_file();
  syscall(SYS_exit_group, status);
  __builtin_unreachable();
}

}  // extern "C"

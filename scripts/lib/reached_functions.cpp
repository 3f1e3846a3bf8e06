// Linked into the unit tests of scripts/mutate, which are built with
// -fsanitize-coverage=func,inline-bool-flag,pc-table: tells which functions a process and its
// children have reached. Clang's documentation ("SanitizerCoverage") describes the calls that it
// makes.
//
// At its end each process appends to the file that LATCHKEY_REACHED names: the offsets, from the
// start of the program, of the functions that were reached, as numbers of eight bytes in the
// machine's order, in one write. A child's counts of -fprofile-instr-generate are written as well,
// unless it ends in the handler of a signal: that may have come in the middle of an allocation, so
// nothing is allocated here.

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

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
// Room for as many offsets.
std::uint64_t* offsets = nullptr;

void append_reached() {
  const char* path = std::getenv("LATCHKEY_REACHED");
  if (path == nullptr) return;
  std::size_t count = 0;
  for (const Function* function = functions; function != functions_end; ++function) {
    if (!reached[function - functions]) continue;
    offsets[count++] = function->address - reinterpret_cast<std::uintptr_t>(&__executable_start);
  }
  const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const std::size_t size = count * sizeof(offsets[0]);
  if (file < 0 || write(file, offsets, size) != static_cast<ssize_t>(size)) abort();
  close(file);
}

// Of SIGUSR1, by which children are ended: it is blocked while its handler runs.
bool in_signal_handler() {
  sigset_t blocked;
  return sigprocmask(SIG_BLOCK, nullptr, &blocked) == 0 && sigismember(&blocked, SIGUSR1) == 1;
}

}  // namespace

extern "C" {

void __sanitizer_cov_bool_flag_init(bool* first, bool* /*end*/) {
  reached = first;
}

void __sanitizer_cov_pcs_init(const std::uintptr_t* first, const std::uintptr_t* end) {
  functions = reinterpret_cast<const Function*>(first);
  functions_end = reinterpret_cast<const Function*>(end);
  const std::size_t room = static_cast<std::size_t>(functions_end - functions) * sizeof(*offsets);
  void* const memory =
      mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) abort();
  offsets = static_cast<std::uint64_t*>(memory);
  static bool registered = false;
  if (!registered) std::atexit(append_reached);
  registered = true;
}

// In place of the C library's: children that a test forks end by it, without what atexit() has
// registered.
void _exit(int status) {
  append_reached();
  if (!in_signal_handler()) __llvm_profile_write_file();
  syscall(SYS_exit_group, status);
  __builtin_unreachable();
}

}  // extern "C"

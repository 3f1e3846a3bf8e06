// Ends the program with a sentence where the processor lacks instructions it was compiled for
// (-march in meson.build), which the kernel would otherwise answer with SIGILL. Linked into
// programs only; nothing calls it.
#if defined(__x86_64__)
#include <unistd.h>

#include <string_view>

namespace {

// Runs before any constructor, and may therefore use nothing that a constructor makes ready.
__attribute__((target("arch=x86-64"))) void require_processor(int, char**, char**) {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("ssse3") && __builtin_cpu_supports("sse4.2") &&
      __builtin_cpu_supports("popcnt"))
    return;
  constexpr std::string_view kSentence =
      "latchkey-server needs a processor with the instructions of x86-64-v2 (SSE4.2, POPCNT; "
      "since 2009), which this one lacks. If it is a virtual machine's, choose another CPU model, "
      "as QEMU's -cpu host does.\n";
  static_cast<void>(!write(STDERR_FILENO, kSentence.data(), kSentence.size()));
  _exit(1);
}

__attribute__((section(".preinit_array"),
               used)) void (*const before_constructors)(int, char**, char**) = require_processor;

}  // namespace
#endif

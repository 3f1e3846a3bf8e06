// fork() for children that go on to use the heap.
#pragma once

#include <sys/types.h>

namespace latchkey::base {

// As fork(), also where other threads allocate meanwhile. jemalloc and glibc take the locks of
// their heaps around fork(), AddressSanitizer's does not before LLVM 16: a child made while a
// thread held one would wait for it for ever. Returns -1 with errno set where fork() does.
//
// From then on the process has SIGCHLD as it is by default: whoever started it may have had it
// ignored, and then waitpid() is told of no child.
pid_t fork_process();

}  // namespace latchkey::base

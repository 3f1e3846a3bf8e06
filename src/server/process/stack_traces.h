// Stack traces of all threads of this process, for reports in the log.
#pragma once

#include <cstdint>

#include "base/log.h"

namespace latchkey::server {

// Writes, between the lines "------ STACK TRACE ------" and "------ STACK TRACE DONE ------", the
// interrupted instruction (0: none) and the frames of every thread, except those that block
// base::kTraceSignal. "3/3 expected stacktraces." says how many answered within a second.
//
// Safe in signal handlers and in a process that may be broken: allocates nothing. A call during
// another one writes the two lines only.
void write_stack_traces(base::Logger& logger, uintptr_t instruction = 0);

// Has threads answer when write_stack_traces() asks them (base::kTraceSignal), which ends the
// process until then. Called by that, too.
void answer_trace_requests();

// The instruction that a signal interrupted; 0 on an unknown processor. `context` is the third
// argument of the signal handler.
uintptr_t interrupted_instruction(const void* context);

}  // namespace latchkey::server

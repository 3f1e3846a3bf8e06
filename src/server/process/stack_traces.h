// Where the threads of this process stand, for reports in the log.
#pragma once

#include <cstdint>

#include "base/log.h"

namespace latchkey::server {

// Writes, between the lines "------ STACK TRACE ------" and "------ STACK TRACE DONE ------", the
// instruction that was interrupted (0: none was) and the frames of every thread that can be asked:
// one that blocks base::kTraceSignal cannot. "3/3 expected stacktraces." says how many answered
// within a second.
//
// For handlers of signals and a process that may be broken: takes nothing from the heap. A call
// while another one runs writes the two lines only.
void write_stack_traces(base::Logger& logger, uintptr_t instruction = 0);

// The instruction at which a signal met its thread; 0 for a processor that is not known. `context`
// is what a handler of signals was given.
uintptr_t interrupted_instruction(const void* context);

}  // namespace latchkey::server

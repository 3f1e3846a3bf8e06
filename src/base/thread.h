// Starts background threads.
#pragma once

#include <csignal>
#include <functional>
#include <string>
#include <thread>

namespace latchkey::base {

// The signal that asks a thread for its stack trace (server/process/stack_traces.h).
inline constexpr int kTraceSignal = SIGUSR2;

// Starts a thread that blocks every signal except kTraceSignal, which leaves them to the server's
// thread. The operating system shows the first 15 bytes of `name`, and the heap use of all such
// threads is known (base/heap_use.h). The result is not joinable if the thread could not be
// started.
std::thread start_thread(std::string name, std::function<void()> body);

}  // namespace latchkey::base

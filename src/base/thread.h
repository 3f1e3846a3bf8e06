// Threads that work beside the server's own.
#pragma once

#include <csignal>
#include <functional>
#include <string>
#include <thread>

namespace latchkey::base {

// Asks a thread where it stands (server/process/stack_traces.h).
inline constexpr int kTraceSignal = SIGUSR2;

// Starts a thread that leaves every signal but kTraceSignal to the server's thread. `name` is what
// the operating system shows of it: its first 15 bytes. The result is not joinable where no thread
// can be had.
std::thread start_thread(std::string name, std::function<void()> body);

}  // namespace latchkey::base

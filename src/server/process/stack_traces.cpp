#include "server/process/stack_traces.h"

#include <dirent.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <span>
#include <string_view>

#include "base/thread.h"

// Where the program begins in memory and where its code ends; the linker defines both.
extern "C" const char __ehdr_start[] __attribute__((visibility("hidden")));
extern "C" const char etext[];

namespace latchkey::server {

namespace {

constexpr int kDeepestTrace = 100;
constexpr size_t kMaxThreads = 64;
constexpr int kPatienceMs = 1000;
constexpr size_t kMessageBytes = 128;

struct Frames {
  std::array<void*, kDeepestTrace> addresses{};
  int depth = 0;
};

_Unwind_Reason_Code add_frame(_Unwind_Context* context, void* frames_so_far) {
  auto& frames = *static_cast<Frames*>(frames_so_far);
  const _Unwind_Ptr instruction = _Unwind_GetIP(context);
  // The outermost frame of a thread has no instruction.
  if (frames.depth == kDeepestTrace || instruction == 0) return _URC_END_OF_STACK;
  frames.addresses[static_cast<size_t>(frames.depth++)] = reinterpret_cast<void*>(instruction);
  return _URC_NO_REASON;
}

// Takes the frames of the calling thread with the linked unwinder: backtrace() would load a library
// into a process that may be broken.
void take_frames(Frames* frames) {
  frames->depth = 0;
  _Unwind_Backtrace(add_frame, frames);
}

// A request for a thread's frames. When the thread answers too late, the question is back to kFree,
// or stays kAnswering and is not reused while the thread still writes to it.
struct Question {
  enum State : int { kFree, kAsked, kAnswering, kAnswered };
  std::atomic<int> state{kFree};
  std::atomic<pid_t> thread{0};
  Frames frames;

  bool move(State from, State to) {
    int expected = from;
    return state.compare_exchange_strong(expected, to);
  }
};

// The signal handler finds the questions here.
std::array<Question, kMaxThreads> questions;
std::atomic_flag busy = ATOMIC_FLAG_INIT;

pid_t this_thread() {
  return static_cast<pid_t>(syscall(SYS_gettid));
}

void answer(int) {
  const int before = errno;
  for (Question& question : questions) {
    if (question.thread != this_thread() || !question.move(Question::kAsked, Question::kAnswering))
      continue;
    take_frames(&question.frames);
    question.state = Question::kAnswered;
  }
  errno = before;
}

// Reads a file of /proc/self/task/THREAD, as much of it as fits into `room`.
std::string_view read_task_file(pid_t thread, const char* name, std::span<char> room) {
  std::array<char, 64> path{};
  snprintf(path.data(), path.size(), "/proc/self/task/%d/%s", thread, name);
  const int descriptor = open(path.data(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return {};
  const ssize_t bytes = read(descriptor, room.data(), room.size());
  close(descriptor);
  return {room.data(), bytes > 0 ? static_cast<size_t>(bytes) : 0};
}

// False for a thread that blocks kTraceSignal. Its "SigBlk:" line is a hexadecimal number, a bit
// per signal.
bool can_be_asked(pid_t thread) {
  std::array<char, 4096> room{};
  const std::string_view status =
      read_task_file(thread, "status", std::span(room).first(room.size() - 1));
  constexpr std::string_view kHeldBack = "\nSigBlk:";
  const size_t at = status.find(kHeldBack);
  if (at == std::string_view::npos) return false;
  const uint64_t held_back = strtoull(room.data() + at + kHeldBack.size(), nullptr, 16);
  return (held_back >> (base::kTraceSignal - 1) & 1) == 0;
}

Question* free_question() {
  for (Question& question : questions) {
    if (question.state == Question::kFree) return &question;
  }
  return nullptr;
}

void ask(pid_t thread) {
  Question* question = free_question();
  if (question == nullptr || !can_be_asked(thread)) return;
  question->thread = thread;
  question->state = Question::kAsked;
  if (syscall(SYS_tgkill, getpid(), thread, base::kTraceSignal) != 0)
    question->state = Question::kFree;
}

// The layout of getdents64(2)'s result. readdir(3) would allocate.
struct DirectoryEntry {
  uint64_t inode;
  int64_t next;
  uint16_t bytes;
  uint8_t kind;
  char name[1];
};

void ask_all_but(pid_t caller) {
  const int directory = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return;
  alignas(DirectoryEntry) std::array<char, 4096> room;
  for (;;) {
    const long bytes = syscall(SYS_getdents64, directory, room.data(), room.size());
    if (bytes <= 0) break;
    for (long at = 0; at < bytes;) {
      const auto* entry = reinterpret_cast<const DirectoryEntry*>(room.data() + at);
      const auto thread = static_cast<pid_t>(atoi(entry->name));
      if (thread != 0 && thread != caller) ask(thread);
      at += entry->bytes;
    }
  }
  close(directory);
}

struct Tally {
  int asked = 0;
  int answered = 0;
};

Tally count_questions() {
  Tally tally;
  for (const Question& question : questions) {
    if (question.state != Question::kFree) ++tally.asked;
    if (question.state == Question::kAnswered) ++tally.answered;
  }
  return tally;
}

Tally wait_for_answers() {
  Tally tally = count_questions();
  for (int waited = 0; tally.answered < tally.asked && waited < kPatienceMs; ++waited) {
    const timespec millisecond = {0, 1'000'000};
    nanosleep(&millisecond, nullptr);
    tally = count_questions();
  }
  return tally;
}

void take_questions_back() {
  for (Question& question : questions) {
    if (!question.move(Question::kAsked, Question::kFree))
      question.move(Question::kAnswered, Question::kFree);
  }
}

// A static program has no table of its functions: the line gives the offset in its file, for
// `addr2line -e FILE.debug OFFSET`.
void write_offset(base::Logger& logger, const void* address) {
  const auto value = reinterpret_cast<uintptr_t>(address);
  const auto begin = reinterpret_cast<uintptr_t>(__ehdr_start);
  std::array<char, kMessageBytes> line{};
  if (value >= begin && value < reinterpret_cast<uintptr_t>(etext)) {
    snprintf(line.data(), line.size(), "latchkey-server(+0x%zx) [0x%zx]\n", value - begin, value);
  } else {
    snprintf(line.data(), line.size(), "[0x%zx]\n", value);
  }
  logger.raw(line.data());
}

void write_frame(base::Logger& logger, void* address) {
  Dl_info found;
  if (dladdr(address, &found) == 0) return write_offset(logger, address);
  const int descriptor = logger.open_raw();
  if (descriptor >= 0) backtrace_symbols_fd(&address, 1, descriptor);
  logger.close_raw(descriptor);
}

void write_frames(base::Logger& logger, void* const* frames, int depth) {
  for (int i = 0; i < depth; ++i) write_frame(logger, frames[i]);
}

void write_thread(base::Logger& logger, pid_t thread, const Frames& frames, bool is_caller) {
  std::array<char, 32> room{};
  std::string_view name = read_task_file(thread, "comm", room);
  if (!name.empty()) name.remove_suffix(1);  // its newline
  std::array<char, kMessageBytes> line{};
  snprintf(line.data(), line.size(), "\n%d %.*s%s\n", thread, static_cast<int>(name.size()),
           name.data(), is_caller ? " *" : "");
  logger.raw(line.data());
  write_frames(logger, frames.addresses.data(), frames.depth);
}

void write_all(base::Logger& logger) {
  answer_trace_requests();
  ask_all_but(this_thread());
  Frames own;
  take_frames(&own);
  write_thread(logger, this_thread(), own, true);
  const Tally tally = wait_for_answers();
  for (const Question& question : questions) {
    if (question.state == Question::kAnswered)
      write_thread(logger, question.thread, question.frames, false);
  }
  take_questions_back();
  std::array<char, kMessageBytes> line{};
  snprintf(line.data(), line.size(), "\n%d/%d expected stacktraces.\n", tally.answered + 1,
           tally.asked + 1);
  logger.raw(line.data());
}

}  // namespace

// The handler is never removed: a thread may take the signal after the last question was taken
// back.
void answer_trace_requests() {
  struct sigaction action {};
  sigfillset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  action.sa_handler = answer;
  sigaction(base::kTraceSignal, &action, nullptr);
}

void write_stack_traces(base::Logger& logger, uintptr_t instruction) {
  logger.raw("\n------ STACK TRACE ------\n");
  if (!busy.test_and_set()) {
    if (instruction != 0) {
      logger.raw("EIP:\n");
      auto* const address = reinterpret_cast<void*>(instruction);
      write_frames(logger, &address, 1);
    }
    write_all(logger);
    busy.clear();
  }
  logger.raw("\n------ STACK TRACE DONE ------\n");
}

uintptr_t interrupted_instruction(const void* context) {
  const auto* state = static_cast<const ucontext_t*>(context);
#if defined(__x86_64__)
  return static_cast<uintptr_t>(state->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return static_cast<uintptr_t>(state->uc_mcontext.pc);
#else
  static_cast<void>(state);
  return 0;
#endif
}

}  // namespace latchkey::server

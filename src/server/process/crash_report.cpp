#include "server/process/crash_report.h"

#include <ucontext.h>

#include <array>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <utility>

#include "base/assert.h"
#include "base/version.h"
#include "server/process/stack_traces.h"

namespace latchkey::server {

namespace {

constexpr std::array<int, 5> kSignals = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
constexpr size_t kSignalStackBytes = 64 * 1024;

// Signal handlers and failed assertions find their reporter here.
CrashReporter* current_reporter = nullptr;

struct Register {
  const char* name;
  uint64_t value;
};

// Writes registers two in a line.
template <size_t Count>
void write_registers(base::Logger& logger, const std::array<Register, Count>& registers) {
  for (size_t i = 0; i < Count; i += 2) {
    std::array<char, 96> line{};
    const Register& left = registers[i];
    const Register& right = registers[i + 1];
    snprintf(line.data(), line.size(), "%s:%016" PRIx64 " %s:%016" PRIx64 "\n", left.name,
             left.value, right.name, right.value);
    logger.raw(line.data());
  }
}

void registers(base::Logger& logger, void* context) {
  logger.raw("\n------ REGISTERS ------\n");
  const auto* state = static_cast<ucontext_t*>(context);
#if defined(__x86_64__)
  const auto value = [&](int index) {
    return static_cast<uint64_t>(state->uc_mcontext.gregs[index]);
  };
  write_registers(logger, std::array<Register, 18>{{{"RAX", value(REG_RAX)},
                                                    {"RBX", value(REG_RBX)},
                                                    {"RCX", value(REG_RCX)},
                                                    {"RDX", value(REG_RDX)},
                                                    {"RDI", value(REG_RDI)},
                                                    {"RSI", value(REG_RSI)},
                                                    {"RBP", value(REG_RBP)},
                                                    {"RSP", value(REG_RSP)},
                                                    {"R8 ", value(REG_R8)},
                                                    {"R9 ", value(REG_R9)},
                                                    {"R10", value(REG_R10)},
                                                    {"R11", value(REG_R11)},
                                                    {"R12", value(REG_R12)},
                                                    {"R13", value(REG_R13)},
                                                    {"R14", value(REG_R14)},
                                                    {"R15", value(REG_R15)},
                                                    {"RIP", value(REG_RIP)},
                                                    {"EFL", value(REG_EFL)}}});
#elif defined(__aarch64__)
  const auto& machine = state->uc_mcontext;
  write_registers(logger, std::array<Register, 4>{{{"SP ", machine.sp},
                                                   {"PC ", machine.pc},
                                                   {"LR ", machine.regs[30]},
                                                   {"FP ", machine.regs[29]}}});
#else
  static_cast<void>(state);
  logger.raw("Not known for this processor.\n");
#endif
}

[[noreturn]] void on_assertion(const char* expression, const char* file, int line) {
  current_reporter->assertion_failed(expression, file, line);
}

// An exception that nobody catches.
[[noreturn]] void on_terminate() {
  // The report may throw as well.
  static bool has_begun = false;
  if (current_reporter == nullptr || std::exchange(has_begun, true)) abort();
  const char* text = "An exception that nobody has caught";
  try {
    if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    text = "Out Of Memory: the system gives no more";
  } catch (...) {
  }
  current_reporter->panic(text, __FILE__, __LINE__);
}

}  // namespace

CrashReporter::CrashReporter(base::Logger& logger)
    : logger_(logger), signal_stack_(new char[kSignalStackBytes]), previous_(current_reporter) {
  current_reporter = this;
  base::set_assertion_handler(on_assertion);
  std::set_terminate(on_terminate);
  answer_trace_requests();
  enable(true);
}

CrashReporter::~CrashReporter() {
  current_reporter = previous_;
  if (previous_ != nullptr) {
    previous_->enable(previous_->enabled_);
    return;
  }
  restore_default_handlers();
  std::set_terminate(abort);
  stack_t no_stack{};
  no_stack.ss_flags = SS_DISABLE;
  sigaltstack(&no_stack, nullptr);
  base::set_assertion_handler(nullptr);
}

void CrashReporter::enable(bool enabled) {
  enabled_ = enabled;
  if (enabled) {
    install_handlers();
  } else {
    restore_default_handlers();
  }
}

void CrashReporter::add_section(std::string title, Section section) {
  sections_.emplace_back(std::move(title), std::move(section));
}

void CrashReporter::install_handlers() {
  // A separate stack, so that a stack overflow can be reported too.
  stack_t stack{};
  stack.ss_sp = signal_stack_.get();
  stack.ss_size = kSignalStackBytes;
  sigaltstack(&stack, nullptr);
  struct sigaction action {};
  sigemptyset(&action.sa_mask);
  // A second fault, inside the report, meets the default action.
  action.sa_flags = SA_ONSTACK | SA_NODEFER | static_cast<int>(SA_RESETHAND) | SA_SIGINFO;
  action.sa_sigaction = &CrashReporter::on_signal;
  for (const int signal : kSignals) sigaction(signal, &action, nullptr);
}

void CrashReporter::restore_default_handlers() {
  struct sigaction action {};
  sigemptyset(&action.sa_mask);
  action.sa_handler = SIG_DFL;
  for (const int signal : kSignals) sigaction(signal, &action, nullptr);
}

void CrashReporter::on_signal(int signal, siginfo_t* info, void* context) {
  current_reporter->report_signal(signal, *info, context);
  restore_default_handlers();
  raise(signal);
}

void CrashReporter::report_signal(int signal, const siginfo_t& info, void* context) {
  begin_report();
  logger_.logf(base::LogLevel::kWarning, "Redis %s crashed by signal: %d, si_code: %d",
               base::kReferenceVersion, signal, info.si_code);
  if (signal == SIGSEGV || signal == SIGBUS) {
    logger_.logf(base::LogLevel::kWarning, "Accessing address: %p", info.si_addr);
  }
  const bool sent_by_process = info.si_code <= 0 && info.si_pid != 0;
  if (sent_by_process) {
    logger_.logf(base::LogLevel::kWarning, "Killed by PID: %ld, UID: %d",
                 static_cast<long>(info.si_pid), static_cast<int>(info.si_uid));
  }
  logger_.logf(base::LogLevel::kWarning, "Crashed running the instruction at: 0x%" PRIxPTR,
               interrupted_instruction(context));
  write_stack_traces(logger_, interrupted_instruction(context));
  registers(logger_, context);
  sections();
  end_report();
}

void CrashReporter::assertion_failed(const char* expression, const char* file, int line) {
  if (enabled_) begin_report();
  logger_.warning("=== ASSERTION FAILED ===");
  logger_.logf(base::LogLevel::kWarning, "==> %s:%d '%s' is not true", file, line, expression);
  if (enabled_) {
    write_stack_traces(logger_);
    sections();
    end_report();
  }
  restore_default_handlers();
  abort();
}

void CrashReporter::panic(std::string_view message, const char* file, int line) {
  if (enabled_) begin_report();
  logger_.warning("------------------------------------------------");
  logger_.warning("!!! Software Failure. Press left mouse button to continue");
  logger_.logf(base::LogLevel::kWarning, "Guru Meditation: %.*s #%s:%d",
               static_cast<int>(message.size()), message.data(), file, line);
  if (enabled_) {
    write_stack_traces(logger_);
    sections();
    end_report();
  }
  logger_.warning("------------------------------------------------");
  restore_default_handlers();
  abort();
}

void CrashReporter::begin_report() {
  logger_.raw("\n\n=== REDIS BUG REPORT START: Cut & paste starting from here ===\n");
}

void CrashReporter::sections() {
  for (const auto& [title, text] : sections_) {
    logger_.raw("\n------ ");
    logger_.raw(title);
    logger_.raw(" ------\n");
    logger_.raw(text());
  }
}

void CrashReporter::end_report() {
  logger_.raw(
      "\n=== REDIS BUG REPORT END. Make sure to include from START to END. ===\n\n"
      "       This is Latchkey ");
  logger_.raw(base::kLatchkeyVersion);
  logger_.raw(
      ". Please send the whole report to its authors.\n"
      "       If you suspect the memory of this machine, test it with memtester or "
      "memtest86+.\n\n");
}

}  // namespace latchkey::server

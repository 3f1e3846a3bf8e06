// Assertions for invariants that only a programming error can break; they stay on in release
// builds. The outcome never depends on input.
#pragma once

namespace latchkey::base {

// Called with the failed expression and its source location; must not return. The default handler
// writes to standard error and aborts.
using AssertionHandler = void (*)(const char* expression, const char* file, int line);

void set_assertion_handler(AssertionHandler handler);

[[noreturn]] void assertion_failed(const char* expression, const char* file, int line);

}  // namespace latchkey::base

#define LK_ASSERT(expression)                         \
  (__builtin_expect(static_cast<bool>(expression), 1) \
       ? static_cast<void>(0)                         \
       : ::latchkey::base::assertion_failed(#expression, __FILE__, __LINE__))

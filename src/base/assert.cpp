#include "base/assert.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace latchkey::base {

namespace {

void write_and_abort(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "assertion failed: %s (%s:%d)\n", expression, file, line);
  std::abort();
}

// Global, because the handler belongs to the process, not to one of the servers in it.
std::atomic<AssertionHandler> assertion_handler{&write_and_abort};

}  // namespace

void set_assertion_handler(AssertionHandler handler) {
  assertion_handler.store(handler != nullptr ? handler : &write_and_abort);
}

void assertion_failed(const char* expression, const char* file, int line) {
  assertion_handler.load()(expression, file, line);
  std::abort();
}

}  // namespace latchkey::base

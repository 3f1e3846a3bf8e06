#include "base/text/regex.h"

#include <re2/re2.h>

#include <algorithm>
#include <string>
#include <utility>

namespace latchkey::base {

namespace {

re2::StringPiece piece_of(std::string_view text) {
  return {text.data(), text.size()};
}

struct TooSlow {};

// Of the search that this thread is in the middle of, or null.
thread_local RegexBudget* current_budget = nullptr;

// RE2 calls its hooks in the middle of a search, where its frames hold nothing that is not released
// by destructors. There is no other way to end a search early.
void on_reset(const re2::hooks::DFAStateCacheReset&) {
  if (current_budget != nullptr && !current_budget->take_reset()) throw TooSlow();
}

// Called before the instructions are simulated.
void on_failure(const re2::hooks::DFASearchFailure&) {
  if (current_budget != nullptr) throw TooSlow();
}

// RE2 has one set of hooks in a process.
void install_hooks() {
  [[maybe_unused]] static const bool is_done = [] {
    re2::hooks::SetDFAStateCacheResetHook(on_reset);
    re2::hooks::SetDFASearchFailureHook(on_failure);
    return true;
  }();
}

class BudgetInUse {
 public:
  explicit BudgetInUse(RegexBudget& budget) : before_(std::exchange(current_budget, &budget)) {}
  ~BudgetInUse() { current_budget = before_; }
  BudgetInUse(const BudgetInUse&) = delete;
  BudgetInUse& operator=(const BudgetInUse&) = delete;

 private:
  RegexBudget* before_;
};

}  // namespace

Regex::Regex() = default;
Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;

Result<> Regex::compile(std::string_view pattern, bool ignore_case) {
  if (pattern.size() > kLongest) return fail("too long");
  re2::RE2::Options options;
  options.set_encoding(re2::RE2::Options::EncodingLatin1);
  options.set_case_sensitive(!ignore_case);
  options.set_dot_nl(true);
  options.set_never_capture(true);
  options.set_log_errors(false);
  options.set_max_mem(kMaxBytes);
  compiled_ = std::make_unique<re2::RE2>(piece_of(pattern), options);
  if (compiled_->ok()) return {};
  std::string error = compiled_->error();
  compiled_.reset();
  return fail(std::move(error));
}

size_t Regex::size() const {
  return static_cast<size_t>(std::max(compiled_->ProgramSize(), compiled_->ReverseProgramSize()));
}

Regex::Outcome Regex::search(std::string_view text, RegexBudget& budget) const {
  install_hooks();
  budget.add_text(text.size());
  const BudgetInUse in_use(budget);
  try {
    return re2::RE2::PartialMatch(piece_of(text), *compiled_) ? Outcome::kFound
                                                              : Outcome::kNotFound;
  } catch (const TooSlow&) {
    return Outcome::kTooSlow;
  }
}

}  // namespace latchkey::base

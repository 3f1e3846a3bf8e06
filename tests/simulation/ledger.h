// Tokens on their way through a queue that all clients share: each is pushed once, and popped at
// most once; none that was acknowledged is lost, and none comes from nowhere.
//
// What is told between two calls of acknowledged() may still be undone by a crash.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace latchkey::simulation {

class Ledger {
 public:
  // A request that pushes it is on its way, or has been replied to.
  void sent(const std::string& token);
  void pushed(const std::string& token);
  // Throws CheckFailed when it was popped before, or was never sent.
  void popped(const std::string& token);
  // A client has gone that may have popped one more.
  void may_have_popped() { ++unseen_pops_; }
  // The queue was emptied.
  void flushed();

  void acknowledged() { undo_.clear(); }
  // Nothing of what was told since is sure.
  void crashed();

  // What the queue holds at the end. Throws CheckFailed.
  void check(const std::vector<std::string>& queue) const;

 private:
  enum class State : uint8_t { kSent, kPushed, kMaybe, kPopped, kFlushed };
  void set(const std::string& token, State state);

  std::map<std::string, State> tokens_;
  std::vector<std::pair<std::string, State>> undo_;  // and what they were
  size_t unseen_pops_ = 0;
};

}  // namespace latchkey::simulation

#include "simulation/ledger.h"

#include <set>

#include "simulation/steps.h"

namespace latchkey::simulation {

void Ledger::set(const std::string& token, State state) {
  State& known = tokens_[token];
  undo_.emplace_back(token, known);
  known = state;
}

void Ledger::sent(const std::string& token) {
  tokens_[token] = State::kSent;
}

void Ledger::pushed(const std::string& token) {
  if (tokens_.at(token) == State::kSent) set(token, State::kPushed);
}

void Ledger::popped(const std::string& token) {
  const auto it = tokens_.find(token);
  if (it == tokens_.end())
    throw CheckFailed("nobody has pushed " + shown(token) + ", yet it was popped");
  if (it->second == State::kPopped) throw CheckFailed(token + " was popped twice");
  if (it->second == State::kFlushed)
    throw CheckFailed(token + " was flushed, and popped behind that");
  set(token, State::kPopped);
}

void Ledger::flushed() {
  for (auto& [token, state] : tokens_) {
    if (state == State::kPushed || state == State::kMaybe) state = State::kFlushed;
  }
}

void Ledger::crashed() {
  // The other way round: the first state told is the one that holds.
  for (auto it = undo_.rbegin(); it != undo_.rend(); ++it) {
    State& state = tokens_[it->first];
    state = state == State::kPopped ? State::kMaybe : it->second;
  }
  undo_.clear();
}

void Ledger::check(const std::vector<std::string>& queue) const {
  std::set<std::string> there;
  for (const std::string& token : queue) {
    const auto it = tokens_.find(token);
    if (it == tokens_.end()) throw CheckFailed("nobody has pushed " + shown(token));
    if (it->second == State::kPopped) throw CheckFailed(token + " was popped, and is there");
    if (it->second == State::kFlushed) throw CheckFailed(token + " was flushed, and is there");
    if (!there.insert(token).second) throw CheckFailed(token + " is there twice");
  }
  size_t missing = 0;
  std::string one;
  for (const auto& [token, state] : tokens_) {
    if (state != State::kPushed || there.contains(token)) continue;
    ++missing;
    one = token;
  }
  if (missing > unseen_pops_) {
    throw CheckFailed(std::to_string(missing) + " acknowledged elements are missing, one is " +
                      one + "; " + std::to_string(unseen_pops_) + " may have been popped unseen");
  }
}

}  // namespace latchkey::simulation

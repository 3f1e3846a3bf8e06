#include "sentinel/script_queue.h"

#include <algorithm>
#include <utility>

namespace latchkey::sentinel {

void ScriptQueue::add(std::vector<std::string> words) {
  if (jobs_.size() >= kMaxWaiting) {
    const auto oldest =
        std::find_if(jobs_.begin(), jobs_.end(), [](const Job& job) { return job.pid == 0; });
    if (oldest == jobs_.end()) return;
    jobs_.erase(oldest);
  }
  jobs_.push_back({.words = std::move(words)});
}

void ScriptQueue::tick(int64_t now_ms) {
  for (auto job = jobs_.begin(); job != jobs_.end();) {
    const auto current = job++;
    if (current->pid != 0) {
      if (current->killed || now_ms - current->at_ms <= periods_.script_max_runtime) continue;
      current->killed = true;
      on_failure_("-script-timeout", current->words[0] + ' ' + std::to_string(current->pid));
      launcher_.kill(current->pid);
      continue;
    }
    if (running_ == kMaxRunning || current->at_ms > now_ms) continue;
    ++current->attempts;
    current->pid = launcher_.start(current->words);
    if (current->pid == 0) {
      // As the reference says of a process that could not be made.
      on_failure_("-script-error", current->words[0] + " 99 0");
      jobs_.erase(current);
      continue;
    }
    current->at_ms = now_ms;
    current->killed = false;
    ++running_;
  }
}

void ScriptQueue::ended(int64_t pid, int exit_status, int signal, int64_t now_ms) {
  const auto job =
      std::find_if(jobs_.begin(), jobs_.end(), [&](const Job& other) { return other.pid == pid; });
  if (job == jobs_.end()) return;
  --running_;
  const bool again = signal != 0 || exit_status == 1;
  if (again && job->attempts < kMaxAttempts) {
    job->pid = 0;
    job->at_ms = now_ms + retry_delay_ms(job->attempts);
    return;
  }
  if (signal != 0 || exit_status != 0) {
    on_failure_("-script-error",
                job->words[0] + ' ' + std::to_string(signal) + ' ' + std::to_string(exit_status));
  }
  jobs_.erase(job);
}

int64_t ScriptQueue::retry_delay_ms(int attempts) const {
  return periods_.script_retry_delay << (attempts - 1);
}

}  // namespace latchkey::sentinel

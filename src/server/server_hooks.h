// Hooks for layers above: they are run when something happens to the server as a whole.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace latchkey::server {

// Functions that are called, in the order in which they were added, whenever it happens.
template <typename... Arguments>
class HookWith {
 public:
  void add(std::function<void(Arguments...)> task) { tasks_.push_back(std::move(task)); }
  void run(Arguments... arguments) const {
    for (const auto& task : tasks_) task(arguments...);
  }

 private:
  std::vector<std::function<void(Arguments...)>> tasks_;
};
using Hook = HookWith<>;

struct ServerHooks {
  Hook tick;               // `hz` times a second
  Hook role_changed;       // it has become a replica, or a master
  Hook dataset_flushed;    // FLUSHALL has made the dataset empty
  Hook dataset_replacing;  // another dataset is about to be loaded in its place
  Hook stats_reset;        // CONFIG RESETSTAT: layers reset their own figures as well
  // The data's clock was set back by so many milliseconds, or forward if negative, and what waits
  // by it is to last as long as it would have.
  HookWith<int64_t> clock_went_back;
};

}  // namespace latchkey::server

// Hooks for layers above: they are run when something happens to the server as a whole.
#pragma once

#include <functional>
#include <utility>
#include <vector>

namespace latchkey::server {

// Functions that are called, in the order in which they were added, whenever it happens.
class Hook {
 public:
  void add(std::function<void()> task) { tasks_.push_back(std::move(task)); }
  void run() const {
    for (const auto& task : tasks_) task();
  }

 private:
  std::vector<std::function<void()>> tasks_;
};

struct ServerHooks {
  Hook tick;               // `hz` times a second
  Hook role_changed;       // it has become a replica, or a master
  Hook dataset_flushed;    // FLUSHALL has made the dataset empty
  Hook dataset_replacing;  // another dataset is about to be loaded in its place
  Hook stats_reset;        // CONFIG RESETSTAT: layers reset their own figures as well
};

}  // namespace latchkey::server

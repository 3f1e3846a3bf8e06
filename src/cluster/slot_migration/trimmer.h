// Deletes the keys of slots that this node does not serve any more, or has imported in vain.
//
// In steps of a fraction of a millisecond, between which requests are served; while writes are
// paused, a script runs or a dataset is loaded it stands still. Clients do not see keys of slots
// that are being deleted (store/hidden_slots.h). Costs by the number of these keys. Without a loop
// all keys go at once.
//
// In the background values are freed by the thread for lazy freeing. "Active" trimming frees them
// where they are deleted and counts them, as the reference does where clients track keys.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "cluster/slot_set.h"
#include "net/loop.h"

namespace latchkey::server {
class Server;
}

namespace latchkey::cluster {

class Trimmer {
 public:
  // DEBUG ASM-TRIM-METHOD. kNone: keys stay.
  enum class Method : uint8_t { kDefault, kNone, kActive, kBackground };
  struct Figures {
    size_t running = 0;  // active jobs, those that wait included
    uint64_t keys = 0;   // of the current or last active job, and how many of them are gone
    uint64_t trimmed = 0;
    uint64_t started = 0;
    uint64_t completed = 0;
    uint64_t cancelled = 0;
  };

  explicit Trimmer(server::Server& server);

  // `delay_us`: active jobs wait so long after each key; negative: they do not run.
  void set_method(Method method, int64_t delay_us);

  // Deletes the keys of these slots. `propagates`: the deletion is written to the stream when the
  // job begins; for slots of a job that has begun it is written again, behind the requests that
  // brought keys back (CHECKPOINT ROLLBACK).
  void schedule(const SlotSet& slots, bool propagates);
  // Deletes the keys at once, and propagates nothing.
  void trim_now(const SlotSet& slots);
  // Completes what there is to do in these slots, and nothing else. Costs by the keys there.
  void finish(const SlotSet& slots);
  // Drops all jobs, because the dataset is being replaced.
  void cancel_all();

  bool any() const { return !jobs_.empty(); }
  // Whether keys of the slot, or of any of the slots, are to be deleted.
  bool covers(int slot) const;
  bool covers_any(const SlotSet& slots) const;
  // Whether jobs wait, because writes are paused.
  bool is_held() const;
  Figures figures() const;

  // To be called ten times a second where there is no loop.
  void work();

 private:
  struct Job {
    SlotSet slots;  // that are left
    bool active = false;
    bool propagated = false;  // the deletion was, or need not be
    bool begun = false;
    uint64_t keys = 0;
    uint64_t trimmed = 0;
    uint64_t cursor = 0;  // in the first slot
  };

  bool counts_as_active() const;
  // Begins the job if it has not begun, and propagates the deletion if that was not done.
  void begin(Job& job);
  void propagate(const SlotSet& slots);
  // Deletes some keys of the job's first slot. False when the job is done.
  bool trim_some(Job& job, size_t most);
  // One step of the slot's scan. Returns how many keys it has deleted.
  size_t trim_step(int slot, uint64_t* cursor, bool in_background, size_t most);
  void run_jobs(int64_t until_us);
  void end(const Job& job);
  void show(int slot);

  server::Server& server_;
  std::unique_ptr<net::Timer> timer_;
  Method method_ = Method::kDefault;
  int64_t delay_us_ = 0;
  std::deque<Job> jobs_;
  Figures figures_;
};

}  // namespace latchkey::cluster

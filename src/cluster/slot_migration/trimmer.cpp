#include "cluster/slot_migration/trimmer.h"

#include <algorithm>
#include <utility>

#include "base/time_units.h"
#include "cluster/slot_keys.h"
#include "cluster/slot_migration/task.h"
#include "server/client/tracking.h"
#include "server/command/keyspace_events.h"
#include "server/command/propagation.h"
#include "server/server.h"
#include "server/tasks.h"
#include "store/slot_index.h"

namespace latchkey::cluster {

using server::Server;

namespace {

constexpr int64_t kBudgetUs = 500;
constexpr uint64_t kIntervalMs = 1;
// While nothing may be deleted.
constexpr uint64_t kPatienceMs = 20;
// Keys between two glances at the clock.
constexpr size_t kStep = 64;

SlotSet with_keys(Server& server, const SlotSet& slots) {
  SlotSet result;
  slots.for_each([&](int slot) {
    if (keys_in_slot(server, slot) > 0) result.add(slot);
  });
  return result;
}

}  // namespace

Trimmer::Trimmer(Server& server) : server_(server) {
  if (server.loop() == nullptr) return;
  timer_ = std::make_unique<net::Timer>(*server.loop(), [this] {
    server_.refresh_clock();
    work();
  });
}

void Trimmer::set_method(Method method, int64_t delay_us) {
  method_ = method;
  delay_us_ = method == Method::kActive ? delay_us : 0;
}

// Clients that track keys are notified of each, which active trimming does in the reference.
bool Trimmer::counts_as_active() const {
  if (method_ != Method::kDefault) return method_ == Method::kActive;
  return server_.tracking().clients() > 0;
}

void Trimmer::schedule(const SlotSet& slots, bool propagates) {
  if (method_ == Method::kNone) return;
  SlotSet left = with_keys(server_, slots);
  for (Job& job : jobs_) {
    // What was propagated when the job began stands in the stream before the keys that are back
    // since.
    if (propagates && job.slots.has_any(left)) job.propagated = false;
    left = left.without(job.slots);
  }
  if (left.empty()) return work();
  if (timer_ == nullptr) {
    Job job{.slots = left, .propagated = !propagates};
    begin(job);
    return trim_now(left);
  }
  store::HiddenSlots& hidden = *server_.database(0).hidden_slots();
  left.for_each([&](int slot) { hidden.set_leaving(slot, true); });
  hidden.update();
  Job& job = jobs_.emplace_back();
  job.slots = left;
  job.active = counts_as_active();
  job.propagated = !propagates;
  work();
}

void Trimmer::begin(Job& job) {
  if (!std::exchange(job.begun, true)) {
    job.keys = keys_in_slots(server_, job.slots);
    server_.log().notice(
        (job.active ? "Active trim started for slots: " : "Background trim started for slots: ") +
        ranges_text(job.slots) + " to trim " + std::to_string(job.keys) + " keys.");
    if (job.active) ++figures_.started;
  }
  if (!std::exchange(job.propagated, true) && !server_.is_replica()) propagate(job.slots);
}

// In words that replicas of the release have: TRIMSLOTS of Redis 8.4, CLUSTER FLUSHSLOT of Valkey
// 9, or the deletion of each key.
void Trimmer::propagate(const SlotSet& slots) {
  server::Propagation& propagation = server_.propagation();
  const server::Edition& edition = server_.edition();
  if (!edition.has({8, 4}, {9, 0})) {
    const auto gone = [&](store::Keyspace& database, const std::string& key) {
      server_.events().moved_away(database, key);
      propagation.add(database.index(), {"DEL", key});
    };
    slots.for_each([&](int slot) { delete_slot(server_, slot, gone, /*lazily=*/true); });
    return;
  }
  if (edition.is_valkey()) {
    slots.for_each([&](int slot) {
      if (keys_in_slot(server_, slot) == 0) return;
      propagation.add(server::kAnyDatabase,
                      {"CLUSTER", "FLUSHSLOT", std::to_string(slot), "ASYNC"});
    });
    return;
  }
  std::vector<std::string> words = {"RANGES", std::to_string(slots.runs())};
  slots.for_each_run([&](int first, int last) {
    words.push_back(std::to_string(first));
    words.push_back(std::to_string(last));
  });
  const std::vector<std::string_view> rest(words.begin(), words.end());
  propagation.add(server::kAnyDatabase, {"TRIMSLOTS"}, rest);
}

void Trimmer::trim_now(const SlotSet& slots) {
  slots.for_each([&](int slot) {
    uint64_t cursor = 0;
    while (keys_in_slot(server_, slot) > 0)
      trim_step(slot, &cursor, /*in_background=*/true, SIZE_MAX);
  });
}

void Trimmer::finish(const SlotSet& slots) {
  for (size_t i = 0; i < jobs_.size();) {
    Job& job = jobs_[i];
    SlotSet now;
    slots.for_each([&](int slot) {
      if (job.slots.has(slot)) now.add(slot);
    });
    if (!now.empty()) {
      begin(job);
      const uint64_t keys = keys_in_slots(server_, now);
      trim_now(now);
      job.trimmed += keys;
      job.cursor = 0;
      now.for_each([&](int slot) {
        job.slots.remove(slot);
        show(slot);
      });
    }
    if (!job.slots.empty()) {
      ++i;
      continue;
    }
    end(job);
    jobs_.erase(jobs_.begin() + static_cast<ptrdiff_t>(i));
  }
}

void Trimmer::cancel_all() {
  for (const Job& job : std::exchange(jobs_, {})) {
    if (job.active) ++figures_.cancelled;
    job.slots.for_each([&](int slot) { show(slot); });
  }
}

void Trimmer::show(int slot) {
  store::HiddenSlots& hidden = *server_.database(0).hidden_slots();
  hidden.set_leaving(slot, false);
  hidden.update();
}

bool Trimmer::covers(int slot) const {
  return std::any_of(jobs_.begin(), jobs_.end(),
                     [&](const Job& job) { return job.slots.has(slot); });
}

bool Trimmer::covers_any(const SlotSet& slots) const {
  bool any = false;
  slots.for_each([&](int slot) { any |= covers(slot); });
  return any;
}

bool Trimmer::is_held() const {
  constexpr uint32_t kHolds = server::kStatePaused | server::kStateLoading |
                              server::kStateAsyncLoading | server::kStateBusy;
  return (server_.state() & kHolds) != 0 || server_.tasks().any();
}

Trimmer::Figures Trimmer::figures() const {
  Figures figures = figures_;
  figures.running = static_cast<size_t>(
      std::count_if(jobs_.begin(), jobs_.end(), [](const Job& job) { return job.active; }));
  return figures;
}

// --- Working -------------------------------------------------------------------------------------

void Trimmer::work() {
  if (jobs_.empty()) return;
  const bool held = is_held();
  if (!held) {
    // Replicas begin at once, too.
    for (Job& job : jobs_) begin(job);
  }
  if (held || (jobs_.front().active && delay_us_ < 0)) {
    if (timer_ != nullptr) timer_->start(kPatienceMs);
    return;
  }
  run_jobs(server_.clock().monotonic_us() + kBudgetUs);
  if (timer_ == nullptr || jobs_.empty()) return;
  const bool slowly = jobs_.front().active && delay_us_ > 0;
  timer_->start(slowly ? static_cast<uint64_t>(std::max<int64_t>(delay_us_ / base::kUsPerMs, 1))
                       : kIntervalMs);
}

void Trimmer::run_jobs(int64_t until_us) {
  while (!jobs_.empty()) {
    Job& job = jobs_.front();
    if (job.active) {
      figures_.keys = job.keys;
      figures_.trimmed = job.trimmed;
    }
    const bool slowly = job.active && delay_us_ != 0;
    if (!trim_some(job, slowly ? 1 : kStep)) {
      end(job);
      jobs_.pop_front();
      continue;
    }
    if (slowly || server_.clock().monotonic_us() >= until_us) return;
  }
}

void Trimmer::end(const Job& job) {
  if (!job.active) return;
  ++figures_.completed;
  figures_.trimmed = job.trimmed;
  server_.log().notice("Active trim completed for slots: " + std::to_string(job.trimmed) +
                       " keys trimmed.");
}

bool Trimmer::trim_some(Job& job, size_t most) {
  size_t done = 0;
  while (done < most && !job.slots.empty()) {
    int slot = -1;
    job.slots.for_each_run([&](int first, int) {
      if (slot < 0) slot = first;
    });
    if (keys_in_slot(server_, slot) == 0) {
      job.slots.remove(slot);
      job.cursor = 0;
      show(slot);
      continue;
    }
    done += trim_step(slot, &job.cursor, !job.active, most - done);
  }
  job.trimmed += done;
  if (job.active) figures_.trimmed = job.trimmed;
  return !job.slots.empty();
}

size_t Trimmer::trim_step(int slot, uint64_t* cursor, bool in_background, size_t most) {
  // The first database that has keys of the slot; another cursor's place there is as good as any.
  const auto databases = server_.databases();
  const auto found = std::find_if(databases.begin(), databases.end(), [slot](const auto& database) {
    return database->slot_index()->in(slot) > 0;
  });
  if (found == databases.end()) return 0;
  store::Keyspace& db = **found;
  std::vector<std::string> keys;
  const uint64_t at = *cursor;
  *cursor = db.slot_index()->scan(
      slot, at, [&](const store::Entry& entry) { keys.emplace_back(entry.key()); });
  if (keys.size() > most) {
    // The rest of this place comes with the next step.
    keys.resize(most);
    *cursor = at;
  }
  std::vector<store::DetachedEntry> freed;
  for (const std::string& key : keys) {
    store::KeyRef ref =
        db.find_for_write(key, store::Keyspace::kPeek | store::Keyspace::kEvenExpired);
    if (!ref) continue;
    if (in_background && !db.must_keep(ref)) {
      freed.push_back(db.detach(ref));
    } else {
      db.erase(ref);
    }
    server_.events().moved_away(db, key);
  }
  const size_t count = freed.size();
  if (count > 0) server_.environment().reclaimer.destroy_later(count, std::move(freed));
  return keys.size();
}

}  // namespace latchkey::cluster

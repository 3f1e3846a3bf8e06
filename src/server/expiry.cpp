#include "server/expiry.h"

#include "server/command/keyspace_events.h"
#include "server/command/propagation.h"
#include "server/server.h"

namespace latchkey::server {

namespace {

constexpr uint64_t kIntervalMs = 20;
// A backlog is worked off between other work.
constexpr uint64_t kPauseMs = 1;
// Entries between two glances at the clock.
constexpr size_t kStep = 32;
// Long enough for half a million keys a second.
constexpr int64_t kBudgetUs = 250;
// When keys have been waiting for this long, a slice may take longer.
constexpr int64_t kLateUs = 60'000;
constexpr int64_t kLateBudgetUs = 1000;

}  // namespace

Expiry::Expiry(Server& server) : server_(server) {
  if (server.loop() != nullptr)
    timer_ = std::make_unique<net::Timer>(*server.loop(), [this] { work_on_timer(); });
}

void Expiry::show_expired(bool on) {
  shows_expired_ = on;
  server_.update_expired_policy();
}

// What expires is told to everybody, whomever the script that comes upon it writes for.

void Expiry::propagate_expired_key(const store::Keyspace& keyspace, std::string_view key) {
  Propagation& propagation = server_.propagation();
  const Propagation::TargetScope everybody(propagation, kPropagateToAll);
  propagation.add_removal(keyspace.index(), key, server_.settings().lazyfree_lazy_expire);
}

void Expiry::propagate_expired_fields(const store::Keyspace& keyspace, std::string_view key,
                                      std::span<const std::string> names) {
  Propagation& propagation = server_.propagation();
  if (!propagation.wanted()) return;
  const Propagation::TargetScope everybody(propagation, kPropagateToAll);
  const bool at_once = server_.edition().is_valkey();
  if (at_once && !names.empty()) {
    std::vector<std::string_view> words{"HDEL", key};
    words.insert(words.end(), names.begin(), names.end());
    return propagation.add(keyspace.index(), words);
  }
  for (const std::string& field : names) propagation.add(keyspace.index(), {"HDEL", key, field});
}

void Expiry::key_expiring(store::Keyspace& keyspace, std::string_view key) {
  propagate_expired_key(keyspace, key);
  server_.events().happened(keyspace, key, EventClass::kExpired, "expired");
}

// Only hashes have elements with deadlines.
void Expiry::elements_expired(store::Keyspace& keyspace, std::string_view key,
                              std::span<const std::string> names, bool last) {
  propagate_expired_fields(keyspace, key, names);
  server_.events().happened(keyspace, key, EventClass::kHash, "hexpired");
  if (server_.events().wants_subkeys()) {
    const std::vector<std::string_view> fields(names.begin(), names.end());
    server_.events().subkeys_changed(keyspace, key, EventClass::kHash, "hexpired", fields);
  }
  if (last) server_.events().happened(keyspace, key, EventClass::kGeneric, "del");
}

bool Expiry::any_deadlines() const {
  for (int i = 0; i < server_.database_count(); ++i) {
    if (server_.database(i).has_deadlines()) return true;
  }
  return false;
}

void Expiry::turn_ended() {
  if (timer_runs_ || timer_ == nullptr || changes_seen_ == server_.events().total()) return;
  changes_seen_ = server_.events().total();
  if (!any_deadlines()) return;
  timer_runs_ = true;
  timer_->start(kIntervalMs);
}

void Expiry::work_on_timer() {
  server_.refresh_clock();
  const bool done = work();
  timer_runs_ = any_deadlines();
  if (timer_runs_) timer_->start(done ? kIntervalMs : kPauseMs);
}

// While it exists, keys past their deadline are not there for expire_due(), which otherwise would
// leave them where DEBUG SET-ALLOW-ACCESS-EXPIRED shows them.
class [[nodiscard]] Expiry::HideScope {
 public:
  explicit HideScope(Expiry& expiry) : expiry_(expiry), outer_(expiry.shows_expired_) {
    if (outer_) expiry_.show_expired(false);
  }
  ~HideScope() {
    if (outer_) expiry_.show_expired(true);
  }
  HideScope(const HideScope&) = delete;
  HideScope& operator=(const HideScope&) = delete;

 private:
  Expiry& expiry_;
  bool outer_;
};

bool Expiry::work() {
  const HideScope hide_expired(*this);
  return work_on_due();
}

bool Expiry::work_on_due() {
  // Time stands still for a script that runs, and what is being loaded is not all there yet.
  if (!enabled_ || (server_.state() & (kStateBusy | kStateLoading)) != 0) return true;
  const LatencyTimer timer(server_, "expire-cycle");
  const uint64_t started = base::CycleClock::ticks();
  const bool done = work_within_budget();
  server_.stats().expiry_ticks += base::CycleClock::ticks() - started;
  if (!done) ++server_.stats().expiry_cap_reached;
  return done;
}

bool Expiry::work_within_budget() {
  const int64_t started_us = server_.clock().monotonic_us();
  const bool late = started_us - caught_up_us_ > kLateUs;
  const int64_t until_us = started_us + (late ? kLateBudgetUs : kBudgetUs);
  // Databases take turns, so that none waits for another's backlog.
  for (int done_in_a_row = 0; done_in_a_row < server_.database_count();) {
    const bool done = server_.database(next_database_).expire_due(kStep);
    next_database_ = (next_database_ + 1) % server_.database_count();
    if (done) {
      ++done_in_a_row;
      continue;
    }
    done_in_a_row = 0;
    if (server_.clock().monotonic_us() > until_us) return false;
  }
  caught_up_us_ = started_us;
  return true;
}

}  // namespace latchkey::server

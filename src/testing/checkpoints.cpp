#include "testing/checkpoints.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "cluster/cluster.h"
#include "persist/rdb/dump_payload.h"
#include "server/observe/info.h"
#include "server/server.h"
#include "store/time_series/label_index.h"
#include "store/undo_log.h"
#include "testing/checkpoint_participants.h"

namespace latchkey::testing {

using namespace server;
using store::Entry;
using store::Keyspace;
using store::UndoLog;

struct Checkpoints::Checkpoint {
  std::string name;
  int64_t created_ms = 0;
  // One for each database, in the order of the databases when it was created.
  std::vector<std::unique_ptr<UndoLog>> logs;
  // As many as there were participants.
  std::vector<std::unique_ptr<CheckpointParticipant::State>> states;
  // In a cluster, NodeTable::slots_moment().
  uint64_t slots_moment = 0;

  Description describe() const {
    Description description{name, created_ms, 0, 0};
    for (const auto& log : logs) {
      description.keys += log->keys();
      description.bytes += log->memory_usage();
    }
    return description;
  }
};

Checkpoints::Checkpoints(Server& server)
    : server_(server), participants_(standard_participants(server)) {
  server_.hooks().role_changed.add([this] {
    if (server_.is_replica()) drop_all("the server follows a master");
  });
  server_.hooks().dataset_replacing.add([this] { drop_all("another dataset is loaded"); });
  server_.info().extend("Memory", [this](InfoText& text) {
    const Description all = total();
    text.field("checkpoints", size());
    text.field("checkpoint_keys", all.keys);
    text.field("mem_checkpoints", all.bytes);
  });
}

Checkpoints::~Checkpoints() {
  while (!stack_.empty()) merge_newest();
}

// --- The stack -----------------------------------------------------------------------------------

size_t Checkpoints::index_of(std::string_view name) const {
  const auto found = std::find_if(stack_.begin(), stack_.end(),
                                  [&](const auto& checkpoint) { return checkpoint->name == name; });
  return static_cast<size_t>(found - stack_.begin());
}

bool Checkpoints::contains(std::string_view name) const {
  return index_of(name) < stack_.size();
}

const std::string& Checkpoints::newest() const {
  return stack_.back()->name;
}

std::string Checkpoints::unused_name() {
  std::string name;
  do {
    name = "checkpoint-" + std::to_string(++named_);
  } while (contains(name));
  return name;
}

std::vector<Checkpoints::Description> Checkpoints::list() const {
  std::vector<Description> all;
  for (const auto& checkpoint : stack_) all.push_back(checkpoint->describe());
  return all;
}

Checkpoints::Description Checkpoints::total() const {
  Description sum{};
  for (const Description& each : list()) {
    sum.keys += each.keys;
    sum.bytes += each.bytes;
  }
  return sum;
}

void Checkpoints::create(std::string name) {
  auto checkpoint = std::make_unique<Checkpoint>();
  checkpoint->name = std::move(name);
  checkpoint->created_ms = server_.now_ms();
  for (const auto& participant : participants_) checkpoint->states.push_back(participant->save());
  if (const auto* node = server_.find_layer<cluster::Cluster>(); node != nullptr)
    checkpoint->slots_moment = node->nodes().slots_moment();
  for (const auto& database : server_.databases()) {
    checkpoint->logs.push_back(
        std::make_unique<UndoLog>(server_.environment(), database->index(), database->undo_log()));
    database->set_undo_log(checkpoint->logs.back().get());
  }
  stack_.push_back(std::move(checkpoint));
}

void Checkpoints::merge_newest() {
  Checkpoint& newest = *stack_.back();
  for (const auto& database : server_.databases())
    database->set_undo_log(database->undo_log()->below());
  for (const auto& log : newest.logs) {
    if (log->below() != nullptr) log->below()->absorb(*log);
  }
  stack_.pop_back();
}

void Checkpoints::drop(std::string_view name) {
  const size_t index = index_of(name);
  while (stack_.size() > index) merge_newest();
}

void Checkpoints::drop_all(std::string_view reason) {
  if (stack_.empty()) return;
  server_.log().warning("Checkpoints are dropped, because " + std::string(reason) + ".");
  while (!stack_.empty()) merge_newest();
}

// --- Rolling back --------------------------------------------------------------------------------

namespace {

// The series that a compaction rule links with that of the entry.
void add_linked(const Entry& entry, std::vector<const Entry*>* entries) {
  const auto& series = static_cast<const store::TimeSeries&>(*entry.value());
  const store::SeriesIndex& index = *series.index();
  if (const store::TimeSeries* source = index.source(series); source != nullptr)
    entries->push_back(&source->entry());
  for (const store::CompactionRule& rule : series.rules()) {
    const store::TimeSeries* destination = index.destination(series, rule);
    if (destination != nullptr) entries->push_back(&destination->entry());
  }
}

}  // namespace

std::string_view Checkpoints::rollback_error(std::string_view name) const {
  const auto* node = server_.find_layer<cluster::Cluster>();
  if (node == nullptr) return {};
  if (node->imports_slots()) {
    return "ERR CHECKPOINT ROLLBACK is not possible while slots of other nodes are imported, whose "
           "keys it would delete";
  }
  if (!node->nodes().has_gained_since(stack_[index_of(name)]->slots_moment)) return {};
  return "ERR Slots have come from other nodes since the checkpoint: a rollback would delete their "
         "keys. DROP the checkpoint";
}

void Checkpoints::rollback(std::string_view name) {
  const size_t index = index_of(name);
  while (stack_.size() > index + 1) merge_newest();
  Checkpoint& checkpoint = *stack_[index];
  restore_order();
  bool any_whole = false;
  for (const auto& database : server_.databases()) {
    UndoLog& log = *database->undo_log();
    any_whole |= log.holds_contents();
    database->set_undo_log(nullptr);
    restore_database(*database, log);
    database->set_undo_log(&log);
  }
  if (any_whole) server_.events().flushed();
  for (size_t i = 0; i < checkpoint.states.size(); ++i)
    participants_[i]->restore(*checkpoint.states[i]);
  // Keys may be back in slots that have become another node's.
  if (cluster::Cluster* node = server_.find_layer<cluster::Cluster>(); node != nullptr)
    node->slot_migration().trim_unowned();
}

void Checkpoints::restore_order() {
  for (int i = 0; i < server_.database_count(); ++i) {
    int from = i;
    while (server_.database(from).undo_log()->database() != i) ++from;
    if (from == i) continue;
    server_.events().swapping(server_.database(i), server_.database(from));
    server_.database(i).swap(server_.database(from));
    server_.propagation().add(kAnyDatabase, {"SWAPDB", i, from});
  }
}

void Checkpoints::restore_database(Keyspace& database, UndoLog& log) {
  const std::unique_ptr<Keyspace> contents = log.take_contents();
  const bool whole = contents != nullptr;
  KeyspaceEvents& events = server_.events();
  if (whole) {
    events.swapping(database, *contents);
    events.count(contents->size());
    database.swap(*contents);
    contents->clear(/*lazily=*/true);
  }
  std::vector<Restored> keys;
  log.restore_keys(database, [&](std::string_view key, bool existed, const Entry* entry) {
    if (entry != nullptr || existed) keys.push_back({std::string(key), entry});
  });
  // When all keys are back: the payload of a time series names those that its rules link it with.
  if (whole) {
    propagate_contents(database);
  } else {
    propagate_keys(database.index(), keys);
  }
  for (const auto& [key, entry] : keys) {
    if (entry == nullptr) {
      events.removed(database, key);
    } else {
      events.changed(database, key, EventClass::kGeneric, "restore");
    }
  }
}

void Checkpoints::propagate_keys(int database, const std::vector<Restored>& keys) {
  if (!server_.propagation().wanted()) return;
  std::vector<const Entry*> entries;
  for (const auto& [key, entry] : keys) {
    if (entry != nullptr) {
      entries.push_back(entry);
    } else {
      propagate_key(database, key, nullptr);
    }
  }
  // RESTORE makes another series of the key, which the series at the other ends of its links do
  // not know: these are made anew as well.
  std::unordered_set<const Entry*> propagated;
  for (size_t i = 0; i < entries.size(); ++i) {
    const Entry& entry = *entries[i];
    if (!propagated.insert(&entry).second) continue;
    propagate_key(database, entry.key(), &entry);
    if (entry.type() == store::Type::kTimeSeries) add_linked(entry, &entries);
  }
}

void Checkpoints::propagate_key(int database, std::string_view key, const Entry* entry) {
  Propagation& propagation = server_.propagation();
  if (!propagation.wanted()) return;
  if (entry == nullptr) return propagation.add(database, {"DEL", key});
  // A deadline of 0 would mean none.
  const int64_t deadline_ms =
      entry->has_deadline() ? std::max<int64_t>(entry->deadline_ms(), 1) : 0;
  const std::string value = persist::make_dump(*entry, server_.settings().rdbcompression,
                                               server_.edition().rdb_version());
  propagation.add(database, {"RESTORE", key, deadline_ms, value, "REPLACE", "ABSTTL"});
}

void Checkpoints::propagate_contents(const Keyspace& database) {
  if (!server_.propagation().wanted()) return;
  server_.propagation().add(database.index(), {"FLUSHDB"});
  // Expired keys, too: the clock may go back as well.
  database.table().for_each(
      [&](Entry* entry) { propagate_key(database.index(), entry->key(), entry); });
}

}  // namespace latchkey::testing

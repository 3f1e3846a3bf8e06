// Semaphores that are lists of tokens: what LockModel knows of them.
#include <algorithm>
#include <utility>

#include "locks/lock_model.h"
#include "locks/lock_text.h"

namespace latchkey::locks {

namespace {

std::string tokens(int64_t count) {
  return std::to_string(count) + (count == 1 ? " token" : " tokens");
}

// Of sets of records that are kept by clients.
template <typename Sets, typename Client>
void remove(Sets& sets, const Client& client, Record& record) {
  const auto it = sets.find(client);
  if (it == sets.end()) return;
  it->second.erase(&record);
  if (it->second.empty()) sets.erase(it);
}

}  // namespace

void LockModel::tokens_made(int database, std::string_view key, const Cause& cause, int64_t count) {
  const bool is_named = patterns_.empty() ? names_lock(key) : matches_patterns(key);
  if (!is_named) return;
  used_otherwise(database, key);
  Record& record = make(database, key);
  record.known_by = patterns_.empty() ? KnownBy::kName : KnownBy::kPattern;
  record.semaphore = std::make_unique<Semaphore>();
  record.semaphore->created = record.semaphore->there = count;
  ++semaphores_;
  add_event(EventKind::kTokensMade, record, party(cause.client), cause.time_ms).count =
      static_cast<uint64_t>(count);
}

bool LockModel::is_semaphore(int database, std::string_view key) const {
  const Record* record = find(database, key);
  return record != nullptr && record->semaphore != nullptr;
}

Semaphore::User* LockModel::user_of(Semaphore& semaphore, uint64_t client) {
  const auto it =
      std::find_if(semaphore.users.begin(), semaphore.users.end(),
                   [&](const Semaphore::User& user) { return same_client(*user.client, client); });
  return it == semaphore.users.end() ? nullptr : &*it;
}

Semaphore::User& LockModel::add_user(Record& record, uint64_t client) {
  Semaphore::User& user = record.semaphore->users.emplace_back();
  user.client = party(client);
  user.left_trace = true;
  semaphores_of_[client].insert(&record);
  set_trace(record, user, false);
  return user;
}

void LockModel::forget_user(Record& record, const Semaphore::User& user) {
  remove(semaphores_of_, user.client->id, record);
  if (user.left_trace) return;
  remove(traceless_, user.client->id, record);
  if (!user.client->name.empty()) remove(traceless_by_name_, user.client->name, record);
}

void LockModel::forget_semaphore(Record& record) {
  --semaphores_;
  for (const Semaphore::User& user : record.semaphore->users) forget_user(record, user);
}

void LockModel::set_trace(Record& record, Semaphore::User& user, bool left) {
  if (user.left_trace == left) return;
  user.left_trace = left;
  const Party& client = *user.client;
  if (left) {
    remove(traceless_, client.id, record);
    if (!client.name.empty()) remove(traceless_by_name_, client.name, record);
  } else {
    traceless_[client.id].insert(&record);
    if (!client.name.empty()) traceless_by_name_[client.name].insert(&record);
  }
}

void LockModel::tokens_counted(int database, std::string_view key, const Cause& cause,
                               int64_t there, bool leaves_trace) {
  Record* record = use(database, key);
  if (record == nullptr || record->semaphore == nullptr) return;
  Semaphore& semaphore = *record->semaphore;
  const int64_t change = there - std::exchange(semaphore.there, there);
  if (change == 0) return;
  if (cause.client == 0) {
    semaphore.elsewhere = std::max<int64_t>(semaphore.elsewhere - change, 0);
    return;
  }
  add_event(change < 0 ? EventKind::kTokenTaken : EventKind::kTokenReturned, *record,
            party(cause.client), cause.time_ms)
      .count = static_cast<uint64_t>(std::abs(change));
  if (change < 0) return token_taken(*record, cause, -change, leaves_trace);
  token_returned(*record, cause, change);
}

void LockModel::token_taken(Record& record, const Cause& cause, int64_t count, bool leaves_trace) {
  Semaphore& semaphore = *record.semaphore;
  record.taken += static_cast<uint64_t>(count);
  Semaphore::User* user = user_of(semaphore, cause.client);
  if (user == nullptr) {
    auto& users = semaphore.users;
    if (users.size() == kMaxUsers) {
      const auto idle = std::find_if(users.begin(), users.end(), [](const Semaphore::User& other) {
        return other.has == 0 && other.extra == 0;
      });
      // One that is not known is not accused.
      if (idle == users.end()) return;
      forget_user(record, *idle);
      users.erase(idle);
    }
    user = &add_user(record, cause.client);
  }
  user->has += count;
  user->since_ms = cause.time_ms;
  if (leaves_trace || cause.via != Via::kPlain) set_trace(record, *user, true);
}

void LockModel::token_returned(Record& record, const Cause& cause, int64_t count) {
  Semaphore& semaphore = *record.semaphore;
  Semaphore::User* const own = user_of(semaphore, cause.client);
  const auto give_back = [&](Semaphore::User& user) {
    const int64_t given = std::min(user.has, count);
    user.has -= given;
    count -= given;
    if (user.has == 0) set_trace(record, user, false);
  };
  if (own != nullptr) give_back(*own);
  if (own != nullptr && count > 0) {
    own->extra += count;
    own->extra_ms = cause.time_ms;
  }
  // What others have is given back for them: after a crash, or through another connection.
  for (Semaphore::User& user : semaphore.users) {
    if (!clients_.is_connected(user.client->id)) give_back(user);
  }
  const int64_t from_elsewhere = std::min(semaphore.elsewhere, count);
  semaphore.elsewhere -= from_elsewhere;
  count -= from_elsewhere;
  // A client that has never taken a token enlarges the semaphore, or is another connection of one
  // that has.
  if (own == nullptr) {
    semaphore.created += count;
    if (count == 0) return;
    for (Semaphore::User& user : semaphore.users) set_trace(record, user, true);
    return;
  }
  for (Semaphore::User& user : semaphore.users) give_back(user);
  if (count == 0) return;
  std::string evidence = own->client->shown() + " gave back a token at " +
                         clock_time(cause.time_ms) + ", when nobody had one: there are " +
                         tokens(semaphore.there) + ", and it was created with " +
                         std::to_string(semaphore.created) + ".";
  for (const Semaphore::User& user : semaphore.users) {
    if (&user == own || user.extra == 0) continue;
    evidence += " Before, at " + clock_time(user.extra_ms) + ", " + user.client->shown() +
                " gave back more than it had taken.";
  }
  add_finding(FindingKind::kUnbalanced, record, own->client, cause.time_ms, std::move(evidence));
}

void LockModel::trace_left(uint64_t client) {
  if (traceless_.empty()) return;
  std::vector<Record*> records;
  if (const auto it = traceless_.find(client); it != traceless_.end())
    records.assign(it->second.begin(), it->second.end());
  if (!traceless_by_name_.empty()) {
    const auto it = traceless_by_name_.find(party(client)->name);
    if (it != traceless_by_name_.end())
      records.insert(records.end(), it->second.begin(), it->second.end());
  }
  for (Record* record : records) {
    for (Semaphore::User& user : record->semaphore->users) {
      if (same_client(*user.client, client)) set_trace(*record, user, true);
    }
  }
}

void LockModel::tokens_lost_with(uint64_t client, int64_t now_ms) {
  const auto it = semaphores_of_.find(client);
  if (it == semaphores_of_.end()) return;
  std::vector<Record*> records(it->second.begin(), it->second.end());
  std::sort(records.begin(), records.end(),
            [](const Record* one, const Record* other) { return one->used > other->used; });
  for (Record* const its : records) {
    Record& record = *its;
    for (Semaphore::User& user : record.semaphore->users) {
      if (user.client->id != client || user.has == 0) continue;
      add_event(EventKind::kHolderGone, record, user.client, now_ms);
      if (user.left_trace) continue;
      set_trace(record, user, true);
      add_finding(FindingKind::kUnbalanced, record, user.client, now_ms,
                  user.client->shown() + " took a token at " + clock_time(user.since_ms) +
                      " and disconnected at " + clock_time(now_ms) + " with " + tokens(user.has) +
                      ", of which there is no trace in any key: " +
                      std::to_string(record.semaphore->there) + " of " +
                      tokens(record.semaphore->created) + " are there.");
    }
  }
}

}  // namespace latchkey::locks

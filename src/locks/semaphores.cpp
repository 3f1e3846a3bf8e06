// Semaphores that are lists of tokens: what LockModel knows of them.
#include <algorithm>
#include <utility>

#include "locks/lock_model.h"
#include "locks/lock_words.h"

namespace latchkey::locks {

namespace {

std::string tokens(int64_t count) {
  return std::to_string(count) + (count == 1 ? " token" : " tokens");
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

void LockModel::tokens_counted(int database, std::string_view key, const Cause& cause,
                               int64_t there, bool leaves_trace) {
  Record* record = use(database, key);
  if (record == nullptr || record->semaphore == nullptr) return;
  const int64_t change = there - std::exchange(record->semaphore->there, there);
  if (change == 0 || cause.client == 0) return;
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
      users.erase(idle);
    }
    user = &users.emplace_back(Semaphore::User{.client = party(cause.client)});
  }
  user->has += count;
  user->since_ms = cause.time_ms;
  user->left_trace |= leaves_trace || cause.via != Via::kPlain;
}

void LockModel::token_returned(Record& record, const Cause& cause, int64_t count) {
  Semaphore& semaphore = *record.semaphore;
  Semaphore::User* const own = user_of(semaphore, cause.client);
  const auto give_back = [&](Semaphore::User& user) {
    const int64_t given = std::min(user.has, count);
    user.has -= given;
    count -= given;
    if (user.has == 0) user.left_trace = false;
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
  // Somebody who has never taken any makes it larger, or is another connection of one who has.
  if (own == nullptr) {
    semaphore.created += count;
    for (Semaphore::User& user : semaphore.users) user.left_trace |= count > 0;
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
  find_fault(FindingKind::kUnbalanced, record, own->client, cause.time_ms, std::move(evidence));
}

void LockModel::trace_left(uint64_t client) {
  for (Record& record : order_) {
    if (record.semaphore == nullptr) continue;
    if (Semaphore::User* user = user_of(*record.semaphore, client)) user->left_trace = true;
  }
}

void LockModel::tokens_lost_with(uint64_t client, int64_t now_ms) {
  for (Record& record : order_) {
    if (record.semaphore == nullptr) continue;
    for (Semaphore::User& user : record.semaphore->users) {
      if (user.client->id != client || user.has == 0) continue;
      add_event(EventKind::kHolderGone, record, user.client, now_ms);
      if (user.left_trace) continue;
      user.left_trace = true;
      find_fault(FindingKind::kUnbalanced, record, user.client, now_ms,
                 user.client->shown() + " took a token at " + clock_time(user.since_ms) +
                     " and disconnected at " + clock_time(now_ms) + " with " + tokens(user.has) +
                     ", of which there is no trace in any key: " +
                     std::to_string(record.semaphore->there) + " of " +
                     tokens(record.semaphore->created) + " are there.");
    }
  }
}

}  // namespace latchkey::locks

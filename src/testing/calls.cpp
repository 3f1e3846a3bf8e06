#include "testing/calls.h"

#include <algorithm>
#include <utility>

#include "server/client/client.h"
#include "server/command/command_table.h"
#include "server/command/dispatcher.h"
#include "server/command/redaction.h"
#include "server/server.h"
#include "testing/reply_text.h"

namespace latchkey::testing {

using namespace server;

void Calls::start(size_t most) {
  most_ = most;
  while (records_.size() > most_) records_.pop_front();
  recording_ = true;
  server_.set_state(kStateRecorded, true);
}

void Calls::stop() {
  recording_ = false;
  server_.set_state(kStateRecorded, false);
  for (const Waiter& waiter : std::exchange(waiters_, {})) answer(waiter);
  waiting_calls_.clear();
}

void Calls::reset() {
  std::deque<Record>().swap(records_);
  waiting_calls_.clear();
}

bool Calls::matches(const Selector& selector, const Record& record) const {
  const Subject subject{.command = record.command,
                        .client_id = record.client_id,
                        .client_name = record.client_name,
                        .user = record.user,
                        .database = record.database};
  if (!selector.matches(subject)) return false;
  return !selector.names_keys() ||
         std::any_of(record.keys.begin(), record.keys.end(), [&](uint32_t position) {
           return selector.matches_key(record.words[position]);
         });
}

uint64_t Calls::count(const Selector& selector) const {
  return static_cast<uint64_t>(
      std::count_if(records_.begin(), records_.end(), [&](const Record& record) {
        return record.state != State::kRunning && matches(selector, record);
      }));
}

void Calls::wait(CommandContext& ctx, Selector selector, uint64_t wanted, int64_t deadline_ms) {
  Client& client = ctx.client;
  const uint64_t reached = count(selector);
  if (reached >= wanted || client.has(kClientDenyBlocking))
    return ctx.reply.integer(static_cast<int64_t>(reached));
  if (!recording_) return ctx.reply.error("ERR no calls are being recorded, use CALLS START");
  waiters_.push_back({client.id, std::move(selector), wanted, reached});
  const auto ended = [this, &client](BlockEnd end) {
    const auto it = std::find_if(waiters_.begin(), waiters_.end(), [&](const Waiter& waiter) {
      return waiter.client_id == client.id;
    });
    if (end == BlockEnd::kTimeout || end == BlockEnd::kUnblocked)
      client.reply.integer(static_cast<int64_t>(it->count));
    waiters_.erase(it);
  };
  client.wait(
      {.deadline_ms = deadline_ms, .may_unblock = true, .outlives_role = true, .ended = ended});
}

void Calls::answer(const Waiter& waiter) {
  server_.dispatcher().answer_waiting(waiter.client_id, [&waiter](Client& client) {
    client.reply.integer(static_cast<int64_t>(waiter.count));
  });
}

uint64_t Calls::begin(const Call& call) {
  const Client& client = call.client;
  if (client.has(kClientMaster | kClientReplica | kClientInternal) ||
      names_container(call, "CALLS"))
    return 0;
  const Subject subject = subject_of(call);
  const auto words = call.command != nullptr
                         ? shown_words(server_.config(), *call.command, call.args)
                         : std::vector<std::string_view>(call.args.begin(), call.args.end());
  Record record{.id = next_id_++,
                .time_us = server_.data_clock().wall_us(),
                .client_id = client.id,
                .client_name = client.name,
                .user = std::string(subject.user),
                .database = call.database,
                .context = call.context,
                .command = call.command,
                .words = shortened(words)};
  for (const uint32_t position : key_positions(call.command, call.args)) {
    if (position < record.words.size() && record.words[position] == call.args[position])
      record.keys.push_back(position);
  }
  if (records_.size() >= most_) records_.pop_front();
  return records_.emplace_back(std::move(record)).id;
}

Calls::Record* Calls::find(uint64_t id) {
  if (records_.empty() || id < records_.front().id) return nullptr;
  const uint64_t place = id - records_.front().id;
  return place < records_.size() ? &records_[place] : nullptr;
}

void Calls::end(uint64_t id, int64_t duration_us, std::string_view reply) {
  Record* record = find(id);
  if (record == nullptr) return;
  record->duration_us = duration_us;
  record->state = State::kEnded;
  record->reply = short_reply(reply);
  count_for_waiters(*record);
}

void Calls::waits(uint64_t id, int64_t duration_us) {
  Record* record = find(id);
  if (record == nullptr) return;
  record->duration_us = duration_us;
  record->state = State::kWaiting;
  waiting_calls_[record->client_id] = id;
  count_for_waiters(*record);
}

void Calls::wait_ended(const Client& client, std::string_view reply) {
  const auto it = waiting_calls_.find(client.id);
  if (it == waiting_calls_.end()) return;
  Record* record = find(it->second);
  waiting_calls_.erase(it);
  if (record == nullptr) return;
  record->state = State::kEnded;
  record->reply = short_reply(reply);
}

void Calls::count_for_waiters(const Record& record) {
  std::vector<Waiter> served;
  std::erase_if(waiters_, [&](Waiter& waiter) {
    if (!matches(waiter.selector, record) || ++waiter.count < waiter.wanted) return false;
    served.push_back(std::move(waiter));
    return true;
  });
  for (const Waiter& waiter : served) answer(waiter);
}

}  // namespace latchkey::testing

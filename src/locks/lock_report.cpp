#include "locks/lock_report.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace latchkey::locks {

namespace {

using resp::ReplyBuilder;

void field(ReplyBuilder& reply, std::string_view name, std::string_view value) {
  reply.bulk(name);
  reply.bulk(value);
}
void field(ReplyBuilder& reply, std::string_view name, int64_t value) {
  reply.bulk(name);
  reply.integer(value);
}
void field(ReplyBuilder& reply, std::string_view name, uint64_t value) {
  field(reply, name, static_cast<int64_t>(value));
}

constexpr size_t kPartyFields = 4;

void party_fields(ReplyBuilder& reply, const PartyRef& party) {
  const Party nobody;
  const Party& shown = party != nullptr ? *party : nobody;
  field(reply, "client-id", shown.id);
  field(reply, "client-name", shown.name);
  field(reply, "client-address", shown.address);
  field(reply, "client-user", shown.user);
}

constexpr size_t kLockFields = 3 + kPartyFields + 10;

void lock_fields(ReplyBuilder& reply, const Record& record, int64_t now_ms) {
  static const Hold kNobody{};
  const Hold& hold = record.hold ? *record.hold : kNobody;
  field(reply, "key", record.place->key);
  field(reply, "db", static_cast<int64_t>(record.place->database));
  const bool all_taken = record.semaphore != nullptr && record.semaphore->there == 0;
  field(reply, "state", record.hold || all_taken ? "held" : "free");
  party_fields(reply, hold.holder);
  field(reply, "connected", static_cast<int64_t>(record.hold && !hold.holder_gone ? 1 : 0));
  field(reply, "token", hold.token.text());
  field(reply, "recipe",
        record.semaphore != nullptr ? "tokens in a list"
        : record.hold               ? name_of(hold.recipe)
                                    : "");
  field(reply, "since-ms", hold.since_ms);
  field(reply, "held-ms", record.hold ? held_ms(hold, now_ms) : 0);
  field(reply, "deadline-ms", hold.deadline_ms);
  field(reply, "prolonged", hold.prolongations);
  field(reply, "refused", hold.refused);
  const auto refused_clients = static_cast<uint64_t>(
      std::count_if(record.contenders.begin(), record.contenders.end(), [&](const auto& contender) {
        return record.hold && contender.row > 0 && contender.last_ms >= hold.since_ms;
      }));
  field(reply, "refused-clients", refused_clients);
  field(reply, "taken", record.taken);
}

void reply_contender(ReplyBuilder& reply, const Contender& contender) {
  reply.map(kPartyFields + 3);
  party_fields(reply, contender.client);
  field(reply, "refused", contender.refused);
  field(reply, "in-a-row", contender.row);
  field(reply, "last-ms", contender.last_ms);
}

void reply_past(ReplyBuilder& reply, const PastHold& past) {
  reply.map(kPartyFields + 4);
  party_fields(reply, past.holder);
  field(reply, "token", past.token.text());
  field(reply, "since-ms", past.since_ms);
  field(reply, "ended-ms", past.ended_ms);
  field(reply, "end", name_of(past.end));
}

}  // namespace

void reply_lock(ReplyBuilder& reply, const Record& record, int64_t now_ms) {
  reply.map(kLockFields);
  lock_fields(reply, record, now_ms);
}

void reply_lock_in_full(ReplyBuilder& reply, const Record& record, LockWatch& watch,
                        int64_t now_ms) {
  reply.map(kLockFields + 7);
  lock_fields(reply, record, now_ms);
  field(reply, "known-by", name_of(record.known_by));
  reply.bulk("contenders");
  reply.array(record.contenders.size());
  for (const Contender& contender : record.contenders) reply_contender(reply, contender);
  const std::vector<LockWatch::Waiting> waiting = watch.waiting_for(record);
  reply.bulk("waiting");
  reply.array(waiting.size());
  for (const LockWatch::Waiting& one : waiting) {
    reply.map(kPartyFields + 1);
    party_fields(reply, one.client);
    field(reply, "by", one.how);
  }
  const Semaphore none;
  const Semaphore& semaphore = record.semaphore != nullptr ? *record.semaphore : none;
  field(reply, "tokens", semaphore.there);
  field(reply, "tokens-created", semaphore.created);
  reply.bulk("past");
  reply.array(record.past.size());
  for (const PastHold& past : record.past) reply_past(reply, past);
  reply.bulk("findings");
  const ReplyBuilder::Later later = reply.later();
  size_t count = 0;
  for (const Finding& finding : watch.model().findings()) {
    if (!(*finding.place == *record.place)) continue;
    reply.bulk(description_of(finding.kind).name);
    ++count;
  }
  reply.array_later(later, count);
}

void reply_event(ReplyBuilder& reply, const Event& event) {
  reply.map(8 + kPartyFields);
  field(reply, "id", event.id);
  field(reply, "time-ms", event.time_ms);
  field(reply, "last-ms", event.last_ms);
  field(reply, "key", event.place->key);
  field(reply, "db", static_cast<int64_t>(event.place->database));
  field(reply, "event", name_of(event.kind));
  field(reply, "count", event.count);
  party_fields(reply, event.client);
  field(reply, "deadline-ms", event.deadline_ms);
}

void reply_finding(ReplyBuilder& reply, const Finding& finding, const server::Edition& edition) {
  const FindingDescription& words = description_of(finding.kind);
  reply.map(10 + kPartyFields);
  field(reply, "id", finding.id);
  field(reply, "finding", words.name);
  field(reply, "severity", name_of(words.severity));
  field(reply, "key", finding.place->key);
  field(reply, "db", static_cast<int64_t>(finding.place->database));
  party_fields(reply, finding.client);
  field(reply, "first-ms", finding.first_ms);
  field(reply, "last-ms", finding.last_ms);
  field(reply, "times", finding.times);
  field(reply, "evidence", finding.evidence);
  field(reply, "remedy", remedy_of(finding.kind, edition));
}

}  // namespace latchkey::locks

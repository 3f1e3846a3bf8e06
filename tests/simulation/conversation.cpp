#include "simulation/conversation.h"

#include <algorithm>
#include <utility>

#include "server/server.h"
#include "simulation/steps.h"

namespace latchkey::simulation {

namespace {

using Kind = Request::Kind;

constexpr std::string_view kKilled = "-ERR Script killed by user";
// Datasets that are possible: more come about only by a mistake.
constexpr size_t kMaxPossible = 4096;

}  // namespace

void Conversation::sent(Request request) {
  sent_bytes_ += encode(request.words).size();
  if (request.kind == Kind::kPush) ledger_.sent(request.words[2]);
  waiting_.push_back({std::move(request), sent_bytes_});
}

void Conversation::consumed(size_t bytes, const Moment& moment) {
  if (bytes == 0) return;
  consumed_bytes_ += bytes;
  moment_ = moment;
}

void Conversation::replied(const std::string& reply) {
  while (!waiting_.empty() && waiting_.front().request.kind == Kind::kSilent) {
    run_perhaps(waiting_.front().request);
    unsure_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  if (!waiting_.empty() && waiting_.front().request.kind == Kind::kNoReplies && reply[0] != '-') {
    unsure_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
    return replied(reply);
  }
  if (waiting_.empty() || waiting_.front().end > consumed_bytes_)
    throw CheckFailed("a reply that nobody has asked for: " + shown(reply));
  Sent sent = std::move(waiting_.front());
  waiting_.pop_front();
  if (is_refusal(reply)) {
    refused(sent.request, reply);
  } else {
    match(sent.request, reply);
  }
  unsure_.push_back(std::move(sent));
}

// Refused for the state that the server is in.
bool Conversation::is_refusal(const std::string& reply) const {
  const std::pair<std::string_view, uint32_t> errors[] = {
      {"-BUSY ", server::kStateBusy},
      {"-LOADING ", server::kStateLoading},
      {"-MISCONF ", server::kStateDiskError},
      {"-READONLY ", server::kStateReadOnly},
      {"-EXECABORT ", 0},
  };
  for (const auto& [code, bit] : errors) {
    if (reply.starts_with(code) && (bit == 0 || (moment_.state & bit) != 0)) return true;
  }
  return false;
}

void Conversation::refused(const Request& request, const std::string& reply) {
  if (reply.starts_with("-EXECABORT ")) {
    const bool may_be = transaction_.open && (transaction_.aborted || moment_.state != 0);
    if (request.kind != Kind::kExec || !may_be) unfit(request, reply);
    return end_transaction();
  }
  if (request.kind == Kind::kExec || request.kind == Kind::kDiscard) unfit(request, reply);
  transaction_.aborted |= transaction_.open;
}

void Conversation::match(const Request& request, const std::string& reply) {
  switch (request.kind) {
    case Kind::kMulti:
      if (reply != kOk || transaction_.open) unfit(request, reply);
      transaction_.open = true;
      return;
    case Kind::kExec:
      return match_exec(reply);
    case Kind::kDiscard:
      if (reply != (transaction_.open ? kOk : "-ERR DISCARD without MULTI\r\n"))
        unfit(request, reply);
      return end_transaction();
    case Kind::kWatch:
      if (reply != kOk) unfit(request, reply);
      transaction_.watch = Watch::kClean;
      transaction_.watched_key = request.words[1];
      // It may expire.
      for (const Model& model : possible_) {
        const auto it = model.values().find(transaction_.watched_key);
        if (it != model.values().end() && it->second.deadline_ms != 0)
          transaction_.watch = Watch::kMaybe;
      }
      return;
    default:
      break;
  }
  if (!transaction_.open) return match_known(request, reply);
  if (reply != kQueued) unfit(request, reply);
  transaction_.queue.push_back(request);
}

void Conversation::match_known(const Request& request, const std::string& reply) {
  if (request.kind == Kind::kAnything) {
    if (request.first_bytes.find(reply[0]) == std::string::npos) unfit(request, reply);
    return;
  }
  if (request.kind == Kind::kPush) {
    if (reply[0] != ':') unfit(request, reply);
    return ledger_.pushed(request.words[2]);
  }
  if (request.kind == Kind::kPop) {
    // BLPOP replies with the key as well.
    if (reply == kNull || reply == kNullArray) return;
    const bool is_array = reply[0] == '*';
    if (!is_array && reply[0] != '$') unfit(request, reply);
    if (is_array && elements(reply).size() != 2) unfit(request, reply);
    return ledger_.popped(content(is_array ? elements(reply)[1] : reply));
  }
  if (reply.starts_with(kKilled) && !(request.may_be_killed && moment_.kill_granted))
    unfit(request, reply);
  std::vector<Model> fitting;
  for (Model& model : possible_) {
    Model changed = model;
    if (run(request, changed, reply) == reply) fitting.push_back(std::move(changed));
  }
  if (fitting.empty()) unfit(request, reply);
  possible_.clear();
  unite(std::move(fitting));
  note_touch(request);
}

void Conversation::match_exec(const std::string& reply) {
  const Request exec{.kind = Kind::kExec, .words = {"EXEC"}};
  if (!transaction_.open) {
    if (reply != "-ERR EXEC without MULTI\r\n") unfit(exec, reply);
    return;
  }
  if (transaction_.aborted) unfit(exec, reply);
  if (reply == kNullArray) {
    if (transaction_.watch != Watch::kMaybe && transaction_.watch != Watch::kTouched)
      unfit(exec, reply);
    return end_transaction();
  }
  if (reply[0] != '*' || transaction_.watch == Watch::kTouched) unfit(exec, reply);
  const std::vector<std::string> parts = elements(reply);
  if (parts.size() != transaction_.queue.size()) unfit(exec, reply);
  const std::vector<Request> queue = transaction_.queue;
  end_transaction();
  for (size_t i = 0; i < parts.size(); ++i) {
    // What a script would write may be refused alone.
    if (!is_refusal(parts[i])) match_known(queue[i], parts[i]);
  }
}

void Conversation::end_transaction() {
  transaction_ = {};
}

std::string Conversation::run(const Request& request, Model& model,
                              const std::string& reply) const {
  if (request.kind != Kind::kScript) return model.run(request.words, moment_.now_ms);
  if (reply.starts_with(kKilled)) return reply;
  for (const Words& effect : request.effects) model.run(effect, moment_.now_ms);
  return request.reply;
}

void Conversation::note_touch(const Request& request) {
  if (transaction_.watch != Watch::kClean || request.words.size() < 2) return;
  if (request.words[1] != transaction_.watched_key) return;
  transaction_.watch = request.words[0] == "SET" ? Watch::kTouched : Watch::kMaybe;
}

void Conversation::acknowledged() {
  if (unsure_.empty()) return;
  unsure_.clear();
  sure_possible_ = possible_;
  sure_transaction_ = transaction_;
}

void Conversation::disturbed() {
  if (transaction_.watch == Watch::kClean) transaction_.watch = Watch::kMaybe;
}

void Conversation::flushed() {
  disturbed();
  for (Model& model : possible_) model.clear();
  possible_.resize(1);
  sure_possible_ = possible_;
}

void Conversation::run_perhaps(const Request& request) {
  if (request.kind == Kind::kPop) return ledger_.may_have_popped();
  if (request.kind != Kind::kOwn && request.kind != Kind::kSilent && request.kind != Kind::kScript)
    return;
  std::vector<Model> changed = possible_;
  for (Model& model : changed) run(request, model, "");
  unite(std::move(changed));
}

void Conversation::unite(std::vector<Model> more) {
  for (Model& model : more) {
    if (std::find(possible_.begin(), possible_.end(), model) == possible_.end())
      possible_.push_back(std::move(model));
  }
  if (possible_.size() > kMaxPossible) throw CheckFailed("too many datasets are possible");
}

void Conversation::ended(bool crashed) {
  if (crashed) {
    possible_ = sure_possible_;
    transaction_ = sure_transaction_;
    waiting_.insert(waiting_.begin(), unsure_.begin(), unsure_.end());
  }
  for (const Sent& each : waiting_) {
    if (each.end > consumed_bytes_) break;
    const Request& request = each.request;
    if (request.kind == Kind::kMulti) {
      transaction_.open = true;
    } else if (request.kind == Kind::kDiscard) {
      end_transaction();
    } else if (request.kind == Kind::kExec) {
      // All of it, or nothing.
      const std::vector<Model> before = possible_;
      std::vector<Model> after = possible_;
      for (const Request& queued : transaction_.queue) {
        if (queued.kind == Kind::kPop) ledger_.may_have_popped();
        if (queued.kind != Kind::kOwn && queued.kind != Kind::kScript) continue;
        std::vector<Model> unchanged;
        if (queued.may_be_killed) unchanged = after;
        for (Model& model : after) run(queued, model, "");
        after.insert(after.end(), unchanged.begin(), unchanged.end());
      }
      unite(std::move(after));
      end_transaction();
    } else if (transaction_.open) {
      transaction_.queue.push_back(request);
    } else {
      run_perhaps(request);
    }
  }
  waiting_.clear();
  unsure_.clear();
}

void Conversation::unfit(const Request& request, const std::string& reply) const {
  std::string words;
  for (const std::string& word : request.words) words += shown(word, 60) + " ";
  throw CheckFailed("'" + words + "' was replied " + shown(reply) + "; the keys should hold " +
                    possible_.front().text() +
                    (possible_.size() > 1 ? " (or something else)" : ""));
}

}  // namespace latchkey::simulation

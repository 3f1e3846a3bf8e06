#include "server/client/request_pump.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/assert.h"
#include "base/free_if_large.h"
#include "server/client/client_info.h"
#include "server/client/master_link.h"
#include "server/client/output_limits.h"
#include "server/client/replica_link.h"
#include "server/command/dispatcher.h"
#include "server/command/transaction.h"
#include "server/server.h"
#include "server/tasks.h"

namespace latchkey::server {

namespace {

// Of one argument in the master's stream.
constexpr size_t kMaxOfMaster = size_t{1} << 40;

char printable(char byte) {
  return byte >= ' ' && byte <= '~' ? byte : '.';
}

// The start and the end of bytes for the log, with dots for what cannot be printed.
std::string excerpt(std::span<const char> bytes) {
  constexpr size_t kMaxShown = 128;
  std::string text = "'";
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes.size() > kMaxShown && i == kMaxShown / 2) {
      text += "' (... more " + std::to_string(bytes.size() - kMaxShown) + " bytes ...) '";
      i = bytes.size() - kMaxShown / 2;
    }
    text += printable(bytes[i]);
  }
  return text + "'";
}

// What the log says of bytes that are no request. `reason`: "Protocol error: ...".
std::string protocol_error_text(Client& client, std::string reason, std::span<const char> bytes) {
  constexpr std::string_view kPrefix = "Protocol error: ";
  if (reason.starts_with(kPrefix))
    reason = "Protocol error (" + reason.substr(kPrefix.size()) + ")";
  std::transform(reason.begin(), reason.end(), reason.begin(), printable);
  const Server& server = client.server;
  const bool valkey = server.edition().is_valkey();
  std::string shown = excerpt(bytes);
  if (server.settings().hide_user_data_from_log) {
    shown = kRedacted;
    if (!valkey) shown = "'" + shown + "'";
  }
  return reason + " from client: " + describe_for_log(client) +
         (valkey ? ". Query buffer: " : ". Query buffer during protocol error: ") + shown;
}

}  // namespace

size_t RequestPump::process(Client& client, std::span<char> bytes) {
  server_.refresh_clock();
  server_.pack_collections();
  client.last_interaction_ms = server_.machine_ms();
  if (client.has(kClientBlocked | kClientSuspended)) {
    // What a waiting client sends stays where it is.
    check_limits(client, bytes.size());
    return 0;
  }
  // Nothing of the master's stream may be refused: it waits for the end of what others wait for.
  if (client.has(kClientMaster) && server_.tasks().any()) return 0;
  if (bytes.size() > static_cast<size_t>(server_.settings().client_query_buffer_limit) &&
      !client.has(kClientMaster)) {
    check_limits(client, bytes.size());
    return bytes.size();
  }
  const size_t consumed = run(client, bytes);
  base::free_if_large(&batch_.words, kMaxKeptArguments);
  if (client.has(kClientClosing)) {
    // Nobody gets it, and the client is freed only at the end of the turn.
    if (!client.has(kClientSuspended)) client.out().clear();
    return bytes.size();
  }
  if (client.connection() != nullptr) {
    if (!client.has(kClientSuspended)) send(client);
    if (client.has(kClientClosing)) return bytes.size();
    check_limits(client, bytes.size() - consumed);
  }
  return client.has(kClientCloseAfterReply) ? bytes.size() : consumed;
}

void RequestPump::advance(Client& client, std::span<char> bytes, size_t* consumed, size_t end) {
  const size_t begin = std::exchange(*consumed, end);
  if (client.master != nullptr) [[unlikely]]
    client.master->applied({bytes.data() + begin, end - begin});
}

resp::RequestParser::Limits RequestPump::limits_for(const Client& client) const {
  const bool is_valkey_91 = server_.edition().is_valkey_since({9, 1});
  return {.max_bulk_size = client.has(kClientMaster)
                               ? kMaxOfMaster
                               : static_cast<size_t>(server_.settings().proto_max_bulk_len),
          .authenticated = !client.has(kClientNeedsAuth),
          .strict_breaks = is_valkey_91,
          .joins_quotes = is_valkey_91};
}

// Every batch comes through here.
[[gnu::always_inline]] inline resp::RequestParser::Status RequestPump::parse_batch(
    Client& client, std::span<char> bytes, size_t* consumed) {
  using Status = resp::RequestParser::Status;
  batch_.words.clear();
  batch_.requests.clear();
  const resp::RequestParser::Limits limits = limits_for(client);
  const size_t most = limits.authenticated ? static_cast<size_t>(server_.settings().lookahead) : 1;
  size_t position = *consumed;
  while (batch_.requests.size() < most && position < bytes.size()) {
    const size_t first = batch_.words.size();
    size_t used = 0;
    const Status status = client.parser.parse(bytes.subspan(position), limits, batch_.words, &used);
    if (status != Status::kRequest) return status;
    const size_t count = batch_.words.size() - first;
    // The master sends no inline requests.
    if (client.has(kClientMaster) && bytes[position] != '*' && count > 0) [[unlikely]]
      return Status::kError;
    position += used;
    if (count == 0 && client.replica != nullptr) [[unlikely]]
      client.replica->is_alive();
    if (count > 0) {
      batch_.requests.push_back({.first = first, .count = count, .end = position});
    } else if (batch_.requests.empty()) {
      advance(client, bytes, consumed, position);
    } else {
      batch_.requests.back().end = position;
    }
  }
  return Status::kRequest;
}

size_t RequestPump::run(Client& client, std::span<char> bytes) {
  using Status = resp::RequestParser::Status;
  server_.dispatcher().begin_batch();
  size_t consumed = 0;
  Status status = Status::kRequest;
  while (status == Status::kRequest && consumed < bytes.size() && !stopped(client)) {
    status = parse_batch(client, bytes, &consumed);
    prefetch(client);
    may_take_long(client) ? execute_in_task(client, bytes, &consumed)
                          : execute_all(client, bytes, &consumed);
    if (stopped(client)) {
      // Requests parsed ahead are parsed again when their time comes.
      client.parser.reset();
      return consumed;
    }
  }
  if (status == Status::kError) refuse(client, bytes.subspan(consumed));
  return consumed;
}

void RequestPump::execute_all(Client& client, std::span<char> bytes, size_t* consumed) {
  for (const Request& request : batch_.requests) {
    const Arguments args = batch_.words_of(request);
    if (request.command == nullptr && is_cross_protocol_attack(client, args[0])) return;
    if (server_.dispatcher().execute(client, args, request.command) ==
        Dispatcher::Outcome::kPostponed)
      return;
    advance(client, bytes, consumed, request.end);
    if (client.out().size() > kMaxUnsent) [[unlikely]] {
      send(client);
    }
    if (stopped(client)) return;
  }
}

// --- Requests that may take long -----------------------------------------------------------------

void RequestPump::Batch::own(std::span<const char> came_as) {
  bytes.assign(came_as.data(), came_as.size());
  const auto place_of = [came_as](std::string_view word) {
    return reinterpret_cast<uintptr_t>(word.data()) - reinterpret_cast<uintptr_t>(came_as.data());
  };
  bool scattered = false;
  for (const std::string_view word : words) scattered |= place_of(word) >= came_as.size();
  if (scattered) [[unlikely]] {
    for (const std::string_view word : words) {
      if (place_of(word) >= came_as.size()) bytes.append(word);
    }
  }
  size_t next = came_as.size();
  for (std::string_view& word : words) {
    const size_t place = place_of(word);
    word =
        place < came_as.size()
            ? std::string_view(bytes.data() + place, word.size())
            : std::string_view(bytes.data() + std::exchange(next, next + word.size()), word.size());
  }
}

bool RequestPump::may_take_long(const Client& client) const {
  // A transaction may take as long as what it holds.
  const uint32_t queued = client.transaction != nullptr ? client.transaction->command_flags : 0;
  return std::any_of(batch_.requests.begin(), batch_.requests.end(),
                     [queued](const Request& request) {
                       return request.command != nullptr &&
                              ((request.command->flags | queued) & kMayTakeLong) != 0;
                     });
}

void RequestPump::execute_in_task(Client& client, std::span<char> bytes, size_t* consumed) {
  if (spare_.empty()) spare_.push_back(std::make_unique<Batch>());
  std::unique_ptr<Batch> own = std::move(spare_.back());
  spare_.pop_back();
  std::swap(*own, batch_);
  own->own(bytes.subspan(*consumed, own->requests.back().end - *consumed));
  const bool ended = server_.tasks().run([this, &client, batch = std::move(own),
                                          consumed]() mutable {
    execute_own(client, *batch, consumed);
    if (batch->bytes.capacity() > kMaxKeptArguments || batch->words.capacity() > kMaxKeptArguments)
      return;
    spare_.push_back(std::move(batch));
  });
  if (!ended) client.request_suspended();
}

void RequestPump::execute_own(Client& client, const Batch& batch, size_t* consumed) {
  const size_t first = *consumed;
  for (const Request& request : batch.requests) {
    const Arguments args = batch.words_of(request);
    if (request.command == nullptr && is_cross_protocol_attack(client, args[0])) return;
    const auto bytes =
        std::string_view(batch.bytes).substr(*consumed - first, request.end - *consumed);
    if (!execute_suspendable(client, request, args, bytes, consumed)) return;
  }
}

bool RequestPump::execute_suspendable(Client& client, const Request& request, Arguments args,
                                      std::string_view bytes, size_t* consumed) {
  // Until the loop has the thread again nobody knows that this was suspended: it counts as
  // consumed.
  const size_t begin = std::exchange(*consumed, request.end);
  const bool postponed = server_.dispatcher().execute(client, args, request.command) ==
                         Dispatcher::Outcome::kPostponed;
  const bool was_suspended = client.has(kClientSuspended);
  if (postponed) {
    // A pause is seen before anything can take long.
    LK_ASSERT(!was_suspended);
    *consumed = begin;
    return false;
  }
  if (client.master != nullptr) client.master->applied(bytes);
  if (was_suspended) {
    client.request_ended();
    return false;
  }
  if (client.out().size() > kMaxUnsent) [[unlikely]] {
    send(client);
  }
  return !stopped(client);
}

// --- Beside requests -----------------------------------------------------------------------------

void RequestPump::send(Client& client) {
  if (client.has(kClientClosing)) return;
  enforce_output_limit(client);
  if (!client.has(kClientClosing) && client.connection() != nullptr) client.connection()->flush();
}

void RequestPump::refuse(Client& client, std::span<const char> bytes) {
  std::string reason(client.parser.error());
  if (client.master != nullptr) {
    if (reason.empty()) reason = "Protocol error (Master using the inline protocol. Desync?)";
    client.master->desynchronized(reason);
    server_.log().warning(protocol_error_text(client, reason, bytes));
    return client.close();
  }
  if (server_.log().enabled(base::LogLevel::kVerbose))
    server_.log().verbose(protocol_error_text(client, reason, bytes));
  const size_t mark = client.out().mark();
  client.reply.error("ERR " + reason);
  server_.dispatcher().count_error(client, client.reply.last_error_mark());
  if (client.has(kClientReplyOff)) client.out().truncate(mark);
  client.close_after_reply();
}

bool RequestPump::is_cross_protocol_attack(Client& client, std::string_view word) {
  if (!is_word(word, "POST") && !is_word(word, "HOST:")) return false;
  constexpr int64_t kReportIntervalMs = 60'000;
  if (last_attack_reported_ms_ == 0 ||
      server_.machine_ms() - last_attack_reported_ms_ > kReportIntervalMs) {
    last_attack_reported_ms_ = server_.machine_ms();
    server_.log().warning(
        "Possible SECURITY ATTACK detected. It looks like somebody is sending POST or Host: "
        "commands to Redis. This is likely due to an attacker attempting to use Cross Protocol "
        "Scripting to compromise your Redis instance. Connection from " +
        client.peer_address() + " aborted.");
  }
  client.close();
  return true;
}

void RequestPump::prefetch(Client& client) {
  size_t keys = 0;
  for (Request& request : batch_.requests) {
    const Arguments args = batch_.words_of(request);
    request.command = server_.dispatcher().lookup(args);
    if (batch_.requests.size() < 2 || request.command == nullptr) continue;
    const auto key = static_cast<size_t>(request.command->first_key);
    if (key == 0 || key >= request.count) continue;
    request.keyspace = &server_.database(client.database);
    request.hash = request.keyspace->prefetch_bucket(args[key]);
    ++keys;
  }
  if (keys == 0) return;
  ++server_.stats().prefetched_batches;
  server_.stats().prefetched_keys += keys;
  for (const Request& request : batch_.requests) {
    if (request.keyspace != nullptr) request.keyspace->prefetch_entry(request.hash);
  }
  for (const Request& request : batch_.requests) {
    if (request.keyspace != nullptr) request.keyspace->prefetch_chained_entry(request.hash);
  }
  prefetch_elements();
}

void RequestPump::prefetch_elements() {
  const Request* before = nullptr;
  for (Request& request : batch_.requests) {
    if (request.keyspace == nullptr || request.command->element == 0) continue;
    const auto place = static_cast<size_t>(request.command->element);
    const Arguments args = batch_.words_of(request);
    if (request.command->element > 0 && place >= args.size()) continue;
    // Pipelines often stay with one key.
    request.value = before != nullptr && before->hash == request.hash
                        ? before->value
                        : request.keyspace->prefetch_value(
                              args[static_cast<size_t>(request.command->first_key)], request.hash);
    before = &request;
    const std::string_view element = request.command->element > 0 ? args[place] : args.back();
    if (request.value != nullptr)
      request.element_hash = request.keyspace->environment().secret.hash(element);
  }
  if (before == nullptr) return;
  using enum store::LookupStep;
  for (const store::LookupStep step : {kBucket, kItem, kChainedItem}) {
    for (const Request& request : batch_.requests) {
      if (request.value != nullptr) request.value->prefetch(request.element_hash, step);
    }
  }
}

void RequestPump::check_limits(Client& client, size_t kept_bytes) {
  if (client.has(kClientMaster)) return;
  if (kept_bytes > static_cast<size_t>(server_.settings().client_query_buffer_limit)) {
    server_.log().warning("Closing client that reached max query buffer length: " +
                          describe_for_log(client));
    ++server_.stats().query_buffer_limit_disconnections;
    client.close();
    return;
  }
  enforce_output_limit(client);
}

}  // namespace latchkey::server

#include "server/request_pump.h"

#include <algorithm>
#include <string>
#include <utility>

#include "server/client_info.h"
#include "server/dispatcher.h"
#include "server/master_link.h"
#include "server/output_limits.h"
#include "server/server.h"

namespace latchkey::server {

namespace {

// Of one argument in the master's stream.
constexpr size_t kMostOfMaster = size_t{1} << 40;

char printable(char byte) {
  return byte >= ' ' && byte <= '~' ? byte : '.';
}

// The start and the end of bytes for the log, with dots for what cannot be printed.
std::string excerpt(std::span<const char> bytes) {
  constexpr size_t kMostShown = 128;
  std::string text = "'";
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes.size() > kMostShown && i == kMostShown / 2) {
      text += "' (... more " + std::to_string(bytes.size() - kMostShown) + " bytes ...) '";
      i = bytes.size() - kMostShown / 2;
    }
    text += printable(bytes[i]);
  }
  return text + "'";
}

}  // namespace

size_t RequestPump::process(Client& client, std::span<char> bytes) {
  server_.refresh_clock();
  client.last_interaction_ms = server_.now_ms();
  if (client.has(kClientBlocked)) {
    // What a waiting client sends stays where it is.
    check_limits(client, bytes.size());
    return 0;
  }
  // Nothing of the master's stream may be refused: it waits for the end of the script.
  if (client.has(kClientMaster) && (server_.state() & kStateBusy) != 0) return 0;
  if (bytes.size() > static_cast<size_t>(server_.settings().client_query_buffer_limit) &&
      !client.has(kClientMaster)) {
    check_limits(client, bytes.size());
    return bytes.size();
  }
  if (depth_ == frames_.size()) frames_.push_back(std::make_unique<Frame>());
  Frame& frame = *frames_[depth_++];
  const size_t consumed = run(client, bytes, frame);
  if (frame.arguments.capacity() > kMostKeptArguments) resp::Arguments().swap(frame.arguments);
  --depth_;
  if (client.has(kClientClosing)) return bytes.size();
  if (net::Connection* connection = client.connection(); connection != nullptr) {
    send(client);
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

size_t RequestPump::run(Client& client, std::span<char> bytes, Frame& frame) {
  using Status = resp::RequestParser::Status;
  server_.dispatcher().begin_batch();

  size_t consumed = 0;
  Status status = Status::kRequest;
  while (status == Status::kRequest && consumed < bytes.size() && !stopped(client)) {
    frame.arguments.clear();
    frame.requests.clear();
    const resp::RequestParser::Limits limits{
        .max_bulk_size = client.has(kClientMaster)
                             ? kMostOfMaster
                             : static_cast<size_t>(server_.settings().proto_max_bulk_len),
        .authenticated = !client.has(kClientNeedsAuth),
    };
    const size_t most = limits.authenticated ? kBatchSize : 1;
    size_t position = consumed;
    while (frame.requests.size() < most && position < bytes.size()) {
      const size_t first = frame.arguments.size();
      size_t used = 0;
      status = client.parser.parse(bytes.subspan(position), limits, frame.arguments, &used);
      if (status != Status::kRequest) break;
      if (client.has(kClientMaster) && bytes[position] != '*' && frame.arguments.size() > first)
          [[unlikely]] {
        status = Status::kError;
        break;
      }
      position += used;
      const size_t count = frame.arguments.size() - first;
      if (count > 0) {
        frame.requests.push_back({first, count, position, nullptr, nullptr, 0, nullptr, 0});
      } else if (frame.requests.empty()) {
        advance(client, bytes, &consumed, position);
      } else {
        frame.requests.back().end = position;
      }
    }
    prefetch(client, frame);
    for (const Request& request : frame.requests) {
      const Arguments args(frame.arguments.data() + request.first, request.count);
      if (request.command == nullptr && is_cross_protocol_attack(client, args[0])) break;
      if (server_.dispatcher().execute(client, args, request.command) ==
          Dispatcher::Outcome::kPostponed)
        break;
      advance(client, bytes, &consumed, request.end);
      if (client.out().size() > kMostUnsent) [[unlikely]] {
        send(client);
      }
      if (stopped(client)) break;
    }
    if (stopped(client)) {
      // Requests parsed ahead are parsed again when their time comes.
      client.parser.reset();
      return consumed;
    }
  }
  if (status == Status::kError) refuse(client, bytes.subspan(consumed));
  return consumed;
}

void RequestPump::send(Client& client) {
  enforce_output_limit(client);
  if (!client.has(kClientClosing) && client.connection() != nullptr) client.connection()->flush();
}

void RequestPump::refuse(Client& client, std::span<const char> bytes) {
  std::string reason(client.parser.error());
  if (client.master != nullptr) {
    if (reason.empty()) reason = "Protocol error (Master using the inline protocol. Desync?)";
    client.master->desynchronized(reason);
    server_.log().warning(reason + " from client: " + describe(client) +
                          ". Query buffer during protocol error: " + excerpt(bytes));
    return client.close();
  }
  if (server_.log().enabled(base::LogLevel::kVerbose)) {
    std::string line = reason;
    std::transform(line.begin(), line.end(), line.begin(), printable);
    server_.log().verbose(line + " from client: " + describe(client) +
                          ". Query buffer during protocol error: " + excerpt(bytes));
  }
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
      server_.now_ms() - last_attack_reported_ms_ > kReportIntervalMs) {
    last_attack_reported_ms_ = server_.now_ms();
    server_.log().warning(
        "Possible SECURITY ATTACK detected. It looks like somebody is sending POST or Host: "
        "commands to Redis. This is likely due to an attacker attempting to use Cross Protocol "
        "Scripting to compromise your Redis instance. Connection from " +
        client.peer_address() + " aborted.");
  }
  client.close();
  return true;
}

void RequestPump::prefetch(Client& client, Frame& frame) {
  for (Request& request : frame.requests) {
    const Arguments args(frame.arguments.data() + request.first, request.count);
    request.command = server_.dispatcher().lookup(args);
    if (frame.requests.size() < 2 || request.command == nullptr) continue;
    const auto key = static_cast<size_t>(request.command->first_key);
    if (key == 0 || key >= request.count) continue;
    request.keyspace = &server_.database(client.database);
    request.hash = request.keyspace->prefetch_bucket(args[key]);
  }
  for (const Request& request : frame.requests) {
    if (request.keyspace != nullptr) request.keyspace->prefetch_entry(request.hash);
  }
  for (const Request& request : frame.requests) {
    if (request.keyspace != nullptr) request.keyspace->prefetch_chained_entry(request.hash);
  }
  prefetch_elements(frame);
}

void RequestPump::prefetch_elements(Frame& frame) {
  const Request* before = nullptr;
  for (Request& request : frame.requests) {
    if (request.keyspace == nullptr || request.command->element == 0) continue;
    const auto place = static_cast<size_t>(request.command->element);
    const Arguments args(frame.arguments.data() + request.first, request.count);
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
    for (const Request& request : frame.requests) {
      if (request.value != nullptr) request.value->prefetch(request.element_hash, step);
    }
  }
}

void RequestPump::check_limits(Client& client, size_t kept_bytes) {
  if (client.has(kClientMaster)) return;
  if (kept_bytes > static_cast<size_t>(server_.settings().client_query_buffer_limit)) {
    server_.log().warning("Closing client that reached max query buffer length: " +
                          describe(client));
    ++server_.stats().query_buffer_limit_disconnections;
    client.close();
    return;
  }
  enforce_output_limit(client);
}

}  // namespace latchkey::server

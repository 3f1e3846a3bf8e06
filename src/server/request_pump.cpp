#include "server/request_pump.h"

#include "server/client_info.h"
#include "server/dispatcher.h"
#include "server/output_limits.h"
#include "server/server.h"

namespace latchkey::server {

size_t RequestPump::process(Client& client, std::span<char> bytes) {
  if (client.has(kClientBlocked)) {
    // What a waiting client sends stays where it is.
    check_limits(client, bytes.size());
    return 0;
  }
  if (depth_ == frames_.size()) frames_.push_back(std::make_unique<Frame>());
  Frame& frame = *frames_[depth_++];
  const size_t consumed = run(client, bytes, frame);
  --depth_;
  client.total_bytes_in += consumed;
  if (client.has(kClientClosing)) return bytes.size();
  if (net::Connection* connection = client.connection(); connection != nullptr) {
    connection->flush();
    if (client.has(kClientClosing)) return bytes.size();
    check_limits(client, bytes.size() - consumed);
  }
  return client.has(kClientCloseAfterReply) ? bytes.size() : consumed;
}

size_t RequestPump::run(Client& client, std::span<char> bytes, Frame& frame) {
  using Status = resp::RequestParser::Status;
  server_.refresh_clock();
  client.last_interaction_ms = server_.now_ms();
  server_.dispatcher().begin_batch();

  size_t consumed = 0;
  Status status = Status::kRequest;
  while (status == Status::kRequest && consumed < bytes.size() && !stopped(client)) {
    frame.arguments.clear();
    frame.requests.clear();
    const resp::RequestParser::Limits limits{
        .max_bulk_size = static_cast<size_t>(server_.settings().proto_max_bulk_len),
        .authenticated = !client.has(kClientNeedsAuth),
    };
    const size_t most = limits.authenticated ? kBatchSize : 1;
    size_t position = consumed;
    while (frame.requests.size() < most && position < bytes.size()) {
      const size_t first = frame.arguments.size();
      size_t used = 0;
      status = client.parser.parse(bytes.subspan(position), limits, frame.arguments, &used);
      if (status != Status::kRequest) break;
      position += used;
      const size_t count = frame.arguments.size() - first;
      if (count > 0) {
        frame.requests.push_back({first, count, position, nullptr, nullptr, 0});
      } else if (frame.requests.empty()) {
        consumed = position;
      } else {
        frame.requests.back().end = position;
      }
    }
    prefetch(client, frame);
    for (const Request& request : frame.requests) {
      const Arguments args(frame.arguments.data() + request.first, request.count);
      if (server_.dispatcher().execute(client, args, request.command) == Dispatcher::Outcome::kPostponed) break;
      consumed = request.end;
      if (stopped(client)) break;
    }
    if (stopped(client)) {
      // Requests parsed ahead are parsed again when their time comes.
      client.parser.reset();
      return consumed;
    }
  }
  if (status == Status::kError) {
    client.reply.error("ERR " + std::string(client.parser.error()));
    server_.dispatcher().count_error(client, client.reply.last_error_mark());
    client.close_after_reply();
  }
  return consumed;
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
}

void RequestPump::check_limits(Client& client, size_t kept_bytes) {
  if (kept_bytes > static_cast<size_t>(server_.settings().client_query_buffer_limit)) {
    server_.log().warning("Closing client that reached max query buffer length: " + describe(client));
    ++server_.stats().query_buffer_limit_disconnections;
    client.close();
    return;
  }
  enforce_output_limit(client);
}

}  // namespace latchkey::server

#include "server/client/tracking.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "resp/reply_builder.h"
#include "server/client/client.h"
#include "server/client/output_limits.h"
#include "server/command/command_table.h"
#include "server/command/dispatcher.h"
#include "server/server.h"

namespace latchkey::server {

namespace {

constexpr std::string_view kPushHeader = ">2\r\n$10\r\ninvalidate\r\n";
constexpr std::string_view kMessageHeader =
    "*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n";

// Keys dropped by the first call of drop_some().
constexpr size_t kMinGivenUp = 100;

// Expiry and eviction are not a client's own writes: NOLOOP does not suppress them.
bool is_not_by_command(EventClass event_class, std::string_view event) {
  return event_class == EventClass::kExpired || event_class == EventClass::kEvicted ||
         event == "hexpired";
}

}  // namespace

// An invalidation, encoded once for all its receivers: of the keys that have changed, or of all
// keys.
class Tracking::Message {
 public:
  explicit Message(Server& server) : keys_(server.buffer_pool()), builder_(keys_) {}
  void add_count(size_t count) { builder_.array(count); }
  void add_key(std::string_view key) { builder_.bulk(key); }

  void write(resp::OutputBuffer& out, bool resp3) const {
    out.append(resp3 ? kPushHeader : kMessageHeader);
    if (keys_.empty()) {
      out.append(resp3 ? "_\r\n" : "$-1\r\n");
    } else {
      out.append(keys_);
    }
  }

 private:
  resp::OutputBuffer keys_;  // empty: all keys are invalid
  resp::ReplyBuilder builder_;
};

Tracking::Tracking(Server& server)
    : server_(server), readers_(0, base::KeyedTextHash{&server.environment().secret}) {
  server_.config().on_change({"tracking-table-max-keys"}, [this] { update_limit(); });
}

// --- Clients that track --------------------------------------------------------------------------

void Tracking::start(Client& client, const TrackingOptions& options,
                     std::span<const std::string_view> prefixes) {
  if (client.tracking == nullptr) {
    client.tracking = std::make_unique<TrackingState>();
    client.set(kClientTracking);
    if (clients_++ == 0) server_.events().add(*this);
  }
  client.tracking->options = options;
  client.tracking->redirect_broken = false;
  if (!options.broadcast) return;
  for (const std::string_view prefix : prefixes) add_prefix(client, prefix);
  if (prefixes.empty()) add_prefix(client, "");
}

void Tracking::stop(Client& client) {
  if (client.tracking == nullptr) return;
  for (const std::string& prefix : client.tracking->prefixes) remove_prefix(client, prefix);
  client.tracking.reset();
  client.set(kClientTracking | kClientCaching, false);
  if (--clients_ != 0) return;
  server_.events().remove(*this);
  forget_table();
}

void Tracking::add_prefix(Client& client, std::string_view name) {
  client.tracking->prefixes.emplace(name);
  auto it = prefixes_.find(name);
  if (it == prefixes_.end()) {
    it = prefixes_.emplace(std::string(name), Prefix()).first;
    ++prefix_lengths_[name.size()];
  }
  it->second.listeners.insert(client.id);
}

void Tracking::remove_prefix(Client& client, const std::string& name) {
  const auto it = prefixes_.find(name);
  it->second.listeners.erase(client.id);
  if (!it->second.listeners.empty()) return;
  std::erase(touched_, it);
  prefixes_.erase(it);
  const auto length = prefix_lengths_.find(name.size());
  if (--length->second == 0) prefix_lengths_.erase(length);
}

size_t Tracking::memory_of(const Client& client) {
  if (client.tracking == nullptr) return 0;
  // A prefix is stored in the client's set and, with the client's id, in `prefixes_`.
  constexpr size_t kNode = 4 * sizeof(void*) + sizeof(std::string) + 2 * sizeof(uint64_t);
  size_t bytes = sizeof(TrackingState);
  for (const std::string& prefix : client.tracking->prefixes) bytes += kNode + prefix.size();
  return bytes;
}

// --- Keys that were read -------------------------------------------------------------------------

void Tracking::remember(Client& reader, const Command& command, Arguments args) {
  const TrackingOptions& options = reader.tracking->options;
  if (options.broadcast) return;
  const bool is_exception = reader.has(kClientCaching);
  if (options.opt_in ? !is_exception : options.opt_out && is_exception) return;
  found_.clear();
  if (!get_keys(command, args, &found_)) return;
  for (const KeyReference& reference : found_) add_sink(args[reference.position], reader.id);
  update_limit();
}

void Tracking::add_sink(std::string_view key, uint64_t client_id) {
  auto it = readers_.find(key);
  if (it == readers_.end()) it = readers_.emplace(std::string(key), ClientIds()).first;
  ClientIds& ids = it->second;
  const auto place = std::lower_bound(ids.begin(), ids.end(), client_id);
  if (place != ids.end() && *place == client_id) return;
  ids.insert(place, client_id);
  ++items_;
}

void Tracking::forget_table() {
  Readers gone(0, readers_.hash_function());
  gone.swap(readers_);
  items_ = 0;
  update_limit();
  server_.environment().reclaimer.free_container(std::move(gone));
}

bool Tracking::is_full() const {
  const auto most = static_cast<size_t>(server_.settings().tracking_table_max_keys);
  return most != 0 && readers_.size() > most;
}

void Tracking::update_limit() {
  const bool full = is_full();
  if (full != ((server_.state() & kStateTrackingFull) != 0))
    server_.set_state(kStateTrackingFull, full);
  if (!full) attempts_ = 0;
}

void Tracking::drop_some() {
  const size_t most = kMinGivenUp * static_cast<size_t>(++attempts_);
  for (size_t given_up = 0; given_up < most && is_full(); ++given_up)
    invalidate(random_key(), nullptr);
  update_limit();
}

Tracking::Readers::iterator Tracking::random_key() {
  // The table does not shrink by itself, and the way to a bucket that is not empty would be long.
  constexpr size_t kMostForOne = 8;
  if (readers_.bucket_count() / kMostForOne > readers_.size()) readers_.rehash(0);
  const size_t buckets = readers_.bucket_count();
  size_t bucket = server_.random_source().background().below(buckets);
  while (readers_.bucket_size(bucket) == 0) bucket = (bucket + 1) % buckets;
  return readers_.find(readers_.begin(bucket)->first);
}

void Tracking::invalidate(Readers::iterator key, const Client* spared) {
  const auto taken = readers_.extract(key);
  items_ -= taken.mapped().size();
  Message message(server_);
  message.add_count(1);
  message.add_key(taken.key());
  for (const uint64_t id : taken.mapped()) {
    Client* client = server_.clients().find(id);
    if (client == nullptr || client->tracking == nullptr) continue;
    const TrackingOptions& options = client->tracking->options;
    if (options.broadcast || (options.no_loop && client == spared)) continue;
    send(*client, message);
  }
}

// --- Changes -------------------------------------------------------------------------------------

void Tracking::key_changed(store::Keyspace&, std::string_view key, EventClass event_class,
                           std::string_view event) {
  if (is_beside_value(event_class, event)) return;
  if (event_class != EventClass::kEvicted) return invalidate_changed(key, event_class, event);
  const size_t before = server_.used_memory();
  invalidate_changed(key, event_class, event);
  const size_t after = server_.used_memory();
  memory_taken_by_evictions_ += after - std::min(after, before);
}

void Tracking::invalidate_changed(std::string_view key, EventClass event_class,
                                  std::string_view event) {
  const Dispatcher& dispatcher = server_.dispatcher();
  const Client* client = owned_ ? dispatcher.serving() : nullptr;
  if (const auto it = readers_.find(key); it != readers_.end()) {
    invalidate(it, client);
    update_limit();
  }
  if (prefixes_.empty()) return;
  // The caller of a script is sent the keys that the script writes: it may not know them.
  const bool is_own = client != nullptr && !dispatcher.in_script();
  add_to_broadcast(key, is_own && !is_not_by_command(event_class, event) ? client->id : 0);
}

void Tracking::dataset_flushed() {
  const Message all(server_);
  server_.clients().for_each([&](Client& client) {
    if (client.tracking != nullptr) send(client, all);
  });
  forget_table();
}

void Tracking::add_to_broadcast(std::string_view key, uint64_t changed_by) {
  for (const auto& [length, count] : prefix_lengths_) {
    if (length > key.size()) return;
    const auto it = prefixes_.find(key.substr(0, length));
    if (it == prefixes_.end()) continue;
    ChangedKeys& changed = it->second.changed;
    if (changed.empty()) touched_.push_back(it);
    changed.insert_or_assign(std::string(key), changed_by);
  }
}

void Tracking::broadcast() {
  std::sort(touched_.begin(), touched_.end(),
            [](const auto& one, const auto& other) { return one->first < other->first; });
  for (const auto& prefix : std::exchange(touched_, {})) {
    const ChangedKeys changed = std::exchange(prefix->second.changed, {});
    Message all(server_);
    all.add_count(changed.size());
    for (const auto& [key, changed_by] : changed) all.add_key(key);
    for (const uint64_t id : prefix->second.listeners) {
      // A client that is closed may still be running a transaction.
      if (Client* listener = server_.clients().find(id); listener != nullptr)
        broadcast_to(*listener, changed, all);
    }
  }
}

void Tracking::broadcast_to(Client& listener, const ChangedKeys& changed, const Message& all) {
  const auto is_own = [&](const auto& each) { return each.second == listener.id; };
  const bool spare_own = listener.tracking->options.no_loop;
  const auto own =
      static_cast<size_t>(spare_own ? std::count_if(changed.begin(), changed.end(), is_own) : 0);
  if (own == 0) return send(listener, all);
  if (own == changed.size()) return;
  Message others(server_);
  others.add_count(changed.size() - own);
  for (const auto& each : changed) {
    if (!is_own(each)) others.add_key(each.first);
  }
  send(listener, others);
}

// --- Messages ------------------------------------------------------------------------------------

void Tracking::send(Client& reader, const Message& message) {
  const uint64_t redirect = reader.tracking->options.redirect;
  Client* to = redirect != 0 ? server_.clients().find(redirect) : &reader;
  if (to == nullptr) return send_redirect_broken(reader);
  // RESP2 has no messages besides those of channels.
  if (!to->reply.is_resp3() && (redirect == 0 || !to->has(kClientSubscribed))) return;
  if (resp::OutputBuffer* out = open_buffer(*to); out != nullptr)
    message.write(*out, to->reply.is_resp3());
}

void Tracking::send_redirect_broken(Client& reader) {
  reader.tracking->redirect_broken = true;
  if (!reader.reply.is_resp3()) return;
  resp::OutputBuffer* out = open_buffer(reader);
  if (out == nullptr) return;
  out->append(">2\r\n$21\r\ntracking-redir-broken\r\n");
  resp::ReplyBuilder(*out).integer(static_cast<int64_t>(reader.tracking->options.redirect));
}

resp::OutputBuffer* Tracking::open_buffer(Client& client) {
  client.flush_soon();
  return may_be_sent_more(client) ? &server_.dispatcher().last_push_out(client) : nullptr;
}

}  // namespace latchkey::server

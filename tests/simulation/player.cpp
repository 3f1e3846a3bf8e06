#include "simulation/player.h"

#include <algorithm>
#include <utility>

#include "server/client/authentication.h"
#include "server/client/client.h"
#include "server/server.h"
#include "simulation/steps.h"

namespace latchkey::simulation {

namespace {

server::Client& connect(Node& node, int database) {
  server::Client& client = node.server().clients().add(nullptr);
  server::assume_default_user(client);
  client.database = database;
  return client;
}

}  // namespace

Player::Player(int number, Node& node, int database, Ledger& ledger)
    : name_("p" + std::to_string(number)),
      node_(node),
      database_(database),
      generation_(node.generation()),
      client_id_(connect(node, database).id),
      conversation_(ledger) {}

server::Client* Player::client() const {
  if (!node_.up() || node_.generation() != generation_) return nullptr;
  return node_.server().clients().find(client_id_);
}

void Player::ask(Request request) {
  on_the_way_ += encode(request.words);
  conversation_.sent(std::move(request));
}

bool Player::is_idle() const {
  return on_the_way_.empty() && arrived_.empty() && conversation_.waiting() == 0;
}

void Player::arrive(size_t most) {
  if (closed_) return;
  // What has been replied so far belongs to what was consumed before.
  read();
  if (closed_) return;
  const size_t size = std::min(most, on_the_way_.size());
  arrived_ += on_the_way_.substr(0, size);
  on_the_way_.erase(0, size);
  if (arrived_.empty()) return;
  const uint32_t state = node_.state();
  const int64_t now_ms = node_.server().clock().wall_us() / 1000;
  std::string offered = arrived_;
  const size_t consumed = client()->on_input(offered);
  // Moments are those of what was consumed, also where the client was closed on the way.
  conversation_.consumed(consumed, {.now_ms = now_ms, .state = state});
  arrived_.erase(0, consumed);
  read();
}

void Player::read() {
  if (closed_) return;
  server::Client* mine = client();
  if (mine == nullptr) return end(/*crashed=*/false);
  if (mine->has(server::kClientSuspended)) return conversation_.saw_state(node_.state());
  replies_ += mine->out().take_all();
  for (size_t size = reply_size(replies_); size != 0; size = reply_size(replies_)) {
    const std::string reply = replies_.substr(0, size);
    replies_.erase(0, size);
    try {
      conversation_.replied(reply);
    } catch (const CheckFailed& failure) {
      throw CheckFailed(name_ + " at " + node_.name() + ": " + failure.what());
    }
  }
  mine->on_flushed();
}

void Player::turn_ended() {
  read();
  if (!closed_) conversation_.acknowledged();
}

void Player::leave() {
  if (server::Client* mine = client(); mine != nullptr) mine->close();
  end(/*crashed=*/false);
}

void Player::crashed() {
  end(/*crashed=*/true);
}

void Player::end(bool crashed) {
  if (std::exchange(closed_, true)) return;
  conversation_.ended(crashed);
}

// --- Listeners -----------------------------------------------------------------------------------

Listener::Listener(int number, Node& node)
    : number_(number),
      node_(node),
      generation_(node.generation()),
      client_id_(connect(node, 0).id) {
  std::string request = encode({"SUBSCRIBE", kChannel});
  node.server().clients().find(client_id_)->on_input(request);
}

bool Listener::closed() const {
  return !node_.up() || node_.generation() != generation_ ||
         node_.server().clients().find(client_id_) == nullptr;
}

void Listener::read() {
  if (closed()) return;
  server::Client& mine = *node_.server().clients().find(client_id_);
  received_ += mine.out().take_all();
  for (size_t size = reply_size(received_); size != 0; size = reply_size(received_)) {
    const std::string message = received_.substr(0, size);
    received_.erase(0, size);
    hear(message);
  }
}

void Listener::hear(const std::string& message) {
  if (message.starts_with("-BUSY ") || message.starts_with("-LOADING ")) return leave();
  const std::vector<std::string> parts = elements(message);
  if (message[0] != '*' || parts.size() != 3 || content(parts[1]) != kChannel)
    throw CheckFailed("a listener got " + shown(message));
  if (content(parts[0]) == "subscribe") return;
  const std::string text = content(parts[2]);
  const size_t colon = text.find(':');
  if (content(parts[0]) != "message" || colon == std::string::npos)
    throw CheckFailed("a listener got " + shown(message));
  int& last = last_[text.substr(0, colon)];
  const int number = std::stoi(text.substr(colon + 1));
  if (number <= last) {
    throw CheckFailed("listener " + std::to_string(number_) + " at " + node_.name() + " heard " +
                      text + " behind " + std::to_string(last));
  }
  last = number;
  ++heard_;
}

void Listener::leave() {
  if (!closed()) node_.server().clients().find(client_id_)->close();
}

}  // namespace latchkey::simulation

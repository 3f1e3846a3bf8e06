#include "cluster/bus.h"

#include <algorithm>
#include <utility>

#include "base/port.h"
#include "server/process/secure_transport.h"
#include "server/server.h"

namespace latchkey::cluster {

int Bus::port() const {
  if (listening_port_ != 0) return listening_port_;
  const server::ConfigValues& settings = server_.settings();
  if (settings.cluster_port != 0) return settings.cluster_port;
  return (settings.tls_cluster ? settings.tls_port : settings.port) + kBusPortDistance;
}

FirstPort Bus::first_port() const {
  return server_.settings().tls_cluster ? FirstPort::kTls : FirstPort::kPlain;
}

bool Bus::listen() {
  const server::ConfigValues& settings = server_.settings();
  base::Logger& log = server_.log();
  const int port = this->port();
  if (port > base::kLastPort) {
    if (settings.port_auto) return false;
    log.warning(
        "Redis port number too high for cluster mode. Cluster bus port number defaults to the "
        "port number plus 10000: it must not be above 65535.");
    return false;
  }
  for (const std::string& entry : settings.bind) {
    const bool optional = entry.starts_with('-');
    const std::string address = entry.substr(optional ? 1 : 0);
    auto listener =
        net::Listener::tcp(*server_.loop(), address, port, settings.tcp_backlog,
                           {.accepted = [this](net::Connection* connection) { accept(connection); },
                            .cannot_accept =
                                [&log](const std::string& why) {
                                  log.warning("Error accepting cluster node: " + why);
                                },
                            .limit = {}});
    if (listener) {
      listeners_.push_back(*std::move(listener));
    } else if (!optional) {
      log.warning("Failed listening on port " + std::to_string(port) +
                  " (cluster), aborting: " + listener.error().text);
      listeners_.clear();
      return false;
    }
  }
  listening_port_ = port;
  return true;
}

void Bus::connect(Node& node) {
  // make_unique() cannot access the private base.
  links_.emplace_back(new Link(*this, server_.machine_ms(), node));
  Link& link = *links_.back();
  node.link = &link;
  if (server_.loop() == nullptr) return;
  link.dial(*server_.loop(), {.host = node.address.ip,
                              .port = node.address.bus_port,
                              .source = server_.settings().bind_source_addr,
                              .layer = server_.secure_transport().for_cluster()});
}

Link& Bus::accept(net::Connection* connection) {
  server_.refresh_clock();
  if (connection != nullptr && server_.settings().tls_cluster)
    connection->secure(server_.secure_transport().accept_node());
  links_.emplace_back(new Link(*this, server_.machine_ms()));
  Link& link = *links_.back();
  link.connected(connection);
  return link;
}

void Bus::drop(Link& link) {
  if (link.node != nullptr) {
    Link*& place = link.incoming ? link.node->incoming : link.node->link;
    if (place == &link) place = nullptr;
    if (link.incoming) link.node->no_incoming_link_since_ms = server_.machine_ms();
    link.node = nullptr;
  }
  link.close();
  const auto found = std::find_if(links_.begin(), links_.end(),
                                  [&](const auto& each) { return each.get() == &link; });
  if (found == links_.end()) return;
  dropped_.push_back(std::move(*found));
  links_.erase(found);
}

void Bus::drop_links(Node& node) {
  if (node.link != nullptr) drop(*node.link);
  if (node.incoming != nullptr) drop(*node.incoming);
}

void Bus::set_sender(Link& link, Node& node) {
  if (node.incoming == &link) return;
  if (node.incoming != nullptr) drop(*node.incoming);
  if (link.node != nullptr) link.node->incoming = nullptr;
  link.node = &node;
  node.incoming = &link;
}

void Bus::drop_stalled() {
  constexpr int64_t kLongestHandshakeMs = 10'000;
  std::vector<Link*> stalled;
  for (const auto& link : links_) {
    if (link->in_handshake() && server_.machine_ms() - link->created_ms > kLongestHandshakeMs)
      stalled.push_back(link.get());
  }
  for (Link* link : stalled) drop(*link);
}

void Bus::drop_over_limit(uint64_t most) {
  std::vector<Link*> over;
  for (const auto& link : links_) {
    if (link->is_connected() && link->queued() + sizeof(Link) > most) over.push_back(link.get());
  }
  for (Link* link : over) {
    server_.log().warning("Freeing cluster link: " + std::to_string(link->queued()) +
                          " bytes wait to leave, more than cluster-link-sendbuf-limit allows");
    ++counts_.over_limit;
    drop(*link);
  }
}

Dialect Bus::dialect() const {
  return server_.edition().is_valkey() ? Dialect::kValkey : Dialect::kRedis;
}

void Bus::send(Link& link, const Message& message) {
  if (!link.is_connected()) return;
  const std::string bytes = encode(message, first_port(), dialect());
  link.send(bytes);
  count_sent(message.type, bytes.size());
}

void Bus::count_sent(MessageType type, size_t bytes) {
  ++counts_.sent[static_cast<size_t>(type)];
  counts_.bytes_sent[static_cast<size_t>(type)] += bytes;
}

void Bus::send_to(const std::vector<Node*>& nodes, const Message& message) {
  std::string bytes;
  for (Node* node : nodes) {
    if (node->has(kMyself | kHandshake) || node->link == nullptr || !node->link->is_connected())
      continue;
    if (bytes.empty()) bytes = encode(message, first_port(), dialect());
    node->link->send(bytes);
    count_sent(message.type, bytes.size());
  }
}

void Bus::flush() {
  // A link that fails meanwhile is dropped from the list.
  for (auto next = links_.begin(); next != links_.end();) (*next++)->flush();
}

size_t Bus::memory() const {
  size_t bytes = 0;
  for (const auto& link : links_) bytes += link->memory();
  return bytes;
}

void Bus::link_received(Link& link, std::string_view bytes) {
  server_.refresh_clock();
  if (const auto type = announced_type(bytes); type) {
    ++counts_.received[static_cast<size_t>(*type)];
    counts_.bytes_received[static_cast<size_t>(*type)] += bytes.size();
  }
  const auto message = decode(bytes, first_port(), dialect());
  if (!message) {
    server_.log().warning("Dropping a cluster link by which something came that is no message");
    return drop(link);
  }
  if (filtered_type_ == kAllTypes || static_cast<int>(message->type) == filtered_type_) {
    if (closes_filtered_links_) link_failed(link);
    return;
  }
  receiver_.received(link, *message);
}

void Bus::link_failed(Link& link) {
  Node* const node = link.node;
  const bool was_ours = !link.incoming;
  server_.refresh_clock();
  drop(link);
  if (was_ours && node != nullptr) receiver_.link_lost(*node);
}

}  // namespace latchkey::cluster

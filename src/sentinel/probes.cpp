#include "sentinel/probes.h"

#include <algorithm>
#include <utility>

#include "sentinel/hello.h"
#include "sentinel/sentinel.h"

namespace latchkey::sentinel {

std::weak_ptr<Instance> Probes::weak(Instance& instance) {
  Master& master = master_of(instance);
  switch (instance.kind) {
    case Kind::kReplica:
      return master.replicas.at(instance.name);
    case Kind::kSentinel:
      return master.sentinels.at(instance.name);
    case Kind::kMaster:
      break;
  }
  return sentinel_.masters().at(instance.name);
}

// ---- Connections

void Probes::introduce(Instance& instance, bool for_messages) {
  Link& link = *instance.link;
  const auto send = [&](const Link::Words& words) {
    if (for_messages) {
      link.send_to_messages(words);
    } else {
      link.send(words);
    }
  };
  const Master& master = master_of(instance);
  const Settings& settings = sentinel_.settings();
  std::string user = master.auth_user;
  std::string password = master.auth_pass;
  if (instance.kind == Kind::kSentinel) {
    user = settings.sentinel_user;
    password = settings.sentinel_pass;
    if (password.empty()) {
      user.clear();
      password = sentinel_.host().password();
    }
  }
  const std::string_view auth = command_of(instance, "AUTH");
  if (!password.empty() && !user.empty()) send({auth, user, password});
  if (!password.empty() && user.empty()) send({auth, password});
  constexpr size_t kShownDigits = 8;
  const std::string name =
      "sentinel-" + sentinel_.id().substr(0, kShownDigits) + (for_messages ? "-pubsub" : "-cmd");
  send({command_of(instance, "CLIENT"), "SETNAME", name});
}

void Probes::reconnect(Instance& instance) {
  Link& link = *instance.link;
  if (link.is_connected() || instance.address.port == 0) return;
  const int64_t now = sentinel_.now_ms();
  if (now - link.last_reconnect_ms < sentinel_.periods().ping) return;
  link.last_reconnect_ms = now;
  Network& network = sentinel_.host().network();
  Address& address = instance.address;
  // A name may mean another address by now. One that is not known at the moment leaves the address
  // as it is: clients ask for it, and the instance may still be there.
  if (sentinel_.settings().resolve_hostnames && !is_ip(address.hostname)) {
    Address resolved = sentinel_.make_address(address.hostname, address.port);
    if (!resolved.ip.empty()) address = std::move(resolved);
  }
  if (address.ip.empty()) return;
  if (!link.has_requests()) {
    if (!link.open_requests(network, address, now)) return;
    introduce(instance, /*for_messages=*/false);
    send_ping(instance);
  }
  if (instance.kind != Kind::kSentinel && !link.has_messages()) {
    const auto on_message = [this, known = weak(instance)](std::string_view message) {
      const auto alive = known.lock();
      if (alive == nullptr) return;
      alive->link->last_message_ms = sentinel_.now_ms();
      sentinel_.discovery().process_hello(message);
    };
    if (!link.open_messages(network, address, now, on_message)) return;
    introduce(instance, /*for_messages=*/true);
    link.subscribe(kHelloChannel);
  }
  link.set_connected();
}

// ---- What is due

void Probes::send_due(Instance& instance) {
  constexpr size_t kMaxPending = 100;
  Link& link = *instance.link;
  if (!link.is_connected()) return;
  if (link.pending() >= kMaxPending * static_cast<size_t>(instance.link.use_count())) return;
  const Periods& periods = sentinel_.periods();
  const int64_t now = sentinel_.now_ms();
  int64_t info_period = periods.info;
  if (instance.kind == Kind::kReplica) {
    const auto& replica = static_cast<Replica&>(instance);
    // It may be promoted soon, or has been told to follow another master.
    const bool matters = replica.master.has(kOdown | kFailover) || replica.master_link_down_ms != 0;
    constexpr int64_t kShortPeriodMs = 1000;
    if (matters) info_period = std::min(info_period, kShortPeriodMs);
  }
  const int64_t ping_period = std::min(instance.down_after_ms, periods.ping);
  if (instance.kind != Kind::kSentinel && instance.info_asked != link.generation() &&
      (instance.info_received_ms == 0 || now - instance.info_received_ms > info_period)) {
    send_info(instance);
  }
  if (now - link.last_pong_ms > ping_period && now - link.last_ping_ms > ping_period / 2)
    send_ping(instance);
  // While a master hands over it takes no hello messages: one would wait for the end of the pause,
  // and what ends that would wait behind it.
  const bool hands_over =
      instance.has(kCoordinated) &&
      static_cast<Master&>(instance).failover_state == FailoverState::kWaitPromotion;
  if (now - instance.last_published_ms > periods.publish && !hands_over) send_hello(instance);
}

void Probes::send_ping(Instance& instance) {
  Link& link = *instance.link;
  const int64_t now = sentinel_.now_ms();
  link.send({command_of(instance, "PING")}, [this, known = weak(instance)](const Reply& reply) {
    if (const auto alive = known.lock()) process_ping_reply(*alive, reply);
  });
  link.last_ping_ms = now;
  if (link.unanswered_ping_ms == 0) link.unanswered_ping_ms = now;
}

void Probes::process_ping_reply(Instance& instance, const Reply& reply) {
  Link& link = *instance.link;
  const int64_t now = sentinel_.now_ms();
  link.last_pong_ms = now;
  const bool pong = reply.is_text() && reply.text.starts_with("PONG");
  const bool error = reply.is(Reply::Type::kError);
  if (pong ||
      (error && (reply.text.starts_with("LOADING") || reply.text.starts_with("MASTERDOWN")))) {
    link.last_available_ms = now;
    link.unanswered_ping_ms = 0;
    // It has loaded its dataset.
    if (pong) instance.set(kRebooting, false);
    return;
  }
  // A script that does not end is killed, once, before the instance is found down for long.
  if (error && reply.text.starts_with("BUSY") && instance.has(kSdown) &&
      !instance.has(kScriptKillSent)) {
    link.send({command_of(instance, "SCRIPT"), "KILL"});
    instance.set(kScriptKillSent, true);
  }
}

void Probes::send_info(Instance& instance) {
  Link& link = *instance.link;
  instance.info_asked = link.generation();
  link.send({command_of(instance, "INFO")}, [this, known = weak(instance)](const Reply& reply) {
    const auto alive = known.lock();
    if (alive == nullptr) return;
    alive->info_asked = 0;
    if (reply.is(Reply::Type::kBulk)) sentinel_.discovery().process_info(*alive, reply.text);
  });
}

void Probes::send_hello(Instance& instance) {
  Link& link = *instance.link;
  const Settings& settings = sentinel_.settings();
  const Master& master = master_of(instance);
  const Address& address = Sentinel::current_address(master);
  Hello hello;
  hello.ip = settings.announce_ip.empty() ? link.local_ip() : settings.announce_ip;
  // Not known before there is a connection.
  if (hello.ip.empty()) return;
  hello.port = settings.announce_port != 0 ? settings.announce_port : sentinel_.host().port();
  hello.id = sentinel_.id();
  hello.current_epoch = sentinel_.current_epoch();
  hello.master_name = master.name;
  hello.master_host = sentinel_.announced_host(address);
  hello.master_port = address.port;
  hello.master_config_epoch = master.config_epoch;
  instance.last_published_ms = sentinel_.now_ms();
  link.send({command_of(instance, "PUBLISH"), kHelloChannel, format_hello(hello)});
}

void Probes::hello_soon(Master& master) {
  master.last_published_ms = 0;
  for (const auto& [name, replica] : master.replicas) replica->last_published_ms = 0;
  for (const auto& [id, sentinel] : master.sentinels) sentinel->last_published_ms = 0;
}

void Probes::send_replicaof(Instance& instance, const Address* address) {
  Link& link = *instance.link;
  const std::string host = address != nullptr ? sentinel_.announced_host(*address) : "NO";
  const std::string port = address != nullptr ? std::to_string(address->port) : "ONE";
  link.send({command_of(instance, "MULTI")});
  link.send({command_of(instance, "SLAVEOF"), host, port});
  link.send({command_of(instance, "CONFIG"), "REWRITE"});
  send_kill_clients(instance);
  link.send({command_of(instance, "EXEC")});
}

// Disconnects clients, so that they ask a Sentinel for the address of the master.
void Probes::send_kill_clients(Instance& instance) {
  for (const std::string_view type : {"normal", "pubsub"})
    instance.link->send({command_of(instance, "CLIENT"), "KILL", "TYPE", type});
}

void Probes::send_failover(Master& master, const Replica& to, int64_t timeout_ms) {
  Link& link = *master.link;
  const std::string& host = sentinel_.announced_host(to.address);
  const std::string port = std::to_string(to.address.port);
  const std::string timeout = std::to_string(timeout_ms);
  link.send({command_of(master, "MULTI")});
  // FAILOVER itself pauses writes only until the role has changed, and clients learn the new
  // address later.
  link.send({command_of(master, "CLIENT"), "PAUSE", timeout, "WRITE"});
  link.send({command_of(master, "FAILOVER"), "TO", host, port, "TIMEOUT", timeout});
  link.send({command_of(master, "EXEC")},
            [this, known = weak(master), epoch = master.failover_epoch](const Reply& reply) {
              const bool done = reply.is(Reply::Type::kArray) &&
                                std::ranges::none_of(reply.elements, [](const Reply& element) {
                                  return element.is(Reply::Type::kError);
                                });
              const auto alive = known.lock();
              if (done || alive == nullptr) return;
              auto& asked = static_cast<Master&>(*alive);
              if (asked.failover_epoch == epoch) sentinel_.failover().refused(asked);
            });
}

void Probes::send_failover_end(Instance& instance) {
  Link& link = *instance.link;
  if (!link.is_connected()) return;
  link.send({command_of(instance, "MULTI")});
  link.send({command_of(instance, "CONFIG"), "REWRITE"});
  send_kill_clients(instance);
  link.send({command_of(instance, "CLIENT"), "UNPAUSE"});
  link.send({command_of(instance, "EXEC")});
}

void Probes::send_failover_abort(Master& master) {
  if (!master.link->is_connected()) return;
  master.link->send({command_of(master, "FAILOVER"), "ABORT"});
  master.link->send({command_of(master, "CLIENT"), "UNPAUSE"});
}

}  // namespace latchkey::sentinel

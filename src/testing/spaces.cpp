#include "testing/spaces.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/heap_account.h"
#include "base/heap_use.h"
#include "server/acl/access_control.h"
#include "server/acl/user.h"
#include "server/client/client.h"
#include "server/client/client_registry.h"
#include "server/command/command_context.h"
#include "server/command/command_table.h"
#include "server/server.h"
#include "server/tasks.h"
#include "testing/space_copy.h"

namespace latchkey::testing {

using server::Arguments;
using server::Client;
using server::Command;
using server::Edition;
using server::Server;

namespace {

// Divides a space's name from the release that it emulates.
constexpr char kReleaseMark = '~';

// The edition that "redis-7.0" or "latchkey" names.
std::optional<Edition> parse_release(std::string_view tag) {
  if (tag == "latchkey") return Edition();
  if (tag.find('-') == std::string_view::npos) return std::nullopt;
  return Edition::parse(tag);
}

// While it exists, work is done on behalf of that server instead of the one that asked for it.
class Within {
 public:
  explicit Within(Server& server) { server.enter(); }

 private:
  // Made before the server is entered.
  base::BillingScope asker_;
};

}  // namespace

Spaces::Spaces(Server& main, Factory factory)
    : main_(main), factory_(std::move(factory)), timer_(*main.loop(), [this] { work(); }) {
  attach(main);
  main.hooks().tick.add([this] { drop_idle_spaces(); });
}

Spaces::~Spaces() {
  detach(main_);
}

void Spaces::attach(Server& server) {
  // All servers share this layer, which none of them owns.
  server.add_layer(std::shared_ptr<Spaces>(std::shared_ptr<void>(), this));
  server.set_space_gate(this);
}

void Spaces::detach(Server& server) {
  server.set_space_gate(nullptr);
  server.remove_layer<Spaces>();
}

std::string_view Spaces::name_error(std::string_view name) {
  if (name.empty()) return "The name of a space must not be empty";
  if (name.size() > kMaxNameBytes) return "The name of a space must not be longer than 128 bytes";
  const bool plain = std::all_of(name.begin(), name.end(),
                                 [](unsigned char each) { return each > ' ' && each < 0x7f; });
  if (!plain) return "The name of a space must be printable, without spaces";
  if (server::is_word(name, "MAIN")) return "The first server is called main";
  const size_t mark = name.rfind(kReleaseMark);
  if (mark != std::string_view::npos && !parse_release(name.substr(mark + 1)))
    return "What follows ~ in the name of a space must be latchkey or a release, as redis-7.0";
  return {};
}

Edition Spaces::edition_of(std::string_view name, const Edition& usual) {
  const size_t mark = name.rfind(kReleaseMark);
  return mark == std::string_view::npos ? usual : *parse_release(name.substr(mark + 1));
}

Spaces::Space* Spaces::find(std::string_view name) {
  const auto it = spaces_.find(name);
  return it == spaces_.end() || it->second->ends ? nullptr : it->second.get();
}

Spaces::Space* Spaces::space_of(Server& server) {
  // The server of a space has the space's user name as an alias of its default user.
  const std::string_view alias = server.access().default_alias();
  if (alias.empty()) return nullptr;
  const auto it = spaces_.find(alias.substr(kUserPrefix.size()));
  return it == spaces_.end() ? nullptr : it->second.get();
}

std::string Spaces::unused_name() {
  std::string name;
  do {
    name = std::to_string(++last_number_);
  } while (spaces_.contains(name));
  return name;
}

base::Result<Spaces::Space*> Spaces::create(std::string_view name, bool keep, Server* from) {
  if (const std::string_view objection = name_error(name); !objection.empty())
    return base::fail(std::string(objection));
  // One that is ending still has its name for some moments.
  if (spaces_.contains(name)) return base::fail("The space of that name is being dropped");
  if (spaces_.size() >= static_cast<size_t>(main_.settings().max_spaces))
    return base::fail("There are as many spaces as max-spaces allows");
  // What is made here lives as long as the space, so it is not billed to the server of the request.
  const Within within(main_);
  const base::ThreadHeapUse heap;
  const uint64_t before = heap.balance();
  auto space = std::make_unique<Space>();
  auto made = factory_(edition_of(name, main_.edition()));
  if (!made) return base::fail("The space cannot be made: " + made.error().message);
  space->host = *std::move(made);
  space->name = name;
  space->keep = keep;
  space->made_us = main_.clock().monotonic_us();
  space->empty_since_ms = main_.machine_ms();
  Server& server = space->server();
  server.set_state(server::kStateSpace, true);
  attach(server);
  server.access().set_default_alias(std::string(kUserPrefix) + space->name);
  copy_passwords(server);
  server.set_stop_action([this, made = space.get()] { drop(*made); });
  server.pause_ticking();
  server.count_own_memory(heap.balance() - before);
  base::Result<> filled;
  if (from != nullptr) {
    server.enter();
    filled = fill(*space, *from);
    main_.enter();
  }
  if (!filled) return filled.failure();
  return spaces_.emplace(space->name, std::move(space)).first->second.get();
}

void Spaces::copy_passwords(Server& server) {
  const auto user = main_.access().default_user();
  if (!user->enabled || user->passwords.empty()) return;
  std::vector<std::string> rules{"resetpass"};
  for (const std::string& digest : user->passwords) rules.push_back("#" + digest);
  const std::vector<std::string_view> words(rules.begin(), rules.end());
  // Digests that the first server has taken are taken here, too.
  static_cast<void>(server.access().set_user(user->name, words));
}

base::Result<> Spaces::fill(Space& space, Server& from) {
  Server& server = space.server();
  base::Result<> filled = copy_dataset(from, server);
  const uint64_t limit = server.settings().maxmemory;
  if (filled && limit != 0 && server.used_memory() > limit)
    filled = base::fail("The copy is larger than space-maxmemory allows");
  if (!filled) detach(server);
  return filled;
}

base::Result<> Spaces::listen(Space& space, int port) {
  Server& server = space.server();
  const Within within(server);
  server::ConfigValues& values = server.config().mutable_values();
  values.port = port;
  values.port_auto = port == 0;
  // Its unix socket, if it has one, stays as it is.
  std::string socket = std::exchange(values.unixsocket, {});
  const bool opened = server.listen();
  values.unixsocket = std::move(socket);
  values.port_auto = false;
  if (!opened) {
    values.port = 0;
    return base::fail(port == 0 ? "No port is free"
                                : "The space cannot listen on this port; the log says why");
  }
  space.port = values.port;
  // A client may come before the next look at the spaces.
  wake(space);
  return {};
}

base::Result<> Spaces::listen(Space& space, const std::string& socket) {
  Server& server = space.server();
  const Within within(server);
  server::ConfigValues& values = server.config().mutable_values();
  values.unixsocket = socket;
  // The port, if it has one, stays open.
  const int port = std::exchange(values.port, 0);
  const bool opened = server.listen();
  values.port = port;
  if (!opened) {
    values.unixsocket.clear();
    return base::fail("The space cannot listen at this path; the log says why");
  }
  space.socket = socket;
  wake(space);
  return {};
}

void Spaces::drop(Space& space) {
  if (std::exchange(space.ends, true)) return;
  Server& server = space.server();
  const Within within(server);
  server.stop_listening();
  server.clients().for_each([](Client& client) {
    if (client.has(server::kClientBlocked | server::kClientSuspended)) return client.close();
    client.close_after_reply();
    client.flush_soon();
  });
  timer_.start(0);
}

// --- Clients that come ---------------------------------------------------------------------------

bool Spaces::may_enter(Client& client, std::string_view password) {
  const auto allowed = main_.settings().enable_test_commands;
  const bool local = client.connection()->peer_is_local();
  if (allowed == server::ProtectedAction::kNo ||
      (allowed == server::ProtectedAction::kLocal && !local))
    return false;
  // A client of a space may have come through a port without being asked.
  return main_.access().default_user()->accepts(password) && default_user_may("ENTER");
}

bool Spaces::default_user_may(std::string_view subcommand) const {
  const auto user = main_.access().default_user();
  const std::vector<std::string_view> words{"SPACE", subcommand};
  const Command* command = main_.commands().find_request(words);
  return user->enabled && command != nullptr && !user->check(*command, words);
}

bool Spaces::may_copy_main(Server& asked) const {
  if (&asked == &main_) return true;
  const auto user = main_.access().default_user();
  return user->needs_no_password || asked.access().default_user()->passwords == user->passwords;
}

std::string Spaces::requested_space(Client& client, const Command& command, Arguments args) {
  if (command.full_name == "space|enter") {
    const std::string_view name = args[2];
    if (server::is_word(name, "MAIN")) return std::string(kMain);
    return name_error(name).empty() ? std::string(name) : std::string();
  }
  std::string_view user;
  std::string_view password;
  if (command.full_name == "auth") {
    if (args.size() != 3) return {};
    user = args[1];
    password = args[2];
  } else {
    for (size_t i = 2; i + 2 < args.size(); ++i) {
      if (!server::is_word(args[i], "AUTH")) continue;
      user = args[i + 1];
      password = args[i + 2];
      break;
    }
  }
  if (!user.starts_with(kUserPrefix) || client.server.access().find(user) != nullptr) return {};
  const std::string_view name = user.substr(kUserPrefix.size());
  if (!name_error(name).empty() || !may_enter(client, password)) return {};
  return std::string(name);
}

server::SpaceGate::Answer Spaces::ask(Client& client, const Command& command, Arguments args) {
  constexpr uint32_t kBound = server::kClientInMulti | server::kClientScript |
                              server::kClientReplica | server::kClientMaster |
                              server::kClientMonitor | server::kClientSubscribed;
  if (client.connection() == nullptr || client.has(kBound)) return {};
  std::string name = requested_space(client, command, args);
  if (name.empty()) return {};
  const Space* here = space_of(client.server);
  if ((here != nullptr ? std::string_view(here->name) : kMain) == name) return {};
  if (const base::Result<Server*> found = server_named(name); !found)
    return {Verdict::kRefused, "ERR " + found.error()};
  client.wait({.deadline_ms = 0, .may_unblock = false, .outlives_role = true, .ended = nullptr});
  {
    const Within within(main_);
    moves_.push_back({&client.server, client.id, std::string(name)});
  }
  timer_.start(0);
  return {Verdict::kMoves};
}

base::Result<Server*> Spaces::server_named(std::string_view name) {
  if (name == kMain) return &main_;
  if (Space* space = find(name); space != nullptr) return &space->server();
  base::Result<Space*> made = create(name, /*keep=*/false, /*from=*/nullptr);
  if (!made) return made.failure();
  return &(*made)->server();
}

// --- Between two turns ---------------------------------------------------------------------------

void Spaces::work() {
  main_.enter();
  const std::vector<Move> moves = std::exchange(moves_, {});
  for (const Move& move : moves) make(move);
  main_.enter();
  std::vector<Space*> ending;
  for (const auto& [name, space] : spaces_) {
    if (space->ends) ending.push_back(space.get());
  }
  for (Space* space : ending) destroy(*space);
}

void Spaces::make(const Move& move) {
  Client* client = move.from->clients().find(move.client_id);
  if (client == nullptr || !client->has(server::kClientBlocked)) return;
  const base::Result<Server*> target = server_named(move.name);
  if (!target) {
    // It was dropped meanwhile, and cannot be made again: the request runs where it came, and says
    // so.
    client->unblock(server::BlockEnd::kServed);
    return;
  }
  if (Space* space = space_of(**target); space != nullptr) wake(*space);
  move.from->enter();
  client->unblock(server::BlockEnd::kServed);
  client->move_to(**target);
}

void Spaces::wake(Space& space) {
  if (!std::exchange(space.sleeps, false)) return;
  const Within within(space.server());
  space.server().start_ticking();
}

void Spaces::let_sleep(Space& space) {
  if (std::exchange(space.sleeps, true)) return;
  const Within within(space.server());
  space.server().pause_ticking();
}

void Spaces::destroy(Space& space) {
  Server& server = space.server();
  std::erase_if(moves_, [&](const Move& move) { return move.from == &server; });
  detach(server);
  // What is large is freed on the thread that does so, which the first server waits for.
  for (int i = 0; i < server.database_count(); ++i)
    server.database(i).release_contents(main_.environment().reclaimer);
  spaces_.erase(spaces_.find(space.name));
}

void Spaces::drop_idle_spaces() {
  const int64_t now_ms = main_.machine_ms();
  const int64_t linger_ms = main_.settings().space_linger_ms;
  for (const auto& each : spaces_) {
    const auto& space = each.second;
    if (space->ends) continue;
    Server& server = space->server();
    if (server.clients().size() != 0) {
      space->empty_since_ms = 0;
      wake(*space);
      continue;
    }
    if (space->empty_since_ms == 0) space->empty_since_ms = now_ms;
    if (!server.tasks().any()) let_sleep(*space);
    const bool wanted = std::any_of(moves_.begin(), moves_.end(),
                                    [&](const Move& move) { return move.name == space->name; });
    if (!space->stays() && !wanted && now_ms - space->empty_since_ms >= linger_ms) drop(*space);
  }
}

}  // namespace latchkey::testing

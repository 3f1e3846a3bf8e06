#include "testing/checkpoint_participants.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "locks/lock_watch.h"
#include "script/engine.h"
#include "script/function_dump.h"
#include "server/acl/access_control.h"
#include "server/acl/acl_file.h"
#include "server/acl/user.h"
#include "server/function_libraries.h"
#include "server/server.h"
#include "testing/clock_control.h"

namespace latchkey::testing {

using namespace server;

namespace {

// --- Function libraries --------------------------------------------------------------------------

using Codes = std::vector<std::string>;

Codes codes_of(const FunctionLibraries& libraries) {
  Codes codes;
  libraries.for_each_code([&](std::string_view code) { codes.emplace_back(code); });
  return codes;
}

class FunctionsParticipant final : public CheckpointParticipant {
 public:
  explicit FunctionsParticipant(Server& server) : server_(server) {}

  std::unique_ptr<State> save() override {
    auto saved = std::make_unique<Saved>();
    if (server_.functions() != nullptr) saved->codes = codes_of(*server_.functions());
    return saved;
  }

  void restore(State& state) override {
    const Codes& codes = static_cast<Saved&>(state).codes;
    FunctionLibraries* libraries = server_.functions();
    if (libraries == nullptr || codes_of(*libraries) == codes) return;
    for (const std::string& error : libraries->replace_all(codes))
      server_.log().warning("A function library was not restored: " + error);
    propagate(*libraries, codes.empty());
  }

 private:
  struct Saved final : State {
    Codes codes;
  };

  void propagate(const FunctionLibraries& libraries, bool empty) {
    server_.events().count(1);
    Propagation& propagation = server_.propagation();
    if (!propagation.wanted()) return;
    if (empty) return propagation.add(kAnyDatabase, {"FUNCTION", "FLUSH"});
    const std::string dump = script::dump_functions(libraries, server_.settings().rdbcompression,
                                                    server_.edition().rdb_version());
    propagation.add(kAnyDatabase, {"FUNCTION", "RESTORE", dump, "FLUSH"});
  }

  Server& server_;
};

// --- Scripts -------------------------------------------------------------------------------------

class ScriptsParticipant final : public CheckpointParticipant {
 public:
  explicit ScriptsParticipant(Server& server) : server_(server) {}

  std::unique_ptr<State> save() override {
    auto saved = std::make_unique<Saved>();
    saved->scripts = server_.layer<script::Engine>().scripts();
    return saved;
  }
  void restore(State& state) override {
    server_.layer<script::Engine>().set_scripts(static_cast<Saved&>(state).scripts);
  }

 private:
  struct Saved final : State {
    script::Engine::Scripts scripts;
  };

  Server& server_;
};

// --- Configuration -------------------------------------------------------------------------------

class ConfigParticipant final : public CheckpointParticipant {
 public:
  explicit ConfigParticipant(Server& server) : server_(server) {}

  std::unique_ptr<State> save() override {
    auto saved = std::make_unique<Saved>();
    saved->revision = server_.config().revision();
    saved->values = server_.settings();
    return saved;
  }

  // As CONFIG SET does, so that what depends on a setting follows.
  void restore(State& state) override {
    auto& saved = static_cast<Saved&>(state);
    Config& config = server_.config();
    if (config.revision() == saved.revision) return;
    auto pairs = config.pairs_to_restore(saved.values);
    if ((server_.state() & kStateSpace) != 0) std::erase_if(pairs, says_where_space_listens);
    if (!pairs.empty()) set(pairs);
    saved.revision = config.revision();
  }

 private:
  struct Saved final : State {
    uint64_t revision = 0;
    ConfigValues values;
  };

  // SPACE LISTEN decides about that, and it stays.
  static bool says_where_space_listens(const Config::NameAndValue& pair) {
    return pair.first == "port" || pair.first == "unixsocket";
  }

  void set(const std::vector<Config::NameAndValue>& pairs) {
    if (server_.config().set(pairs, {})) return;
    // What can be set is set.
    for (const Config::NameAndValue& pair : pairs) {
      if (const auto set = server_.config().set({&pair, 1}, {}); !set)
        server_.log().warning("A setting was not restored: " + set.error());
    }
  }

  Server& server_;
};

// --- Users ---------------------------------------------------------------------------------------

class UsersParticipant final : public CheckpointParticipant {
 public:
  explicit UsersParticipant(Server& server) : server_(server) {}

  std::unique_ptr<State> save() override {
    auto saved = std::make_unique<Saved>();
    for (const auto& [name, user] : server_.access().users()) saved->users.push_back(*user);
    return saved;
  }

  void restore(State& state) override {
    const std::vector<acl::User>& users = static_cast<Saved&>(state).users;
    if (!are(users)) server_.access().replace_users(users);
  }

 private:
  struct Saved final : State {
    std::vector<acl::User> users;
  };

  // Whether these, which are in the order of their names, are the users now.
  bool are(const std::vector<acl::User>& users) const {
    const auto& known = server_.access().users();
    if (known.size() != users.size()) return false;
    size_t i = 0;
    for (const auto& [name, user] : known) {
      if (acl::acl_line(*user) != acl::acl_line(users[i++])) return false;
    }
    return true;
  }

  Server& server_;
};

// --- Locks ---------------------------------------------------------------------------------------

class LocksParticipant final : public CheckpointParticipant {
 public:
  explicit LocksParticipant(Server& server) : server_(server) {}

  std::unique_ptr<State> save() override {
    auto saved = std::make_unique<Saved>();
    if (locks::LockWatch* watch = server_.find_layer<locks::LockWatch>(); watch != nullptr)
      saved->locks = watch->held();
    return saved;
  }
  void restore(State& state) override {
    if (locks::LockWatch* watch = server_.find_layer<locks::LockWatch>(); watch != nullptr)
      watch->put_back(static_cast<Saved&>(state).locks);
  }

 private:
  struct Saved final : State {
    std::vector<locks::HeldLock> locks;
  };

  Server& server_;
};

// --- The clock -----------------------------------------------------------------------------------

class ClockParticipant final : public CheckpointParticipant {
 public:
  explicit ClockParticipant(Server& server) : server_(server) {}

  std::unique_ptr<State> save() override {
    return std::make_unique<Saved>(server_.data_clock().state());
  }

  void restore(State& state) override {
    base::SettableClock& clock = server_.data_clock();
    const base::SettableClock::State& saved = static_cast<Saved&>(state).clock;
    if (clock.is_wall() && saved.mode == base::SettableClock::Mode::kWall) return;
    clock.restore(saved);
    server_.layer<ClockControl>().moved();
  }

 private:
  struct Saved final : State {
    explicit Saved(const base::SettableClock::State& saved) : clock(saved) {}
    base::SettableClock::State clock;
  };

  Server& server_;
};

}  // namespace

std::vector<std::unique_ptr<CheckpointParticipant>> standard_participants(Server& server) {
  std::vector<std::unique_ptr<CheckpointParticipant>> all;
  all.push_back(std::make_unique<FunctionsParticipant>(server));
  all.push_back(std::make_unique<ScriptsParticipant>(server));
  all.push_back(std::make_unique<ConfigParticipant>(server));
  all.push_back(std::make_unique<UsersParticipant>(server));
  all.push_back(std::make_unique<ClockParticipant>(server));
  // After the clock, so that its events have the restored time.
  all.push_back(std::make_unique<LocksParticipant>(server));
  return all;
}

}  // namespace latchkey::testing

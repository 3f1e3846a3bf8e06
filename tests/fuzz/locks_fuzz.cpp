// Clients that take, try, prolong, release, overwrite, delete and lose locks, in every order, also
// in transactions and scripts, while time passes, databases are flushed and swapped, and
// checkpoints come back. Whoever the watch says holds a lock must be the client that a simple model
// says: the one whose last successful taking is still there. A lock that is held has the value and
// the deadline of its key, and limits hold. Inputs that begin with an even byte use locks as they
// should be used, and nothing may be found then but what is a matter of time.
#include <array>
#include <map>
#include <string>

#include "input.h"
#include "unit/locks/scene.h"

namespace {

using namespace latchkey;
using fuzz::Input;
using fuzz::require;

constexpr size_t kClients = 4;
constexpr size_t kKeys = 3;

class World {
 public:
  explicit World(Input& input)
      : input_(input),
        correct_(input.byte() % 2 == 0),
        scene_({}, "lock-watch-max-keys 4\nlock-log-max-len 16\n") {}

  void step() {
    const std::string name = client();
    const std::string key = "lock:" + std::to_string(input_.byte() % kKeys);
    correct_ ? use(name, key) : misuse(name, key);
    check();
  }

 private:
  std::string client() { return std::string(1, static_cast<char>('a' + input_.byte() % kClients)); }
  std::string run(const std::string& name, const std::string& request) {
    // Requests of a client that waits are not read before it goes on.
    if (scene_.client(name)->has(server::kClientBlocked)) return {};
    return scene_.run(name, request);
  }

  // The recipes as they should be.
  void use(const std::string& name, const std::string& key) {
    std::string& token = tokens_[name + key];
    switch (input_.byte() % 8) {
      case 0:
      case 1:
        take(name, key, "token" + std::to_string(++drawn_));
        break;
      case 2:
        if (!token.empty()) run(name, "@compare-delete " + key + " " + token);
        token.clear();
        break;
      case 3:
        if (!token.empty()) run(name, "SET " + key + " " + token + " IFEQ " + token + " PX 900");
        break;
      case 4:
        if (!token.empty()) run(name, "@compare-prolong " + key + " " + token + " 900");
        break;
      case 5:
        scene_.play("wait " + std::to_string(input_.byte() * 4 + 1));
        break;
      case 6:
        scene_.play(name + " leaves");
        for (size_t i = 0; i < kKeys; ++i) tokens_[name + "lock:" + std::to_string(i)].clear();
        break;
      case 7:
        run(name, "GET " + key);
        break;
    }
  }

  void take(const std::string& name, const std::string& key, const std::string& token) {
    if (run(name, "SET " + key + " " + token + " NX PX 1000") == tests::kOk)
      tokens_[name + key] = token;
  }

  void misuse(const std::string& name, const std::string& key) {
    static constexpr std::array<const char*, 32> kRequests = {"SETNX $ a",
                                                              "SET $ $t NX PX 500",
                                                              "SET $ b NX",
                                                              "SET $ c",
                                                              "DEL $",
                                                              "UNLINK $",
                                                              "EXPIRE $ 1",
                                                              "PEXPIRE $ 0",
                                                              "PERSIST $",
                                                              "GETSET $ 1701000010",
                                                              "SETNX $ 1701000001",
                                                              "SET $ d IFEQ a",
                                                              "SET $ e GET",
                                                              "DELEX $ IFEQ a",
                                                              "DELIFEQ $ b",
                                                              "GETDEL $",
                                                              "INCR $",
                                                              "APPEND $ x",
                                                              "RENAME $ other",
                                                              "FLUSHDB",
                                                              "SWAPDB 0 1",
                                                              "SELECT 1",
                                                              "SELECT 0",
                                                              "MOVE $ 1",
                                                              "CHECKPOINT CREATE",
                                                              "CHECKPOINT ROLLBACK",
                                                              "LOCK RESET",
                                                              "LPUSH $ x",
                                                              "COPY other $",
                                                              "LOCK GUARD $ o*",
                                                              "MSET $ x other y",
                                                              "SETEX $ 1 z"};
    const uint8_t choice = input_.byte();
    if (choice < 160) {
      std::string request = kRequests[choice % kRequests.size()];
      replace(request, "$t", "token" + std::to_string(++drawn_));
      replace(request, "$", key);
      run(name, request);
      return;
    }
    static constexpr std::array<const char*, 24> kOthers = {
        "@compare-delete $ a",
        "@delete $",
        "@setnx-expire $ a 1",
        "@setnx-expire-anyway $ b 1",
        "@enter $ 01234567-89ab-cdef-0123-456789abcdef:1 500",
        "@leave $ 01234567-89ab-cdef-0123-456789abcdef:1 500",
        "@enter $ fedcba98-89ab-cdef-0123-456789abcdef:2 500",
        "MULTI",
        "EXEC",
        "WATCH $",
        "CONFIG SET lock-watch no",
        "CONFIG SET lock-watch yes",
        "LOCK TIMELINE $",
        "LOCK DOCTOR",
        "LOCK INFO $",
        "LOCK LOG",
        "CONFIG SET lock-notify yes",
        "CONFIG SET lock-notify no",
        "RPUSH semaphore:a 1 2",
        "RPUSH semaphore:a 1",
        "LPOP semaphore:a",
        "BLPOP semaphore:a 1",
        "LMOVE semaphore:a semaphore:b LEFT LEFT",
        "DEL semaphore:a"};
    if (choice < 230) {
      std::string request = kOthers[choice % kOthers.size()];
      replace(request, "$", key);
      run(name, request);
    } else if (choice < 245) {
      scene_.play("wait " + std::to_string(input_.byte() * 4 + 1));
    } else {
      scene_.play(name + " leaves");
    }
  }

  static void replace(std::string& text, std::string_view what, const std::string& by) {
    if (const size_t at = text.find(what); at != std::string::npos)
      text.replace(at, what.size(), by);
  }

  void check() {
    const locks::LockModel& model = scene_.model();
    require(model.records().size() <= 4 && model.log().size() <= 16);
    require(model.findings().size() <= locks::LockModel::kMaxFindings);
    for (const locks::Record& record : model.records()) check_record(record);
    if (!correct_) return;
    for (const locks::Finding& finding : model.findings()) {
      using enum locks::FindingKind;
      require(finding.kind == kHeldLong || finding.kind == kStarved);
    }
    for (size_t i = 0; i < kKeys; ++i) check_holder("lock:" + std::to_string(i));
  }

  // The model's holder is the client whose token is in the key.
  void check_holder(const std::string& key) {
    char scratch[32];
    const store::KeyRef ref = scene_.database().find(key, store::Keyspace::kPeek);
    const locks::Record* record = scene_.model().find(0, key);
    if (!ref) return require(record == nullptr || !record->hold);
    require(record != nullptr && record->hold.has_value());
    const std::string token(ref->string(scratch));
    for (const auto& [owner, own] : tokens_) {
      if (own == token && owner.substr(1) == key)
        return require(record->hold->holder->name == owner.substr(0, 1));
    }
    // Its holder has gone.
    require(record->hold->holder_gone);
  }

  void check_record(const locks::Record& record) {
    require(record.contenders.size() <= locks::LockModel::kMaxContenders);
    require(record.past.size() <= locks::LockModel::kMaxPastHolds);
    if (!record.hold) return;
    store::Keyspace& keyspace = scene_.database(record.place->database);
    const std::string key = record.place->key;
    const std::string token(record.hold->token.text());
    const int64_t deadline_ms = record.hold->deadline_ms;
    const store::KeyRef ref = keyspace.find(key, store::Keyspace::kPeek);
    if (!ref) {
      // It had expired, which looking has shown.
      const locks::Record* now = scene_.model().find(record.place->database, key);
      return require(now == nullptr || !now->hold);
    }
    require(ref->is_lock() && ref->deadline_ms() == deadline_ms);
    char scratch[32];
    require(!ref->is_string() || ref->string(scratch) == token);
  }

  Input& input_;
  bool correct_;
  tests::Scene scene_;
  uint64_t drawn_ = 0;
  std::map<std::string, std::string> tokens_;  // by client and key: what it believes to hold
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kLongestInput = 4'096;
  if (size > kLongestInput) return 0;
  Input input(data, size);
  World world(input);
  while (!input.empty()) world.step();
  return 0;
}

// A hash with deadlines in a keyspace, against a map: the input is a list of operations, each a
// byte and what it needs. The first byte chooses when the hash becomes a table.
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "input.h"
#include "store/keyspace.h"
#include "store/value/hash.h"

namespace {

using namespace latchkey;
using fuzz::Input;
using fuzz::require;
using store::Environment;
using store::Hash;
using store::KeyRef;
using store::Keyspace;

struct Expected {
  std::string value;
  int64_t deadline_ms = Hash::kNoDeadline;
};
using Model = std::map<std::string, Expected, std::less<>>;

class Session {
 public:
  explicit Session(Input input) : input_(input) {
    environment_.secret = base::HashSecret(1);
    environment_.now_ms = 1'000'000;
    static constexpr size_t kEntries[] = {0, 1, 8, 1'000'000};
    static constexpr size_t kLongest[] = {3, 64, 1'000'000, 1'000'000};
    const uint8_t choice = input_.byte();
    environment_.limits.hash_max_listpack_entries = kEntries[choice & 3];
    environment_.limits.hash_max_listpack_value = kLongest[choice >> 2 & 3];
    begin();
  }

  void run() {
    while (!input_.empty()) {
      step();
      // Expiry may have taken the last field and the key with it.
      KeyRef ref = keys_.find(kKey, Keyspace::kPeek);
      require(static_cast<bool>(ref) || model_.empty());
      if (!ref) begin();
      require(hash().size() == model_.size());
      require(hash().first_deadline_ms() == first_deadline());
      require(keys_.volatile_elements_size() == (first_deadline() < 0 ? 0 : 1));
    }
    check_all();
  }

 private:
  static constexpr std::string_view kKey = "h";

  void begin() {
    KeyRef ref = keys_.find(kKey, Keyspace::kPeek);
    keys_.set_value(ref, Hash::kType, std::make_unique<Hash>(environment_));
  }
  Hash& hash() { return static_cast<Hash&>(*keys_.find(kKey, Keyspace::kPeek)->value()); }
  void index() { keys_.index_elements(keys_.find(kKey, Keyspace::kPeek)); }

  std::string text() {
    const uint8_t choice = input_.byte();
    if (choice < 128) return std::to_string(choice);
    if (choice < 160) return std::to_string(static_cast<int64_t>(input_.word()) >> (choice & 63));
    if (choice == 255) return std::string(10'000 + size_t{input_.byte()} * 256, 'l');
    return std::string(choice - size_t{160}, static_cast<char>('a' + choice % 3));
  }
  int64_t deadline() {
    const uint8_t choice = input_.byte();
    if (choice < 64) return Hash::kNoDeadline;
    if (choice < 192) return environment_.now_ms - 32 + choice;
    return std::clamp<int64_t>(static_cast<int64_t>(input_.word() >> 17), 1, Hash::kMaxDeadline);
  }
  bool is_due(const Expected& field) const {
    return field.deadline_ms >= 0 && field.deadline_ms <= environment_.now_ms;
  }
  int64_t first_deadline() const {
    int64_t first_ms = Hash::kNoDeadline;
    for (const auto& [name, field] : model_) {
      if (field.deadline_ms >= 0 && (first_ms < 0 || field.deadline_ms < first_ms))
        first_ms = field.deadline_ms;
    }
    return first_ms;
  }

  void step() {
    const uint8_t choice = input_.byte();
    const std::string name = text();
    const auto found = model_.find(name);
    const bool stored = found != model_.end();
    switch (choice % 12) {
      case 0:
      case 1:
      case 2: {
        const bool keep = (choice & 128) != 0;
        int64_t deadline_ms = keep ? Hash::kKeepDeadline : deadline();
        if (deadline_ms >= 0) hash().prepare_deadlines();
        Expected field{text(), deadline_ms};
        if (keep) field.deadline_ms = stored ? found->second.deadline_ms : Hash::kNoDeadline;
        require(hash().set(name, field.value, deadline_ms) == !stored);
        model_[name] = field;
        index();
        break;
      }
      case 3:
        require(hash().erase(name) == stored);
        model_.erase(name);
        index();
        break;
      case 4:
      case 5: {
        if (!stored) break;
        found->second.deadline_ms = deadline();
        if (found->second.deadline_ms >= 0) hash().prepare_deadlines();
        hash().set_deadline(name, found->second.deadline_ms);
        index();
        break;
      }
      case 6: {
        const bool due = stored && is_due(found->second);
        require(hash().expire(name) == due);
        if (due) model_.erase(found);
        index();
        break;
      }
      case 7:
        expire_some();
        break;
      case 8:
        environment_.now_ms += input_.byte();
        break;
      case 9:
        copy();
        break;
      case 10:
        draw();
        break;
      default:
        check(name);
        if (choice > 240) check_all();
    }
  }

  // The hash removes its earliest fields, or the keyspace all that are a wheel's tick old.
  void expire_some() {
    const size_t budget = input_.byte();
    if (budget < 128) {
      size_t due = 0;
      for (const auto& [name, field] : model_) due += is_due(field) ? 1 : 0;
      const size_t removed = hash().expire_elements(budget);
      require(removed == std::min(budget, due));
      for (auto it = model_.begin(); it != model_.end();)
        it = hash().deadline_ms(it->first) ? std::next(it) : model_.erase(it);
      index();
      return;
    }
    require(keys_.expire_due(SIZE_MAX));
    const KeyRef ref = keys_.find(kKey, Keyspace::kPeek);
    constexpr int64_t kTickMs = 16;
    for (auto it = model_.begin(); it != model_.end();) {
      const bool there = ref && hash().deadline_ms(it->first).has_value();
      require(there || is_due(it->second));
      require(!there || it->second.deadline_ms < 0 ||
              it->second.deadline_ms > environment_.now_ms - 2 * kTickMs);
      it = there ? std::next(it) : model_.erase(it);
    }
  }

  // Puts a copy in the hash's place.
  void copy() {
    KeyRef ref = keys_.find(kKey, Keyspace::kPeek);
    store::DetachedEntry copied = keys_.copy(ref);
    keys_.erase(ref);
    keys_.attach(ref, std::move(copied));
  }

  void draw() {
    if (model_.empty()) return;
    const size_t count = std::min<size_t>(input_.byte(), model_.size());
    std::set<std::string> seen;
    hash().random_distinct(environment_.random, count,
                           [&](std::string_view field, std::string_view value) {
                             require(model_.at(std::string(field)).value == value);
                             require(seen.emplace(field).second);
                           });
    require(seen.size() == count);
    hash().random(environment_.random, [&](std::string_view field, std::string_view value) {
      require(model_.at(std::string(field)).value == value);
    });
  }

  void check(const std::string& name) {
    char scratch[Hash::kScratch];
    const auto found = model_.find(name);
    const auto value = hash().get(name, scratch);
    const bool seen = found != model_.end() && !is_due(found->second);
    require(value.has_value() == seen);
    require(hash().contains(name) == seen);
    if (seen) require(*value == found->second.value);
    const auto deadline_ms = hash().deadline_ms(name);
    require(deadline_ms.has_value() == (found != model_.end()));
    if (deadline_ms) require(*deadline_ms == found->second.deadline_ms);
  }

  void check_all() {
    for (const auto& [name, field] : model_) check(name);
    size_t stored = 0;
    int64_t last_ms = 0;
    hash().for_each_stored(
        [&](std::string_view field, std::string_view value, int64_t deadline_ms) {
          const Expected& expected = model_.find(field)->second;
          require(value == expected.value && deadline_ms == expected.deadline_ms);
          // Fields of a listpack stand in the order of their deadlines.
          const int64_t order_ms = deadline_ms < 0 ? INT64_MAX : deadline_ms;
          require(hash().is_table() || order_ms >= last_ms);
          last_ms = order_ms;
          ++stored;
        });
    require(stored == model_.size());
    std::set<std::string> walked;
    hash().for_each([&](std::string_view field, std::string_view) { walked.emplace(field); });
    require(walked.size() == hash().living());
    std::set<std::string> scanned;
    uint64_t cursor = 0;
    do {
      cursor = hash().scan(
          cursor, [&](std::string_view field, std::string_view) { scanned.emplace(field); });
    } while (cursor != 0);
    require(scanned == walked);
    for (const auto& [name, field] : model_) require(walked.count(name) == (is_due(field) ? 0 : 1));
  }

  Input input_;
  Environment environment_;
  Keyspace keys_{0, environment_};
  Model model_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kLongestInput = 8'192;
  if (size > kLongestInput) return 0;
  Session(Input(data, size)).run();
  return 0;
}

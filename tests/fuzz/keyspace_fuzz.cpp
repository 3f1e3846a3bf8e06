// Two databases against two maps: the input is a list of operations, each a byte and what it needs.
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/number.h"
#include "input.h"
#include "store/keyspace.h"
#include "store/value/list.h"
#include "store/value/view.h"

namespace {

using namespace latchkey;
using fuzz::Input;
using fuzz::require;
using store::DetachedEntry;
using store::Environment;
using store::KeyRef;
using store::Keyspace;
using store::List;

constexpr int64_t kNone = Keyspace::kNoDeadline;

struct Expected {
  std::string value;
  int64_t deadline_ms = kNone;
};
using Model = std::map<std::string, Expected>;

// A list of one element.
std::unique_ptr<List> list_of(std::string_view element, const Environment& environment) {
  auto list = std::make_unique<List>();
  list->will_grow(element.size(), 1, environment.limits);
  list->push_back(element, environment.limits);
  return list;
}

class Session {
 public:
  explicit Session(Input input) : input_(input) {
    environment_.secret = base::HashSecret(1);
    environment_.now_ms = 1'000'000;
  }

  void run() {
    while (!input_.empty()) {
      step();
      for (int i : {0, 1}) {
        require(keys_[i].size() >= models_[i].size());
        require(keys_[i].empty() == (keys_[i].size() == 0));
      }
    }
    for (int i : {0, 1}) check_all(i);
  }

 private:
  std::string key() {
    const uint8_t choice = input_.byte();
    if (choice == 255) return std::string(70'000, 'k');
    if (choice >= 250) return std::string(choice, 'k');
    return std::string("k") + std::to_string(choice);
  }
  std::string value() {
    const uint8_t choice = input_.byte();
    if (choice < 64) return std::to_string(static_cast<int64_t>(input_.word()) >> choice);
    const size_t size = choice < 200 ? size_t{choice} - 64 : (choice - 200) * size_t{20};
    return std::string(size, static_cast<char>(input_.byte()));
  }
  int64_t deadline() {
    const uint8_t choice = input_.byte();
    if (choice < 64) return kNone;
    const auto distance = static_cast<int64_t>(input_.word() >> (choice & 63));
    return std::max<int64_t>(environment_.now_ms + 1, distance);
  }

  void step() {
    const uint8_t choice = input_.byte();
    const int at = choice >> 7;
    Keyspace& keys = keys_[at];
    Model& model = models_[at];
    const std::string name = key();
    KeyRef ref = keys.find_for_write(name);
    const auto found = model.find(name);
    require(static_cast<bool>(ref) == (found != model.end()));
    const bool is_string = ref && ref->is_string();
    switch ((choice & 127) % 15) {
      case 0: {
        const std::string text = value();
        const bool keep = (input_.byte() & 1) != 0;
        const int64_t deadline_ms = keep ? Keyspace::kKeepDeadline : deadline();
        keys.set_string(ref, text, deadline_ms);
        model[name].value = text;
        if (!keep) model[name].deadline_ms = deadline_ms;
        break;
      }
      case 1: {
        const auto number = static_cast<int64_t>(input_.word());
        keys.set_integer(ref, number);
        model[name].value = std::to_string(number);
        break;
      }
      case 2: {
        if (ref && !is_string) break;
        std::string& text = model[name].value;
        text.resize(text.size() + size_t{input_.byte()} * (1 + input_.byte() % 8));
        const std::span<char> bytes = keys.extend_string(ref, text.size());
        require(std::string_view(bytes.data(), bytes.size()) == text);
        break;
      }
      case 3: {
        Expected& entry = model[name];
        entry = {value(), deadline()};
        keys.set_value(ref, store::Type::kList, list_of(entry.value, environment_),
                       entry.deadline_ms);
        break;
      }
      case 4: {
        if (!ref) break;
        found->second.deadline_ms = deadline();
        keys.set_deadline(ref, found->second.deadline_ms);
        break;
      }
      case 5: {
        if (!ref) break;
        keys.erase(ref, (input_.byte() & 1) != 0);
        model.erase(found);
        break;
      }
      case 6:
        move(at, name, ref);
        break;
      case 7:
        copy(at, name, ref);
        break;
      case 8: {
        keys_[0].swap(keys_[1]);
        std::swap(models_[0], models_[1]);
        break;
      }
      case 9: {
        if (input_.byte() > 20) break;
        keys.clear((input_.byte() & 1) != 0);
        model.clear();
        break;
      }
      case 10:
        advance();
        break;
      case 11:
        check_scan(at);
        break;
      case 12:
        Keyspace::pack_changed(environment_);
        break;
      case 13: {
        if (!ref || is_string) break;
        // As commands do that change a list.
        found->second.value = value();
        List& list = static_cast<List&>(*ref->value());
        list.replace(list.at(0), found->second.value, environment_.limits);
        break;
      }
      default:
        if (ref) check(keys, name, found->second);
    }
  }

  void move(int from, const std::string& name, KeyRef& ref) {
    if (!ref) return;
    const int to = input_.byte() & 1;
    const std::string target = key();
    const Expected entry = models_[from].at(name);
    DetachedEntry moving = keys_[from].detach(ref);
    models_[from].erase(name);
    put(to, target, std::move(moving), entry);
  }
  void copy(int from, const std::string& name, KeyRef& ref) {
    if (!ref) return;
    const int to = input_.byte() & 1;
    const std::string target = key();
    put(to, target, keys_[from].copy(ref), models_[from].at(name));
  }
  void put(int to, const std::string& target, DetachedEntry moving, const Expected& entry) {
    KeyRef there = keys_[to].find_for_write(target);
    if (there) keys_[to].erase(there);
    keys_[to].attach(there, std::move(moving));
    models_[to][target] = entry;
  }

  void advance() {
    const uint8_t choice = input_.byte();
    const auto by_ms = static_cast<int64_t>(input_.word() >> (24 + choice % 40));
    if (choice > 240) {
      // The clock is set back. What has expired unseen goes before, since it would live again.
      for (Keyspace& keys : keys_) remove_expired(keys);
      environment_.now_ms = std::max<int64_t>(environment_.now_ms - by_ms, 0);
    } else {
      environment_.now_ms += std::min(by_ms, INT64_MAX / 2 - environment_.now_ms);
    }
    for (int i : {0, 1}) {
      std::erase_if(models_[i], [&](const auto& entry) {
        return entry.second.deadline_ms >= 0 && entry.second.deadline_ms <= environment_.now_ms;
      });
      keys_[i].expire_due(input_.byte());
    }
  }
  // Active expiry, then looking for what has expired within the last tick.
  static void remove_expired(Keyspace& keys) {
    require(keys.expire_due(SIZE_MAX));
    std::vector<std::string> names;
    uint64_t cursor = 0;
    do {
      cursor = keys.scan(cursor, [&](const store::Entry& entry) {
        if (keys.is_expired(entry)) names.emplace_back(entry.key());
      });
    } while (cursor != 0);
    for (const std::string& name : names) require(!keys.exists(name));
  }

  void check(Keyspace& keys, const std::string& name, const Expected& expected) {
    const KeyRef ref = keys.find(name);
    require(static_cast<bool>(ref));
    require(ref->key() == name);
    require(ref->deadline_ms() == expected.deadline_ms);
    if (ref->is_string()) {
      char scratch[base::kMaxInt64Text];
      require(ref->string(scratch) == expected.value);
      require(ref->string_size() == expected.value.size());
    } else {
      require(ref->element_count() == 1);
      const store::View<List> list(*ref);
      char scratch[store::Listpack::kScratch];
      require(list->get(list->at(0)).text(scratch) == expected.value);
    }
  }
  void check_scan(int at) {
    size_t seen = 0;
    uint64_t cursor = 0;
    do {
      cursor = keys_[at].scan(
          cursor, [&](const store::Entry& entry) { seen += keys_[at].is_expired(entry) ? 0 : 1; });
    } while (cursor != 0);
    require(seen == models_[at].size());
  }
  void check_all(int at) {
    for (const auto& [name, expected] : models_[at]) check(keys_[at], name, expected);
    size_t living = 0;
    size_t with_deadline = 0;
    keys_[at].for_each([&](const store::Entry& entry) {
      ++living;
      with_deadline += entry.has_deadline() ? 1 : 0;
    });
    require(living == models_[at].size());
    require(with_deadline <= keys_[at].volatile_size());
  }

  Input input_;
  Environment environment_;
  Keyspace keys_[2]{{0, environment_}, {1, environment_}};
  Model models_[2];
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kLongestInput = 8'192;
  if (size > kLongestInput) return 0;
  Session(Input(data, size)).run();
  return 0;
}

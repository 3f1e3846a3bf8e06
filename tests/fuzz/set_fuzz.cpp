// Operations on a set, through its three encodings, beside a std::set.
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "input.h"
#include "store/value/set.h"

namespace {

using namespace latchkey;
using fuzz::Input;
using fuzz::require;

class Session {
 public:
  explicit Session(Input input) : input_(input), random_(1) {
    environment_.secret = base::HashSecret(1);
    choose_limits();
    set_ = std::make_unique<store::Set>(environment_);
  }

  void run() {
    while (!input_.empty()) {
      step();
      require(set_->size() == model_.size());
    }
    check();
  }

 private:
  void choose_limits() {
    environment_.limits.set_max_intset_entries = input_.byte();
    environment_.limits.set_max_listpack_entries = input_.byte();
    environment_.limits.set_max_listpack_value = input_.byte();
  }

  void step() {
    constexpr size_t kMax = 800;
    const uint8_t choice = input_.byte() % 12;
    const std::string member = input_.text();
    if (choice < 5) {
      if (model_.size() < kMax) require(set_->add(member) == model_.insert(member).second);
    } else if (choice < 7) {
      require(set_->erase(member) == (model_.erase(member) == 1));
    } else if (choice == 7) {
      require(set_->contains(member) == model_.contains(member));
    } else if (choice == 8) {
      set_ = std::make_unique<store::Set>(*set_);
    } else if (choice == 9) {
      set_->expect(input_.byte());
    } else if (choice == 10) {
      choose_limits();
    } else {
      check();
      // As SPOP does: what is erased comes from the set itself.
      if (model_.empty()) return;
      const std::string taken = set_->random(random_);
      require(model_.erase(taken) == 1);
      require(set_->erase(taken));
    }
  }

  void check() const {
    std::set<std::string> seen;
    set_->for_each([&](std::string_view member) { require(seen.emplace(member).second); });
    require(seen == model_);
    seen.clear();
    uint64_t cursor = 0;
    do {
      cursor = set_->scan(cursor, [&](std::string_view member) { seen.emplace(member); });
    } while (cursor != 0);
    require(seen == model_);
  }

  Input input_;
  base::Random random_;
  store::Environment environment_;
  std::unique_ptr<store::Set> set_;
  std::set<std::string> model_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kLongestInput = 8'192;
  if (size > kLongestInput) return 0;
  Session(Input(data, size)).run();
  return 0;
}

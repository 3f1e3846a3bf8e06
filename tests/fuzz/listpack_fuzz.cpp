// Two things, as the first byte chooses: bytes from outside as a listpack, walked in both
// directions when they are accepted; and operations on a listpack beside a vector of strings.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "input.h"
#include "store/encoding/listpack.h"

namespace {

using latchkey::fuzz::Input;
using latchkey::fuzz::require;
using latchkey::store::Listpack;

std::vector<std::string> forwards(const Listpack& pack) {
  std::vector<std::string> texts;
  char scratch[Listpack::kScratch];
  for (auto at = pack.first(); at != Listpack::kNone; at = pack.next(at))
    texts.emplace_back(pack.get(at).text(scratch));
  return texts;
}

std::vector<std::string> backwards(const Listpack& pack) {
  std::vector<std::string> texts;
  char scratch[Listpack::kScratch];
  for (auto at = pack.last(); at != Listpack::kNone; at = pack.previous(at))
    texts.emplace(texts.begin(), pack.get(at).text(scratch));
  return texts;
}

void read(std::string_view bytes) {
  if (!Listpack::is_valid(bytes)) return;
  const Listpack pack = Listpack::from_bytes(bytes);
  const auto texts = forwards(pack);
  require(texts == backwards(pack));
  require(pack.size() == texts.size());
}

class Session {
 public:
  explicit Session(Input input) : input_(input) {}

  void run() {
    while (!input_.empty()) {
      step();
      require(pack_.size() == model_.size());
      require(pack_.empty() == model_.empty());
    }
    check();
  }

 private:
  size_t index(size_t end) { return end == 0 ? 0 : (input_.byte() << 8 | input_.byte()) % end; }
  Listpack::Position place(size_t index) const { return pack_.at(static_cast<int64_t>(index)); }

  void step() {
    constexpr size_t kMax = 400;
    const uint8_t choice = input_.byte() % 12;
    if (model_.size() > kMax && choice < 4) return;
    switch (choice) {
      case 0:
        model_.push_back(input_.text());
        pack_.append(model_.back());
        break;
      case 1:
        model_.insert(model_.begin(), input_.text());
        pack_.prepend(model_.front());
        break;
      case 2: {
        const size_t at = index(model_.size() + 1);
        model_.insert(model_.begin() + static_cast<std::ptrdiff_t>(at), input_.text());
        const auto position = pack_.insert_before(place(at), model_[at]);
        require(position == place(at));
        break;
      }
      case 3: {
        const size_t at = index(model_.size() + 1);
        const auto number = static_cast<int64_t>(input_.word());
        model_.insert(model_.begin() + static_cast<std::ptrdiff_t>(at), std::to_string(number));
        pack_.insert_before(place(at), number);
        break;
      }
      case 4: {
        if (model_.empty()) break;
        const size_t at = index(model_.size());
        model_[at] = input_.text();
        pack_.replace(place(at), model_[at]);
        break;
      }
      case 5: {
        if (model_.empty()) break;
        const size_t at = index(model_.size());
        const auto number = static_cast<int64_t>(input_.word());
        model_[at] = std::to_string(number);
        pack_.replace(place(at), number);
        break;
      }
      case 6: {
        if (model_.empty()) break;
        const size_t at = index(model_.size());
        const size_t count = input_.byte() % 8;
        const auto first = model_.begin() + static_cast<std::ptrdiff_t>(at);
        model_.erase(first,
                     first + static_cast<std::ptrdiff_t>(std::min(count, model_.size() - at)));
        require(pack_.erase(place(at), count) == place(at));
        break;
      }
      case 7:
        find();
        break;
      case 8: {
        if (model_.empty()) break;
        const size_t at = index(model_.size());
        Listpack behind = pack_.split(place(at));
        require(pack_.size() == at);
        pack_.append_range(behind, behind.first());
        break;
      }
      case 9:
        pack_ = Listpack(pack_);
        break;
      case 10:
        if (input_.byte() > 16) break;
        pack_.clear();
        model_.clear();
        break;
      default:
        check();
    }
  }

  void find() {
    if (model_.empty()) return;
    const std::string wanted = input_.text();
    const size_t skip = input_.byte() % 2;
    const size_t from = index(model_.size());
    auto expected = Listpack::kNone;
    for (size_t i = from; i < model_.size() && expected == Listpack::kNone; i += 1 + skip) {
      if (model_[i] == wanted) expected = place(i);
    }
    require(pack_.find(wanted, place(from), skip) == expected);
  }

  void check() const {
    require(Listpack::is_valid(pack_.bytes()));
    require(forwards(pack_) == model_);
    require(backwards(pack_) == model_);
    require(pack_.byte_size() == pack_.bytes().size());
    for (const std::string& text : model_)
      require(Listpack::encoded_size(text) <= pack_.byte_size());
  }

  Input input_;
  Listpack pack_;
  std::vector<std::string> model_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kLongestInput = 8'192;
  if (size == 0 || size > kLongestInput) return 0;
  Input input(data, size);
  if ((input.byte() & 1) != 0) {
    read(input.rest());
  } else {
    Session(input).run();
  }
  return 0;
}

// Operations on a list, small or of many nodes, beside a std::deque.
#include <algorithm>
#include <deque>
#include <memory>
#include <string>

#include "input.h"
#include "store/value/list.h"
#include "store/value_limits.h"

namespace {

using latchkey::fuzz::Input;
using latchkey::fuzz::require;
using latchkey::store::List;
using latchkey::store::Listpack;
using latchkey::store::Quicklist;
using latchkey::store::ValueLimits;

class Session {
 public:
  explicit Session(Input input) : input_(input) { choose_limits(); }

  void run() {
    while (!input_.empty()) {
      step();
      require(list_->size() == model_.size());
    }
    check();
  }

 private:
  using Index = std::deque<std::string>::difference_type;

  void choose_limits() {
    const uint8_t choice = input_.byte();
    limits_.list_max_listpack_size = choice < 128 ? 1 + choice % 12 : -1 - choice % 5;
    limits_.list_compress_depth = input_.byte() % 4;
    limits_.quicklist_packed_threshold = input_.byte() % 4 == 0 ? 1 + input_.byte() : 0;
  }
  Index index(size_t end) {
    return end == 0 ? 0 : static_cast<Index>((input_.byte() << 8 | input_.byte()) % end);
  }
  // The text of a new element, announced as the commands do.
  std::string grow() {
    std::string text = input_.text();
    list_->will_grow(text.size(), 1, limits_);
    return text;
  }

  void step() {
    constexpr size_t kMax = 600;
    const uint8_t choice = input_.byte() % 13;
    if (model_.size() > kMax && choice < 4) return;
    switch (choice) {
      case 0:
        model_.push_back(grow());
        list_->push_back(model_.back(), limits_);
        break;
      case 1:
        model_.push_front(grow());
        list_->push_front(model_.front(), limits_);
        break;
      case 2:
      case 3: {
        if (model_.empty()) break;
        const Index at = index(model_.size());
        const std::string text = grow();
        if (choice == 2) {
          list_->insert_before(list_->at(at), text, limits_);
        } else {
          list_->insert_after(list_->at(at), text, limits_);
        }
        model_.insert(model_.begin() + at + (choice == 2 ? 0 : 1), text);
        break;
      }
      case 4: {
        if (model_.empty()) break;
        const Index at = index(model_.size());
        model_[static_cast<size_t>(at)] = grow();
        list_->replace(list_->at(at), model_[static_cast<size_t>(at)], limits_);
        list_->has_shrunk(limits_);
        break;
      }
      case 5:
        erase_some();
        break;
      case 6: {
        const Index at = index(model_.size() + 1);
        const Index count = index(model_.size() - static_cast<size_t>(at) + 1);
        list_->erase_range(static_cast<size_t>(at), static_cast<size_t>(count));
        list_->has_shrunk(limits_);
        model_.erase(model_.begin() + at, model_.begin() + at + count);
        break;
      }
      case 7:
        list_ = std::make_unique<List>(*list_);
        break;
      case 8:
        choose_limits();
        break;
      case 9:
        list_->recompress();
        break;
      case 10: {
        if (model_.empty()) break;
        const Index at = index(model_.size());
        char scratch[Listpack::kScratch];
        require(list_->get(list_->at(at)).text(scratch) == model_[static_cast<size_t>(at)]);
        const Index from_end = at - static_cast<Index>(model_.size());
        require(list_->get(list_->at(from_end)).text(scratch) == model_[static_cast<size_t>(at)]);
        find(model_[static_cast<size_t>(at)]);
        break;
      }
      default:
        check();
    }
  }

  void find(const std::string& text) const {
    const auto found = list_->find(Listpack::Matcher(text), list_->at(0));
    const auto first = std::find(model_.begin(), model_.end(), text) - model_.begin();
    const auto expected = list_->at(first);
    require(found.node == expected.node && found.position == expected.position);
  }

  // Walks from a place on and erases now and then, as LREM does.
  void erase_some() {
    if (model_.empty()) return;
    Index at = index(model_.size());
    auto cursor = list_->at(at);
    for (uint8_t plan = input_.byte(); cursor; plan = static_cast<uint8_t>(plan >> 1)) {
      char scratch[Listpack::kScratch];
      require(list_->get(cursor).text(scratch) == model_[static_cast<size_t>(at)]);
      if (plan == 0) break;
      if ((plan & 1) != 0) {
        cursor = list_->erase(cursor);
        model_.erase(model_.begin() + at);
      } else {
        cursor = list_->next(cursor);
        ++at;
      }
    }
    require(static_cast<bool>(cursor) == (at < static_cast<Index>(model_.size())));
    list_->has_shrunk(limits_);
  }

  void check() const {
    char scratch[Listpack::kScratch];
    auto cursor = list_->at(0);
    for (const std::string& text : model_) {
      require(static_cast<bool>(cursor));
      require(list_->get(cursor).text(scratch) == text);
      cursor = list_->next(cursor);
    }
    require(!cursor);
    cursor = list_->at(-1);
    for (auto text = model_.rbegin(); text != model_.rend(); ++text) {
      require(static_cast<bool>(cursor));
      require(list_->get(cursor).text(scratch) == *text);
      cursor = list_->previous(cursor);
    }
    require(!cursor);
    require(list_->memory_usage() > 0);
    list_->recompress();
    check_nodes();
  }

  // Once settled, what is compressed lies far from the ends, and is smaller for it.
  void check_nodes() const {
    if (!list_->is_quicklist()) return;
    const Quicklist& chain = list_->quicklist();
    size_t index = 0;
    size_t compressed = 0;
    for (const auto* node = chain.first_node(); node != nullptr; node = node->next, ++index) {
      if (!node->is_compressed()) continue;
      ++compressed;
      require(chain.depth() != 0);
      require(index >= chain.depth() && index + chain.depth() < chain.nodes());
      require(node->compressed.size() < node->full_size);
    }
    require(compressed == chain.compressed_nodes());
  }

  Input input_;
  ValueLimits limits_;
  std::unique_ptr<List> list_ = std::make_unique<List>();
  std::deque<std::string> model_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kLongestInput = 8'192;
  if (size > kLongestInput) return 0;
  Session(Input(data, size)).run();
  return 0;
}

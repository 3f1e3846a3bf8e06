// Operations on a stream and one of its groups beside a std::map; and bytes of nodes that nobody
// has checked.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "input.h"
#include "store/value/stream.h"

namespace {

using latchkey::fuzz::Input;
using latchkey::fuzz::require;
using latchkey::store::Listpack;
using latchkey::store::PendingEntry;
using latchkey::store::Stream;
using latchkey::store::StreamConsumer;
using latchkey::store::StreamEntry;
using latchkey::store::StreamGroup;
using latchkey::store::StreamId;
using latchkey::store::StreamNode;
using latchkey::store::StreamRange;
using latchkey::store::StreamTrim;
using latchkey::store::ValueLimits;

using Fields = std::vector<std::string>;
using Model = std::map<StreamId, Fields>;

Fields fields_of(const StreamEntry& entry) {
  char scratch[Listpack::kScratch];
  Fields fields;
  entry.for_each_field([&](const auto& field, const auto& value) {
    fields.emplace_back(field.text(scratch));
    fields.emplace_back(value.text(scratch));
  });
  require(fields.size() == entry.fields() * 2);
  return fields;
}

Model read_range(const Stream& stream, const StreamRange& range, bool reverse) {
  Model read;
  StreamId before;
  stream.for_each(range, reverse, [&](const StreamEntry& entry) {
    require(read.empty() || (reverse ? entry.id() < before : entry.id() > before));
    before = entry.id();
    read.emplace(before, fields_of(entry));
    return true;
  });
  return read;
}

class Session {
 public:
  explicit Session(Input input) : input_(input) { choose_limits(); }

  void run() {
    stream_->add_group("g", {}, 0);
    while (!input_.empty()) {
      step();
      require(stream_->size() == model_.size());
      require(stream_->first_id() == (model_.empty() ? StreamId() : model_.begin()->first));
      require(stream_->last_entry_id() == (model_.empty() ? StreamId() : model_.rbegin()->first));
    }
    check();
  }

 private:
  void choose_limits() {
    limits_.stream_node_max_entries = input_.byte() % 9;
    limits_.stream_node_max_bytes = input_.byte() * size_t{8};
  }
  // An id that is there, most of the time, if any is.
  StreamId id() {
    const uint8_t choice = input_.byte();
    if (model_.empty() || choice >= 200) return {input_.byte(), input_.byte() % uint64_t{3}};
    auto it = model_.begin();
    std::advance(it, static_cast<std::ptrdiff_t>(choice % model_.size()));
    return it->first;
  }
  StreamGroup& group() { return *stream_->find_group("g"); }

  void step() {
    switch (input_.byte() % 13) {
      case 0:
      case 1:
      case 2:
      case 3:
        add();
        break;
      case 4: {
        const StreamId gone = id();
        require(stream_->contains(gone) == model_.contains(gone));
        require(stream_->erase(gone) == (model_.erase(gone) != 0));
        break;
      }
      case 5:
        trim();
        break;
      case 6: {
        const StreamRange range{id(), id()};
        Model expected;
        if (range.first <= range.last)
          expected = Model(model_.lower_bound(range.first), model_.upper_bound(range.last));
        require(read_range(*stream_, range, false) == expected);
        require(read_range(*stream_, range, true) == expected);
        break;
      }
      case 7:
        stream_.reset(static_cast<Stream*>(stream_->clone()));
        break;
      case 8:
        choose_limits();
        break;
      case 9:
        change_pending();
        break;
      case 10:
        rebuild();
        break;
      case 11:
        // Ids that were trimmed may come again.
        stream_->set_last_id(std::max(stream_->last_entry_id(), stream_->max_deleted_id()));
        break;
      default:
        check();
    }
  }

  void add() {
    constexpr size_t kMax = 300;
    const StreamId last = stream_->last_id();
    if (model_.size() > kMax || last.ms >= UINT64_MAX - 256) return;
    const uint8_t choice = input_.byte();
    const StreamId id = choice < 128 ? last.next() : StreamId{last.ms + choice, input_.byte()};
    if (id <= last) return;
    Fields fields;
    for (int pairs = 1 + input_.byte() % 3; pairs > 0; --pairs) {
      // Few different names, so that entries share them.
      fields.push_back(std::string(1, static_cast<char>('a' + input_.byte() % 2)));
      fields.push_back(input_.text());
    }
    const std::vector<std::string_view> words(fields.begin(), fields.end());
    stream_->append(id, words, limits_);
    model_.emplace(id, std::move(fields));
  }

  void trim() {
    StreamTrim trim;
    trim.by = input_.byte() % 2 == 0 ? StreamTrim::By::kMaxLength : StreamTrim::By::kMinId;
    trim.max_length = input_.byte();
    trim.min_id = id();
    trim.approximate = input_.byte() % 2 == 0;
    if (trim.approximate) trim.limit = input_.byte();
    const size_t before = model_.size();
    const size_t removed = stream_->trim(trim);
    size_t excess = before > trim.max_length ? before - trim.max_length : 0;
    if (trim.by == StreamTrim::By::kMinId)
      excess = static_cast<size_t>(std::distance(model_.begin(), model_.lower_bound(trim.min_id)));
    require(trim.approximate ? removed <= excess : removed == excess);
    require(trim.limit == 0 || removed <= trim.limit);
    for (size_t left = removed; left > 0; --left) model_.erase(model_.begin());
  }

  void change_pending() {
    const std::string name(1, static_cast<char>('a' + input_.byte() % 3));
    StreamConsumer* consumer = group().find_consumer(name);
    if (consumer == nullptr) consumer = &group().add_consumer(name, 1);
    const StreamId wanted = id();
    PendingEntry* entry = group().pending().find(wanted);
    require((entry != nullptr) == pending_.contains(wanted));
    switch (input_.byte() % 5) {
      case 0: {
        const int64_t delivered_ms = input_.byte();
        if (entry != nullptr)
          group().assign_pending(*entry, *consumer, delivered_ms);
        else
          group().add_pending(wanted, *consumer, delivered_ms, 1);
        pending_[wanted] = {name, delivered_ms};
        break;
      }
      case 1:
        require(group().erase_pending(wanted) == (pending_.erase(wanted) != 0));
        break;
      case 2: {
        const size_t erased = group().erase_consumer(name);
        require(erased ==
                std::erase_if(pending_, [&](const auto& p) { return p.second.owner == name; }));
        break;
      }
      case 3:
        if (entry != nullptr)
          group().release_pending(*entry, 1);
        else
          group().add_released(wanted, 1);
        pending_[wanted] = {"", ++releases_};
        break;
      default:
        check_order();
        break;
    }
  }

  // The same stream from the bytes of its nodes.
  void rebuild() {
    Stream copy;
    stream_->for_each_node(
        [&](const StreamNode& node) { require(copy.adopt(node.id, node.pack().bytes())); });
    require(read_range(copy, {}, false) == model_);
    require(copy.first_id() == stream_->first_id());
  }

  void check() {
    require(read_range(*stream_, {}, false) == model_);
    require(read_range(*stream_, {}, true) == model_);
    require(stream_->memory_usage() > 0);
    size_t owned = 0;
    for (const auto& [_, consumer] : group().consumers()) {
      const std::string& name = consumer->name;
      consumer->pending.for_each([&](const PendingEntry* entry) {
        require(pending_.at(entry->id).owner == name);
        ++owned;
      });
    }
    require(owned + group().released() == pending_.size());
    require(group().pending().size() == pending_.size());
    auto expected = pending_.begin();
    group().pending().for_each([&](const PendingEntry* entry) {
      require(entry->id == (expected++)->first);
      require(entry->consumer().name == pending_.at(entry->id).owner);
    });
  }

  // Released entries as they were released, then the others by time and id; those that the stream
  // has.
  void check_order() {
    std::vector<std::tuple<bool, int64_t, StreamId>> expected;
    for (const auto& [id, record] : pending_) {
      if (model_.contains(id)) expected.emplace_back(!record.owner.empty(), record.time, id);
    }
    std::sort(expected.begin(), expected.end());
    size_t walked = 0;
    stream_->for_each_pending(group(), [&](const PendingEntry& pending, const StreamEntry& entry) {
      require(pending.id == entry.id() && pending.id == std::get<2>(expected.at(walked++)));
      return true;
    });
    require(walked == expected.size());
    require(group().delivery_order().size() == walked);
  }

  Input input_;
  ValueLimits limits_;
  std::unique_ptr<Stream> stream_ = std::make_unique<Stream>();
  Model model_;
  struct Pending {
    std::string owner;  // empty: released
    int64_t time;       // when it was delivered, or how many were released up to it
  };
  std::map<StreamId, Pending> pending_;
  int64_t releases_ = 0;
};

// Gives the parts of a node in turn, so that most inputs are nearly one.
std::string nearly_a_node(Input& input) {
  Listpack pack;
  while (!input.empty()) {
    const uint8_t choice = input.byte();
    choice < 240 ? pack.append(int64_t{choice % 8}) : pack.append(input.text());
  }
  return std::string(pack.bytes().data(), pack.bytes().size());
}

void read_untrusted(std::string_view bytes) {
  Stream stream;
  const StreamId first{5, 0};
  if (!stream.adopt(first, bytes)) return;
  const Model read = read_range(stream, {}, false);
  require(read_range(stream, {}, true) == read);
  require(read.size() == stream.size());
  for (const auto& [id, fields] : read) {
    require(stream.contains(id));
    if (id.ms % 2 == 0) require(stream.erase(id));
  }
  const std::vector<std::string_view> words = {"a", "b"};
  const StreamId last = stream.last_entry_id();
  stream.set_last_id(std::max(last, stream.max_deleted_id()));
  if (stream.last_id() != StreamId::max()) stream.append(stream.last_id().next(), words, {});
  StreamTrim trim;
  trim.max_length = 1;
  stream.trim(trim);
  require(stream.size() <= 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kLongestInput = 8'192;
  if (size == 0 || size > kLongestInput) return 0;
  Input input(data, size);
  switch (input.byte() % 4) {
    case 0:
      read_untrusted(input.rest());
      break;
    case 1:
      read_untrusted(nearly_a_node(input));
      break;
    default:
      Session(input).run();
  }
  return 0;
}

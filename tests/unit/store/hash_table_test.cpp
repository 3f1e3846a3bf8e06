#include "store/hash_table.h"

#include <cmath>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "unit/catch.h"

namespace latchkey::store {

namespace {

struct Word {
  std::string text;
  int visits = 0;
};

struct WordTraits {
  using Item = Word;
  static std::string_view key(const Word* word) { return word->text; }
};

using Words = HashTable<WordTraits>;

// A table that owns its words, for tests that fill and empty it.
class WordTable {
 public:
  explicit WordTable(uint64_t seed = 1) : secret_(seed), table_(secret_) {}

  Words& table() { return table_; }
  bool contains(std::string_view text) { return table_.find(text, table_.hash(text)) != nullptr; }
  Word* add(std::string text) {
    auto word = std::make_unique<Word>(Word{std::move(text)});
    Word* added = word.get();
    Word** slot = table_.insert(added, table_.hash(added->text));
    REQUIRE(*slot == added);
    words_.emplace(added->text, std::move(word));
    return added;
  }
  void remove(const std::string& text) {
    const uint64_t hash = table_.hash(text);
    Word** slot = table_.find(text, hash);
    REQUIRE(slot != nullptr);
    REQUIRE(table_.erase(slot, hash) == words_.at(text).get());
    words_.erase(text);
  }
  const std::unordered_map<std::string, std::unique_ptr<Word>>& words() const { return words_; }

 private:
  base::HashSecret secret_;
  std::unordered_map<std::string, std::unique_ptr<Word>> words_;
  Words table_;
};

std::string numbered(uint64_t number) {
  return "word:" + std::to_string(number);
}

// Words that all live in one bucket of a table of up to 1,024 buckets.
std::vector<std::string> colliding_words(const Words& table, size_t count) {
  std::vector<std::string> found;
  for (uint64_t number = 0; found.size() < count; ++number) {
    std::string text = numbered(number);
    if ((table.hash(text) & 1023) == 77) found.push_back(std::move(text));
  }
  return found;
}

// Draws from the table and compares with a uniform distribution: the chi-square statistic must lie
// within six standard deviations of its mean.
void check_fair(WordTable& words, base::Random& random) {
  const size_t items = words.table().size();
  const size_t draws = items * 60;
  for (const auto& [text, word] : words.words()) word->visits = 0;
  for (size_t i = 0; i < draws; ++i) ++words.table().random(random)->visits;
  const double expected = static_cast<double>(draws) / static_cast<double>(items);
  double chi_square = 0;
  for (const auto& [text, word] : words.words()) {
    chi_square += (word->visits - expected) * (word->visits - expected) / expected;
  }
  const auto freedom = static_cast<double>(items - 1);
  CHECK(chi_square <= freedom + 6 * std::sqrt(2 * freedom) + 1e-9);
}

}  // namespace

TEST_CASE("An empty table finds, scans and chooses nothing", "[hash_table]") {
  WordTable words;
  base::Random random(1);
  CHECK(words.table().empty());
  CHECK_FALSE(words.contains("a"));
  CHECK(words.table().find_item("a") == nullptr);
  CHECK(words.table().random(random) == nullptr);
  CHECK(words.table().scan(0, [](Word*) { FAIL("nothing to see"); }) == 0);
  CHECK(words.table().memory_usage() == 0);
  words.table().prefetch_bucket(1);
  words.table().prefetch_item(1);
  words.table().prefetch_chained_item(1);
}

TEST_CASE("The table holds what a map holds, while it grows and shrinks", "[hash_table]") {
  WordTable words;
  base::Random random(2);
  for (int round = 0; round < 12; ++round) {
    const bool growing = round % 2 == 0;
    const uint64_t names = round < 6 ? 400 : 20'000;
    for (int step = 0; step < 20'000; ++step) {
      const std::string text = numbered(random.below(names));
      const bool present = words.words().count(text) != 0;
      REQUIRE(words.contains(text) == present);
      const bool wants = random.below(10) < (growing ? 8U : 2U);
      if (wants && !present) words.add(text);
      if (!wants && present) words.remove(text);
      REQUIRE(words.table().size() == words.words().size());
    }
    size_t seen = 0;
    words.table().for_each([&](Word* word) {
      ++seen;
      REQUIRE(words.words().at(word->text).get() == word);
    });
    CHECK(seen == words.words().size());
    for (const auto& [text, word] : words.words())
      REQUIRE(words.table().find_item(text) == word.get());
  }
}

TEST_CASE("Items leave a long chain from any place", "[hash_table]") {
  base::Random random(3);
  for (int round = 0; round < 3; ++round) {
    WordTable words;
    // Enough others for the table to have its 1,024 buckets, so that the colliding ones share one.
    for (uint64_t i = 0; i < 5'000; ++i) words.add("other:" + std::to_string(i));
    std::vector<std::string> chain = colliding_words(words.table(), 60);
    for (const std::string& text : chain) words.add(text);
    CHECK(words.table().chained_bucket_count() >= 8);
    while (!chain.empty()) {
      const size_t chosen = random.below(chain.size());
      words.remove(chain[chosen]);
      CHECK_FALSE(words.contains(chain[chosen]));
      chain.erase(chain.begin() + static_cast<ptrdiff_t>(chosen));
      for (const std::string& text : chain) REQUIRE(words.contains(text));
    }
  }
}

TEST_CASE("Every bucket and chain adds up to the size", "[hash_table]") {
  WordTable words;
  for (uint64_t i = 0; i < 30'000; ++i) words.add(numbered(i));
  size_t total = 0;
  for (size_t i = 0; i < words.table().bucket_count(); ++i) total += words.table().chain_size(i);
  CHECK(total == 30'000);
}

TEST_CASE("random() favours no item", "[hash_table]") {
  base::Random random(4);
  WordTable words;
  for (const size_t size : {1, 2, 7, 8, 9, 50, 301, 700, 1'500}) {
    for (uint64_t i = words.table().size(); i < size; ++i) words.add(numbered(i));
    check_fair(words, random);
  }
  SECTION("nor after the table has shrunk around the items that stayed") {
    for (uint64_t i = 300; i < 1'500; ++i) words.remove(numbered(i));
    check_fair(words, random);
  }
  SECTION("nor those that stand in a chain") {
    for (uint64_t i = 0; i < 3'500; ++i) words.add("other:" + std::to_string(i));
    for (const std::string& text : colliding_words(words.table(), 40)) {
      if (!words.contains(text)) words.add(text);
    }
    check_fair(words, random);
  }
}

TEST_CASE("A scan of a table at rest sees every item exactly once", "[hash_table]") {
  WordTable words;
  for (const size_t size : {1, 10, 77, 1'000, 5'000}) {
    for (uint64_t i = words.table().size(); i < size; ++i) words.add(numbered(i));
    std::unordered_map<Word*, int> seen;
    uint64_t cursor = 0;
    do {
      cursor = words.table().scan(cursor, [&](Word* word) { ++seen[word]; });
    } while (cursor != 0);
    CHECK(seen.size() == size);
    for (const auto& [word, times] : seen) REQUIRE(times == 1);
  }
}

TEST_CASE("A scan sees every item that stays, however the table grows and shrinks meanwhile",
          "[hash_table]") {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    base::Random random(seed);
    WordTable words(seed);
    std::unordered_set<std::string> staying;
    const uint64_t stays = 1 + random.below(300);
    for (uint64_t i = 0; i < stays; ++i) {
      staying.insert(numbered(i));
      words.add(numbered(i));
    }
    std::vector<std::string> passing;
    const auto change = [&](uint64_t steps, uint64_t growth_in_ten) {
      for (uint64_t i = 0; i < steps; ++i) {
        if (random.below(10) < growth_in_ten) {
          passing.push_back("passing:" + std::to_string(random.next()));
          words.add(passing.back());
        } else if (!passing.empty()) {
          std::swap(passing[random.below(passing.size())], passing.back());
          words.remove(passing.back());
          passing.pop_back();
        }
      }
    };
    change(random.below(4'000), 9);
    std::unordered_set<std::string> seen;
    uint64_t cursor = 0;
    size_t calls = 0;
    do {
      cursor = words.table().scan(cursor, [&](Word* word) { seen.insert(word->text); });
      if (random.below(4) == 0) change(random.below(200), random.below(11));
      REQUIRE(++calls < 100'000);
    } while (cursor != 0);
    for (const std::string& text : staying) REQUIRE(seen.count(text) == 1);
  }
}

TEST_CASE("Any cursor is taken, and leads to the end", "[hash_table]") {
  base::Random random(6);
  WordTable words;
  for (uint64_t i = 0; i < 1'000; ++i) words.add(numbered(i));
  for (int i = 0; i < 200; ++i) {
    uint64_t cursor = random.next();
    size_t calls = 0;
    do {
      cursor = words.table().scan(cursor, [](Word*) {});
      REQUIRE(++calls <= words.table().bucket_count());
    } while (cursor != 0);
  }
}

TEST_CASE("A growing table costs at most 15.5 bytes an item at every size", "[hash_table]") {
  WordTable words;
  for (uint64_t i = 0; i < 220'000; ++i) {
    words.add(numbered(i));
    const size_t size = words.table().size();
    // In smaller tables, the spare buckets of a segment weigh more.
    if (size > 100'000 && size % 1'000 == 0) {
      const double bytes =
          static_cast<double>(words.table().memory_usage()) / static_cast<double>(size);
      REQUIRE(bytes <= 15.5);
    }
  }
}

TEST_CASE("A table that shrinks gives memory back, and an empty one holds none", "[hash_table]") {
  WordTable words;
  for (uint64_t i = 0; i < 50'000; ++i) words.add(numbered(i));
  const size_t full = words.table().memory_usage();
  for (uint64_t i = 100; i < 50'000; ++i) words.remove(numbered(i));
  CHECK(words.table().memory_usage() < full / 30);
  for (uint64_t i = 10; i < 100; ++i) words.remove(numbered(i));
  CHECK(words.table().memory_usage() < 4'096);
  for (uint64_t i = 0; i < 10; ++i) words.remove(numbered(i));
  CHECK(words.table().memory_usage() == 0);
  words.add("again");
  CHECK(words.contains("again"));
}

TEST_CASE("A table moves with all it holds, and leaves an empty one behind", "[hash_table]") {
  WordTable words;
  for (uint64_t i = 0; i < 2'000; ++i) words.add(numbered(i));
  Words moved(std::move(words.table()));
  CHECK(words.table().empty());
  CHECK(moved.size() == 2'000);
  CHECK(moved.find_item(numbered(1'999)) != nullptr);
  words.table() = std::move(moved);
  CHECK(words.contains(numbered(0)));
  words.table().clear();
  CHECK(words.table().memory_usage() == 0);
}

}  // namespace latchkey::store

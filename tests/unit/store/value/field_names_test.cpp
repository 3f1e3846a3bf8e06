#include "store/value/field_names.h"

#include <memory>
#include <string>
#include <vector>

#include "store/keyspace.h"
#include "store/value/hash.h"
#include "unit/catch.h"

namespace latchkey::store {

namespace {

using Names = std::vector<std::string_view>;

std::string text_of(const Hash& hash) {
  std::string text;
  hash.for_each([&](std::string_view field, std::string_view value) {
    text.append(field).append("=").append(value).append(" ");
  });
  return text;
}

}  // namespace

TEST_CASE("The same names in any order are one list, ordered by length", "[field_names]") {
  Environment environment;
  FieldNameSets& sets = environment.field_names;
  const FieldNamesRef list = sets.get(environment, Names{"bb", "a", "ab", ""});
  const FieldNamesRef again = sets.get(environment, Names{"", "ab", "bb", "a"});
  const FieldNamesRef other = sets.get(environment, Names{"ab", "bb", "a"});
  CHECK(&*list == &*again);
  CHECK(&*list != &*other);
  REQUIRE(list->size() == 4);
  CHECK((*list)[0].empty());
  CHECK((*list)[1] == "a");
  CHECK((*list)[2] == "ab");
  CHECK((*list)[3] == "bb");
  CHECK(list->find("bb") == 3);
  CHECK(list->find("") == 0);
  for (const char* absent : {"b", "aa", "abc", "zz"})
    CHECK(list->find(absent) == FieldNames::kAbsent);
  // Where one name ends and the next begins counts.
  const FieldNamesRef joined = sets.get(environment, Names{"x", "yz"});
  const FieldNamesRef parted = sets.get(environment, Names{"xy", "z"});
  CHECK(&*joined != &*parted);
}

TEST_CASE("Lists that nobody uses are dropped", "[field_names]") {
  Environment environment;
  FieldNameSets& sets = environment.field_names;
  const FieldNamesRef kept = sets.get(environment, Names{"kept"});
  for (int i = 0; i < 1000; ++i) sets.get(environment, Names{std::to_string(i)});
  CHECK(sets.used() == 1);
  CHECK(&*sets.get(environment, Names{"kept"}) == &*kept);
}

TEST_CASE("Lists that have lost their users are dropped when it is worth looking for them",
          "[field_names]") {
  Environment environment;
  FieldNameSets& sets = environment.field_names;
  sets.drop_unused(true);
  std::vector<FieldNamesRef> held;
  for (int i = 0; i < 32; ++i) held.push_back(sets.get(environment, Names{std::to_string(i)}));
  CHECK_FALSE(sets.drop_unused(true));
  for (int i = 0; i < 4; ++i) held.pop_back();
  // Four of 32 are too few, unless all are wanted.
  CHECK_FALSE(sets.drop_unused(false));
  CHECK(sets.drop_unused(true));
  CHECK_FALSE(sets.drop_unused(true));
  for (int i = 0; i < 4; ++i) held.pop_back();
  CHECK(sets.drop_unused(false));
  CHECK_FALSE(sets.drop_unused(true));
  CHECK(sets.used() == held.size());
}

TEST_CASE("A list outlives its server for a value that is freed later", "[field_names]") {
  auto environment = std::make_unique<Environment>();
  auto hash = std::make_unique<Hash>(*environment);
  hash->set("a", "1");
  hash->share_names();
  std::unique_ptr<Value> copy(hash->clone());
  CHECK(environment->field_names.used() == 1);
  environment.reset();
  // As a background thread does it: nothing of the server is used.
  copy.reset();
  hash.reset();
}

TEST_CASE("A hash keeps its values while its names come and go", "[field_names]") {
  Environment environment;
  // Numbers among the names and values are stored as numbers.
  Hash hash(environment);
  for (const char* pair : {"10", "x", "-3", "300"}) hash.set(pair, std::string(pair) + "v");
  hash.set("x", "99999999999");
  hash.share_names();
  CHECK(hash.shares_names());
  CHECK(text_of(hash) == "x=99999999999 -3=-3v 10=10v 300=300v ");
  const std::unique_ptr<Value> copy(hash.clone());
  CHECK(text_of(static_cast<const Hash&>(*copy)) == text_of(hash));
  CHECK(hash.set("7", "8"));
  CHECK_FALSE(hash.set("7", "9"));
  CHECK(hash.erase("-3"));
  CHECK_FALSE(hash.erase("-3"));
  CHECK(text_of(hash) == "7=9 x=99999999999 10=10v 300=300v ");
  CHECK(static_cast<const Hash&>(*copy).size() == 4);
  // Two lists: that of the copy, and the last one of the hash.
  CHECK(environment.field_names.used() == 2);
  hash.prepare_deadlines();
  CHECK_FALSE(hash.shares_names());
  CHECK(hash.encoding_name() == "listpackex");
  hash.share_names();
  CHECK_FALSE(hash.shares_names());
  CHECK(environment.field_names.used() == 1);
  for (const char* field : {"7", "x", "10", "300"}) CHECK(hash.erase(field));
  CHECK(hash.size() == 0);
}

TEST_CASE("Fields are drawn from a hash with shared names", "[field_names]") {
  Environment environment;
  Hash hash(environment);
  for (int i = 0; i < 20; ++i) hash.set("f" + std::to_string(i), std::to_string(i));
  hash.share_names();
  base::Random random(1);
  std::vector<int> drawn(20);
  for (int i = 0; i < 2000; ++i) {
    hash.random(random, [&](std::string_view field, std::string_view value) {
      CHECK(field.substr(1) == value);
      ++drawn[static_cast<size_t>(std::stoi(std::string(value)))];
    });
  }
  for (const int count : drawn) CHECK(count > 50);
  size_t distinct = 0;
  hash.random_distinct(random, 20, [&](std::string_view, std::string_view) { ++distinct; });
  CHECK(distinct == 20);
}

TEST_CASE("Shared names cost each hash its part", "[field_names]") {
  Environment environment;
  const auto make = [&] {
    auto hash = std::make_unique<Hash>(environment);
    for (int i = 0; i < 10; ++i) hash->set("a_rather_long_name_" + std::to_string(i), "v");
    return hash;
  };
  const size_t plain = make()->memory_usage();
  std::vector<std::unique_ptr<Hash>> hashes;
  hashes.push_back(make());
  hashes.back()->share_names();
  const size_t alone = hashes.front()->memory_usage();
  for (int i = 0; i < 100; ++i) {
    hashes.push_back(make());
    hashes.back()->share_names();
  }
  CHECK(hashes.front()->memory_usage() < alone);
  CHECK(hashes.front()->memory_usage() < plain / 2);
}

}  // namespace latchkey::store

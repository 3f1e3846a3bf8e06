#include "server/command/command_table.h"

#include <string>
#include <vector>

#include "base/buffer_pool.h"
#include "base/random.h"
#include "base/text/text.h"
#include "resp/output_buffer.h"
#include "server/command/command_docs.h"
#include "unit/catch.h"

namespace latchkey::server {

namespace {

void handle(CommandContext&) {}

bool find_set_keys(Arguments words, std::vector<KeyReference>* out) {
  const bool get = words.size() > 3 && base::equal_ignoring_case(words[3], "GET");
  out->push_back({1, get ? kKeyReadWrite | kKeyAccess : kKeyOverwrite});
  return true;
}

constexpr CommandRow kClientRows[] = {
    {"ID",
     handle,
     "",
     kNoScript | kLoading,
     {},
     kAclConnection,
     Group::kConnection,
     "5.0.0",
     "O(1)",
     "An id."},
    {"NO-EVICT",
     handle,
     "{enabled=ON|OFF}",
     kAdmin,
     {},
     kAclConnection,
     Group::kConnection,
     "7.0.0",
     "O(1)",
     "Evict."},
};

constexpr CommandRow kRows[] = {
    {"GET", handle, "key", kReadOnly | kFast, keys(1).ro().access(), kAclString, Group::kString,
     "1.0.0", "O(1)", "Reads."},
    {"SET",
     handle,
     "key value [GET]",
     kWrite,
     keys(1).rw().variable_flags().note("a remark"),
     kAclString,
     Group::kString,
     "1.0.0",
     "O(1)",
     "Writes.",
     {.history = "6.2.0 Added the `GET` option.\n7.0.0 More.", .find_keys = find_set_keys}},
    {"MSET", handle, "{data=key value}...", kWrite | kDenyOom, keys(1, -1, 2).ow().update(),
     kAclString, Group::kString, "1.0.1", "O(N)", "Writes many."},
    {"BLPOP", handle, "key... timeout:double", kWrite | kBlocking, keys(1, -2).rw().remove(),
     kAclList, Group::kList, "2.0.0", "O(N)", "Pops."},
    {"RENAME", handle, "key newkey", kWrite, keys(1).rw().access().remove() + keys(2).ow().update(),
     kAclKeyspace, Group::kGeneric, "1.0.0", "O(1)", "Renames."},
    {"LCS", handle, "key1 key2", kReadOnly, keys(1, 2).ro().access(), kAclString, Group::kString,
     "7.0.0", "O(N*M)", "Compares."},
    {"EVAL", handle, "script numkeys [key...] [arg...]", kNoScript | kNoMandatoryKeys,
     counted_keys(2).rw(), kAclScripting, Group::kScripting, "2.6.0", "Depends.", "Runs."},
    {"ZUNION", handle, "numkeys key...", kReadOnly, counted_keys(1).ro(), kAclSortedSet,
     Group::kSortedSet, "6.2.0", "O(N)", "Joins."},
    {"XREAD", handle, "[COUNT count] {STREAMS streams=key... id...}", kReadOnly,
     keys_after("STREAMS", 1, -1).limit(2).ro(), kAclStream, Group::kStream, "5.0.0", nullptr,
     "Reads."},
    {"PUBLISH",
     handle,
     "channel message",
     kPubSub | kFast,
     {},
     0,
     Group::kPubSub,
     "2.0.0",
     "O(N)",
     "Sends.",
     {.tips = "one two", .deprecated_since = "9.0.0", .replaced_by = "`SEND`"}},
    {"ZREMRANGEBYSCORE", handle, "key", kWrite, keys(1).rw(), 0, Group::kSortedSet, "1.2.0", "O(1)",
     "Removes."},
    {"GEORADIUSBYMEMBER_RO", handle, "key", kReadOnly, keys(1).ro(), 0, Group::kGeo, "3.2.10",
     "O(1)", "Finds."},
    {"RESTORE-ASKING",
     handle,
     "key",
     kWrite | kAsking,
     keys(1).ow(),
     0,
     Group::kServer,
     "3.0.0",
     "O(1)",
     "Restores.",
     {.system = true}},
    {"CLIENT",
     nullptr,
     "",
     0,
     {},
     0,
     Group::kConnection,
     "2.4.0",
     "Depends.",
     "A container.",
     {.subcommands = kClientRows}},
};

std::string text_of_keys(const CommandTable& table, const std::vector<std::string_view>& words) {
  const Command* const command = table.find_request(words);
  REQUIRE(command != nullptr);
  std::vector<KeyReference> found;
  if (!get_keys(*command, words, &found)) return "refused";
  std::string text;
  for (const KeyReference& key : found) {
    if (!text.empty()) text += ' ';
    text += words[key.position];
  }
  return text;
}

template <typename Write>
std::string written(int protocol, Write write) {
  base::BufferPool pool;
  resp::OutputBuffer out(pool);
  resp::ReplyBuilder reply(out);
  reply.set_protocol(protocol);
  write(reply);
  return std::string(out.since(0));
}

}  // namespace

TEST_CASE("A command is found by its name in any case, and by nothing else", "[table]") {
  CommandTable table;
  table.add(kRows);
  for (const CommandRow& row : kRows) {
    CAPTURE(row.name);
    Command* const command = table.find(row.name);
    REQUIRE(command != nullptr);
    CHECK(command->row == &row);
    CHECK(table.find(base::lower_case(row.name)) == command);
    std::string mixed = base::lower_case(row.name);
    mixed[0] = row.name[0];
    CHECK(table.find(mixed) == command);
  }
  CHECK(table.find("") == nullptr);
  CHECK(table.find("ge") == nullptr);
  CHECK(table.find("gets") == nullptr);
  CHECK(table.find("georadiusXXXXber_ro") == nullptr);
  CHECK(table.find("georadXusbymember_ro") == nullptr);
  CHECK(table.find("georadiusXymember_ro") == nullptr);
  CHECK(table.find(std::string_view("get\0", 4)) == nullptr);
  CHECK(table.find(std::string(1000, 'g')) == nullptr);
}

TEST_CASE("Only letters have a case", "[table]") {
  CommandTable table;
  table.add(kRows);
  std::string name = "restore-asking";
  name[7] = '\x0d';
  CHECK(table.find(name) == nullptr);
  CHECK(table.find("georadiusbymember\x7fro") == nullptr);
  // The byte that differs from each letter by what masking its case leaves open.
  for (size_t at = 0; at < 3; ++at) {
    for (const int flip : {0x40, 0x60, 0x80}) {
      std::string other = "get";
      other[at] = static_cast<char>(other[at] ^ flip);
      CHECK(table.find(other) == nullptr);
    }
  }
}

TEST_CASE("Random names are not found", "[table]") {
  CommandTable table;
  table.add(kRows);
  base::Random random(3);
  for (int i = 0; i < 100'000; ++i) {
    std::string name(random.below(24), '\0');
    for (char& byte : name) byte = static_cast<char>(random.below(256));
    const Command* const found = table.find(name);
    REQUIRE((found == nullptr || base::equal_ignoring_case(found->name, name)));
  }
}

TEST_CASE("A request of a container is its subcommand's", "[table]") {
  CommandTable table;
  table.add(kRows);
  const Command* const client = table.find("client");
  REQUIRE(client->is_container());
  CHECK(client->arity == -2);
  const std::vector<std::string_view> request{"CLIENT", "No-Evict", "on"};
  const Command* const no_evict = table.find_request(request);
  REQUIRE(no_evict != nullptr);
  CHECK(no_evict->full_name == "client|no-evict");
  CHECK(no_evict->parent->full_name == "client");
  CHECK(no_evict->arity == 3);
  CHECK(table.find_full_name("client|no-evict") == no_evict);
  CHECK(table.find_full_name("client|nosuch") == nullptr);
  CHECK(table.find_request(std::vector<std::string_view>{"client", "nosuch"}) == nullptr);
  CHECK(table.find_request(std::vector<std::string_view>{"client"}) == client);
  CHECK(table.find("client|id") == nullptr);
}

TEST_CASE("The number of words is checked against the arity", "[table]") {
  CommandTable table;
  table.add(kRows);
  const Command* const get = table.find("get");
  CHECK(get->accepts_word_count(2));
  CHECK_FALSE(get->accepts_word_count(1));
  CHECK_FALSE(get->accepts_word_count(3));
  const Command* const set = table.find("set");
  CHECK(set->accepts_word_count(3));
  CHECK(set->accepts_word_count(5));
  CHECK_FALSE(set->accepts_word_count(2));
}

TEST_CASE("Categories follow from flags", "[table]") {
  CommandTable table;
  table.add(kRows);
  CHECK(table.find("get")->acl == (kAclString | kAclRead | kAclFast));
  CHECK(table.find("blpop")->acl == (kAclList | kAclWrite | kAclBlocking | kAclSlow));
  CHECK(table.find("publish")->acl == (kAclPubSub | kAclFast));
  CHECK(table.find_full_name("client|no-evict")->acl ==
        (kAclConnection | kAclAdmin | kAclDangerous | kAclSlow));
  CHECK(acl_category_named("SortedSet") == kAclSortedSet);
  CHECK(acl_category_named("nosuch") == 0);
}

TEST_CASE("Fixed key positions are derived, others make keys movable", "[table]") {
  CommandTable table;
  table.add(kRows);
  const auto check = [&table](std::string_view name, int first, int last, int step, bool movable) {
    const Command* const command = table.find(name);
    CAPTURE(name);
    CHECK(command->first_key == first);
    CHECK(command->last_key == last);
    CHECK(command->key_step == step);
    CHECK(command->has(kMovableKeys) == movable);
  };
  check("get", 1, 1, 1, false);
  check("mset", 1, -1, 2, false);
  check("rename", 1, 2, 1, false);
  check("lcs", 1, 2, 1, false);
  check("blpop", 1, -2, 1, false);
  check("eval", 0, 0, 0, true);
  check("xread", 0, 0, 0, true);
  check("publish", 0, 0, 0, false);
  CHECK_FALSE(table.find("publish")->has_keys());
}

TEST_CASE("The keys of a request are found", "[table][keys]") {
  CommandTable table;
  table.add(kRows);
  CHECK(text_of_keys(table, {"get", "a"}) == "a");
  CHECK(text_of_keys(table, {"mset", "a", "1", "b", "2"}) == "a b");
  CHECK(text_of_keys(table, {"mset", "a", "1", "b"}) == "a b");
  CHECK(text_of_keys(table, {"blpop", "a", "b", "0"}) == "a b");
  CHECK(text_of_keys(table, {"rename", "a", "b"}) == "a b");
  CHECK(text_of_keys(table, {"lcs", "a", "b"}) == "a b");
  CHECK(text_of_keys(table, {"zunion", "2", "a", "b", "c"}) == "a b");
  CHECK(text_of_keys(table, {"xread", "COUNT", "1", "streams", "a", "b", "0", "0"}) == "a b");
  CHECK(text_of_keys(table, {"xread", "streams", "a", "b", "0"}) == "a");
}

TEST_CASE("Requests whose keys are not all there are refused", "[table][keys]") {
  CommandTable table;
  table.add(kRows);
  CHECK(text_of_keys(table, {"zunion", "3", "a", "b"}) == "refused");
  CHECK(text_of_keys(table, {"zunion", "0", "a"}) == "refused");
  CHECK(text_of_keys(table, {"zunion", "many", "a"}) == "refused");
  CHECK(text_of_keys(table, {"zunion", "9223372036854775807", "a"}) == "refused");
  CHECK(text_of_keys(table, {"xread", "COUNT", "1", "streams"}) == "refused");
  SECTION("unless the command needs none") {
    CHECK(text_of_keys(table, {"eval", "return 1", "0"}).empty());
    CHECK(text_of_keys(table, {"eval", "return 1", "2", "a"}).empty());
    CHECK(text_of_keys(table, {"eval", "return 1", "1", "a", "b"}) == "a");
  }
}

TEST_CASE("A key finder overrules the specifications", "[table][keys]") {
  CommandTable table;
  table.add(kRows);
  std::vector<KeyReference> found;
  REQUIRE(
      get_keys(*table.find("set"), std::vector<std::string_view>{"set", "a", "1", "get"}, &found));
  CHECK(found[0].flags == (kKeyReadWrite | kKeyAccess));
  REQUIRE(get_keys(*table.find("set"), std::vector<std::string_view>{"set", "a", "1"}, &found));
  REQUIRE(found.size() == 1);
  CHECK(found[0].flags == kKeyOverwrite);
}

TEST_CASE("A renamed command answers to its new name only", "[table]") {
  CommandTable table;
  table.add(kRows);
  Command* const get = table.find("get");
  CHECK_FALSE(table.rename("nosuch", "x"));
  CHECK_FALSE(table.rename("get", "SET"));
  CHECK(table.rename("GET", "a-very-long-name-that-nobody-guesses"));
  CHECK(table.find("get") == nullptr);
  CHECK(table.find("A-very-long-name-that-nobody-guesses") == get);
  CHECK(table.find("A-very-long-name-that-NObody-guesses") == get);
  CHECK(table.find("A-very-long-nameXthat-nobody-guesses") == nullptr);
  CHECK(table.rename("mset", ""));
  CHECK(table.find("mset") == nullptr);
  CHECK(table.commands().size() == std::size(kRows) - 1);
}

TEST_CASE("COMMAND INFO is written in both protocols", "[table][docs]") {
  CommandTable table;
  table.add(kRows);
  const auto write = [&table](resp::ReplyBuilder& reply) {
    write_command_info(*table.find("set"), Edition(), reply);
  };
  CHECK(
      written(2, write) ==
      "*10\r\n$3\r\nset\r\n:-3\r\n*1\r\n+write\r\n:1\r\n:1\r\n:1\r\n*3\r\n+@write\r\n+@string\r\n+@"
      "slow\r\n*0\r\n"
      "*1\r\n*8\r\n$5\r\nnotes\r\n$8\r\na remark\r\n$5\r\nflags\r\n*2\r\n+RW\r\n+variable_flags\r\n"
      "$12\r\nbegin_search\r\n*4\r\n$4\r\ntype\r\n$5\r\nindex\r\n$4\r\nspec\r\n*2\r\n$"
      "5\r\nindex\r\n:1\r\n"
      "$9\r\nfind_keys\r\n*4\r\n$4\r\ntype\r\n$5\r\nrange\r\n$4\r\nspec\r\n*6\r\n$7\r\nlastkey\r\n:"
      "0\r\n"
      "$7\r\nkeystep\r\n:1\r\n$5\r\nlimit\r\n:0\r\n*0\r\n");
  const std::string resp3 = written(3, write);
  CHECK(resp3.find("~1\r\n+write\r\n") != std::string::npos);
  CHECK(resp3.find("%4\r\n$5\r\nnotes") != std::string::npos);
}

TEST_CASE("COMMAND DOCS is written from the syntax line", "[table][docs]") {
  CommandTable table;
  table.add(kRows);
  CHECK(written(2,
                [&table](resp::ReplyBuilder& reply) {
                  write_command_docs(*table.find("set"), Edition(), reply);
                }) ==
        "*12\r\n$7\r\nsummary\r\n$7\r\nWrites.\r\n$5\r\nsince\r\n$5\r\n1.0.0\r\n$5\r\ngroup\r\n$"
        "6\r\nstring\r\n"
        "$10\r\ncomplexity\r\n$4\r\nO(1)\r\n$7\r\nhistory\r\n*2\r\n*2\r\n$5\r\n6.2.0\r\n$"
        "23\r\nAdded the `GET` "
        "option.\r\n*2\r\n$5\r\n7.0.0\r\n$5\r\nMore.\r\n$9\r\narguments\r\n*3\r\n"
        "*8\r\n$4\r\nname\r\n$3\r\nkey\r\n$4\r\ntype\r\n$3\r\nkey\r\n$12\r\ndisplay_text\r\n$"
        "3\r\nkey\r\n"
        "$14\r\nkey_spec_index\r\n:0\r\n"
        "*6\r\n$4\r\nname\r\n$5\r\nvalue\r\n$4\r\ntype\r\n$6\r\nstring\r\n$12\r\ndisplay_text\r\n$"
        "5\r\nvalue\r\n"
        "*10\r\n$4\r\nname\r\n$3\r\nget\r\n$4\r\ntype\r\n$10\r\npure-token\r\n$12\r\ndisplay_"
        "text\r\n$3\r\nget\r\n"
        "$5\r\ntoken\r\n$3\r\nGET\r\n$5\r\nflags\r\n*1\r\n+optional\r\n");
}

}  // namespace latchkey::server

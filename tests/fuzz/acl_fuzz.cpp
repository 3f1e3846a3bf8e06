// Feeds any text to the language of ACL rules, as a file and as the rules of one user. What is
// accepted must be written such that it is accepted again and means the same; what is asked of such
// a user must have an answer.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "commands/groups.h"
#include "input.h"
#include "server/acl/acl_file.h"
#include "server/acl/rules.h"
#include "server/config/config_parse.h"

namespace {

using namespace latchkey::server;
using latchkey::fuzz::require;

const CommandTable& table() {
  struct AllCommands {
    AllCommands() { latchkey::commands::add_all(commands); }
    CommandTable commands;
  };
  static const AllCommands all;
  return all.commands;
}

// Whatever a user may do, asking does not go wrong.
void ask(const acl::User& user) {
  constexpr std::string_view kRequests[][5] = {
      {"GET", "a", "", "", ""},         {"SET", "a", "b", "GET", "EX"},
      {"MGET", "a", "b", "", "ab"},     {"PUBLISH", "a", "b", "", ""},
      {"SUBSCRIBE", "a", "b", "", "*"}, {"PSUBSCRIBE", "*", "a", "", ""},
      {"CONFIG", "GET", "a", "b", "c"}, {"ZUNIONSTORE", "a", "2", "a", "b"},
      {"SELECT", "0", "", "", ""},      {"COPY", "a", "b", "REPLACE", "DB"},
  };
  for (const auto& request : kRequests) {
    const Command* command = table().find_request(request);
    require(command != nullptr);
    const auto refusal = user.check(*command, request);
    if (refusal) require(refusal->position < std::size(request));
    require(!refusal || !user.may_do_everything());
    user.may_read_all_keys(*command, request, {});
  }
}

void check_file(const acl::RuleContext& context, std::string_view text) {
  const auto users = acl::read_acl_file(context, "file", text);
  if (!users) return require(!users.error().empty());
  std::string written;
  for (const acl::User& user : *users) {
    written += acl::acl_line(user) + "\n";
    ask(user);
  }
  const auto again = acl::read_acl_file(context, "file", written);
  require(again && again->size() == users->size());
  for (size_t i = 0; i < users->size(); ++i) {
    require(again->at(i).text() == users->at(i).text());
    require(again->at(i).keeps_channels_in(users->at(i)));
  }
}

// Rules as a client sends them: words that may hold anything, here separated by a byte of 1.
void check_rules(const acl::RuleContext& context, std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\1'), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  std::vector<std::string> rules;
  size_t open_at = 0;
  if (!acl::join_selectors(words, &rules, &open_at)) return require(open_at < words.size());
  acl::User user("user", context.all_channels);
  for (const std::string& rule : rules) {
    const std::string before = user.text();
    if (acl::apply_rule(context, rule, &user) != acl::RuleError::kNone)
      require(user.text() == before);
  }
  ask(user);
  check_file(context, acl::acl_line(user));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const acl::RuleContext context{.commands = table(), .all_channels = (data[0] & 1) != 0};
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  check_file(context, text);
  check_rules(context, text);
  return 0;
}

#include "server/acl/rules.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <limits>
#include <utility>

#include "base/digest/sha256.h"
#include "base/text/number.h"
#include "base/text/text.h"
#include "base/text/up_to_nul.h"
#include "server/acl/categories.h"
#include "server/command/command_context.h"

namespace latchkey::server::acl {

namespace {

using base::equal_ignoring_case;

bool is_blank(char byte) {
  return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

// True for text without blanks: rules are separated by blanks.
bool is_one_word(std::string_view text) {
  return std::none_of(text.begin(), text.end(),
                      [](char byte) { return is_blank(byte) || byte == '\0'; });
}

// Finds a command by its original name: renaming it does not change who may run it.
const Command* find_command(const CommandTable& table, std::string_view full_name) {
  const auto& all = table.all();
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& command) {
    return equal_ignoring_case(command->full_name, full_name);
  });
  return found == all.end() ? nullptr : found->get();
}

const BitName* find_category(std::string_view name) {
  const auto names = acl_category_names();
  const auto found = std::find_if(names.begin(), names.end(), [&](const BitName& category) {
    return equal_ignoring_case(category.name, name);
  });
  return found == names.end() ? nullptr : &*found;
}

// --- Commands -----------------------------------------------------------------------------------

// "select|0", where `0` is not a subcommand.
RuleError allow_first_word(const RuleContext& context, std::string_view text, Selector* selector) {
  const size_t bar = text.rfind('|');
  if (bar == text.npos) return RuleError::kUnknownName;
  const std::string_view word = text.substr(bar + 1);
  const Command* command = find_command(context.commands, text.substr(0, bar));
  if (command == nullptr) return RuleError::kUnknownName;
  if (word.empty() || !is_one_word(word)) return RuleError::kSyntax;
  if (command->parent != nullptr) return RuleError::kFirstWordOfSub;
  if (command->is_container()) return RuleError::kUnknownName;
  selector->commands.allow_first_word(*command, word);
  return RuleError::kNone;
}

RuleError apply_category(const RuleContext& context, std::string_view name, bool allowed,
                         Selector* selector) {
  if (equal_ignoring_case(name, "all")) {
    selector->commands.set_all(allowed);
    return RuleError::kNone;
  }
  const BitName* category = find_category(name);
  if (category == nullptr || !has_category(context.commands, category->bit))
    return RuleError::kUnknownName;
  selector->commands.set_category(context.commands, *category, allowed);
  return RuleError::kNone;
}

// "+get", "-config|set", "+@read"; `text` is without the sign.
RuleError apply_command(const RuleContext& context, std::string_view text, bool allowed,
                        Selector* selector) {
  if (text.starts_with('@')) return apply_category(context, text.substr(1), allowed, selector);
  if (const Command* command = find_command(context.commands, text); command != nullptr) {
    selector->commands.set_command(*command, allowed);
    return RuleError::kNone;
  }
  return allowed ? allow_first_word(context, text, selector) : RuleError::kUnknownName;
}

// --- Keys and channels --------------------------------------------------------------------------

// "%RW~pattern". Without a pattern it is the empty one.
RuleError apply_keys(std::string_view rule, Selector* selector) {
  if (selector->allows_all_keys()) return RuleError::kKeysAfterAll;
  uint8_t access = 0;
  size_t at = 0;
  if (rule.front() == '%') {
    for (++at; at < rule.size() && rule[at] != '~'; ++at) {
      const char letter = base::lower_case(rule[at]);
      const uint8_t wanted = letter == 'r' ? kMayRead : letter == 'w' ? kMayWrite : 0;
      if (wanted == 0 || (access & wanted) != 0) return RuleError::kSyntax;
      access |= wanted;
    }
    if (access == 0) return RuleError::kSyntax;
  } else {
    access = kMayReadAndWrite;
  }
  const std::string_view glob = rule.substr(std::min(at + 1, rule.size()));
  if (!is_one_word(glob)) return RuleError::kSyntax;
  selector->allow_keys(glob, access);
  return RuleError::kNone;
}

RuleError apply_channels(std::string_view glob, Selector* selector) {
  if (selector->allows_all_channels()) return RuleError::kChannelsAfterAll;
  if (!is_one_word(glob)) return RuleError::kSyntax;
  selector->allow_channels(glob);
  return RuleError::kNone;
}

// --- Databases ----------------------------------------------------------------------------------

// One number of "0,3". As the C library's strtol() reads it: blanks and a sign may precede it.
RuleError read_database(std::string_view text, int* number) {
  while (!text.empty() && is_blank(text[0])) text.remove_prefix(1);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty() || !std::all_of(text.begin(), text.end(), [](char c) {
        return std::isdigit(static_cast<unsigned char>(c)) != 0;
      }))
    return RuleError::kSyntax;
  text.remove_prefix(std::min(text.find_first_not_of('0'), text.size() - 1));
  int64_t value = 0;
  if (!base::parse_int64(text, &value) || value > std::numeric_limits<int>::max() ||
      (negative && value != 0))
    return RuleError::kDatabaseRange;
  *number = static_cast<int>(value);
  return RuleError::kNone;
}

RuleError apply_databases(std::string_view list, Selector* selector) {
  std::vector<int> numbers;
  for (bool more = true; more;) {
    const size_t end = std::min(list.find(','), list.size());
    const RuleError error = read_database(list.substr(0, end), &numbers.emplace_back());
    if (error != RuleError::kNone) return error;
    more = end < list.size();
    if (more) list.remove_prefix(end + 1);
  }
  selector->allow_databases(std::move(numbers));
  return RuleError::kNone;
}

constexpr std::string_view kDatabasePrefix = "db=";

bool is_database_rule(std::string_view rule) {
  return equal_ignoring_case(rule, "alldbs") || equal_ignoring_case(rule, "resetdbs") ||
         equal_ignoring_case(rule.substr(0, kDatabasePrefix.size()), kDatabasePrefix);
}

RuleError apply_database_rule(const RuleContext& context, std::string_view rule,
                              Selector* selector) {
  if (!context.databases) return RuleError::kSyntax;
  if (equal_ignoring_case(rule, "alldbs")) {
    selector->allow_all_databases();
  } else if (equal_ignoring_case(rule, "resetdbs")) {
    selector->allow_databases({});
  } else {
    return apply_databases(rule.substr(kDatabasePrefix.size()), selector);
  }
  return RuleError::kNone;
}

// --- Words --------------------------------------------------------------------------------------

struct SelectorWord {
  std::string_view word;
  void (*act)(Selector& selector);
};

constexpr SelectorWord kSelectorWords[] = {
    {"allkeys", [](Selector& selector) { selector.allow_all_keys(); }},
    {"~*", [](Selector& selector) { selector.allow_all_keys(); }},
    {"resetkeys", [](Selector& selector) { selector.forbid_all_keys(); }},
    {"allchannels", [](Selector& selector) { selector.allow_all_channels(); }},
    {"&*", [](Selector& selector) { selector.allow_all_channels(); }},
    {"resetchannels", [](Selector& selector) { selector.forbid_all_channels(); }},
    {"allcommands", [](Selector& selector) { selector.commands.set_all(true); }},
    {"nocommands", [](Selector& selector) { selector.commands.set_all(false); }},
};

void forget_passwords(User& user) {
  user.needs_no_password = false;
  user.passwords.clear();
}

struct UserWord {
  std::string_view word;
  void (*act)(User& user, bool all_channels);
};

constexpr UserWord kUserWords[] = {
    {"on", [](User& user, bool) { user.enabled = true; }},
    {"off", [](User& user, bool) { user.enabled = false; }},
    {"nopass",
     [](User& user, bool) {
       forget_passwords(user);
       user.needs_no_password = true;
     }},
    {"resetpass", [](User& user, bool) { forget_passwords(user); }},
    {"sanitize-payload", [](User& user, bool) { user.sanitizes_payloads = true; }},
    {"skip-sanitize-payload", [](User& user, bool) { user.sanitizes_payloads = false; }},
    {"clearselectors", [](User& user, bool) { user.selectors.clear(); }},
    {"reset",
     [](User& user, bool all_channels) { user = User(std::string(user.name), all_channels); }},
};

template <typename WordTable>
auto find_word(const WordTable& table, std::string_view rule) {
  const auto found = std::find_if(std::begin(table), std::end(table), [&](const auto& known) {
    return equal_ignoring_case(known.word, rule);
  });
  return found == std::end(table) ? nullptr : &*found;
}

// --- Selectors ----------------------------------------------------------------------------------

RuleError apply_to_selector(const RuleContext& context, std::string_view rule, Selector* selector) {
  if (const SelectorWord* known = find_word(kSelectorWords, rule); known != nullptr) {
    known->act(*selector);
    return RuleError::kNone;
  }
  if (is_database_rule(rule)) return apply_database_rule(context, rule, selector);
  switch (rule.front()) {
    case '+':
      return apply_command(context, rule.substr(1), true, selector);
    case '-':
      return apply_command(context, rule.substr(1), false, selector);
    case '~':
    case '%':
      return apply_keys(rule, selector);
    case '&':
      return apply_channels(rule.substr(1), selector);
    default:
      return RuleError::kSyntax;
  }
}

// Removes the first word of the text, and the blanks before it.
std::string_view take_word(std::string_view* text) {
  const auto begin = std::find_if_not(text->begin(), text->end(), is_blank);
  const auto end = std::find_if(begin, text->end(), is_blank);
  const std::string_view word(begin, end);
  *text = std::string_view(end, text->end());
  return word;
}

// Adds the selector "(text)". A rule in `text` that ends with ')' is refused: read again, it would
// look like the selector's end.
RuleError add_selector(const RuleContext& context, std::string_view text, User* user) {
  Selector selector(context.all_channels);
  for (std::string_view word = take_word(&text); !word.empty(); word = take_word(&text)) {
    if (word.ends_with(')')) return RuleError::kSyntax;
    const RuleError error = apply_to_selector(context, word, &selector);
    if (error != RuleError::kNone) return error;
  }
  user->selectors.push_back(std::move(selector));
  return RuleError::kNone;
}

// --- Passwords ----------------------------------------------------------------------------------

bool is_digest(std::string_view text) {
  return text.size() == base::kSha256Digits && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

RuleError add_password(std::string digest, User* user) {
  if (!is_digest(digest)) return RuleError::kMalformedDigest;
  user->needs_no_password = false;
  if (std::find(user->passwords.begin(), user->passwords.end(), digest) == user->passwords.end())
    user->passwords.push_back(std::move(digest));
  return RuleError::kNone;
}

RuleError remove_password(std::string_view digest, User* user) {
  if (!is_digest(digest)) return RuleError::kMalformedDigest;
  return std::erase(user->passwords, digest) > 0 ? RuleError::kNone : RuleError::kUnknownPassword;
}

}  // namespace

std::string_view rule_error_text(RuleError error) {
  switch (error) {
    case RuleError::kUnknownName:
      return "Unknown command or category name in ACL";
    case RuleError::kFirstWordOfSub:
      return "Allowing first-arg of a subcommand is not supported";
    case RuleError::kKeysAfterAll:
      return "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does "
             "not have any effect. Try 'resetkeys' to start with an empty list of patterns";
    case RuleError::kChannelsAfterAll:
      return "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and "
             "does not have any effect. Try 'resetchannels' to start with an empty list of "
             "channels";
    case RuleError::kUnknownPassword:
      return "The password you are trying to remove from the user does not exist";
    case RuleError::kMalformedDigest:
      return "The password hash must be exactly 64 characters and contain only lowercase "
             "hexadecimal characters";
    case RuleError::kDatabaseRange:
      return "The provided database ID is out of range";
    case RuleError::kNone:
    case RuleError::kSyntax:
      break;
  }
  return "Syntax error";
}

RuleError apply_rule(const RuleContext& context, std::string_view rule, User* user) {
  if (rule.empty()) return RuleError::kNone;
  if (const UserWord* known = find_word(kUserWords, rule); known != nullptr) {
    known->act(*user, context.all_channels);
    return RuleError::kNone;
  }
  const std::string_view rest = rule.substr(1);
  switch (rule.front()) {
    case '>':
      return add_password(base::sha256_hex(rest), user);
    case '#':
      return add_password(std::string(rest), user);
    case '<':
      return remove_password(base::sha256_hex(rest), user);
    case '!':
      return remove_password(rest, user);
    case '(':
      if (rule.size() < 2 || !rule.ends_with(')')) return RuleError::kSyntax;
      return add_selector(context, rest.substr(0, rest.size() - 1), user);
    default:
      return apply_to_selector(context, rule, &user->own);
  }
}

bool join_selectors(std::span<const std::string_view> words, std::vector<std::string>* rules,
                    size_t* open_at) {
  bool open = false;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (open) {
      rules->back().append(" ").append(word);
    } else {
      rules->emplace_back(word);
      open = word.starts_with('(');
      *open_at = i;
    }
    open = open && !word.ends_with(')');
  }
  return !open;
}

bool is_user_name(std::string_view name) {
  return is_one_word(name);
}

std::string_view shown(std::string_view rule) {
  return base::up_to_nul(rule);
}

}  // namespace latchkey::server::acl

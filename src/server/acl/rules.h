// The language of user permissions: "on", ">password", "~key:*", "+@read", "db=0,3", "(+set
// %W~log:*)". Rules come from requests, the configuration and the ACL file, and are checked word by
// word.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/acl/user.h"

namespace latchkey::server::acl {

// Why a rule is refused.
enum class RuleError : uint8_t {
  kNone,
  kSyntax,
  kUnknownName,     // an unknown command or category
  kFirstWordOfSub,  // a subcommand's first argument cannot be permitted
  kKeysAfterAll,    // a pattern after `~*` would have no effect
  kChannelsAfterAll,
  kUnknownPassword,  // the password to remove does not exist
  kMalformedDigest,
  kDatabaseRange,
};

// The reference's error text.
std::string_view rule_error_text(RuleError error);

// The context in which rules are applied.
struct RuleContext {
  const CommandTable& commands;
  // Whether new selectors allow all channels (acl-pubsub-default).
  bool all_channels;
  // Whether there are rules for databases (Valkey 9.1).
  bool databases = true;
};

// Applies one rule. On error the user is unchanged.
RuleError apply_rule(const RuleContext& context, std::string_view rule, User* user);

// Joins the words of each selector, "(+get" "~a)", to one rule. False when the last selector is not
// closed; *open_at is then the index of its first word. Linear.
bool join_selectors(std::span<const std::string_view> words, std::vector<std::string>* rules,
                    size_t* open_at);

// True for text without spaces, line ends and NULs.
bool is_user_name(std::string_view name);

// The rule as errors show it: up to a NUL, as the reference does.
std::string_view shown(std::string_view rule);

}  // namespace latchkey::server::acl

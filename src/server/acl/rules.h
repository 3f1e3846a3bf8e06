// The language in which operators say what users may do: "on", ">password", "~key:*", "+@read",
// "(+set %W~log:*)". It comes from requests, from the configuration and from the ACL file, and is
// checked word by word.
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
  kUnknownName,     // of a command or category
  kFirstWordOfSub,  // a subcommand's first argument cannot be told apart
  kKeysAfterAll,    // a pattern behind `~*` would say nothing
  kChannelsAfterAll,
  kUnknownPassword,  // to be removed
  kMalformedDigest,
};

// The reference's words.
std::string_view rule_error_text(RuleError error);

// What rules refer to.
struct RuleContext {
  const CommandTable& commands;
  // Whether those who have been told of no channels may use all of them (acl-pubsub-default).
  bool all_channels;
};

// Obeys one rule. On error the user is as it was.
RuleError apply_rule(const RuleContext& context, std::string_view rule, User* user);

// Joins words that belong to one selector, "(+get" "~a)", to one rule. False when the last selector
// has no end; *open_at is then the word that begins it. Linear.
bool join_selectors(std::span<const std::string_view> words, std::vector<std::string>* rules,
                    size_t* open_at);

// Users are named by text without spaces, line ends and NULs.
bool is_user_name(std::string_view name);

// Text as it is shown in errors: up to a NUL, as the reference's.
std::string_view shown(std::string_view rule);

}  // namespace latchkey::server::acl

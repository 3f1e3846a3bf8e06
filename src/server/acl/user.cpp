#include "server/acl/user.h"

#include <algorithm>

#include "base/digest/sha256.h"

namespace latchkey::server::acl {

namespace {

// Compares every digit, so that the time does not tell how many are equal.
bool equal_digests(std::string_view left, std::string_view right) {
  unsigned difference = left.size() == right.size() ? 0 : 1;
  for (size_t i = 0; i < std::min(left.size(), right.size()); ++i)
    difference |= static_cast<unsigned char>(left[i] ^ right[i]);
  return difference == 0;
}

// Whether `left` was refused by a later check than `right`, or for a later word by the same check.
bool was_refused_later(const Refusal& left, const Refusal& right) {
  return left.what != right.what ? left.what > right.what : left.position > right.position;
}

}  // namespace

User User::make_default() {
  User user(kDefaultUser, /*all_channels=*/true);
  user.enabled = true;
  user.needs_no_password = true;
  user.own.allow_all_keys();
  user.own.commands.set_all(true);
  return user;
}

bool User::accepts(std::string_view password) const {
  if (!enabled) return false;
  if (needs_no_password) return true;
  const std::string digest = base::sha256_hex(password);
  bool right = false;
  for (const std::string& known : passwords) right |= equal_digests(digest, known);
  return right;
}

bool User::may_do_everything() const {
  return any_selector([](const Selector& selector) { return selector.allows_everything(); });
}

std::optional<Refusal> User::check(const Command& command, Arguments words, Place place) const {
  CheckedRequest request(command, words, place);
  std::optional<Refusal> furthest;
  const bool permitted = any_selector([&](const Selector& selector) {
    const auto refusal = selector.check(request);
    if (refusal && (!furthest || was_refused_later(*refusal, *furthest))) furthest = refusal;
    return !refusal;
  });
  return permitted ? std::nullopt : furthest;
}

bool User::may_read_all_keys(const Command& command, Arguments words, Place place) const {
  CheckedRequest request(command, words, place);
  return any_selector([&](const Selector& selector) {
    return selector.reads_all_keys() && !selector.check(request);
  });
}

bool User::may_read_key(std::string_view key) const {
  return any_selector([&](const Selector& selector) { return selector.reads_key(key); });
}

bool User::may_subscribe(std::string_view channel, bool is_pattern) const {
  return any_selector(
      [&](const Selector& selector) { return selector.allows_channel(channel, is_pattern); });
}

bool User::keeps_channels_in(const User& other) const {
  const auto allows_all = [](const Selector& selector) { return selector.allows_all_channels(); };
  if (other.any_selector(allows_all)) return true;
  if (any_selector(allows_all)) return false;
  return !any_selector([&](const Selector& selector) {
    const auto& channels = selector.channels();
    return std::any_of(channels.begin(), channels.end(), [&](const NamePattern& channel) {
      return !other.may_subscribe(channel.text, /*is_pattern=*/true);
    });
  });
}

std::string_view User::sanitizing_flag(const Edition& edition) const {
  // Valkey 9 reads both rules and forgets them.
  if (edition.is_valkey_since({9, 0})) return "";
  if (!sanitizes_payloads) return "skip-sanitize-payload";
  return edition.has({7, 2}) ? "sanitize-payload" : "";
}

std::vector<std::string> User::rules(const Edition& edition) const {
  std::vector<std::string> rules;
  rules.emplace_back(enabled ? "on" : "off");
  if (needs_no_password) rules.emplace_back("nopass");
  if (const std::string_view flag = sanitizing_flag(edition); !flag.empty())
    rules.emplace_back(flag);
  for (const std::string& digest : passwords) rules.push_back("#" + digest);
  rules.push_back(own.text());
  for (const Selector& selector : selectors) rules.push_back("(" + selector.text() + ")");
  return rules;
}

std::string User::text(const Edition& edition) const {
  std::string text;
  for (const std::string& rule : rules(edition)) text.append(text.empty() ? "" : " ").append(rule);
  return text;
}

}  // namespace latchkey::server::acl

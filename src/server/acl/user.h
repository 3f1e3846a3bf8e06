// A user: who may log in by which passwords, and what they may do then.
//
// A user changes in place when an operator changes its rules, so that those who are logged in are
// concerned at once; one that is deleted lives on as long as a client is it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/acl/selector.h"

namespace latchkey::server::acl {

inline constexpr std::string_view kDefaultUser = "default";

class User {
 public:
  // Off, without a password and permissions, but for channels if it is said so.
  explicit User(std::string_view the_name, bool all_channels = false)
      : name(the_name), own(all_channels) {}
  // The user that nobody has restricted yet: on, without a password, may do everything.
  static User make_default();

  std::string name;
  bool enabled = false;
  bool needs_no_password = false;
  // Told and stored, and of no effect: what is restored is always checked, whoever sends it.
  bool sanitizes_payloads = true;
  // As the digests of SHA-256, in hexadecimal digits.
  std::vector<std::string> passwords;
  Selector own;
  std::vector<Selector> selectors;

  // Whether somebody may log in so. Takes the same time wherever passwords differ.
  bool accepts(std::string_view password) const;
  // Whether no request can be refused.
  bool may_do_everything() const;
  // Nothing when one of the selectors permits the request; otherwise what the one that came
  // furthest did not permit.
  std::optional<Refusal> check(const Command& command, Words words) const;
  // Whether the request is permitted, and its user may read whatever key it likes.
  bool may_read_all_keys(const Command& command, Words words) const;
  bool may_hear(std::string_view channel, bool is_pattern) const;
  // Whether `other` has lost nothing of the channels that this user may use, as far as comparing
  // their rules tells.
  bool keeps_channels_in(const User& other) const;

  // The rules that make this user: "on nopass sanitize-payload ~* &* +@all".
  std::vector<std::string> rules() const;
  std::string text() const;

 private:
  template <typename Fn>
  bool any_selector(Fn&& holds) const {
    if (holds(own)) return true;
    for (const Selector& selector : selectors) {
      if (holds(selector)) return true;
    }
    return false;
  }
};

}  // namespace latchkey::server::acl

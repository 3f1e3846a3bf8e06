// A user: its passwords and its permissions.
//
// ACL SETUSER changes a user in place, so that connected clients are affected at once; a deleted
// user exists as long as a client refers to it.
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
  // Off, without passwords and permissions, except all channels if `all_channels`.
  explicit User(std::string_view the_name, bool all_channels = false)
      : name(the_name), own(all_channels) {}
  // The default user before any rule: on, without a password, may do everything.
  static User make_default();

  std::string name;
  bool enabled = false;
  bool needs_no_password = false;
  // Shown and stored, but without effect: payloads to restore are always checked, for every user.
  bool sanitizes_payloads = true;
  // SHA-256 digests, in hexadecimal digits.
  std::vector<std::string> passwords;
  Selector own;
  std::vector<Selector> selectors;

  // Whether `password` is valid for an enabled user. The time does not depend on where passwords
  // differ.
  bool accepts(std::string_view password) const;
  // Whether no request is ever refused.
  bool may_do_everything() const;
  // Nothing when one of the selectors allows the request; otherwise the refusal of the selector
  // whose check came furthest.
  std::optional<Refusal> check(const Command& command, Arguments words, Place place = {}) const;
  // Whether one selector allows the request and reads of all keys.
  bool may_read_all_keys(const Command& command, Arguments words, Place place) const;
  // Whether one selector allows to read the key, for commands that find keys by what they hold.
  bool may_read_key(std::string_view key) const;
  bool may_subscribe(std::string_view channel, bool is_pattern) const;
  // Whether `other` may use all channels of this user, as far as comparing their rules shows.
  bool keeps_channels_in(const User& other) const;

  // Rules that create this user: "on nopass sanitize-payload ~* &* +@all".
  std::vector<std::string> rules(const Edition& edition = Edition()) const;
  std::string text(const Edition& edition = Edition()) const;
  // The rule about payloads; empty where it is the usual one and the edition does not tell it.
  std::string_view sanitizing_flag(const Edition& edition) const;

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

// A set of permissions: commands, keys and channels that go together. A user has one of its own,
// and any number of further ones, each of which may permit a request by itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/acl/command_rules.h"

namespace latchkey::server::acl {

// What of a request is not permitted. In the order in which requests are looked through.
enum class Forbidden : uint8_t { kCommand, kKey, kChannel };

struct Refusal {
  Forbidden what;
  // The word of the request that names the key or channel; 0 for a command.
  size_t position = 0;
};

// A request as permissions see it. Its keys are found once, when somebody asks for them.
class CheckedRequest {
 public:
  // Both must outlive it. A request without the command's arity has no keys.
  CheckedRequest(const Command& command, Words words) : command_(command), words_(words) {}
  const Command& command() const { return command_; }
  Words words() const { return words_; }
  const std::vector<KeyReference>& keys();

 private:
  const Command& command_;
  Words words_;
  bool keys_found_ = false;
  std::vector<KeyReference> keys_;
};

enum KeyAccess : uint8_t { kMayRead = 1 << 0, kMayWrite = 1 << 1, kMayReadAndWrite = 3 };

struct KeyPattern {
  std::string glob;
  uint8_t access;  // KeyAccess bits
};

class Selector {
 public:
  // Permits nothing, but for channels if it is said so.
  explicit Selector(bool all_channels = false) : all_channels_(all_channels) {}

  CommandRules commands;

  void allow_all_keys();
  void forbid_all_keys();
  bool allows_all_keys() const { return all_keys_; }
  // REQUIRES: not allows_all_keys(). A pattern that is there already is given the access as well.
  void allow_keys(std::string_view glob, uint8_t access);

  void allow_all_channels();
  void forbid_all_channels();
  bool allows_all_channels() const { return all_channels_; }
  // REQUIRES: not allows_all_channels().
  void allow_channels(std::string_view glob);
  const std::vector<std::string>& channels() const { return channels_; }

  // Nothing when the request is permitted.
  std::optional<Refusal> check(CheckedRequest& request) const;
  // Whether a channel may be published and listened to. A pattern of channels may be listened to if
  // it is itself a permission.
  bool allows_channel(std::string_view channel, bool is_pattern) const;
  // Whether any key may be read.
  bool reads_all_keys() const;
  bool allows_everything() const {
    return all_keys_ && all_channels_ && commands.allows_everything();
  }

  // "~a %R~b", "&news.*": as rules that say the same.
  std::string keys_text() const;
  std::string channels_text() const;
  // All of it: "~a resetchannels &news.* -@all +get".
  std::string text() const;

 private:
  bool allows_key(std::string_view key, uint32_t flags) const;

  bool all_keys_ = false;
  bool all_channels_;
  std::vector<KeyPattern> keys_;
  std::vector<std::string> channels_;
};

}  // namespace latchkey::server::acl

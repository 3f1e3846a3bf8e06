// A set of permissions: databases, commands, keys and channels. A user has one of its own and any
// number of further ones; a request is allowed if one of them allows all of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/glob.h"
#include "server/acl/command_rules.h"

namespace latchkey::server::acl {

// The part of a request that is not permitted, in the order of the checks.
enum class Forbidden : uint8_t { kDatabase, kCommand, kKey, kChannel };

struct Refusal {
  Forbidden what;
  // Index of the word that names the database, key or channel; 0 for a command, and for a database
  // that no word names.
  size_t position = 0;
};

// Where a request would run.
struct Place {
  int database = 0;
  // How many databases there are: numbers beyond are left to the command's handler.
  int databases = 16;
};

// A request to be checked. Its keys are found at most once, when they are needed.
class CheckedRequest {
 public:
  // Command and words must outlive it. A request without the command's arity has no keys.
  CheckedRequest(const Command& command, Arguments words, Place place)
      : command_(command), words_(words), place_(place) {}
  const Command& command() const { return command_; }
  Arguments words() const { return words_; }
  Place place() const { return place_; }
  const std::vector<KeyReference>& keys();

 private:
  const Command& command_;
  Arguments words_;
  Place place_;
  bool keys_found_ = false;
  std::vector<KeyReference> keys_;
};

enum KeyAccess : uint8_t { kMayRead = 1 << 0, kMayWrite = 1 << 1, kMayReadAndWrite = 3 };

// A pattern of keys or channels: as it was given, and as it is compared.
struct NamePattern {
  explicit NamePattern(std::string_view the_text) : text(the_text), glob(the_text) {}
  std::string text;
  base::GlobPattern glob;
};

struct KeyPattern {
  NamePattern name;
  uint8_t access;  // KeyAccess bits
};

class Selector {
 public:
  // Allows no command and no key, in any database, and all channels or none.
  explicit Selector(bool all_channels = false) : all_channels_(all_channels) {}

  CommandRules commands;

  void allow_all_keys();
  void forbid_all_keys();
  bool allows_all_keys() const { return all_keys_; }
  // REQUIRES: not allows_all_keys(). For a known pattern the access is added to its own.
  void allow_keys(std::string_view glob, uint8_t access);

  void allow_all_channels();
  void forbid_all_channels();
  bool allows_all_channels() const { return all_channels_; }
  // REQUIRES: not allows_all_channels().
  void allow_channels(std::string_view glob);
  const std::vector<NamePattern>& channels() const { return channels_; }

  void allow_all_databases();
  // None but these, which are at least 0.
  void allow_databases(std::vector<int> numbers);
  bool allows_all_databases() const { return all_databases_; }

  // Nothing when the request is permitted.
  std::optional<Refusal> check(CheckedRequest& request) const;
  // Whether a channel may be published and subscribed to. A pattern may be subscribed to if it is
  // equal to a permitted one.
  bool allows_channel(std::string_view channel, bool is_pattern) const;
  // Whether any key may be read, and whether that one may.
  bool reads_all_keys() const;
  bool reads_key(std::string_view key) const;
  bool allows_everything() const {
    return all_keys_ && all_channels_ && all_databases_ && commands.allows_everything();
  }

  // "~a %R~b", "&news.*": rules that give the same permissions.
  std::string keys_text() const;
  std::string channels_text() const;
  // "alldbs", "db=0,3"; empty: none.
  std::string databases_text() const;
  // All of it: "~a resetchannels &news.* -@all +get".
  std::string text() const;

 private:
  bool allows_key(std::string_view key, uint32_t flags) const;
  bool allows_database(int number) const;
  std::optional<Refusal> check_databases(CheckedRequest& request) const;

  bool all_keys_ = false;
  bool all_channels_;
  bool all_databases_ = true;
  std::vector<KeyPattern> keys_;
  std::vector<NamePattern> channels_;
  std::vector<int> databases_;  // ascending
};

}  // namespace latchkey::server::acl

#include "server/acl/selector.h"

#include <algorithm>

#include "base/text/number.h"
#include "server/command/command_context.h"

namespace latchkey::server::acl {

namespace {

constexpr std::string_view kEverything = "*";

// The access that a command needs to a key. Commands that only test for existence need none.
uint8_t access_of(uint32_t key_flags) {
  uint8_t access = 0;
  if ((key_flags & kKeyAccess) != 0) access |= kMayRead;
  if ((key_flags & (kKeyInsert | kKeyDelete | kKeyUpdate)) != 0) access |= kMayWrite;
  return access;
}

// The flags of a key that its access depends on. The rows of commands that the reference has as
// modules do not say what they do with the content of a key: this follows from what they may do.
uint32_t judged_flags(const Command& command, uint32_t key_flags) {
  constexpr uint32_t kContentFlags = kKeyAccess | kKeyInsert | kKeyDelete | kKeyUpdate;
  if (!command.has(kModule) || (key_flags & kContentFlags) != 0) return key_flags;
  if ((key_flags & (kKeyReadOnly | kKeyReadWrite)) != 0) key_flags |= kKeyAccess;
  if ((key_flags & kKeyReadOnly) == 0) key_flags |= kKeyUpdate;
  return key_flags;
}

std::string_view prefix_of(uint8_t access) {
  if (access == kMayRead) return "%R~";
  return access == kMayWrite ? "%W~" : "~";
}

void append_word(std::string* text, std::string_view prefix, std::string_view rest) {
  if (!text->empty()) text->push_back(' ');
  text->append(prefix).append(rest);
}

// Whether a command uses the client's database. Valkey's rule: commands that read, write or are in
// the category keyspace, and those that name keys.
bool uses_own_database(const Command& command) {
  if (command.row->extras.databases.instead) return false;
  return (command.acl & (kAclRead | kAclWrite | kAclKeyspace)) != 0 || command.has_keys();
}

// Positions of the words that are numbers of databases.
std::vector<size_t> database_words(const DatabaseWords& databases, Arguments words) {
  std::vector<size_t> positions;
  for (size_t i = databases.first; i < size_t{databases.first} + databases.count; ++i) {
    if (i < words.size()) positions.push_back(i);
  }
  constexpr size_t kFirstOption = 3;
  for (size_t i = kFirstOption; databases.option && i < words.size(); ++i) {
    if (is_word(words[i], "REPLACE")) continue;
    // The handler has the right error for what is no option.
    if (!is_word(words[i], "DB") || i + 1 == words.size()) return {};
    positions.push_back(++i);
  }
  return positions;
}

}  // namespace

const std::vector<KeyReference>& CheckedRequest::keys() {
  if (!keys_found_ && command_.has_keys() && command_.accepts_word_count(words_.size()))
    get_keys(command_, words_, &keys_);
  keys_found_ = true;
  return keys_;
}

// --- Changing permissions ----------------------------------------------------------------------

void Selector::allow_all_keys() {
  all_keys_ = true;
  keys_.clear();
}

void Selector::forbid_all_keys() {
  all_keys_ = false;
  keys_.clear();
}

void Selector::allow_keys(std::string_view glob, uint8_t access) {
  auto same = std::find_if(keys_.begin(), keys_.end(),
                           [&](const KeyPattern& pattern) { return pattern.name.text == glob; });
  if (same == keys_.end()) same = keys_.insert(same, {NamePattern(glob), 0});
  same->access |= access;
}

void Selector::allow_all_channels() {
  all_channels_ = true;
  channels_.clear();
}

void Selector::forbid_all_channels() {
  all_channels_ = false;
  channels_.clear();
}

void Selector::allow_channels(std::string_view glob) {
  const bool is_known =
      std::any_of(channels_.begin(), channels_.end(),
                  [&](const NamePattern& channel) { return channel.text == glob; });
  if (!is_known) channels_.emplace_back(glob);
}

void Selector::allow_all_databases() {
  all_databases_ = true;
  databases_.clear();
}

void Selector::allow_databases(std::vector<int> numbers) {
  all_databases_ = false;
  databases_ = std::move(numbers);
  std::sort(databases_.begin(), databases_.end());
  databases_.erase(std::unique(databases_.begin(), databases_.end()), databases_.end());
}

// --- Checks ------------------------------------------------------------------------------------

bool Selector::allows_key(std::string_view key, uint32_t flags) const {
  const uint8_t access = access_of(flags);
  return std::any_of(keys_.begin(), keys_.end(), [&](const KeyPattern& pattern) {
    return (pattern.access & access) == access && pattern.name.glob.matches(key);
  });
}

bool Selector::allows_channel(std::string_view channel, bool is_pattern) const {
  return all_channels_ ||
         std::any_of(channels_.begin(), channels_.end(), [&](const NamePattern& name) {
           return is_pattern ? name.text == channel : name.glob.matches(channel);
         });
}

bool Selector::allows_database(int number) const {
  return all_databases_ || std::binary_search(databases_.begin(), databases_.end(), number);
}

std::optional<Refusal> Selector::check_databases(CheckedRequest& request) const {
  const Command& command = request.command();
  const Arguments words = request.words();
  const DatabaseWords& databases = command.row->extras.databases;
  const Place place = request.place();
  if (uses_own_database(command) && !allows_database(place.database))
    return Refusal{Forbidden::kDatabase};
  for (int number = 0; databases.every && number < place.databases; ++number) {
    if (!allows_database(number)) return Refusal{Forbidden::kDatabase};
  }
  for (const size_t position : database_words(databases, words)) {
    int64_t number = 0;
    if (!base::parse_int64(words[position], &number) || number < 0 || number >= place.databases)
      continue;
    if (!allows_database(static_cast<int>(number))) return Refusal{Forbidden::kDatabase, position};
  }
  return std::nullopt;
}

bool Selector::reads_all_keys() const {
  return all_keys_ || std::any_of(keys_.begin(), keys_.end(), [](const KeyPattern& pattern) {
           return pattern.name.text == kEverything && (pattern.access & kMayRead) != 0;
         });
}

bool Selector::reads_key(std::string_view key) const {
  return all_keys_ || std::any_of(keys_.begin(), keys_.end(), [&](const KeyPattern& pattern) {
           return (pattern.access & kMayRead) != 0 && pattern.name.glob.matches(key);
         });
}

std::optional<Refusal> Selector::check(CheckedRequest& request) const {
  const Command& command = request.command();
  const Arguments words = request.words();
  if (!all_databases_) {
    if (auto refusal = check_databases(request)) return refusal;
  }
  if (!command.has(kNoAuth) && !commands.allows(command, words))
    return Refusal{Forbidden::kCommand};
  if (!all_keys_) {
    for (const KeyReference& key : request.keys()) {
      if (!allows_key(words[key.position], judged_flags(command, key.flags)))
        return Refusal{Forbidden::kKey, key.position};
    }
  }
  const ChannelWords& channels = command.row->extras.channels;
  if (all_channels_ || channels.first == 0) return std::nullopt;
  const size_t end = channels.only_one ? channels.first + size_t{1} : words.size();
  for (size_t at = channels.first; at < std::min(end, words.size()); ++at) {
    if (!allows_channel(words[at], channels.patterns)) return Refusal{Forbidden::kChannel, at};
  }
  return std::nullopt;
}

// --- Permissions as rules ----------------------------------------------------------------------

std::string Selector::keys_text() const {
  std::string text;
  if (all_keys_) append_word(&text, "~", kEverything);
  for (const KeyPattern& pattern : keys_)
    append_word(&text, prefix_of(pattern.access), pattern.name.text);
  return text;
}

std::string Selector::channels_text() const {
  std::string text;
  if (all_channels_) append_word(&text, "&", kEverything);
  for (const NamePattern& channel : channels_) append_word(&text, "&", channel.text);
  return text;
}

std::string Selector::databases_text() const {
  if (all_databases_) return "alldbs";
  std::string text;
  for (const int number : databases_)
    text.append(text.empty() ? "db=" : ",").append(std::to_string(number));
  return text;
}

std::string Selector::text() const {
  std::string text = keys_text();
  if (!all_channels_) append_word(&text, "resetchannels", {});
  if (const std::string channels = channels_text(); !channels.empty())
    append_word(&text, channels, {});
  if (!all_databases_)
    append_word(&text, databases_.empty() ? std::string("resetdbs") : databases_text(), {});
  append_word(&text, commands.text(), {});
  return text;
}

}  // namespace latchkey::server::acl

#include "server/command/command_table.h"

#include <algorithm>
#include <bit>

#include "base/assert.h"
#include "base/text/text.h"
#include "server/command/admission.h"
#include "server/command/command_syntax.h"
#include "server/config/config.h"
#include "server/emulation/arrivals.h"
#include "server/emulation/later_options.h"
#include "server/server.h"

namespace latchkey::server {

namespace {

// The module whose commands the reference shows in upper case.
constexpr std::string_view kUpperCaseModule = "vectorset";

constexpr size_t kMinSlots = 64;
// Slots per command, so that a probe seldom meets another command.
constexpr size_t kSlotsPerCommand = 8;
// More than there are, subcommands included: lists that grow would touch twice the memory at start.
constexpr size_t kMostCommands = 1024;

constexpr BitName kCommandFlagNames[] = {
    {kWrite, "write"},
    {kReadOnly, "readonly"},
    {kDenyOom, "denyoom"},
    {kModule, "module"},
    {kAdmin, "admin"},
    {kPubSub, "pubsub"},
    {kNoScript, "noscript"},
    {kBlocking, "blocking"},
    {kLoading, "loading"},
    {kStale, "stale"},
    {kSkipMonitor, "skip_monitor"},
    {kSkipSlowlog, "skip_slowlog"},
    {kAsking, "asking"},
    {kFast, "fast"},
    {kNoAuth, "no_auth"},
    {kNoMandatoryKeys, "no_mandatory_keys"},
    {kNoAsyncLoading, "no_async_loading"},
    {kNoMulti, "no_multi"},
    {kMovableKeys, "movablekeys"},
    {kAllowBusy, "allow_busy"},
    {kScriptRunner, "script_runner"},
};

constexpr BitName kAclCategoryNames[] = {
    {kAclKeyspace, "keyspace"},
    {kAclRead, "read"},
    {kAclWrite, "write"},
    {kAclSet, "set"},
    {kAclSortedSet, "sortedset"},
    {kAclList, "list"},
    {kAclHash, "hash"},
    {kAclString, "string"},
    {kAclBitmap, "bitmap"},
    {kAclHyperLogLog, "hyperloglog"},
    {kAclGeo, "geo"},
    {kAclStream, "stream"},
    {kAclPubSub, "pubsub"},
    {kAclAdmin, "admin"},
    {kAclFast, "fast"},
    {kAclSlow, "slow"},
    {kAclBlocking, "blocking"},
    {kAclDangerous, "dangerous"},
    {kAclConnection, "connection"},
    {kAclTransaction, "transaction"},
    {kAclScripting, "scripting"},
    {kAclArray, "array"},
    {kAclJson, "json"},
    {kAclTimeSeries, "timeseries"},
    {kAclBloom, "bloom"},
    {kAclCuckoo, "cuckoo"},
    {kAclCountMin, "cms"},
    {kAclTopK, "topk"},
    {kAclTDigest, "tdigest"},
};

constexpr BitName kKeyFlagNames[] = {
    {kKeyReadOnly, "RO"},
    {kKeyReadWrite, "RW"},
    {kKeyOverwrite, "OW"},
    {kKeyRemove, "RM"},
    {kKeyAccess, "access"},
    {kKeyUpdate, "update"},
    {kKeyInsert, "insert"},
    {kKeyDelete, "delete"},
    {kKeyNotKey, "not_key"},
    {kKeyIncomplete, "incomplete"},
    {kKeyVariableFlags, "variable_flags"},
};

constexpr std::string_view kGroupNames[] = {
    "generic",      "string",     "list",   "set",       "sorted-set",  "hash",    "pubsub",
    "transactions", "connection", "server", "scripting", "hyperloglog", "cluster", "geo",
    "stream",       "bitmap",     "array",  "sentinel",  "module",
};

// `flags`: as the edition has them.
uint32_t acl_of(const CommandRow& row, uint32_t flags) {
  uint32_t acl = row.acl;
  if ((flags & kWrite) != 0) acl |= kAclWrite;
  // Scripts read, but the categories count them as neither.
  if ((flags & kReadOnly) != 0 && (acl & kAclScripting) == 0) acl |= kAclRead;
  if ((flags & kAdmin) != 0) acl |= kAclAdmin | kAclDangerous;
  if ((flags & kPubSub) != 0) acl |= kAclPubSub;
  if ((flags & kBlocking) != 0) acl |= kAclBlocking;
  acl |= (flags & kFast) != 0 ? kAclFast : kAclSlow;
  return acl;
}

bool is_fixed_run(const KeySpec& spec) {
  return spec.begin == KeySpec::Begin::kIndex && spec.find == KeySpec::Find::kRange;
}

// Runs at fixed places that follow one another are one run to clients that know only first, last
// and step; whatever does not fit makes the keys movable.
void derive_fixed_keys(Command* command) {
  bool complete = true;
  for (const KeySpec& spec : command->row->keys) {
    if (!is_fixed_run(spec)) {
      complete = false;
      continue;
    }
    const int32_t last = spec.last >= 0 ? spec.position + spec.last : spec.last;
    if (command->first_key == 0) {
      command->first_key = spec.position;
      command->last_key = last;
      command->key_step = spec.step;
    } else if (command->last_key > 0 && command->last_key + 1 == spec.position &&
               command->key_step == 1 && spec.step == 1) {
      command->last_key = last;
    } else {
      complete = false;
    }
  }
  if (!complete) command->flags |= kMovableKeys;
}

bool is_letter(char byte) {
  const char lower = base::lower_case(byte);
  return lower >= 'a' && lower <= 'z';
}

const Command* subcommand_named(const Command& container, std::string_view name) {
  for (const Command* subcommand : container.subcommands) {
    if (base::equal_ignoring_case(subcommand->name, name)) return subcommand;
  }
  return nullptr;
}

}  // namespace

bool CommandFacts::has_keys() const {
  if (row->extras.find_keys != nullptr) return true;
  return std::any_of(row->keys.begin(), row->keys.end(),
                     [](const KeySpec& spec) { return (spec.flags & kKeyNotKey) == 0; });
}

// --- Names ---------------------------------------------------------------------------------------

void CommandNames::rebuild(std::span<const Command* const> commands,
                           std::span<const std::string> words) {
  words_ = words;
  const size_t count = std::bit_ceil(std::max(kMinSlots, commands.size() * kSlotsPerCommand));
  known_.clear();
  known_.reserve(kMostCommands);
  slots_.assign(count, kEmpty);
  slot_mask_ = count - 1;
  slot_shift_ = static_cast<unsigned>(64 - std::countr_zero(count));
  for (const Command* command : commands) insert(words[command->id], command->id);
}

void CommandNames::extend(std::span<const Command* const> commands, size_t first,
                          std::span<const std::string> words) {
  if (slots_.size() < commands.size() * kSlotsPerCommand) return rebuild(commands, words);
  words_ = words;
  for (const Command* command : commands.subspan(first)) insert(words[command->id], command->id);
}

void CommandNames::insert(std::string_view word, uint32_t id) {
  constexpr Word kCaseBit = 0x20;
  constexpr Word kWholeByte = 0xFF;
  Name known;
  known.size = static_cast<uint32_t>(word.size());
  const size_t head_size = std::min(word.size(), sizeof(Word));
  std::string head_mask(sizeof(Word), static_cast<char>(kWholeByte));
  std::string tail_mask(sizeof(Word),
                        word.size() > sizeof(Word) ? static_cast<char>(kWholeByte) : '\0');
  for (size_t i = 0; i < head_size; ++i) {
    if (is_letter(word[i])) head_mask[i] = static_cast<char>(kWholeByte & ~kCaseBit);
  }
  for (size_t i = 0; i < sizeof(Word) && word.size() > sizeof(Word); ++i) {
    if (is_letter(word[word.size() - sizeof(Word) + i]))
      tail_mask[i] = static_cast<char>(kWholeByte & ~kCaseBit);
  }
  known.head_mask = load<Word>(head_mask.data());
  known.tail_mask = load<Word>(tail_mask.data());
  known.head = head_of(word) & known.head_mask;
  known.tail = tail_of(word) & known.tail_mask;

  LK_ASSERT(find(word) == kNone);
  size_t at = slot_of(head_of(word), tail_of(word), word.size());
  while (slots_[at] != kEmpty) at = (at + 1) & slot_mask_;
  LK_ASSERT(id < kEmpty);
  slots_[at] = static_cast<uint16_t>(id);
  if (id >= known_.size()) known_.resize(id + size_t{1});
  known_[id] = known;
}

bool CommandNames::is_named(uint32_t id, std::string_view name) const {
  return base::equal_ignoring_case(words_[id], name);
}

// --- The set -------------------------------------------------------------------------------------

CommandSet::CommandSet(const Edition& edition) : edition_(edition) {
  all_.reserve(kMostCommands);
  words_.reserve(kMostCommands);
  names_.rebuild(named_, words_);
}

CommandSet::~CommandSet() = default;

void CommandSet::add(std::span<const CommandRow> rows, Choice choice) {
  const auto has = [&](std::string_view full_name, std::string_view since) {
    return has_command(edition_, full_name, since) &&
           (choice == nullptr || choice(base::lower_case(full_name)));
  };
  const size_t former = named_.size();
  for (const CommandRow& row : rows) {
    if (!has(row.name, row.since)) continue;
    Command* const command = add_command(row, nullptr);
    for (const CommandRow& subcommand : row.extras.subcommands) {
      const std::string full_name = command->name + '|' + subcommand.name;
      if (has(full_name, subcommand.since)) add_command(subcommand, command);
    }
    named_.push_back(command);
    if (!edition_.emulates() || !is_own_command(row.name)) commands_.push_back(command);
  }
  names_.extend(named_, former, words_);
  descriptions_.forget();
}

Command* CommandSet::add_command(const CommandRow& row, Command* parent) {
  auto command = std::make_unique<Command>();
  command->row = &row;
  command->handler = row.handler;
  command->element = row.extras.element;
  command->id = static_cast<uint32_t>(all_.size());
  command->name = base::lower_case(row.name);
  // The reference shows the commands of its modules as they are registered.
  const bool in_upper_case = (row.flags & kModule) != 0 && row.extras.module == kUpperCaseModule;
  command->full_name = in_upper_case ? row.name : command->name;
  if (parent != nullptr) {
    LK_ASSERT(subcommand_named(*parent, row.name) == nullptr);
    command->parent = parent;
    command->full_name = parent->name + '|' + command->name;
    parent->subcommands.push_back(command.get());
  }
  command->flags = flags_in(edition_, command->full_name, row.flags);
  command->acl = acl_of(row, command->flags);
  LK_ASSERT(row.handler != nullptr || !row.extras.subcommands.empty());
  command->arity = -2;
  if (row.handler != nullptr) apply_syntax(command.get());
  derive_fixed_keys(command.get());
  // EXEC is judged by what is queued.
  const bool flags_vary = row.extras.find_flags != nullptr || command->has(kRunsQueued);
  command->gating_states = gating_states(command->flags, flags_vary);
  if (command->later_options == nullptr) command->gating_states &= ~kStateEmulating;
  words_.push_back(command->name);
  all_.push_back(std::move(command));
  return all_.back().get();
}

void CommandSet::apply_syntax(Command* command) {
  const CommandRow& row = *command->row;
  const int own_words = command->parent == nullptr ? 1 : 2;
  command->arity = arity_in(edition_, command->full_name, row.syntax.arity(own_words));
  if (!edition_.emulates()) return;
  Syntax syntax = parse_syntax(row.syntax.text(), own_words, row.keys.size());
  auto later = std::make_unique<LaterOptions>(syntax.arguments, edition_, command->full_name);
  if (!later->any()) return;
  remove_later(&syntax.arguments, edition_, command->full_name);
  command->arity = arity_of(syntax.arguments, own_words);
  command->later_options = later.get();
  later_options_.push_back(std::move(later));
}

// --- One server's table --------------------------------------------------------------------------

CommandTable::CommandTable()
    : own_set_(std::make_shared<CommandSet>()), set_(own_set_), names_(&set_->names()) {}

void CommandTable::share(std::shared_ptr<const CommandSet> set) {
  LK_ASSERT(used_.empty() && renaming_ == nullptr);
  own_set_.reset();
  set_ = std::move(set);
  names_ = &set_->names();
  used_.resize(all().size());
}

void CommandTable::add(std::span<const CommandRow> rows) {
  LK_ASSERT(own_set_ != nullptr && renaming_ == nullptr);
  own_set_->add(rows);
  used_.resize(all().size());
}

Command* CommandTable::begin_use(uint32_t id) const {
  used_[id] = std::make_unique<Command>(static_cast<const CommandFacts&>(*all()[id]));
  return used_[id].get();
}

Command* CommandTable::find_subcommand(const Command& container, std::string_view name) const {
  const Command* const subcommand = subcommand_named(container, name);
  return subcommand == nullptr ? nullptr : own(subcommand->id);
}

Command* CommandTable::find_request(Arguments words) const {
  if (words.empty()) return nullptr;
  Command* const command = find(words[0]);
  if (command == nullptr || !command->is_container() || words.size() == 1) return command;
  return find_subcommand(*command, words[1]);
}

Command* CommandTable::find_full_name(std::string_view full_name) const {
  const size_t bar = full_name.find('|');
  Command* const command = find(full_name.substr(0, bar));
  if (command == nullptr || bar == std::string_view::npos) return command;
  return find_subcommand(*command, full_name.substr(bar + 1));
}

bool CommandTable::rename(std::string_view name, std::string_view new_name) {
  const uint32_t id = names_->find(name);
  if (id == CommandNames::kNone) return false;
  const uint32_t holder = names_->find(new_name);
  if (holder != CommandNames::kNone && holder != id) return false;
  if (renaming_ == nullptr) {
    renaming_ = std::make_unique<Renaming>();
    renaming_->commands = set_->commands();
    renaming_->named = set_->named();
    renaming_->words = set_->words();
    names_ = &renaming_->names;
  }
  renaming_->words[id] = base::lower_case(new_name);
  if (new_name.empty()) {
    std::erase(renaming_->commands, all()[id].get());
    std::erase(renaming_->named, all()[id].get());
  }
  renaming_->names.rebuild(renaming_->named, renaming_->words);
  return true;
}

base::Result<void, ConfigError> CommandTable::rename(
    const std::vector<DeferredDirective>& directives) {
  for (const DeferredDirective& directive : directives) {
    const std::string& from = directive.arguments.at(0);
    const std::string& to = directive.arguments.at(1);
    if (rename(from, to)) continue;
    return base::fail_with(ConfigError::at(directive, find(from) == nullptr
                                                          ? "No such command in rename-command"
                                                          : "Target command name already exists"));
  }
  return {};
}

std::vector<std::string_view> CommandTable::names() const {
  std::vector<std::string_view> names;
  for (const Command* command : commands())
    names.push_back(renaming_ != nullptr ? renaming_->words[command->id] : command->full_name);
  return names;
}

void CommandTable::reset_stats() {
  for (const auto& command : used_) {
    if (command != nullptr) command->stats = CommandStats();
  }
}

bool get_keys(const Command& command, Arguments words, std::vector<KeyReference>* out) {
  out->clear();
  const CommandRow& row = *command.row;
  const bool found = row.extras.find_keys != nullptr ? row.extras.find_keys(words, out)
                                                     : find_keys(row.keys, words, out);
  if (!found) out->clear();
  return !out->empty() || command.has(kNoMandatoryKeys);
}

std::span<const BitName> command_flag_names() {
  return kCommandFlagNames;
}

std::span<const BitName> acl_category_names() {
  return kAclCategoryNames;
}

std::span<const BitName> key_flag_names() {
  return kKeyFlagNames;
}

std::string_view group_name(Group group) {
  return kGroupNames[static_cast<size_t>(group)];
}

uint32_t acl_category_named(std::string_view name) {
  for (const BitName& category : kAclCategoryNames) {
    if (base::equal_ignoring_case(category.name, name)) return category.bit;
  }
  return 0;
}

}  // namespace latchkey::server

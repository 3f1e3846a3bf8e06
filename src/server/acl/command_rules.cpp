#include "server/acl/command_rules.h"

#include <algorithm>
#include <utility>

#include "base/text/text.h"

namespace latchkey::server::acl {

namespace {

constexpr uint32_t kBitsOfWord = 64;
constexpr uint64_t kAllBits = ~uint64_t{0};

// Whether a rule for `subject` also covers `earlier`: the same command, or a subcommand of it.
bool covers(std::string_view subject, std::string_view earlier) {
  if (!earlier.starts_with(subject)) return false;
  return earlier.size() == subject.size() || earlier[subject.size()] == '|';
}

// Of the command and its subcommands.
void add_ids(const Command& command, std::vector<uint32_t>* ids) {
  ids->push_back(command.id);
  for (const Command* subcommand : command.subcommands) ids->push_back(subcommand->id);
}

}  // namespace

bool CommandRules::allows_as_such(uint32_t id) const {
  const size_t at = id / kBitsOfWord;
  if (at >= bits_.size()) return others_allowed_;
  return (bits_[at] >> (id % kBitsOfWord) & 1) != 0;
}

bool CommandRules::allows(const Command& command, Arguments words) const {
  if (allows_as_such(command.id)) return true;
  if (first_words_.empty() || command.parent != nullptr || words.size() < 2) return false;
  return std::any_of(first_words_.begin(), first_words_.end(), [&](const FirstWord& first) {
    return first.command == command.id && base::equal_ignoring_case(first.word, words[1]);
  });
}

bool CommandRules::allows_everything() const {
  return others_allowed_ &&
         std::all_of(bits_.begin(), bits_.end(), [](uint64_t bits) { return bits == kAllBits; });
}

void CommandRules::set_all(bool allowed) {
  others_allowed_ = allowed;
  bits_.clear();
  first_words_.clear();
  rules_.clear();
}

void CommandRules::set_bit(uint32_t id, bool allowed) {
  const size_t at = id / kBitsOfWord;
  if (at >= bits_.size()) bits_.resize(at + 1, others_allowed_ ? kAllBits : 0);
  const uint64_t bit = uint64_t{1} << (id % kBitsOfWord);
  bits_[at] = allowed ? bits_[at] | bit : bits_[at] & ~bit;
}

void CommandRules::set_bits(std::vector<uint32_t> ids, bool allowed) {
  for (const uint32_t id : ids) set_bit(id, allowed);
  std::ranges::sort(ids);
  std::erase_if(first_words_, [&](const FirstWord& first) {
    return std::ranges::binary_search(ids, first.command);
  });
}

void CommandRules::set_command(const Command& command, bool allowed) {
  std::vector<uint32_t> ids;
  add_ids(command, &ids);
  set_bits(std::move(ids), allowed);
  note(base::lower_case(command.full_name), allowed);
}

void CommandRules::set_category(const CommandTable& table, const BitName& category, bool allowed) {
  std::vector<uint32_t> ids;
  for (const auto& command : table.all()) {
    if ((command->acl & category.bit) != 0) add_ids(*command, &ids);
  }
  set_bits(std::move(ids), allowed);
  note("@" + std::string(category.name), allowed);
}

void CommandRules::allow_first_word(const Command& command, std::string_view word) {
  const std::string lower = base::lower_case(word);
  const bool known = std::any_of(
      first_words_.begin(), first_words_.end(),
      [&](const FirstWord& first) { return first.command == command.id && first.word == lower; });
  if (!known) first_words_.push_back({command.id, lower});
  note(base::lower_case(command.full_name) + '|' + lower, true);
}

void CommandRules::note(std::string subject, bool allowed) {
  std::erase_if(rules_, [&](const Rule& rule) { return covers(subject, rule.subject); });
  rules_.push_back({std::move(subject), allowed});
}

std::string CommandRules::text() const {
  std::string text = others_allowed_ ? "+@all" : "-@all";
  for (const Rule& rule : rules_) text.append(rule.allowed ? " +" : " -").append(rule.subject);
  return text;
}

}  // namespace latchkey::server::acl

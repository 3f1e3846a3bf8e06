// The commands that a selector allows: a bit for each command and subcommand, first words that are
// allowed for commands without that bit, and the rules as the operator gave them.
//
// A rule for a command also covers its subcommands, one for a category all commands in it. Later
// rules override earlier ones. A check costs a test of a bit when the command is allowed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/command/command_table.h"

namespace latchkey::server::acl {

class CommandRules {
 public:
  // REQUIRES: the request has the command's arity. Its words are read only when the command's
  // bit is not set.
  bool allows(const Command& command, Arguments words) const;
  // Whether no request of any command can be refused.
  bool allows_everything() const;

  // "+@all" and "-@all": drops all earlier rules.
  void set_all(bool allowed);
  void set_command(const Command& command, bool allowed);
  // `name`: the category's, in lower case.
  void set_category(const CommandTable& table, const BitName& category, bool allowed);
  // "+select|0": allows requests of the command whose first word after its name is `word`, in any
  // case. REQUIRES: the command has no subcommands.
  void allow_first_word(const Command& command, std::string_view word);

  // "-@all +get -@string": rules that give the same permissions.
  std::string text() const;

 private:
  struct Rule {
    std::string subject;  // "get", "config|set", "select|0", "@string"
    bool allowed;
  };
  struct FirstWord {
    uint32_t command;
    std::string word;
  };

  bool allows_as_such(uint32_t id) const;
  void set_bit(uint32_t id, bool allowed);
  // Also drops what allow_first_word() has allowed of these commands.
  void set_bits(std::vector<uint32_t> ids, bool allowed);
  // Drops the rules that the new one overrides and adds it.
  void note(std::string subject, bool allowed);

  // The bit of all commands beyond bits_.
  bool others_allowed_ = false;
  std::vector<uint64_t> bits_;
  std::vector<FirstWord> first_words_;
  std::vector<Rule> rules_;
};

}  // namespace latchkey::server::acl

// Which commands may be run: a bit for each command and subcommand, first words that are allowed of
// commands that are not, and the rules that led there, as people gave them.
//
// A rule holds for what follows from it: one for a command also for its subcommands, one for a
// category for all that are in it. Later rules go before earlier ones. Asking costs a test of a bit
// where the command is allowed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/command/command_table.h"

namespace latchkey::server::acl {

class CommandRules {
 public:
  // The request must have the command's arity; its words are looked at only where the command as
  // such is not allowed.
  bool allows(const Command& command, Words words) const;
  // Whether no request of any command can be refused.
  bool allows_everything() const;

  // "+@all" and "-@all": forgets whatever was said before.
  void set_all(bool allowed);
  void set_command(const Command& command, bool allowed);
  // `name` as the category is known, in lower case.
  void set_category(const CommandTable& table, const BitName& category, bool allowed);
  // "+select|0": allows requests of the command whose word behind its name is this one, in any
  // case. REQUIRES: no container.
  void allow_first_word(const Command& command, std::string_view word);

  // "-@all +get -@string", which says the same when it is read.
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
  void set_bits(const Command& command, bool allowed);
  // Drops the rules that the new one makes meaningless and adds it.
  void note(std::string subject, bool allowed);

  // Of commands beyond the last word of bits, too.
  bool others_allowed_ = false;
  std::vector<uint64_t> bits_;
  std::vector<FirstWord> first_words_;
  std::vector<Rule> rules_;
};

}  // namespace latchkey::server::acl

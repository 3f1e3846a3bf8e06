// The options of a command that came after the release that is emulated: whether a request uses one
// of them.
//
// Words are matched with the command's syntax (server/command/command_syntax.h) from left to right,
// options in any order among themselves. What does not match is left to the handler, which has the
// right error for it. So an unusual request may be let through with a later option, but a request
// of that release is never refused: a word counts as an option only where its release would have
// looked for one.
#pragma once

#include <string_view>
#include <vector>

#include "server/command/command_syntax.h"
#include "server/command/key_spec.h"
#include "server/emulation/edition.h"

namespace latchkey::server {

class LaterOptions {
 public:
  // `arguments`: the whole syntax of the command, whose full name is `full_name`. Views into the
  // syntax line are kept.
  LaterOptions(std::vector<Argument> arguments, const Edition& edition, std::string_view full_name);

  // Whether there is any.
  bool any() const { return any_; }
  // `words`: the request without the command's name. Linear in the words, but for commands whose
  // options repeat, which cost a look at each option for each word.
  bool used_by(Arguments words) const;
  // What the release says of such a word.
  std::string_view error() const { return error_; }

 private:
  std::vector<Argument> arguments_;
  bool any_ = false;
  bool handler_refuses_ = false;
  std::string_view error_;
};

// Takes out what came later, also within blocks and choices.
void remove_later(std::vector<Argument>* arguments, const Edition& edition,
                  std::string_view full_name);

}  // namespace latchkey::server

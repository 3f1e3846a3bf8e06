#include "server/emulation/later_options.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "base/text/text.h"
#include "server/emulation/arrivals.h"

namespace latchkey::server {

namespace {

using SyntaxArguments = std::span<const Argument>;

// Marks what came later; true when anything did.
bool mark_later(std::vector<Argument>* arguments, const Edition& edition,
                std::string_view full_name) {
  bool any = false;
  for (Argument& argument : *arguments) {
    argument.later = !has_argument(edition, full_name, argument.token, argument.since);
    any |= argument.later || mark_later(&argument.arguments, edition, full_name);
  }
  return any;
}

class Matcher {
 public:
  explicit Matcher(Arguments words) : words_(words) {}

  bool finds_later(SyntaxArguments arguments) {
    match_sequence(arguments);
    return found_;
  }

 private:
  bool at_end() const { return at_ == words_.size(); }
  bool at_token(std::string_view token) const {
    return !at_end() && base::equal_ignoring_case(words_[at_], token);
  }

  // Whether the next word is a token with which the argument can begin.
  bool begins(const Argument& argument) const {
    if (argument.has_token) return at_token(argument.token);
    if (argument.type == ArgumentType::kOneOf) {
      return std::any_of(argument.arguments.begin(), argument.arguments.end(),
                         [this](const Argument& each) { return begins(each); });
    }
    return argument.type == ArgumentType::kBlock && begins(argument.arguments.front());
  }

  // False when the words end, or are none that the syntax knows, or a later option was found.
  bool match_sequence(SyntaxArguments arguments) {
    for (size_t i = 0; i < arguments.size();) {
      if (!arguments[i].optional) {
        const SyntaxArguments after = arguments.subspan(i + 1);
        if (!match_repeated(arguments[i], after, after)) return false;
        last_number_.reset();
        if (at_ > 0) note_number(arguments[i]);
        ++i;
        continue;
      }
      size_t end = i;
      while (end < arguments.size() && arguments[end].optional) ++end;
      if (!match_options(arguments.subspan(i, end - i), arguments.subspan(end))) return false;
      i = end;
    }
    return true;
  }

  // A number of keys or fields counts the argument that follows it.
  void note_number(const Argument& argument) {
    if (!argument.name.starts_with("num") && argument.name != "count") return;
    const std::string_view word = words_[at_ - 1];
    size_t number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error == std::errc() && end == word.data() + word.size()) last_number_ = number;
  }

  // Options in any order; those without a token in their place, as far as words are left for them.
  bool match_options(SyntaxArguments options, SyntaxArguments after) {
    const size_t kept = least_words(after);
    for (size_t next_plain = 0; words_.size() - at_ > kept;) {
      const auto* const named =
          std::find_if(options.data(), options.data() + options.size(),
                       [this](const Argument& option) { return begins(option); });
      if (named != options.data() + options.size()) {
        if (!match_repeated(*named, options, after)) return false;
        continue;
      }
      while (next_plain < options.size() && !is_plain(options[next_plain])) ++next_plain;
      if (next_plain == options.size()) return true;
      if (!match_repeated(options[next_plain++], options, after)) return false;
    }
    return true;
  }

  // Whether it begins with a value, not with a token.
  static bool is_plain(const Argument& argument) {
    if (argument.has_token) return false;
    if (argument.type != ArgumentType::kOneOf && argument.type != ArgumentType::kBlock) return true;
    return std::any_of(argument.arguments.begin(), argument.arguments.end(), is_plain);
  }

  // An argument as often as it comes: as many times as the number before it says, or up to a token
  // of `options`, leaving the words that `after` needs.
  bool match_repeated(const Argument& argument, SyntaxArguments options, SyntaxArguments after) {
    const std::optional<size_t> number = std::exchange(last_number_, std::nullopt);
    if (!match_one(argument)) return false;
    if (!argument.multiple) return true;
    const size_t kept = least_words(after);
    for (size_t times = 1; number ? times < *number : words_.size() - at_ > kept; ++times) {
      const bool another =
          std::any_of(options.begin(), options.end(),
                      [this](const Argument& each) { return each.optional && begins(each); });
      if (!number && another) return true;
      if (argument.multiple_token && !at_token(argument.token)) return true;
      if (!match_value(argument, argument.multiple_token)) return false;
    }
    return true;
  }

  bool match_one(const Argument& argument) { return match_value(argument, argument.has_token); }

  bool match_value(const Argument& argument, bool with_token) {
    if (at_end()) return false;
    if (with_token) {
      if (!at_token(argument.token)) return false;
      ++at_;
    }
    if (argument.later) {
      found_ = true;
      return false;
    }
    if (argument.type == ArgumentType::kPureToken) return true;
    if (argument.type == ArgumentType::kBlock) return match_sequence(argument.arguments);
    if (argument.type == ArgumentType::kOneOf) return match_choice(argument);
    if (at_end()) return false;
    ++at_;
    return true;
  }

  bool match_choice(const Argument& choice) {
    for (const Argument& alternative : choice.arguments) {
      if (begins(alternative)) return match_one(alternative);
    }
    const auto plain = std::find_if(choice.arguments.begin(), choice.arguments.end(), is_plain);
    return plain != choice.arguments.end() && match_one(*plain);
  }

  static size_t least_words(SyntaxArguments arguments) {
    size_t least = 0;
    for (const Argument& argument : arguments) least += least_words_of(argument);
    return least;
  }

  static size_t least_words_of(const Argument& argument) {
    if (argument.optional) return 0;
    const size_t token = argument.has_token ? 1 : 0;
    switch (argument.type) {
      case ArgumentType::kPureToken:
        return token;
      case ArgumentType::kBlock:
        return token + least_words(argument.arguments);
      case ArgumentType::kOneOf: {
        size_t least = SIZE_MAX;
        for (const Argument& each : argument.arguments)
          least = std::min(least, least_words_of(each));
        return token + least;
      }
      default:
        return token + 1;
    }
  }

  Arguments words_;
  size_t at_ = 0;
  bool found_ = false;
  std::optional<size_t> last_number_;
};

}  // namespace

LaterOptions::LaterOptions(std::vector<Argument> arguments, const Edition& edition,
                           std::string_view full_name)
    : arguments_(std::move(arguments)) {
  any_ = mark_later(&arguments_, edition, full_name);
  // These look at their key before they read options.
  handler_refuses_ = full_name == "hscan" || full_name == "zscan";
  // XADD takes a word that is no option for the id.
  error_ = full_name == "xadd" ? "ERR Invalid stream ID specified as stream command argument"
                               : "ERR syntax error";
}

bool LaterOptions::used_by(Arguments words) const {
  return any_ && !handler_refuses_ && Matcher(words).finds_later(arguments_);
}

void remove_later(std::vector<Argument>* arguments, const Edition& edition,
                  std::string_view full_name) {
  std::erase_if(*arguments, [&](const Argument& argument) {
    return !has_argument(edition, full_name, argument.token, argument.since);
  });
  for (Argument& argument : *arguments) {
    remove_later(&argument.arguments, edition, full_name);
    const auto deprecated = parse_version(argument.deprecated_since);
    if (deprecated && !edition.has(*deprecated)) argument.deprecated_since = {};
  }
  // A choice or a block whose every part came later.
  std::erase_if(*arguments, [](const Argument& argument) {
    return argument.arguments.empty() &&
           (argument.type == ArgumentType::kOneOf || argument.type == ArgumentType::kBlock);
  });
}

}  // namespace latchkey::server

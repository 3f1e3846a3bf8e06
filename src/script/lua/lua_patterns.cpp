#include "script/lua/lua_patterns.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <lua.hpp>
#include <new>
#include <string_view>

#include "base/text/text.h"
#include "script/lua/interpreter.h"
#include "script/lua/lua_numbers.h"
#include "script/lua/lua_text.h"

namespace latchkey::script {

namespace {

constexpr char kEscape = '%';
constexpr std::string_view kSpecial = "^$*+?.([%-";
constexpr int kMaxCaptures = LUA_MAXCAPTURES;

// --- Classes of characters ----------------------------------------------------------------------

enum CharacterClass : uint16_t {
  kAlpha = 1 << 0,
  kControl = 1 << 1,
  kDigit = 1 << 2,
  kLower = 1 << 3,
  kPunctuation = 1 << 4,
  kSpace = 1 << 5,
  kUpper = 1 << 6,
  kHexadecimal = 1 << 7,
  kNull = 1 << 8,
};

constexpr bool is_between(int c, int low, int high) {
  return c >= low && c <= high;
}

constexpr uint16_t classes_of_character(int c) {
  const bool lower = is_between(c, 'a', 'z');
  const bool upper = is_between(c, 'A', 'Z');
  const bool digit = is_between(c, '0', '9');
  const bool hexadecimal = digit || is_between(c, 'a', 'f') || is_between(c, 'A', 'F');
  const bool printed = is_between(c, '!', '~');
  int classes = 0;
  if (lower || upper) classes |= kAlpha;
  if (c < ' ' || c == 0x7f) classes |= kControl;
  if (digit) classes |= kDigit;
  if (lower) classes |= kLower;
  if (printed && !lower && !upper && !digit) classes |= kPunctuation;
  if (c == ' ' || is_between(c, '\t', '\r')) classes |= kSpace;
  if (upper) classes |= kUpper;
  if (hexadecimal) classes |= kHexadecimal;
  if (c == 0) classes |= kNull;
  return static_cast<uint16_t>(classes);
}

constexpr auto kClassesOfCharacters = [] {
  std::array<uint16_t, 256> table{};
  for (int c = 0; c < 256; ++c) table[static_cast<size_t>(c)] = classes_of_character(c);
  return table;
}();

// The classes of the letter after a percent sign, or 0.
constexpr uint16_t classes_of_letter(char lower) {
  switch (lower) {
    case 'a':
      return kAlpha;
    case 'c':
      return kControl;
    case 'd':
      return kDigit;
    case 'l':
      return kLower;
    case 'p':
      return kPunctuation;
    case 's':
      return kSpace;
    case 'u':
      return kUpper;
    case 'w':
      return kAlpha | kDigit;
    case 'x':
      return kHexadecimal;
    case 'z':
      return kNull;
    default:
      return 0;
  }
}

// For each letter: its classes, and whether it matches the characters outside of them.
struct LetterMeaning {
  uint16_t classes = 0;
  bool negated = false;
};
constexpr auto kLetterMeanings = [] {
  std::array<LetterMeaning, 256> table{};
  for (int c = 'a'; c <= 'z'; ++c) {
    const uint16_t classes = classes_of_letter(static_cast<char>(c));
    table[static_cast<size_t>(c)] = {classes, false};
    table[static_cast<size_t>(c - 'a' + 'A')] = {classes, true};
  }
  return table;
}();

bool is_in_class(unsigned char c, unsigned char letter) {
  const LetterMeaning meaning = kLetterMeanings[letter];
  if (meaning.classes == 0) return c == letter;
  return ((kClassesOfCharacters[c] & meaning.classes) != 0) != meaning.negated;
}

// --- Matching -----------------------------------------------------------------------------------

// Matches one pattern against one subject, at one position after the other. It has no destructor,
// because Lua's errors would not run it.
class Matcher {
 public:
  Matcher(lua_State* lua, std::string_view subject, std::string_view pattern)
      : lua_(lua),
        interpreter_(Interpreter::of(lua)),
        begin_(subject.data()),
        end_(subject.data() + subject.size()),
        pattern_end_(pattern.data() + pattern.size()) {}

  // Returns the end of the match of `pattern`, a suffix of the whole pattern, at `place`; null when
  // there is none. The captures are those of this match.
  const char* match_at(const char* place, const char* pattern) {
    levels_ = 0;
    stack_begin_ = frame();
    return match(place, pattern);
  }

  const char* begin() const { return begin_; }
  const char* end() const { return end_; }

  // Pushes capture i of the match from `from` to `to`; without captures capture 0 is the whole
  // match.
  void push_capture(int i, const char* from, const char* to) {
    if (i >= levels_) {
      if (i != 0) luaL_error(lua_, "invalid capture index");
      return push_text(lua_, {from, static_cast<size_t>(to - from)});
    }
    const Capture& capture = captures_[static_cast<size_t>(i)];
    if (capture.size == kOpen) luaL_error(lua_, "unfinished capture");
    if (capture.size == kPosition) return lua_pushinteger(lua_, capture.begin - begin_ + 1);
    push_text(lua_, {capture.begin, static_cast<size_t>(capture.size)});
  }
  // Pushes all captures, and returns how many; `whole`: the whole match if there are none.
  int push_captures(const char* from, const char* to, bool whole) {
    const int count = levels_ == 0 && whole ? 1 : levels_;
    if (count > 1) luaL_checkstack(lua_, count, "too many captures");
    for (int i = 0; i < count; ++i) push_capture(i, from, to);
    return count;
  }

 private:
  // Special values of Capture::size.
  static constexpr ptrdiff_t kOpen = -1;
  static constexpr ptrdiff_t kPosition = -2;
  // Characters matched between two calls of Interpreter::poll().
  static constexpr int64_t kPollInterval = 1 << 15;
  // Bytes of C stack that a match may use, however large the stack is: a pattern that nests deeper
  // ends with an error, and not after a search that grows with each level.
  static constexpr ptrdiff_t kMaxStack = ptrdiff_t{8} << 20;

  struct Capture {
    const char* begin;
    ptrdiff_t size;
  };

  static const char* frame() { return static_cast<const char*>(__builtin_frame_address(0)); }
  bool is_too_deep() const {
    return !interpreter_.has_stack() || stack_begin_ - frame() > kMaxStack;
  }

  // Counts matched characters, and polls.
  void spend(int64_t characters) {
    left_ -= characters;
    if (left_ > 0) [[likely]]
      return;
    left_ = kPollInterval;
    interpreter_.poll(lua_);
  }

  const char* match(const char* place, const char* pattern);
  const char* match_special(const char* place, const char** pattern);
  const char* match_longest(const char* place, const char* pattern, const char* pattern_next);
  const char* match_shortest(const char* place, const char* pattern, const char* pattern_next);
  const char* match_balanced(const char* place, const char* delimiters);
  bool is_frontier(const char* place, const char* set, const char* set_end) const;
  const char* match_again(const char* place, char digit) const;
  const char* open_capture(const char* place, const char* pattern, ptrdiff_t kind);
  const char* close_capture(const char* place, const char* pattern);

  // The end of the single character, class or set that begins at `pattern`.
  const char* end_of_single(const char* pattern) const;
  // Whether the character is in the set between '[' and its ']', which is at `last`.
  static bool is_in_set(unsigned char c, const char* set, const char* last);
  // Whether there is a character at `place` and it matches the single item up to `next`.
  bool fits(const char* place, const char* pattern, const char* next) const {
    if (place >= end_) return false;
    const auto c = static_cast<unsigned char>(*place);
    switch (*pattern) {
      case '.':
        return true;
      case kEscape:
        return is_in_class(c, static_cast<unsigned char>(pattern[1]));
      case '[':
        return is_in_set(c, pattern, next - 1);
      default:
        return static_cast<unsigned char>(*pattern) == c;
    }
  }

  lua_State* lua_;
  Interpreter& interpreter_;
  const char* begin_;
  const char* end_;
  const char* pattern_end_;
  const char* stack_begin_ = nullptr;
  int64_t left_ = kPollInterval;
  int levels_ = 0;
  std::array<Capture, kMaxCaptures> captures_;
};

const char* Matcher::end_of_single(const char* pattern) const {
  const char first = *pattern++;
  if (first == kEscape) {
    if (pattern == pattern_end_) luaL_error(lua_, "malformed pattern (ends with '%%')");
    return pattern + 1;
  }
  if (first != '[') return pattern;
  if (pattern < pattern_end_ && *pattern == '^') ++pattern;
  // A closing bracket right at the start is an ordinary character.
  for (bool is_first = true; is_first || pattern >= pattern_end_ || *pattern != ']';) {
    if (pattern >= pattern_end_) luaL_error(lua_, "malformed pattern (missing ']')");
    pattern += *pattern == kEscape && pattern + 1 < pattern_end_ ? 2 : 1;
    is_first = false;
  }
  return pattern + 1;
}

bool Matcher::is_in_set(unsigned char c, const char* set, const char* last) {
  const bool negated = set[1] == '^';
  const auto byte = [](const char* at) { return static_cast<unsigned char>(*at); };
  for (const char* at = set + (negated ? 2 : 1); at < last; ++at) {
    bool found = false;
    if (*at == kEscape) {
      ++at;
      found = is_in_class(c, byte(at));
    } else if (at[1] == '-' && at + 2 < last) {
      found = byte(at) <= c && c <= byte(at + 2);
      at += 2;
    } else {
      found = byte(at) == c;
    }
    if (found) return !negated;
  }
  return negated;
}

const char* Matcher::match(const char* place, const char* pattern) {
  if (is_too_deep()) luaL_error(lua_, "pattern too complex");
  for (;;) {
    spend(1);
    if (pattern == pattern_end_) return place;
    const bool is_last = pattern + 1 == pattern_end_;
    switch (*pattern) {
      case '(':
        return !is_last && pattern[1] == ')' ? open_capture(place, pattern + 2, kPosition)
                                             : open_capture(place, pattern + 1, kOpen);
      case ')':
        return close_capture(place, pattern + 1);
      case '$':
        if (is_last) return place == end_ ? place : nullptr;
        break;
      case kEscape:
        if (!is_last && (pattern[1] == 'b' || pattern[1] == 'f' || base::is_digit(pattern[1]))) {
          place = match_special(place, &pattern);
          if (place == nullptr) return nullptr;
          continue;
        }
        break;
      default:
        break;
    }
    const char* next = end_of_single(pattern);
    switch (next < pattern_end_ ? *next : '\0') {
      case '*':
        return match_longest(place, pattern, next);
      case '+':
        return fits(place, pattern, next) ? match_longest(place + 1, pattern, next) : nullptr;
      case '-':
        return match_shortest(place, pattern, next);
      case '?':
        if (fits(place, pattern, next)) {
          if (const char* found = match(place + 1, next + 1); found != nullptr) return found;
        }
        pattern = next + 1;
        break;
      default:
        if (!fits(place, pattern, next)) return nullptr;
        ++place;
        pattern = next;
    }
  }
}

// %bxy, %f[set] and %1: each has only one possible match at a position, without backtracking.
const char* Matcher::match_special(const char* place, const char** pattern) {
  const char letter = (*pattern)[1];
  const char* operand = *pattern + 2;
  if (letter == 'b') {
    if (pattern_end_ - operand < 2) luaL_error(lua_, "unbalanced pattern");
    *pattern = operand + 2;
    return match_balanced(place, operand);
  }
  if (letter == 'f') {
    if (operand == pattern_end_ || *operand != '[')
      luaL_error(lua_, "missing '[' after '%%f' in pattern");
    *pattern = end_of_single(operand);
    return is_frontier(place, operand, *pattern - 1) ? place : nullptr;
  }
  *pattern = operand;
  return match_again(place, letter);
}

const char* Matcher::match_longest(const char* place, const char* pattern,
                                   const char* pattern_next) {
  ptrdiff_t most = 0;
  while (fits(place + most, pattern, pattern_next)) ++most;
  spend(most);
  for (; most >= 0; --most) {
    if (const char* found = match(place + most, pattern_next + 1); found != nullptr) return found;
  }
  return nullptr;
}

const char* Matcher::match_shortest(const char* place, const char* pattern,
                                    const char* pattern_next) {
  for (;; ++place) {
    if (const char* found = match(place, pattern_next + 1); found != nullptr) return found;
    if (!fits(place, pattern, pattern_next)) return nullptr;
  }
}

const char* Matcher::match_balanced(const char* place, const char* delimiters) {
  if (place >= end_ || *place != delimiters[0]) return nullptr;
  int64_t depth = 1;
  for (const char* at = place + 1; at < end_; ++at) {
    if (*at == delimiters[1]) {
      if (--depth == 0) {
        spend(at - place);
        return at + 1;
      }
    } else if (*at == delimiters[0]) {
      ++depth;
    }
  }
  spend(end_ - place);
  return nullptr;
}

bool Matcher::is_frontier(const char* place, const char* set, const char* set_end) const {
  const char before = place == begin_ ? '\0' : place[-1];
  const char after = place == end_ ? '\0' : *place;
  return !is_in_set(static_cast<unsigned char>(before), set, set_end) &&
         is_in_set(static_cast<unsigned char>(after), set, set_end);
}

const char* Matcher::match_again(const char* place, char digit) const {
  const int i = digit - '1';
  if (i < 0 || i >= levels_ || captures_[static_cast<size_t>(i)].size == kOpen)
    luaL_error(lua_, "invalid capture index");
  const Capture& capture = captures_[static_cast<size_t>(i)];
  if (capture.size == kPosition || end_ - place < capture.size) return nullptr;
  const auto size = static_cast<size_t>(capture.size);
  return std::memcmp(capture.begin, place, size) == 0 ? place + size : nullptr;
}

const char* Matcher::open_capture(const char* place, const char* pattern, ptrdiff_t kind) {
  if (levels_ >= kMaxCaptures) luaL_error(lua_, "too many captures");
  captures_[static_cast<size_t>(levels_++)] = {place, kind};
  const char* found = match(place, pattern);
  if (found == nullptr) --levels_;
  return found;
}

const char* Matcher::close_capture(const char* place, const char* pattern) {
  int i = levels_ - 1;
  while (i >= 0 && captures_[static_cast<size_t>(i)].size != kOpen) --i;
  if (i < 0) luaL_error(lua_, "invalid pattern capture");
  Capture& capture = captures_[static_cast<size_t>(i)];
  capture.size = place - capture.begin;
  const char* found = match(place, pattern);
  if (found == nullptr) capture.size = kOpen;
  return found;
}

// --- find and match -----------------------------------------------------------------------------

// The subject or the pattern.
std::string_view text_argument(lua_State* lua, int argument) {
  size_t size = 0;
  const char* text = luaL_checklstring(lua, argument, &size);
  return {text, size};
}

// Start of the search, from 0: `init` counts from 1, or from the end if it is negative.
size_t first_place(lua_State* lua, int argument, size_t size) {
  const auto place = static_cast<int64_t>(luaL_optinteger(lua, argument, 1));
  const auto last = static_cast<int64_t>(size);
  if (place > last) return size;
  if (place > 0) return static_cast<size_t>(place - 1);
  return place < 0 && place >= -last ? static_cast<size_t>(last + place) : 0;
}

int push_place(lua_State* lua, size_t begin, size_t end) {
  lua_pushinteger(lua, static_cast<lua_Integer>(begin + 1));
  lua_pushinteger(lua, static_cast<lua_Integer>(end));
  return 2;
}

// The first occurrence of `text` in the range, or null. Searches by the first character, which is
// fast for most texts; after too much work, by memmem(3), which is linear.
const char* find_between(const char* begin, const char* end, std::string_view text) {
  const auto left = [&] { return static_cast<size_t>(end - begin); };
  if (text.empty()) return begin;
  for (size_t work = 0; left() >= text.size();) {
    const size_t places = left() - text.size() + 1;
    const auto* next = static_cast<const char*>(std::memchr(begin, text[0], places));
    if (next == nullptr) return nullptr;
    if (std::memcmp(next, text.data(), text.size()) == 0) return next;
    work += text.size();
    if (work > 2 * static_cast<size_t>(end - next) + 1024) {
      return static_cast<const char*>(
          ::memmem(next, static_cast<size_t>(end - next), text.data(), text.size()));
    }
    begin = next + 1;
  }
  return nullptr;
}

int find_text(lua_State* lua, std::string_view subject, std::string_view text, size_t first) {
  const char* found = find_between(subject.data() + first, subject.data() + subject.size(), text);
  if (found == nullptr) {
    lua_pushnil(lua);
    return 1;
  }
  const auto begin = static_cast<size_t>(found - subject.data());
  return push_place(lua, begin, begin + text.size());
}

// Whether a pattern contains special characters.
bool is_special(std::string_view pattern) {
  static constexpr auto kTable = [] {
    std::array<bool, 256> table{};
    for (const char c : kSpecial) table[static_cast<unsigned char>(c)] = true;
    return table;
  }();
  for (const char c : pattern) {
    if (kTable[static_cast<unsigned char>(c)]) return true;
  }
  return false;
}

int search(lua_State* lua, bool wants_place) {
  const std::string_view subject = text_argument(lua, 1);
  std::string_view pattern = text_argument(lua, 2);
  const int arguments = lua_gettop(lua);
  const size_t first = arguments >= 3 ? first_place(lua, 3, subject.size()) : 0;
  if (wants_place && ((arguments >= 4 && lua_toboolean(lua, 4) != 0) || !is_special(pattern)))
    return find_text(lua, subject, pattern, first);
  const bool is_anchored = pattern.starts_with('^');
  if (is_anchored) pattern.remove_prefix(1);
  Matcher matcher(lua, subject, pattern);
  for (const char* place = matcher.begin() + first; place <= matcher.end(); ++place) {
    const char* end = matcher.match_at(place, pattern.data());
    if (end != nullptr) {
      if (!wants_place) return matcher.push_captures(place, end, /*whole=*/true);
      push_place(lua, static_cast<size_t>(place - matcher.begin()),
                 static_cast<size_t>(end - matcher.begin()));
      return 2 + matcher.push_captures(place, end, /*whole=*/false);
    }
    if (is_anchored) break;
  }
  lua_pushnil(lua);
  return 1;
}

// --- gmatch -------------------------------------------------------------------------------------

// State of a loop over matches; the texts are upvalues too, which keeps them alive.
struct Matches {
  std::string_view subject;
  std::string_view pattern;
  size_t next;
};

// Upvalue 1: a Matches.
int match_next(lua_State* lua) {
  auto& matches = *static_cast<Matches*>(lua_touserdata(lua, lua_upvalueindex(1)));
  Matcher matcher(lua, matches.subject, matches.pattern);
  for (const char* place = matcher.begin() + matches.next; place <= matcher.end(); ++place) {
    const char* end = matcher.match_at(place, matches.pattern.data());
    if (end == nullptr) continue;
    matches.next = static_cast<size_t>(end - matcher.begin() + (end == place ? 1 : 0));
    return matcher.push_captures(place, end, /*whole=*/true);
  }
  return 0;
}

// --- gsub ---------------------------------------------------------------------------------------

constexpr int kReplacement = 3;

// Adds the replacement string, with its captures filled in.
void add_replacement(lua_State* lua, luaL_Buffer* out, Matcher& matcher, const char* from,
                     const char* to) {
  const std::string_view replacement = text_at(lua, kReplacement);
  for (size_t i = 0; i < replacement.size(); ++i) {
    if (replacement[i] != kEscape) {
      luaL_addchar(out, replacement[i]);
      continue;
    }
    // At the end of the string this is its null character, as in Lua 5.1.
    const char next = replacement.data()[++i];
    if (!base::is_digit(next)) {
      luaL_addchar(out, next);
    } else if (next == '0') {
      luaL_addlstring(out, from, static_cast<size_t>(to - from));
    } else {
      matcher.push_capture(next - '1', from, to);
      luaL_addvalue(out);
    }
  }
}

// Adds the replacement of a match.
void add_value(lua_State* lua, luaL_Buffer* out, Matcher& matcher, const char* from,
               const char* to) {
  switch (lua_type(lua, kReplacement)) {
    case LUA_TFUNCTION: {
      lua_pushvalue(lua, kReplacement);
      lua_call(lua, matcher.push_captures(from, to, /*whole=*/true), 1);
      break;
    }
    case LUA_TTABLE:
      matcher.push_capture(0, from, to);
      lua_gettable(lua, kReplacement);
      break;
    default:
      return add_replacement(lua, out, matcher, from, to);
  }
  if (lua_toboolean(lua, -1) == 0) {
    lua_pop(lua, 1);
    return luaL_addlstring(out, from, static_cast<size_t>(to - from));
  }
  if (lua_isstring(lua, -1) == 0)
    luaL_error(lua, "invalid replacement value (a %s)", luaL_typename(lua, -1));
  luaL_addvalue(out);
}

}  // namespace

int lua_pattern_find(lua_State* lua) {
  return search(lua, /*wants_place=*/true);
}

int lua_pattern_match(lua_State* lua) {
  return search(lua, /*wants_place=*/false);
}

int lua_pattern_gmatch(lua_State* lua) {
  const std::string_view subject = text_argument(lua, 1);
  const std::string_view pattern = text_argument(lua, 2);
  lua_settop(lua, 2);
  new (lua_newuserdata(lua, sizeof(Matches))) Matches{subject, pattern, 0};
  lua_insert(lua, 1);
  lua_pushcclosure(lua, match_next, 3);
  return 1;
}

int lua_pattern_gsub(lua_State* lua) {
  const Interpreter::CallBack call(lua);
  const std::string_view subject = text_argument(lua, 1);
  std::string_view pattern = text_argument(lua, 2);
  const int type = lua_type(lua, kReplacement);
  luaL_argcheck(
      lua,
      type == LUA_TNUMBER || type == LUA_TSTRING || type == LUA_TFUNCTION || type == LUA_TTABLE,
      kReplacement, "string/function/table expected");
  const int64_t most = lua_isnoneornil(lua, 4) ? static_cast<int64_t>(subject.size() + 1)
                                               : as_argument(luaL_checknumber(lua, 4));
  const bool is_anchored = pattern.starts_with('^');
  if (is_anchored) pattern.remove_prefix(1);
  Matcher matcher(lua, subject, pattern);
  luaL_Buffer out;
  luaL_buffinit(lua, &out);
  const char* place = matcher.begin();
  int64_t count = 0;
  while (count < most) {
    const char* end = matcher.match_at(place, pattern.data());
    if (end != nullptr) {
      ++count;
      add_value(lua, &out, matcher, place, end);
    }
    if (end != nullptr && end > place) {
      place = end;
    } else if (place < matcher.end()) {
      luaL_addchar(&out, *place++);
    } else {
      break;
    }
    if (is_anchored) break;
  }
  luaL_addlstring(&out, place, static_cast<size_t>(matcher.end() - place));
  luaL_pushresult(&out);
  lua_pushinteger(lua, static_cast<lua_Integer>(count));
  call.end();
  return 2;
}

}  // namespace latchkey::script

#include "base/regex.h"

#include <memory>
#include <utility>

namespace latchkey::base {

namespace {

constexpr size_t kLongestPattern = 4096;
constexpr size_t kMostInstructions = 10'000;
constexpr unsigned kDeepest = 100;
constexpr unsigned kMostRepeats = 1000;
constexpr unsigned kNoLimit = UINT32_MAX;

bool is_word_byte(unsigned char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
         (byte >= '0' && byte <= '9') || byte == '_';
}

}  // namespace

// Parses a pattern and emits instructions. A repetition is emitted several times, so what was
// parsed is kept as a tree first.
class RegexCompiler {
 public:
  RegexCompiler(Regex& regex, std::string_view pattern, bool ignore_case)
      : regex_(regex), pattern_(pattern), ignore_case_(ignore_case) {}

  bool run(std::string* error) {
    const auto tree = alternatives();
    if (error_.empty() && more()) fail("unmatched )");
    if (error_.empty()) {
      emit(*tree);
      add({Regex::Op::kMatch});
    }
    *error = error_;
    return error_.empty();
  }

 private:
  using Op = Regex::Op;
  using ByteSet = Regex::ByteSet;

  struct Tree {
    enum class Kind : uint8_t { kOne, kSequence, kChoice, kRepeat } kind = Kind::kSequence;
    Regex::Instruction one{Op::kBytes};  // kOne
    unsigned least = 0;                  // kRepeat
    unsigned most = 0;
    std::vector<std::unique_ptr<Tree>> parts = {};
  };
  using TreePtr = std::unique_ptr<Tree>;

  // --- Reading the pattern ----------------------------------------------------------------------

  bool more() const { return at_ < pattern_.size() && error_.empty(); }
  unsigned char peek() const { return static_cast<unsigned char>(pattern_[at_]); }
  bool take(char byte) {
    if (!more() || pattern_[at_] != byte) return false;
    ++at_;
    return true;
  }
  bool take(std::string_view text) {
    if (!more() || !pattern_.substr(at_).starts_with(text)) return false;
    at_ += text.size();
    return true;
  }
  void fail(std::string_view why) {
    if (error_.empty()) error_ = why;
  }

  TreePtr alternatives() {
    auto choice = std::make_unique<Tree>();
    choice->kind = Tree::Kind::kChoice;
    if (++depth_ > kDeepest) fail("too many parentheses in one another");
    do {
      choice->parts.push_back(sequence());
    } while (take('|'));
    --depth_;
    return choice;
  }

  TreePtr sequence() {
    auto sequence = std::make_unique<Tree>();
    while (more() && peek() != '|' && peek() != ')') sequence->parts.push_back(repeated());
    return sequence;
  }

  TreePtr repeated() {
    TreePtr part = atom();
    while (more()) {
      unsigned least = 0;
      unsigned most = kNoLimit;
      if (take('+')) {
        least = 1;
      } else if (take('?')) {
        most = 1;
      } else if (!take('*') && !take_counts(&least, &most)) {
        break;
      }
      // Whether as little as possible is read makes no difference to whether there is a match.
      take('?');
      auto repeat = std::make_unique<Tree>();
      repeat->kind = Tree::Kind::kRepeat;
      repeat->least = least;
      repeat->most = most;
      repeat->parts.push_back(std::move(part));
      part = std::move(repeat);
      if (++repeats_ > kLongestPattern) fail("too many repetitions");
    }
    return part;
  }

  bool take_number(unsigned* number) {
    const size_t before = at_;
    *number = 0;
    while (more() && peek() >= '0' && peek() <= '9' && *number <= kMostRepeats)
      *number = *number * 10 + (static_cast<unsigned char>(pattern_[at_++]) - '0');
    return at_ != before;
  }

  // {n}, {n,} or {n,m}.
  bool take_counts(unsigned* least, unsigned* most) {
    if (!take('{')) return false;
    const bool has_least = take_number(least);
    *most = *least;
    if (take(',') && !take_number(most)) *most = kNoLimit;
    if (!take('}') || (!has_least && *most == kNoLimit)) fail("invalid {}");
    if (*least > kMostRepeats || (*most != kNoLimit && (*most > kMostRepeats || *most < *least)))
      fail("invalid count in {}");
    return true;
  }

  TreePtr one(Op op, uint32_t set = 0) {
    auto tree = std::make_unique<Tree>();
    tree->kind = Tree::Kind::kOne;
    tree->one = {op, set};
    return tree;
  }

  TreePtr bytes(ByteSet set) {
    if (ignore_case_) {
      for (unsigned upper = 'A'; upper <= 'Z'; ++upper) {
        const bool any = set[upper] || set[upper + ('a' - 'A')];
        set[upper] = set[upper + ('a' - 'A')] = any;
      }
    }
    regex_.sets_.push_back(set);
    return one(Op::kBytes, static_cast<uint32_t>(regex_.sets_.size() - 1));
  }

  static ByteSet only(unsigned char byte) { return ByteSet().set(byte); }

  TreePtr atom() {
    if (take('(')) {
      if (!take("?:") && more() && peek() == '?') fail("unknown group");
      TreePtr group = alternatives();
      if (!take(')')) fail("unmatched (");
      return group;
    }
    if (take('^')) return one(Op::kBegin);
    if (take('$')) return one(Op::kEnd);
    if (take('.')) return bytes(ByteSet().set());
    if (take('[')) return bytes(bracket());
    if (take('\\')) return escape();
    const unsigned char byte = peek();
    if (byte == '*' || byte == '+' || byte == '?') fail("nothing to repeat");
    ++at_;
    return bytes(only(byte));
  }

  // The set of a letter behind a backslash that names one; empty for others.
  static ByteSet named_by(unsigned char letter) {
    ByteSet set;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const auto c = static_cast<unsigned char>(byte);
      const bool is_in = (letter | 0x20) == 'd'   ? c >= '0' && c <= '9'
                         : (letter | 0x20) == 'w' ? is_word_byte(c)
                         : (letter | 0x20) == 's' ? c == ' ' || (c >= '\t' && c <= '\r')
                                                  : false;
      set[byte] = is_in;
    }
    const bool is_name = set.any();
    return is_name && letter < 'a' ? ~set : set;
  }

  // The byte that an escape other than a set stands for.
  unsigned char escaped_byte(unsigned char letter) {
    if (letter == 'n') return '\n';
    if (letter == 'r') return '\r';
    if (letter == 't') return '\t';
    if (letter != 'x') return letter;
    unsigned value = 0;
    for (int i = 0; i < 2; ++i) {
      const unsigned char digit = more() ? peek() : 0;
      const unsigned char lower = digit | 0x20;
      if (digit >= '0' && digit <= '9') {
        value = value * 16 + (digit - '0');
      } else if (lower >= 'a' && lower <= 'f') {
        value = value * 16 + (lower - 'a' + 10u);
      } else {
        fail("\\x needs two hexadecimal digits");
        return 0;
      }
      ++at_;
    }
    return static_cast<unsigned char>(value);
  }

  TreePtr escape() {
    if (!more()) {
      fail("trailing backslash");
      return std::make_unique<Tree>();
    }
    const auto letter = static_cast<unsigned char>(pattern_[at_++]);
    if (letter == 'b') return one(Op::kWordEdge);
    if (letter == 'B') return one(Op::kNoWordEdge);
    if (letter >= '1' && letter <= '9') fail("back references are not supported");
    const ByteSet set = named_by(letter);
    return bytes(set.any() ? set : only(escaped_byte(letter)));
  }

  // What [: and :] name; false for an unknown name.
  static bool add_class(std::string_view name, ByteSet* set) {
    using Test = bool (*)(unsigned char);
    static constexpr std::pair<std::string_view, Test> kClasses[] = {
        {"alnum", [](unsigned char c) { return is_word_byte(c) && c != '_'; }},
        {"alpha", [](unsigned char c) { return is_word_byte(c) && c > '9' && c != '_'; }},
        {"blank", [](unsigned char c) { return c == ' ' || c == '\t'; }},
        {"cntrl", [](unsigned char c) { return c < ' ' || c == 0x7f; }},
        {"digit", [](unsigned char c) { return c >= '0' && c <= '9'; }},
        {"graph", [](unsigned char c) { return c > ' ' && c < 0x7f; }},
        {"lower", [](unsigned char c) { return c >= 'a' && c <= 'z'; }},
        {"print", [](unsigned char c) { return c >= ' ' && c < 0x7f; }},
        {"punct",
         [](unsigned char c) { return c > ' ' && c < 0x7f && !(is_word_byte(c) && c != '_'); }},
        {"space", [](unsigned char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }},
        {"upper", [](unsigned char c) { return c >= 'A' && c <= 'Z'; }},
        {"xdigit", [](unsigned char c) {
           return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
         }}};
    for (const auto& [class_name, test] : kClasses) {
      if (class_name != name) continue;
      for (unsigned byte = 0; byte < 256; ++byte)
        if (test(static_cast<unsigned char>(byte))) set->set(byte);
      return true;
    }
    return false;
  }

  // A class or a set of bytes within brackets; false when a byte stands there.
  bool take_set(ByteSet* set) {
    if (take("[:")) {
      const size_t end = pattern_.find(":]", at_);
      if (end == std::string_view::npos || !add_class(pattern_.substr(at_, end - at_), set)) {
        fail("unknown class in []");
        return true;
      }
      at_ = end + 2;
      return true;
    }
    if (at_ + 1 >= pattern_.size() || pattern_[at_] != '\\') return false;
    const ByteSet named = named_by(static_cast<unsigned char>(pattern_[at_ + 1]));
    if (named.none()) return false;
    at_ += 2;
    *set |= named;
    return true;
  }

  unsigned char bracket_byte() {
    const auto byte = static_cast<unsigned char>(pattern_[at_++]);
    if (byte != '\\' || !more()) return byte;
    return escaped_byte(static_cast<unsigned char>(pattern_[at_++]));
  }

  // What stands behind [, up to its ].
  ByteSet bracket() {
    ByteSet set;
    const bool negated = take('^');
    // A ] that comes first is one of the bytes.
    for (bool is_first = true; more() && (is_first || peek() != ']'); is_first = false) {
      if (take_set(&set)) continue;
      const unsigned char low = bracket_byte();
      unsigned char high = low;
      if (at_ + 1 < pattern_.size() && pattern_[at_] == '-' && pattern_[at_ + 1] != ']') {
        ++at_;
        high = bracket_byte();
      }
      if (high < low) fail("invalid range in []");
      for (unsigned byte = low; byte <= high; ++byte) set.set(byte);
    }
    if (!take(']')) fail("unmatched [");
    if (!negated) return set;
    // Case is ignored before what is named is left out.
    if (ignore_case_) {
      for (unsigned upper = 'A'; upper <= 'Z'; ++upper)
        set[upper] = set[upper + 0x20] = set[upper] || set[upper + 0x20];
    }
    return ~set;
  }

  // --- Emitting ---------------------------------------------------------------------------------

  uint32_t here() const { return static_cast<uint32_t>(regex_.program_.size()); }
  uint32_t add(Regex::Instruction instruction) {
    if (regex_.program_.size() >= kMostInstructions) {
      fail("too large");
      return 0;
    }
    regex_.program_.push_back(instruction);
    return here() - 1;
  }

  void emit(const Tree& tree) {
    if (!error_.empty()) return;
    switch (tree.kind) {
      case Tree::Kind::kOne:
        add(tree.one);
        break;
      case Tree::Kind::kSequence:
        for (const auto& part : tree.parts) emit(*part);
        break;
      case Tree::Kind::kChoice:
        emit_choice(tree);
        break;
      case Tree::Kind::kRepeat:
        emit_repeat(tree);
        break;
    }
  }

  void emit_choice(const Tree& tree) {
    std::vector<uint32_t> ends;
    for (size_t i = 0; i + 1 < tree.parts.size() && error_.empty(); ++i) {
      const uint32_t split = add({Op::kSplit, here() + 1});
      emit(*tree.parts[i]);
      ends.push_back(add({Op::kJump}));
      regex_.program_[split].second = here();
    }
    emit(*tree.parts.back());
    for (const uint32_t end : ends) regex_.program_[end].first = here();
  }

  void emit_repeat(const Tree& tree) {
    const Tree& part = *tree.parts.front();
    for (unsigned i = 0; i < tree.least; ++i) emit(part);
    if (tree.most == kNoLimit) {
      const uint32_t split = add({Op::kSplit, here() + 1});
      emit(part);
      add({Op::kJump, split});
      regex_.program_[split].second = here();
      return;
    }
    std::vector<uint32_t> splits;
    for (unsigned i = tree.least; i < tree.most && error_.empty(); ++i) {
      splits.push_back(add({Op::kSplit, here() + 1}));
      emit(part);
    }
    for (const uint32_t split : splits) regex_.program_[split].second = here();
  }

  Regex& regex_;
  std::string_view pattern_;
  bool ignore_case_;
  size_t at_ = 0;
  unsigned depth_ = 0;
  size_t repeats_ = 0;
  std::string error_;
};

bool Regex::compile(std::string_view pattern, bool ignore_case, std::string* error) {
  program_.clear();
  sets_.clear();
  if (pattern.size() > kLongestPattern) {
    *error = "too long";
    return false;
  }
  if (!RegexCompiler(*this, pattern, ignore_case).run(error)) return false;
  for (Threads* threads : {&now_, &next_}) {
    threads->list.clear();
    threads->has.assign(program_.size(), 0);
  }
  return true;
}

void Regex::Threads::clear() {
  for (const uint32_t at : list) has[at] = 0;
  list.clear();
}

void Regex::Threads::add(uint32_t at) {
  has[at] = 1;
  list.push_back(at);
}

bool Regex::holds(Op op, std::string_view text, size_t position) const {
  const auto is_word = [&](size_t at) {
    return at < text.size() && is_word_byte(static_cast<unsigned char>(text[at]));
  };
  const bool is_edge = (position > 0 && is_word(position - 1)) != is_word(position);
  switch (op) {
    case Op::kBegin:
      return position == 0;
    case Op::kEnd:
      return position == text.size();
    case Op::kWordEdge:
      return is_edge;
    default:
      return !is_edge;
  }
}

bool Regex::follow(uint32_t start, std::string_view text, size_t position, Threads* threads) {
  stack_.assign(1, start);
  while (!stack_.empty()) {
    const uint32_t at = stack_.back();
    stack_.pop_back();
    if (threads->has[at] != 0) continue;
    threads->add(at);
    const Instruction& instruction = program_[at];
    switch (instruction.op) {
      case Op::kMatch:
        return true;
      case Op::kBytes:
        break;
      case Op::kSplit:
        stack_.push_back(instruction.second);
        [[fallthrough]];
      case Op::kJump:
        stack_.push_back(instruction.first);
        break;
      default:
        if (holds(instruction.op, text, position)) stack_.push_back(at + 1);
    }
  }
  return false;
}

bool Regex::search(std::string_view text) {
  now_.clear();
  for (size_t position = 0;; ++position) {
    if (follow(0, text, position, &now_)) return true;
    if (position == text.size()) return false;
    next_.clear();
    const auto byte = static_cast<unsigned char>(text[position]);
    for (const uint32_t at : now_.list) {
      const Instruction& instruction = program_[at];
      if (instruction.op == Op::kBytes && sets_[instruction.first][byte] &&
          follow(at + 1, text, position + 1, &next_))
        return true;
    }
    std::swap(now_, next_);
  }
}

}  // namespace latchkey::base

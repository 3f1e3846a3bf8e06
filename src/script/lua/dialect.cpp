#include "script/lua/dialect.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <span>
#include <vector>

#include "script/lua/lua_tokens.h"

namespace latchkey::script {

namespace {

using Tokens = std::span<const LuaToken>;

// Functions that return at most one value: parentheses around a call of them only keep it from
// being a tail call.
constexpr std::string_view kFunctions[] = {"collectgarbage", "error",  "getmetatable", "rawequal",
                                           "rawget",         "rawset", "setmetatable", "tonumber",
                                           "tostring",       "type"};
struct Library {
  std::string_view name;
  // The functions that return several values, separated by spaces.
  std::string_view several;
};
constexpr Library kLibraries[] = {{"redis", ""},
                                  {"server", ""},
                                  {"string", " byte find gsub match "},
                                  {"table", " remove "},
                                  {"math", " frexp modf "},
                                  {"bit", ""},
                                  {"os", ""},
                                  {"cjson", " encode_sparse_array "},
                                  {"cmsgpack", " unpack unpack_one unpack_limit "},
                                  {"struct", " unpack "}};

class Translator {
 public:
  Translator(std::string_view code, Tokens tokens) : code_(code), tokens_(tokens) {
    find_pairs();
    find_uses();
  }

  // Tokens looked at so far.
  size_t looks() const { return looks_; }

  // Fails on syntax that Lua 5.1 does not know.
  base::Result<> check() const {
    for (size_t i = 0; i + 1 < tokens_.size(); ++i) {
      const LuaToken& token = tokens_[i];
      if (token.kind == LuaToken::Kind::kNumber && is_foreign_number(token.text)) {
        return base::fail(std::to_string(token.line) + ": malformed number near '" +
                          std::string(token.text) + "'");
      }
      if (token.is("goto") && tokens_[i + 1].kind == LuaToken::Kind::kName &&
          !(i > 0 && is_access(tokens_[i - 1]))) {
        return base::fail(std::to_string(token.line) + ": '=' expected near '" +
                          std::string(tokens_[i + 1].text) + "'");
      }
    }
    return {};
  }

  std::string translate() {
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (tokens_[i].kind == LuaToken::Kind::kString) drop_foreign_escapes(tokens_[i]);
      if (tokens_[i].is("return")) enclose_call(i + 1);
    }
    if (uses_.contains("arg") && keeps_select()) declare_arguments();
    return apply_edits();
  }

 private:
  // The token of that index, or kEnd behind the last one.
  const LuaToken& at(size_t index) const {
    ++looks_;
    return tokens_[std::min(index, tokens_.size() - 1)];
  }

  // Fills closing_.
  void find_pairs() {
    std::vector<size_t> open;
    closing_.resize(tokens_.size(), 0);
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (at(i).is("(")) {
        open.push_back(i);
      } else if (at(i).is(")") && !open.empty()) {
        closing_[open.back()] = i;
        open.pop_back();
      }
    }
  }

  // Fills uses_.
  void find_uses() {
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (at(i).kind != LuaToken::Kind::kName) continue;
      if (i > 0 && is_access(at(i - 1))) continue;
      uses_[at(i).text].push_back(i);
    }
  }

  static bool is_access(const LuaToken& token) { return token.is(".") || token.is(":"); }

  // Numbers that only LuaJIT knows: 64-bit integers, imaginary and binary ones.
  static bool is_foreign_number(std::string_view text) {
    if (text.size() > 1 && text[0] == '0' && (text[1] | 0x20) == 'b') return true;
    const char last = static_cast<char>(text.back() | 0x20);
    return last == 'l' || last == 'i';
  }

  void drop_foreign_escapes(const LuaToken& token) {
    constexpr std::string_view kForeign = "xzu";
    for (size_t i = 0; i + 1 < token.text.size(); ++i) {
      if (token.text[i] != '\\') continue;
      if (kForeign.find(token.text[i + 1]) != kForeign.npos)
        edits_.push_back({token.offset + i, 1, ""});
      ++i;
    }
  }

  // Puts parentheses around the call that begins at token `first`, if it is the whole expression of
  // a `return` and calls a known C function.
  void enclose_call(size_t first) {
    const size_t arguments = end_of_callee(first);
    if (arguments == 0) return;
    const size_t last = end_of_arguments(arguments);
    if (last == 0 || !ends_block(at(last + 1))) return;
    edits_.push_back({at(first).offset, 0, "("});
    edits_.push_back({at(last).offset + at(last).text.size(), 0, ")"});
  }

  // The token after the name of a known function, or 0.
  size_t end_of_callee(size_t first) {
    const LuaToken& name = at(first);
    if (name.kind != LuaToken::Kind::kName) return 0;
    if (std::find(std::begin(kFunctions), std::end(kFunctions), name.text) !=
        std::end(kFunctions)) {
      return only_called(name.text) ? first + 1 : 0;
    }
    const auto* library =
        std::find_if(std::begin(kLibraries), std::end(kLibraries),
                     [&](const Library& known) { return known.name == name.text; });
    if (library == std::end(kLibraries)) return holds_redis_call(name.text) ? first + 1 : 0;
    if (!at(first + 1).is(".") || !only_accessed(name.text)) return 0;
    const std::string field = " " + std::string(at(first + 2).text) + " ";
    return library->several.find(field) == library->several.npos ? first + 3 : 0;
  }

  // The last token of the arguments that begin at token `first`, or 0.
  size_t end_of_arguments(size_t first) const {
    const LuaToken::Kind kind = at(first).kind;
    if (kind == LuaToken::Kind::kString || kind == LuaToken::Kind::kLongString) return first;
    return at(first).is("(") ? closing_[first] : 0;
  }

  static bool ends_block(const LuaToken& token) {
    return token.kind == LuaToken::Kind::kEnd || token.is("end") || token.is("else") ||
           token.is("elseif") || token.is("until") || token.is(";");
  }

  // Whether `fits(index)` is true for every use of the name; evaluated once for each name.
  template <typename Fn>
  bool all_uses(std::string_view name, Fn&& fits) {
    const auto [known, is_new] = trusted_.try_emplace(name, true);
    if (!is_new) return known->second;
    for (const size_t use : uses_[name]) {
      known->second = fits(use);
      if (!known->second) break;
    }
    return known->second;
  }

  bool is_called(size_t use) const {
    const LuaToken& next = at(use + 1);
    const bool declared = use > 0 && (at(use - 1).is("function") || at(use - 1).is("local"));
    return !declared && (next.is("(") || next.kind == LuaToken::Kind::kString);
  }
  bool only_called(std::string_view name) {
    return all_uses(name, [this](size_t use) { return is_called(use); });
  }
  bool only_accessed(std::string_view name) {
    return all_uses(name, [this](size_t use) { return at(use + 1).is("."); });
  }

  // local name = redis.call
  bool is_redis_call_declaration(size_t use) const {
    if (use == 0 || !at(use - 1).is("local") || use + 5 >= tokens_.size()) return false;
    return at(use + 1).is("=") && at(use + 2).is("redis") && at(use + 3).is(".") &&
           (at(use + 4).is("call") || at(use + 4).is("pcall")) && !at(use + 5).is("(");
  }
  bool holds_redis_call(std::string_view name) {
    if (!only_accessed("redis")) return false;
    size_t declarations = 0;
    return all_uses(name, [&](size_t use) {
      if (is_redis_call_declaration(use)) return ++declarations == 1;
      return declarations == 1 && is_called(use);
    });
  }

  // Whether `select` is what it is in the globals. Not all_uses(), which remembers one answer for
  // each name: that of holds_redis_call() for this one.
  bool keeps_select() {
    const std::vector<size_t>& uses = uses_["select"];
    return std::all_of(uses.begin(), uses.end(), [this](size_t use) { return is_called(use); });
  }

  struct Function {
    size_t body = 0;  // where the text of the body begins; 0: its arguments are not variable
    bool names_arg = false;
    bool has_points = false;
  };

  // Declares `arg` in the functions that are to have it.
  void declare_arguments() {
    std::vector<Function> functions;  // those that are open
    std::vector<bool> blocks;         // those that are open; true for functions
    for (size_t i = 0; i < tokens_.size(); ++i) {
      const LuaToken& token = at(i);
      if (i > 0 && is_access(at(i - 1))) continue;
      if (token.is("function")) {
        blocks.push_back(true);
        functions.push_back(function_at(&i));
      } else if (token.is("do") || token.is("if") || token.is("repeat")) {
        blocks.push_back(false);
      } else if ((token.is("end") || token.is("until")) && !blocks.empty()) {
        if (blocks.back()) end_function(&functions);
        blocks.pop_back();
      } else if (!functions.empty()) {
        functions.back().names_arg |= token.is("arg");
        functions.back().has_points |= token.is("...");
      }
    }
  }

  // The function whose first token is *index, which becomes that of the last one of its parameters.
  Function function_at(size_t* index) const {
    size_t first = *index + 1;
    while (at(first).kind == LuaToken::Kind::kName || is_access(at(first))) ++first;
    const size_t last = at(first).is("(") ? closing_[first] : 0;
    if (last == 0) return {};
    *index = last;
    return {.body = at(last - 1).is("...") ? at(last).offset + 1 : 0};
  }

  void end_function(std::vector<Function>* functions) {
    const Function ended = functions->back();
    functions->pop_back();
    if (!ended.names_arg) return;
    if (ended.body != 0) {
      edits_.push_back(
          {ended.body, 0,
           ended.has_points ? " local arg; " : " local arg={n=select('#',...),...}; "});
    } else if (!functions->empty()) {
      // It may be that of the function around it.
      functions->back().names_arg = true;
    }
  }

  struct Edit {
    size_t offset;
    size_t removed;
    std::string_view inserted;
  };

  std::string apply_edits() {
    std::stable_sort(edits_.begin(), edits_.end(),
                     [](const Edit& a, const Edit& b) { return a.offset < b.offset; });
    std::string result;
    result.reserve(code_.size() + edits_.size());
    size_t done = 0;
    for (const Edit& edit : edits_) {
      result += code_.substr(done, edit.offset - done);
      result += edit.inserted;
      done = edit.offset + edit.removed;
    }
    result += code_.substr(done);
    return result;
  }

  std::string_view code_;
  Tokens tokens_;
  // For each "(" the index of the ")" that closes it, or 0.
  std::vector<size_t> closing_;
  // Indexes of the uses of each name that is not a field of something.
  std::map<std::string_view, std::vector<size_t>> uses_;
  std::map<std::string_view, bool> trusted_;
  mutable size_t looks_ = 0;
  std::vector<Edit> edits_;
};

}  // namespace

base::Result<std::string> translate_dialect(std::string_view code, size_t* looks) {
  if (code.starts_with('#')) return base::fail("1: unexpected symbol near '#'");
  const std::vector<LuaToken> tokens = read_lua_tokens(code);
  if (tokens.empty()) return std::string(code);
  Translator translator(code, tokens);
  if (base::Result<> checked = translator.check(); !checked) return checked.failure();
  std::string translated = translator.translate();
  if (looks != nullptr) *looks += translator.looks();
  return translated;
}

}  // namespace latchkey::script

// The part of a request that names fields of a hash: FIELDS numfields field ...
#pragma once

#include <climits>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "commands/hashes/hash_fields.h"
#include "server/command/command.h"

namespace latchkey::commands {

// FIELDS, the number of fields, and the fields (or the fields and their values), which may stand
// anywhere among the options of a request.
class FieldsClause {
 public:
  enum class Step : uint8_t { kTaken, kNotMine, kFailed };
  // `words_each`: 2 if each field is followed by a value.
  explicit FieldsClause(size_t words_each) : words_each_(words_each) {}

  // Consumes the clause if it comes next. Sends the error if it returns kFailed.
  Step take(server::CommandContext& ctx, server::ArgReader& reader, std::string_view bad_count) {
    if (!reader.word("FIELDS")) return Step::kNotMine;
    if (given()) return ctx.refuse("ERR FIELDS keyword specified multiple times", Step::kFailed);
    if (!reader.more()) {
      ctx.wrong_arity();
      return Step::kFailed;
    }
    int64_t count = 0;
    if (!ctx.read_int64_in(reader.next(), 1, INT_MAX, &count, bad_count)) return Step::kFailed;
    const size_t size = static_cast<size_t>(count) * words_each_;
    if (reader.left() < size && dialect_of(ctx).fields_come_last) {
      ctx.wrong_arity();
      return Step::kFailed;
    }
    if (reader.left() < size) return ctx.refuse("ERR wrong number of arguments", Step::kFailed);
    words_ = reader.rest().first(size);
    for (size_t i = 0; i < size; ++i) reader.next();
    is_last_ = !reader.more();
    return Step::kTaken;
  }
  // Where the clause, which comes next, is all that is left (read_fields()).
  bool take_rest(server::CommandContext& ctx, server::ArgReader& reader,
                 std::string_view bad_count) {
    is_last_ = read_fields(ctx, reader, &words_, bad_count);
    return is_last_;
  }
  // Where the clause ends the request, behind all options. Sets *options to the words from index
  // `first` up to it, which are to be read before read_last(). False with the error sent.
  bool find_last(server::CommandContext& ctx, size_t first, server::Arguments* options) {
    size_t at = first;
    while (at < ctx.args.size() && !server::is_word(ctx.args[at], "FIELDS")) ++at;
    if (at + 1 >= ctx.args.size()) return refuse_number(ctx);
    *options = ctx.args.subspan(first, at - first);
    words_ = ctx.args.subspan(at + 1);
    return true;
  }
  bool read_last(server::CommandContext& ctx) {
    int64_t count = 0;
    if (!ctx.read_int64(words_.front(), &count)) return false;
    words_ = words_.subspan(1);
    is_last_ = true;
    const bool matches = count > 0 && words_.size() % words_each_ == 0 &&
                         words_.size() / words_each_ == static_cast<uint64_t>(count);
    return matches || refuse_number(ctx);
  }
  bool given() const { return !words_.empty(); }
  // Whether nothing follows it, as older servers require.
  bool is_last() const { return is_last_; }
  server::Arguments words() const { return words_; }
  // Appends the clause to a request. `count`: has the number's text.
  void append_to(std::vector<std::string_view>* request, std::string* count) const {
    *count = std::to_string(words_.size() / words_each_);
    request->push_back("FIELDS");
    request->push_back(*count);
    request->insert(request->end(), words_.begin(), words_.end());
  }

 private:
  static bool refuse_number(server::CommandContext& ctx) { return ctx.refuse(kBadNumberOfFields); }

  size_t words_each_;
  server::Arguments words_;
  bool is_last_ = false;
};

}  // namespace latchkey::commands

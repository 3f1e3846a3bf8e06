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
    if (given()) return refuse(ctx, "ERR FIELDS keyword specified multiple times");
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
    if (reader.left() < size) return refuse(ctx, "ERR wrong number of arguments");
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
  // `first` up to it. False with the error sent.
  bool take_last(server::CommandContext& ctx, size_t first, server::Arguments* options) {
    size_t at = first;
    while (at < ctx.args.size() && !server::is_word(ctx.args[at], "FIELDS")) ++at;
    if (at + 1 >= ctx.args.size()) return refuse_number(ctx);
    int64_t count = 0;
    if (!ctx.read_int64(ctx.args[at + 1], &count)) return false;
    *options = ctx.args.subspan(first, at - first);
    words_ = ctx.args.subspan(at + 2);
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
  static Step refuse(server::CommandContext& ctx, std::string_view error) {
    ctx.reply.error(error);
    return Step::kFailed;
  }
  static bool refuse_number(server::CommandContext& ctx) {
    ctx.reply.error(kBadNumberOfFields);
    return false;
  }

  size_t words_each_;
  server::Arguments words_;
  bool is_last_ = false;
};

}  // namespace latchkey::commands

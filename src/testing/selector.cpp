#include "testing/selector.h"

#include <algorithm>

#include "server/acl/user.h"
#include "server/client/client.h"
#include "server/command/command_table.h"
#include "server/server.h"

namespace latchkey::testing {

using namespace server;

namespace {

constexpr size_t kMaxPatternBytes = 1024;
// COMMANDs of one selector.
constexpr size_t kMaxCommands = 128;
// What an error shows of a word.
constexpr size_t kMaxShownNameBytes = 128;

const Command& container_of(const Command& command) {
  return command.parent != nullptr ? *command.parent : command;
}

}  // namespace

Subject subject_of(const Call& call) {
  const Client& client = call.client;
  return {.command = call.command,
          .client_id = client.id,
          .client_name = client.name,
          .user = client.user != nullptr ? std::string_view(client.user->name) : "",
          .database = call.database};
}

std::vector<uint32_t> key_positions(const Command* command, Arguments args) {
  std::vector<uint32_t> positions;
  if (command == nullptr || !command->has_keys() || !command->accepts_word_count(args.size()))
    return positions;
  std::vector<KeyReference> keys;
  get_keys(*command, args, &keys);
  for (const KeyReference& key : keys) {
    if ((key.flags & kKeyNotKey) == 0) positions.push_back(key.position);
  }
  return positions;
}

bool names_container(const Call& call, std::string_view container) {
  const Command* command = call.command;
  if (command == nullptr) command = call.client.server.commands().find(call.args[0]);
  return command != nullptr && container_of(*command).row->name == container;
}

Selector::Read Selector::read(CommandContext& ctx, ArgReader& arguments) {
  std::string_view text;
  if (arguments.word("COMMAND", &text))
    return read_command(ctx, text) ? Read::kPart : Read::kFailed;
  if (arguments.word("KEY", &text)) {
    if (!may_be_given(ctx, key_.has_value(), text)) return Read::kFailed;
    key_.emplace(text);
    return Read::kPart;
  }
  if (arguments.word("CLIENT", &text)) {
    if (!may_be_given(ctx, client_.has_value(), text)) return Read::kFailed;
    client_ = {std::string(text), base::GlobPattern(text)};
    return Read::kPart;
  }
  if (arguments.word("USER", &text)) {
    if (!may_be_given(ctx, user_.has_value(), text)) return Read::kFailed;
    user_ = text;
    return Read::kPart;
  }
  if (!arguments.word("DB", &text)) return Read::kNothing;
  int64_t index = 0;
  if (database_) {
    ctx.syntax_error();
    return Read::kFailed;
  }
  if (!ctx.read_int64(text, &index)) return Read::kFailed;
  if (index < 0 || index >= ctx.server.database_count())
    return ctx.refuse("ERR DB index is out of range", Read::kFailed);
  database_ = static_cast<int>(index);
  return Read::kPart;
}

bool Selector::may_be_given(CommandContext& ctx, bool is_given, std::string_view text) {
  if (is_given) {
    ctx.syntax_error();
    return false;
  }
  if (text.size() <= kMaxPatternBytes) return true;
  return ctx.refuse("ERR a pattern may have up to " + std::to_string(kMaxPatternBytes) + " bytes");
}

bool Selector::read_command(CommandContext& ctx, std::string_view name) {
  const std::string shown(name.substr(0, kMaxShownNameBytes));
  if (name.starts_with('@')) {
    const uint32_t category = acl_category_named(name.substr(1));
    if (category == 0) ctx.reply.error("ERR unknown category '" + shown + "'");
    categories_ |= category;
    return category != 0;
  }
  const Command* command = ctx.server.commands().find_full_name(name);
  if (command == nullptr) return ctx.refuse("ERR unknown command '" + shown + "'");
  if (command_ids_.size() == kMaxCommands)
    return ctx.refuse("ERR up to " + std::to_string(kMaxCommands) + " commands may be named");
  command_ids_.push_back(command->id);
  return true;
}

bool Selector::is_empty() const {
  return command_ids_.empty() && categories_ == 0 && !key_ && !client_ && !user_ && !database_;
}

bool Selector::matches_command(const Command* command) const {
  if (command_ids_.empty() && categories_ == 0) return true;
  if (command == nullptr) return false;
  if ((command->acl & categories_) != 0) return true;
  return std::any_of(command_ids_.begin(), command_ids_.end(), [&](uint32_t id) {
    return id == command->id || id == container_of(*command).id;
  });
}

bool Selector::matches(const Subject& subject) const {
  if (database_ && *database_ != subject.database) return false;
  if (user_ && *user_ != subject.user) return false;
  if (client_ && client_->text != std::to_string(subject.client_id) &&
      !client_->glob.covers(subject.client_name))
    return false;
  return matches_command(subject.command);
}

bool Selector::matches_key(std::string_view key) const {
  return key_->covers(key);
}

bool Selector::matches(const Call& call) const {
  if (!matches(subject_of(call))) return false;
  if (!names_keys()) return true;
  const std::vector<uint32_t> positions = key_positions(call.command, call.args);
  return std::any_of(positions.begin(), positions.end(),
                     [&](uint32_t position) { return matches_key(call.args[position]); });
}

}  // namespace latchkey::testing

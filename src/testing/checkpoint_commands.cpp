// CHECKPOINT: CREATE, ROLLBACK, DROP, LIST.
#include <string>
#include <string_view>

#include "server/client/tracking.h"
#include "server/command/command_context.h"
#include "server/command/help.h"
#include "server/server.h"
#include "server/tasks.h"
#include "testing/checkpoints.h"
#include "testing/rows.h"

namespace latchkey::testing {

using namespace server;

namespace {

// Words of a request with a name.
constexpr size_t kWithName = 3;

// False, with the error sent, where there may be no checkpoint now.
bool is_possible(CommandContext& ctx) {
  if (ctx.server.is_replica())
    return ctx.refuse("ERR CHECKPOINT is not possible on a replica, whose dataset is its master's");
  if (ctx.server.tasks().any())
    return ctx.refuse("ERR CHECKPOINT is not possible while another command is in the middle");
  return true;
}

// The name that the request gives, or that of the newest checkpoint. Empty, with the error sent,
// when there is no such checkpoint or the request has too many words.
std::string existing_name(CommandContext& ctx) {
  const Checkpoints& checkpoints = ctx.server.layer<Checkpoints>();
  if (ctx.args.size() > kWithName) {
    ctx.wrong_arity();
    return {};
  }
  if (checkpoints.size() == 0) {
    ctx.reply.error("ERR There is no checkpoint");
    return {};
  }
  if (ctx.args.size() < kWithName) return checkpoints.newest();
  std::string name(ctx.args[2]);
  if (checkpoints.contains(name)) return name;
  ctx.reply.error("ERR No such checkpoint");
  return {};
}

void create(CommandContext& ctx) {
  if (ctx.args.size() > kWithName) return ctx.wrong_arity();
  if (!is_possible(ctx)) return;
  Checkpoints& checkpoints = ctx.server.layer<Checkpoints>();
  std::string name =
      ctx.args.size() == kWithName ? std::string(ctx.args[2]) : checkpoints.unused_name();
  if (name.empty() || name.size() > Checkpoints::kMaxNameBytes) {
    return ctx.reply.error("ERR The name of a checkpoint must have 1 to " +
                           std::to_string(Checkpoints::kMaxNameBytes) + " bytes");
  }
  if (checkpoints.contains(name))
    return ctx.reply.error("ERR A checkpoint of that name exists already");
  if (checkpoints.size() >= Checkpoints::kMaxCheckpoints) {
    return ctx.reply.error("ERR There are " + std::to_string(Checkpoints::kMaxCheckpoints) +
                           " checkpoints already");
  }
  ctx.reply.bulk(name);
  checkpoints.create(std::move(name));
}

void rollback(CommandContext& ctx) {
  if (!is_possible(ctx)) return;
  const std::string name = existing_name(ctx);
  if (name.empty()) return;
  Checkpoints& checkpoints = ctx.server.layer<Checkpoints>();
  if (const std::string_view obstacle = checkpoints.rollback_error(name); !obstacle.empty())
    return ctx.reply.error(obstacle);
  ctx.propagate_nothing();
  const Tracking::UnownedChanges unowned(ctx.server.tracking());
  checkpoints.rollback(name);
  ctx.reply.ok();
}

void drop(CommandContext& ctx) {
  const std::string name = existing_name(ctx);
  if (name.empty()) return;
  ctx.server.layer<Checkpoints>().drop(name);
  ctx.reply.ok();
}

void list(CommandContext& ctx) {
  const auto all = ctx.server.layer<Checkpoints>().list();
  ctx.reply.array(all.size());
  for (const Checkpoints::Description& checkpoint : all) {
    ctx.reply.map(4);
    ctx.reply.bulk("name");
    ctx.reply.bulk(checkpoint.name);
    ctx.reply.bulk("created");
    ctx.reply.integer(checkpoint.created_ms);
    ctx.reply.bulk("keys");
    ctx.reply.integer(static_cast<int64_t>(checkpoint.keys));
    ctx.reply.bulk("bytes");
    ctx.reply.integer(static_cast<int64_t>(checkpoint.bytes));
  }
}

void help(CommandContext& ctx) {
  reply_help(ctx, {
                      "CREATE [<name>]",
                      "    Remember the state of the server. Replies with the checkpoint's name.",
                      "DROP [<name>]",
                      "    Drop a checkpoint and those created after it; nothing else changes.",
                      "LIST",
                      "    List the checkpoints, the oldest first, and what they hold.",
                      "ROLLBACK [<name>]",
                      "    Bring a checkpoint's state back, and drop those created after it.",
                  });
}

constexpr CommandRow kCheckpointSubcommands[] = {
    {"CREATE",
     create,
     "[name]",
     kAdmin | kNoScript | kNoMulti | kProtected,
     {},
     0,
     Group::kServer,
     "0.2.0",
     "O(1), plus the number of databases, function libraries, scripts and users",
     "Creates a checkpoint to which the server can be rolled back."},
    {"DROP",
     drop,
     "[name]",
     kAdmin | kNoScript | kNoMulti | kProtected,
     {},
     0,
     Group::kServer,
     "0.2.0",
     "O(N) where N is the number of keys changed since",
     "Drops a checkpoint and those created after it."},
    help_row(help, 0, Group::kServer, "0.2.0"),
    {"LIST",
     list,
     "",
     kAdmin | kNoScript | kProtected,
     {},
     0,
     Group::kServer,
     "0.2.0",
     "O(N) where N is the number of checkpoints",
     "Lists the checkpoints."},
    {"ROLLBACK",
     rollback,
     "[name]",
     kWrite | kAdmin | kNoScript | kNoMulti | kProtected,
     {},
     0,
     Group::kServer,
     "0.2.0",
     "O(N) where N is the number of keys changed since",
     "Brings the server back to a checkpoint."},
};

constexpr CommandRow kCheckpointRows[] = {
    {"CHECKPOINT",
     nullptr,
     "",
     0,
     {},
     0,
     Group::kServer,
     "0.2.0",
     "Depends on subcommand.",
     "A container for checkpoint commands.",
     {.subcommands = kCheckpointSubcommands}},
};

}  // namespace

std::span<const CommandRow> checkpoint_rows() {
  return kCheckpointRows;
}

}  // namespace latchkey::testing

// BACKUP.
#include "persist/persistence.h"
#include "persist/rows.h"
#include "server/command/command_context.h"
#include "server/command/help.h"
#include "server/server.h"

namespace latchkey::persist {

using namespace server;

namespace {

constexpr uint32_t kFlags = kAdmin | kNoScript | kNotInSpace;
// Of those that need the append-only file, which is closed while a replica loads a dataset.
constexpr uint32_t kFileFlags = kFlags | kNoAsyncLoading;

template <auto command>
void backup(CommandContext& ctx) {
  (ctx.server.layer<Persistence>().backup().*command)(ctx);
}

void backup_help(CommandContext& ctx) {
  reply_help(ctx, {
                      "ABORT",
                      "    Give up the backup that is in progress and remove its files.",
                      "CLEANUP",
                      "    Remove the files of a backup that is sealed or has failed.",
                      "LIST",
                      "    Return the paths of the backup's files that exist by now.",
                      "SEAL",
                      "    Complete the backup with all that has been written so far.",
                      "START",
                      "    Begin a backup in the directory that backupdirname names.",
                      "STATUS",
                      "    Return the state of the backup, its error, and its times.",
                  });
}

constexpr CommandRow kBackupSubcommands[] = {
    {"ABORT",
     backup<&Backup::abort_command>,
     "",
     kFlags,
     {},
     0,
     Group::kServer,
     "8.10.0",
     "O(1)",
     "Abort the current backup and remove its files."},
    {"CLEANUP",
     backup<&Backup::cleanup_command>,
     "",
     kFlags,
     {},
     0,
     Group::kServer,
     "8.10.0",
     "O(1)",
     "Remove sealed backup files and return to idle."},
    help_row(backup_help, 0, Group::kServer, "8.10.0"),
    {"LIST",
     backup<&Backup::list_command>,
     "",
     kFlags,
     {},
     0,
     Group::kServer,
     "8.10.0",
     "O(1)",
     "List the files of the current backup."},
    {"SEAL",
     backup<&Backup::seal_command>,
     "",
     kFileFlags,
     {},
     0,
     Group::kServer,
     "8.10.0",
     "O(1)",
     "Freeze the current backup (BASE + INCR + manifest)."},
    {"START",
     backup<&Backup::start_command>,
     "",
     kFileFlags,
     {},
     0,
     Group::kServer,
     "8.10.0",
     "O(1)",
     "Start a new backup into the configured 'backupdirname'."},
    {"STATUS",
     backup<&Backup::status_command>,
     "",
     kFlags,
     {},
     0,
     Group::kServer,
     "8.10.0",
     "O(1)",
     "Report the state of the current backup."},
};

constexpr CommandRow kBackupRows[] = {
    {"BACKUP",
     nullptr,
     "",
     0,
     {},
     0,
     Group::kServer,
     "8.10.0",
     "Depends on subcommand.",
     "A container for backup management commands.",
     {.subcommands = kBackupSubcommands}},
};

}  // namespace

std::span<const CommandRow> backup_rows() {
  return kBackupRows;
}

}  // namespace latchkey::persist

// COMMAND INFO and COMMAND DOCS: writes a command's elements of these replies from its row.
#pragma once

#include "resp/reply_builder.h"
#include "server/command/command_table.h"

namespace latchkey::server {

// One element of COMMAND INFO: an array of ten (seven before Redis 7.0), subcommands nested.
void write_command_info(const Command& command, const Edition& edition, resp::ReplyBuilder& reply);

// One value of COMMAND DOCS: a map, without what came after the edition.
void write_command_docs(const Command& command, const Edition& edition, resp::ReplyBuilder& reply);

// A set with the names of `bits`, each after `prefix`, as statuses.
void write_bit_names(uint32_t bits, std::span<const BitName> names, std::string_view prefix,
                     resp::ReplyBuilder& reply);

}  // namespace latchkey::server

// What of a request may be shown to people: MONITOR and the slow log print requests, and some hold
// passwords.
#pragma once

#include <string_view>
#include <vector>

#include "server/command/command_context.h"

namespace latchkey::server {

class Config;

// The words of the request, with "(redacted)" in place of those that the command's row calls secret
// (CommandExtras::find_secrets). Views of the request's words.
std::vector<std::string_view> shown_words(const Config& config, const Command& command,
                                          Arguments args);

}  // namespace latchkey::server

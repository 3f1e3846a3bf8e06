// What of a request may be shown to people: MONITOR and the slow log print requests, and some hold
// passwords.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/command/command_context.h"

namespace latchkey::server {

class Config;

// The words of the request, with "(redacted)" in place of those that the command's row calls secret
// (CommandExtras::find_secrets). Views of the request's words.
std::vector<std::string_view> shown_words(const Config& config, const Command& command,
                                          Arguments args);

// Words to keep in a log of limited size: at most 32, each cut to 128 bytes. What was left out is
// told by text behind a word, and in place of the last word.
std::vector<std::string> shortened(std::span<const std::string_view> words);

}  // namespace latchkey::server

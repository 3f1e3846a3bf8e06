// Hides words of requests that MONITOR and the slow log must not show, such as passwords.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/command/arguments.h"

namespace latchkey::server {

class Config;
struct Command;

// The words of the request, with "(redacted)" in place of those that the command's row calls secret
// (CommandExtras::find_secrets). Views of the request's words.
std::vector<std::string_view> shown_words(const Config& config, const Command& command,
                                          Arguments args);

// How much of a request a log keeps.
struct WordLimits {
  size_t most_words = 32;
  size_t most_bytes = 128;  // of each word
};

// Words to keep in a log of limited size. What was left out is told by text behind a word, and in
// place of the last word. REQUIRES: limits.most_words >= 2.
std::vector<std::string> shortened(std::span<const std::string_view> words,
                                   const WordLimits& limits = {});

}  // namespace latchkey::server

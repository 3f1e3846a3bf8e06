// The words that Valkey has in place of Redis's, since 8.0, in its log and where scripts fail:
// tests and operators look for them.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "server/emulation/edition.h"

namespace latchkey::server {

class Server;

// "master" becomes "primary", in whatever case, and "Redis" becomes "Valkey", as words of their
// own. A base::Logger::Rewording.
std::string_view in_words_of_valkey(std::string_view message, std::span<char> room);

// "Valkey" in place of "Redis" where an error names the server (LOADING, BUSY, MISCONF); unless
// extended-redis-compatibility is set.
std::string in_words_of(const Server& server, std::string_view error);

// The errors that scripts get, which Valkey words without "Redis", since 8.0: "Unknown command
// called from script", "server.log() requires two arguments or more". Texts that do not differ are
// given back as they are.
std::string script_error_of_valkey(std::string_view text);

// The error for a digest of no script that is known.
std::string_view no_script_error(const Edition& edition);

// "ERR Error registering functions: ..." for an error that a library met while it was loaded.
// Valkey tells of a wrong name without that.
std::string registration_error(const Edition& edition, std::string_view error);

// "ERR Could not find scripting engine 'not-lua'" for the reference's error about the first line of
// a script; other errors as they are.
std::string shebang_error_of_valkey(std::string_view error);

}  // namespace latchkey::server

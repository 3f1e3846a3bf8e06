// The description of a client that CLIENT LIST, CLIENT INFO and the log show.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace latchkey::server {

class Client;
struct CommandContext;

// What a connection is used for; client-output-buffer-limit and CLIENT LIST distinguish these.
enum class ClientType : uint8_t { kNormal, kPubsub, kReplica, kMaster };
ClientType client_type(const Client& client);
// "normal", "pubsub", "replica" or "slave", "master", in any case.
std::optional<ClientType> find_client_type(std::string_view name);

// What CLIENT LIST shows as flags, each a letter of kFlagLetters.
std::string flag_letters(const Client& client);
// All that a release of Redis or Valkey shows, also those that have no meaning here.
inline constexpr std::string_view kFlagLetters = "AbBcCdeEiIMNOPrRStTuUx";

// "id=3 addr=127.0.0.1:52555 laddr=... tot-cmds=7", in the reference's order of fields.
std::string describe(Client& client);
// The same for the log: without the names that users have chosen if hide-user-data-from-log says
// so.
std::string describe_for_log(Client& client);
// What stands in the log for data of users that is hidden.
inline constexpr std::string_view kRedacted = "*redacted*";

// Bytes of memory held for the client: itself, buffers in both directions, what MULTI queued. Large
// values that wait to be sent count as often as they do, though their bytes may be those of the
// dataset: limits are on what clients leave unread.
size_t memory_usage(Client& client);
// The same without those values.
size_t own_memory_usage(Client& client);

// True for text without blanks and control characters, so that it cannot break a line of CLIENT
// LIST. Empty text qualifies.
bool is_one_printable_word(std::string_view text);
// False, with an error sent, when the text cannot be a client's name.
bool check_client_name(CommandContext& ctx, std::string_view name);

}  // namespace latchkey::server

#include "server/observe/command_log.h"
#include "base/time_units.h"
#include "server/command/dispatcher.h"

#include "server/client/client.h"
#include "server/command/command_table.h"
#include "server/command/redaction.h"
#include "server/server.h"

namespace latchkey::server {

bool CommandLog::add_if_large(Client& client, const Command& command,
                              std::span<const std::string_view> words, int64_t amount) {
  if (!is_on() || amount < settings_.least_amount || command.has(kSkipSlowlog)) return false;
  // Valkey names the client whose script it is, Redis none.
  const Client* named = &client;
  if (client.has(kClientScript) && client.server.edition().is_valkey())
    named = client.server.dispatcher().serving();
  const bool has_name = named != nullptr && !named->has(kClientScript);
  const Call call{.time_s = client.server.now_ms() / base::kMsPerSecond,
                  .amount = amount,
                  .client_address = has_name ? named->peer_address() : std::string(),
                  .client_name = has_name ? named->name : client.name};
  entries_.push_front({next_id_++, call,
                       shortened(shown_words(client.server.config(), command, words),
                                 {settings_.most_words, settings_.most_word_bytes})});
  while (entries_.size() > settings_.most_entries) entries_.pop_back();
  return true;
}

}  // namespace latchkey::server

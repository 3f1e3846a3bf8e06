#include "server/observe/command_log.h"

#include "server/client/client.h"
#include "server/command/command_table.h"
#include "server/command/redaction.h"
#include "server/server.h"

namespace latchkey::server {

void CommandLog::judge(Client& client, const Command& command,
                       std::span<const std::string_view> words, int64_t amount) {
  if (!is_on() || amount < settings_.least_amount || command.has(kSkipSlowlog)) return;
  const Call call{
      .time_s = client.server.now_ms() / 1000,
      .amount = amount,
      .client_address = client.has(kClientScript) ? std::string() : client.peer_address(),
      .client_name = client.name};
  entries_.push_front(
      {next_id_++, call, shortened(shown_words(client.server.config(), command, words))});
  while (entries_.size() > settings_.most_entries) entries_.pop_back();
}

}  // namespace latchkey::server

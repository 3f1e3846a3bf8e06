#include "server/client/monitors.h"

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/text/escape.h"
#include "base/time_units.h"
#include "server/client/client.h"
#include "server/client/output_limits.h"
#include "server/command/command_table.h"
#include "server/command/redaction.h"
#include "server/server.h"

namespace latchkey::server {

namespace {

// "1700000000.000123"
std::string seconds_text(int64_t time_us) {
  constexpr size_t kFractionDigits = 6;
  const std::string fraction = std::to_string(time_us % base::kUsPerSecond);
  return std::to_string(time_us / base::kUsPerSecond) + "." +
         std::string(kFractionDigits - fraction.size(), '0') + fraction;
}

std::string origin(const Client& client) {
  if (client.has(kClientScript)) return "lua";
  const std::string address = client.peer_address();
  if (!client.has(kClientUnixSocket)) return address;
  return "unix:" + address.substr(0, address.rfind(':'));
}

}  // namespace

void Monitors::add(Client& client) {
  if (client.has(kClientMonitor)) return;
  client.set(kClientMonitor);
  listeners_.push_back(&client);
  server_.set_state(kStateMonitored, true);
}

void Monitors::remove(Client& client) {
  if (!client.has(kClientMonitor)) return;
  client.set(kClientMonitor, false);
  std::erase(listeners_, &client);
  server_.set_state(kStateMonitored, !listeners_.empty());
}

void Monitors::show(const Client& client, const Command& command, Arguments args) {
  if (command.has(kAdmin)) return;
  std::string line = "+" + seconds_text(server_.data_clock().wall_us()) + " [" +
                     std::to_string(client.database) + " " + origin(client) + "]";
  for (const std::string_view word : shown_words(server_.config(), command, args)) {
    line += ' ';
    base::append_quoted(&line, word);
  }
  line += "\r\n";
  for (Client* listener : listeners_) {
    // What a monitor receives counts as the reply to MONITOR.
    if (listener->has(kClientReplyOff)) continue;
    if (may_be_sent_more(*listener)) listener->push_out().append(line);
    listener->flush_soon();
  }
}

}  // namespace latchkey::server

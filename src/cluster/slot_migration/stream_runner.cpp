#include "cluster/slot_migration/stream_runner.h"

#include "base/text/number.h"
#include "server/client/client.h"
#include "server/client/pause.h"
#include "server/command/command_table.h"
#include "server/command/dispatcher.h"
#include "server/command/slot_gate.h"
#include "server/server.h"
#include "server/state_scope.h"

namespace latchkey::cluster {

using namespace server;

namespace {

// Stands around writes, and means nothing here.
bool is_frame(const Command& command) {
  const std::string& name = command.full_name;
  return name == "ping" || name == "multi" || name == "exec";
}

Dispatcher::Outcome execute_as_of_master(Server& server, Client& client,
                                         std::span<const std::string_view> words,
                                         Command* command) {
  const StateScope applying(server, kStateApplyingMaster);
  return server.dispatcher().execute(client, words, command);
}

}  // namespace

StreamRunner::StreamRunner(Server& server, Client& client, const SlotSet& slots)
    : server_(server), slots_(slots), client_(client) {
  client_.set(kClientInternal | kClientDenyBlocking);
}

base::Result<> StreamRunner::select(std::span<const std::string_view> words) {
  int64_t number = 0;
  if (words.size() != 2 || !base::parse_int64(words[1], &number) || number < 0 ||
      number >= server_.database_count())
    return base::fail("'select' in the stream names a database that is not there");
  database_ = static_cast<int>(number);
  return {};
}

base::Result<> StreamRunner::run(std::span<const std::string_view> words) {
  Command* const command = server_.dispatcher().lookup(words);
  if (command == nullptr)
    return base::fail("Unknown command in the stream: " + std::string(words[0]));
  if (is_frame(*command)) return {};
  if (command->full_name == "select") return select(words);
  if (base::Result<> checked = check(*command, words); !checked) return checked;
  // A request that were postponed would leave the client, which other jobs run theirs by, blocked.
  if (server_.pauses().holds(command->flags)) return base::fail("Writes are paused");
  client_.database = database_;
  const size_t mark = client_.out().mark();
  const Dispatcher::Outcome outcome = execute_as_of_master(server_, client_, words, command);
  const std::string reply = client_.out().copy_since(mark, 256);
  client_.out().clear();
  if (outcome == Dispatcher::Outcome::kPostponed) return base::fail("Writes are paused");
  if (!reply.starts_with('-')) return {};
  return base::fail("'" + command->full_name +
                    "' failed: " + reply.substr(1, reply.find('\r') - 1));
}

base::Result<> StreamRunner::check(const Command& command,
                                   std::span<const std::string_view> words) {
  if (command.full_name == "function|load" || command.full_name == "function|restore") return {};
  const std::string what = "'" + command.full_name + "' in the stream ";
  if (!command.has(kWrite)) return base::fail(what + "is no write");
  if (!command.accepts_word_count(words.size()))
    return base::fail(what + "has a wrong number of arguments");
  found_.clear();
  find_slotted_words({command, words}, &found_);
  if (found_.empty()) return base::fail(what + "names no key");
  for (const KeyReference& word : found_) {
    if (!slots_.has(store::key_slot(words[word.position])))
      return base::fail(what + "is for a slot that is not migrated");
  }
  return {};
}

}  // namespace latchkey::cluster

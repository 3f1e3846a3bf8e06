// A client of a simulation: its bytes arrive in pieces, what is not consumed is offered again, as a
// Connection does, and replies are read when the server's turn has ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "simulation/conversation.h"
#include "simulation/dice.h"
#include "simulation/node.h"

namespace latchkey::simulation {

class Player {
 public:
  // Connects. `number` is nobody else's; its keys are named by it.
  Player(int number, Node& node, int database, Ledger& ledger);

  const std::string& name() const { return name_; }
  Node& node() const { return node_; }
  int database() const { return database_; }
  bool closed() const { return closed_; }
  uint64_t client_id() const { return client_id_; }
  Conversation& conversation() { return conversation_; }
  // A number that its requests have not had.
  int next_token() { return ++tokens_; }

  // Puts a request on its way.
  void ask(Request request);
  // At most so many of the bytes on their way arrive.
  void arrive(size_t most);
  bool has_bytes_on_their_way() const { return !on_the_way_.empty(); }
  // Everything that was asked has been replied.
  bool is_idle() const;
  // Reads and checks what has been replied. Throws CheckFailed.
  void read();
  // The server's turn has ended: what was read may have left.
  void turn_ended();
  // Closes the connection.
  void leave();
  // The server has gone.
  void crashed();

 private:
  // Null when it has been closed.
  server::Client* client() const;
  void end(bool crashed);

  std::string name_;
  Node& node_;
  int database_;
  int generation_;
  uint64_t client_id_;
  Conversation conversation_;
  std::string on_the_way_;
  std::string arrived_;
  std::string replies_;  // the start of one
  int tokens_ = 0;
  bool closed_ = false;
};

// A client that listens to a channel: messages of one publisher ("publisher:number") come in the
// order in which they were sent, each once.
class Listener {
 public:
  static constexpr char kChannel[] = "news";

  // Connects and subscribes.
  Listener(int number, Node& node);

  Node& node() const { return node_; }
  bool closed() const;
  // Throws CheckFailed.
  void read();
  size_t heard() const { return heard_; }
  void leave();

 private:
  void hear(const std::string& message);

  int number_;
  Node& node_;
  int generation_;
  uint64_t client_id_;
  std::string received_;
  std::map<std::string, int> last_;  // number, by publisher
  size_t heard_ = 0;
};

}  // namespace latchkey::simulation

// SlotGate: decides in cluster mode whether a request may run on this node, by the slots of its
// keys (store/key_slot.h) and of its shard channels. The dispatcher and scripts call it only while
// the server is a node (kStateCluster).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/command/arguments.h"
#include "server/command/key_spec.h"

namespace latchkey::server {

class Client;
struct Command;

// A slot migration as Valkey 9 has it that brings slots to this node, or to its master.
struct SlotImport {
  std::string name;                         // of the job, 40 bytes
  std::vector<std::pair<int, int>> ranges;  // the first and the last slot of each
};

// The slots that are being moved, as a dataset for replicas lists them.
struct DatasetSlots {
  std::string moves;  // by CLUSTER SETSLOT; in the format of Valkey's files
  std::vector<SlotImport> imports;
};

class SlotGate {
 public:
  enum class Verdict : uint8_t {
    kServed,
    kCrossSlot,      // the keys are in several slots
    kTryAgain,       // the slot is being moved, and some of the keys are here
    kNotServed,      // nobody serves the slot
    kDown,           // slots are missing, and so nothing is served
    kDownForWrites,  // nor are writes
    kElsewhere,      // another node serves the slot
    kAskElsewhere,   // another node, to which it is being moved, is to be asked this once
  };
  struct Answer {
    Verdict verdict = Verdict::kServed;
    // Of all keys; -1 when there are none.
    int slot = -1;
    // "host:port" of the other node.
    std::string where = {};
  };
  struct Request {
    const Command& command;
    Arguments words;
  };
  // What matters of the client.
  struct Caller {
    int database = 0;
    bool reads_anywhere = false;  // READONLY
    bool asking = false;          // ASKING
    bool waits = false;           // it waits for keys, which may be in a slot that is being moved
    const Client* client = nullptr;  // the client that is redirected
  };
  // Of the connections between the nodes.
  struct LinkFigures {
    size_t links = 0;
    size_t bytes = 0;
    // Of slot migrations: what waits to be sent and to be applied, and the most of the latter.
    size_t migration_output = 0;
    size_t migration_input = 0;
    size_t most_migration_input = 0;
  };

  virtual ~SlotGate() = default;
  // Judges requests that run as one: one, or those of a transaction. Linear in their words.
  virtual Answer check(std::span<const Request> requests, const Caller& caller) = 0;
  virtual LinkFigures link_figures() const = 0;
  // Whether `secret` is the one that the nodes share; the client is another node then, and may do
  // everything. The time does not depend on where secrets differ.
  virtual bool admit_node(Client& client, std::string_view secret) = 0;
  // What a dataset of this node is to contain; nothing where the release that is emulated does not
  // write it.
  virtual DatasetSlots slots_in_dataset() const = 0;
  // Adopts the slots of the dataset that has just been loaded. Does nothing on a master.
  virtual void adopt_slots(const DatasetSlots& loaded) = 0;
  // The id of this node.
  virtual const std::string& node_id() const = 0;
  virtual bool knows_node(std::string_view id) const = 0;
  // Whether the slot is one of this node's own.
  virtual bool owns(int slot) const = 0;
};

// The Caller for a client.
SlotGate::Caller caller_of(const Client& client);

// Appends the words of the request that have slots: keys and shard channels.
void find_slotted_words(const SlotGate::Request& request, std::vector<KeyReference>* found);

inline constexpr int kNoSlot = -1;
inline constexpr int kSeveralSlots = -2;
// The slot of all that the requests name, or one of these.
int common_slot(std::span<const SlotGate::Request> requests);

// The error for the client; empty for kServed.
std::string refusal_of(const SlotGate::Answer& answer);

}  // namespace latchkey::server

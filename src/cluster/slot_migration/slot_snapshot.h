// The keys of slots as requests, for the node that imports them: functions first, then slot by
// slot, ended by CLUSTER SYNCSLOTS SNAPSHOT-EOF. The format is the reference's.
//
// Only reads the server; runs in a forked child.
#pragma once

#include <functional>

#include "cluster/slot_set.h"
#include "persist/rdb/byte_stream.h"

namespace latchkey::persist {
class ChildProgress;
}
namespace latchkey::server {
class Server;
}

namespace latchkey::cluster {

// Writes all of it and flushes the sink; `after_key` is called after each key. False when the sink
// has failed; see its error().
bool write_slot_snapshot(persist::ByteSink& sink, server::Server& server, const SlotSet& slots,
                         const std::function<void()>& after_key);

// The same as Valkey has it: the keys alone, for each database that has any behind a SELECT.
bool write_slot_requests(persist::ByteSink& sink, server::Server& server, const SlotSet& slots,
                         const std::function<void()>& after_key);

// One of the functions above.
using SlotWriter = bool(persist::ByteSink& sink, server::Server& server, const SlotSet& slots,
                        const std::function<void()>& after_key);
// Has `write` write the slots, reports each key to `progress`, and pauses after it as
// rdb-key-save-delay says. False when the sink has failed; the reason is logged.
bool send_slots(SlotWriter& write, persist::ByteSink& sink, server::Server& server,
                const SlotSet& slots, persist::ChildProgress& progress);

}  // namespace latchkey::cluster

// Conditions of a server under which not every command may run, or not as usual.
#pragma once

#include <cstdint>

namespace latchkey::server {

// Bits of Server::state(). Command::gating_states has those that concern a command: the dispatcher
// calls admit() only when one of them is set.
enum ServerState : uint32_t {
  kStatePaused = 1u << 0,           // CLIENT PAUSE
  kStateBusy = 1u << 1,             // a script runs longer than it should
  kStateLoading = 1u << 2,          // the dataset is being loaded
  kStateMemoryLimit = 1u << 3,      // maxmemory is set
  kStateFewReplicas = 1u << 4,      // there are fewer replicas than min-replicas-to-write
  kStateDiskError = 1u << 5,        // what is written would not reach the disk
  kStateMonitored = 1u << 6,        // a client receives every request (server/client/monitors.h)
  kStateReplica = 1u << 7,          // it follows a master
  kStateReadOnly = 1u << 8,         // that, and only the master's requests may write
  kStateStale = 1u << 9,            // that, and without the link data is not to be shown
  kStateApplyingMaster = 1u << 10,  // a request of the master's stream is being run
  kStateAsyncLoading = 1u << 11,    // a dataset is loaded that will replace the one being served
  kStateTrackingFull = 1u << 12,    // more keys are tracked than may be (server/client/tracking.h)
  kStateCluster = 1u << 13,         // it is a node of a cluster (Server::slot_gate)
  kStateClusterAudit = 1u << 14,    // some commands are checked as if it were one (cluster_audit.h)
  kStateRecorded = 1u << 15,        // calls are recorded (server/command/call_listener.h)
  kStateFaults = 1u << 16,     // requests may be made to fail (server/command/fault_injector.h)
  kStateImporting = 1u << 17,  // import-mode: what has expired is left to an import source
  kStateSpace = 1u << 18,      // it is a space within a process (testing/spaces.h)
  kStateMetered = 1u << 19,    // there are meters of calls (server/command/call_meter.h)
  kStateEmulating = 1u << 20,  // it emulates a release of another server (emulate)
};

}  // namespace latchkey::server

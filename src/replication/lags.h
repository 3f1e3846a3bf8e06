// The lag of replicas, for a server that is about to shut down.
#pragma once

namespace latchkey::replication {

class Replication;

// Whether an online replica has not acknowledged all of the stream.
bool any_lags(const Replication& replication);
// Logs the replicas that lag, and how many do not.
void log_lags(const Replication& replication);

}  // namespace latchkey::replication

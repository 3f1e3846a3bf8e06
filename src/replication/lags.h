// How far behind replicas are, as a server that is about to end wants to know.
#pragma once

namespace latchkey::replication {

class Replication;

// Whether one that is online has not acknowledged all that was written.
bool any_lags(const Replication& replication);
// Tells in the log which ones do, and how many do not.
void log_lags(const Replication& replication);

}  // namespace latchkey::replication

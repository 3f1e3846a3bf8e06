// Connects the append-only file and replication. Neither layer includes the other: each has hooks
// for what it needs, and connect() sets them.
#pragma once

namespace latchkey::persist {
class Aof;
}
namespace latchkey::replication {
class Replication;
}

namespace latchkey::composition {

// Connects the two:
//
//   * the offset of the stream is counted in bytes by replication while there is a stream for
//     replicas, and in requests by the file otherwise (Stream::on_counting);
//   * WAITAOF counts the replicas that have synced up to an offset, and has them asked how far they
//     are (AofWaits::set_replica_disks);
//   * WAITAOF is served when replicas have answered (Replication::on_acknowledged);
//   * a replica tells its master how far its own file is synced (Replication::on_synced_offset).
//
// To be called once, when a server is composed. `aof` must outlive `replication`, and neither may
// be used by clients when the other has gone; a Server destroys its clients first, then its
// replication, then its persistence.
void connect(persist::Aof& aof, replication::Replication& replication);

}  // namespace latchkey::composition

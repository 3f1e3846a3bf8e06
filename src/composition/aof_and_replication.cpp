#include "composition/aof_and_replication.h"

#include <cstdint>

#include "persist/aof/aof.h"
#include "replication/replication.h"

namespace latchkey::composition {

void connect(persist::Aof& aof, replication::Replication& replication) {
  replication.stream().on_counting(
      [&file = aof.file()](bool counts) { file.count_offset(!counts); });
  replication.on_acknowledged([&aof] { aof.waits().serve(); });
  replication.on_synced_offset(
      [&aof] { return aof.enabled() ? aof.file().synced_offset() : int64_t{-1}; });
  aof.waits().set_replica_disks({
      .count =
          [&replication](int64_t offset) {
            return replication.count_fsynced(static_cast<uint64_t>(offset));
          },
      .ask = [&replication] { replication.request_acknowledgements(); },
  });
}

}  // namespace latchkey::composition

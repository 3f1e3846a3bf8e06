#include "server/modification_clock.h"

#include "server/server.h"

namespace latchkey::server {

void ModificationClock::follow_policy() {
  const MaxmemoryPolicy policy = server_.settings().maxmemory_policy;
  const bool wanted =
      policy == MaxmemoryPolicy::kVolatileLrm || policy == MaxmemoryPolicy::kAllkeysLrm;
  server_.environment().use_lrm = wanted;
  if (wanted == listens_) return;
  listens_ = wanted;
  if (wanted) {
    server_.events().add(*this);
  } else {
    server_.events().remove(*this);
  }
}

void ModificationClock::key_changed(store::Keyspace& keyspace, std::string_view key, EventClass,
                                    std::string_view) {
  store::KeyRef ref = keyspace.find(key, store::Keyspace::kPeek | store::Keyspace::kEvenExpired);
  if (ref) keyspace.set_access(ref, keyspace.environment().access_clock);
}

}  // namespace latchkey::server

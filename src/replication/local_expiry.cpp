#include "replication/local_expiry.h"

#include <utility>

#include "server/expiry.h"
#include "server/server.h"

namespace latchkey::replication {

using store::Keyspace;
using Expired = store::Environment::Expired;

LocalExpiry::LocalExpiry(server::Server& server) : server_(server) {
  server_.hooks().role_changed.add([this] { tick(); });
  server_.config().on_change({"replica-read-only"}, [this] { tick(); });
}

LocalExpiry::~LocalExpiry() {
  if (listens_) server_.events().remove(*this);
}

bool LocalExpiry::is_wanted() const {
  return server_.is_replica() && !server_.settings().replica_read_only;
}

void LocalExpiry::tick() {
  const bool wanted = is_wanted();
  if (wanted != listens_) {
    listens_ = wanted;
    wanted ? server_.events().add(*this) : server_.events().remove(*this);
  }
  if (!server_.is_replica()) keys_.clear();
  if (!keys_.empty()) expire();
}

void LocalExpiry::expire() {
  store::Environment& environment = server_.environment();
  if (environment.expired != Expired::kHide || !server_.expiry().is_enabled()) return;
  environment.expired = Expired::kRemove;
  std::erase_if(keys_, [this](const auto& kept) {
    Keyspace& keyspace = server_.database(kept.first);
    const store::KeyRef ref = keyspace.find(kept.second, Keyspace::kPeek);
    return !ref || !ref->has_deadline();
  });
  environment.expired = Expired::kHide;
}

void LocalExpiry::key_changed(Keyspace& keyspace, std::string_view key, server::EventClass,
                              std::string_view) {
  std::pair<int, std::string> place(keyspace.index(), key);
  // A write of the master replaces the local deadline.
  if ((server_.state() & server::kStateApplyingMaster) != 0) {
    keys_.erase(place);
    return;
  }
  const store::KeyRef ref = keyspace.find(key, Keyspace::kPeek | Keyspace::kEvenExpired);
  if (ref && ref->has_deadline()) keys_.insert(std::move(place));
}

void LocalExpiry::keyspace_clearing(Keyspace& keyspace) {
  std::erase_if(keys_, [&](const auto& kept) { return kept.first == keyspace.index(); });
}

void LocalExpiry::keyspaces_swapping(Keyspace& first, Keyspace& second) {
  keyspace_clearing(first);
  keyspace_clearing(second);
}

}  // namespace latchkey::replication

#include "server/emulation/release_defaults.h"

#include <tuple>

#include "server/config/config_values.h"

namespace latchkey::server {

namespace {

using V = ConfigValues;

// All that set_defaults_of() sets.
constexpr std::tuple kDiffering{&V::set_max_listpack_entries,
                                &V::enable_debug_command,
                                &V::enable_protected_configs,
                                &V::lazyfree_lazy_eviction,
                                &V::lazyfree_lazy_expire,
                                &V::lazyfree_lazy_server_del,
                                &V::lazyfree_lazy_user_del,
                                &V::lazyfree_lazy_user_flush,
                                &V::replica_lazy_flush,
                                &V::hide_user_data_from_log,
                                &V::repl_backlog_size,
                                &V::syslog_ident,
                                &V::repl_rdb_channel,
                                &V::commandlog_request_larger_than,
                                &V::commandlog_reply_larger_than};

void set_defaults_of(const Edition& edition, ConfigValues* values) {
  // Sets had no listpacks yet; and what has to be enabled since was there.
  if (!edition.has({7, 2})) values->set_max_listpack_entries = 0;
  if (!edition.has({7, 0})) {
    values->enable_debug_command = ProtectedAction::kYes;
    values->enable_protected_configs = ProtectedAction::kYes;
  }
  if (edition.is_valkey()) {
    values->lazyfree_lazy_eviction = true;
    values->lazyfree_lazy_expire = true;
    values->lazyfree_lazy_server_del = true;
    values->lazyfree_lazy_user_del = true;
    values->lazyfree_lazy_user_flush = true;
    values->replica_lazy_flush = true;
    values->hide_user_data_from_log = true;
    values->repl_backlog_size = int64_t{10} << 20;
    values->syslog_ident = "valkey";
    // It offers replicas the separate channel only when it is told to.
    values->repl_rdb_channel = false;
  }
  if (edition.is_valkey_since({8, 1})) {
    constexpr int64_t kLarge = 1 << 20;
    values->commandlog_request_larger_than = kLarge;
    values->commandlog_reply_larger_than = kLarge;
  }
}

template <typename Value>
void replace_default(Value V::*member, const V& before, const V& after, V* values) {
  if (values->*member == before.*member) values->*member = after.*member;
}

}  // namespace

void change_edition(const Edition& edition, ConfigValues* values) {
  ConfigValues before;
  ConfigValues after;
  set_defaults_of(values->edition, &before);
  set_defaults_of(edition, &after);
  std::apply([&](auto... member) { (replace_default(member, before, after, values), ...); },
             kDiffering);
  values->edition = edition;
}

}  // namespace latchkey::server

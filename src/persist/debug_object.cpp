// DEBUG OBJECT: how a key is stored. It is here, not with DEBUG's other subcommands, because the
// serialized length is what the writer of RDB files makes of a value.
#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>

#include "persist/rdb/rdb_values.h"
#include "persist/rows.h"
#include "server/command/command_context.h"
#include "server/server.h"
#include "store/value/list.h"
#include "store/value/view.h"

namespace latchkey::persist {

using namespace server;
using store::KeyRef;
using store::Keyspace;

namespace {

// Counts bytes (ByteSink::bytes_written()) and keeps none.
class CountingSink final : public ByteSink {
 public:
  CountingSink() : ByteSink(kBuffer) {}

 private:
  static constexpr size_t kBuffer = 512;
  int put(std::string_view) override { return 0; }
};

// Bytes of the value in an RDB file, without its type, as the configuration has it written.
// O(bytes of the value).
uint64_t serialized_length(const Server& server, const store::Entry& entry) {
  CountingSink sink;
  RdbWriter writer(sink, server.settings().rdbcompression, server.edition().rdb_version());
  write_value(writer, entry);
  return sink.bytes_written();
}

// Figures on the nodes of a quicklist for the end of the reply.
std::string node_figures(const store::List& list) {
  const store::Quicklist& chain = list.quicklist();
  size_t bytes = 0;
  for (const store::Quicklist::Node* node = chain.first_node(); node != nullptr; node = node->next)
    bytes += node->byte_size();
  const double nodes = static_cast<double>(std::max<size_t>(chain.nodes(), 1));
  char text[160];
  std::snprintf(text, sizeof(text),
                " ql_nodes:%zu ql_avg_node:%.2f ql_listpack_max:%d ql_compressed:%d "
                "ql_uncompressed_size:%zu",
                chain.nodes(), static_cast<double>(chain.size()) / nodes, chain.fill(),
                chain.depth() != 0 ? 1 : 0, bytes);
  return text;
}

void debug_object(CommandContext& ctx) {
  // Looking does not count as use, and an expired key can be looked at.
  const KeyRef ref = ctx.db.find(ctx.args[2], Keyspace::kPeek | Keyspace::kEvenExpired);
  if (!ref) return ctx.reply.error("ERR no such key");
  const store::Environment& environment = ctx.db.environment();
  const uint32_t idle = (environment.access_clock - ref->access()) & store::Entry::kMaxAccess;
  const std::string_view encoding = ref->encoding_name();
  char text[256];
  std::snprintf(text, sizeof(text),
                "Value at:%p refcount:1 encoding:%.*s serializedlength:%llu lru:%u "
                "lru_seconds_idle:%u",
                static_cast<const void*>(&*ref), static_cast<int>(encoding.size()), encoding.data(),
                static_cast<unsigned long long>(serialized_length(ctx.server, *ref)), ref->access(),
                environment.use_lfu ? 0 : idle);
  std::string told = text;
  if (encoding == "quicklist") told += node_figures(*store::View<store::List>(*ref));
  ctx.reply.status(told);
}

constexpr DebugSubcommand kSubcommands[] = {
    {"OBJECT", 1, 1, debug_object, "OBJECT <key>",
     "Tells how a key is stored, and how many bytes its value has in an RDB file."},
};

}  // namespace

std::span<const DebugSubcommand> object_debug_subcommands() {
  return kSubcommands;
}

}  // namespace latchkey::persist

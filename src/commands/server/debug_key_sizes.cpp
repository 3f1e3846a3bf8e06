// DEBUG KEYSIZES-HIST-ASSERT and ALLOCSIZE-SLOTS-ASSERT: end the server when the histogram of key
// sizes, or the number of keys in a slot, is wrong.
#include <memory>
#include <string>
#include <vector>

#include "commands/server/debug.h"
#include "server/command/call_meter.h"
#include "server/command/dispatcher.h"
#include "server/server.h"
#include "store/key_sizes.h"
#include "store/key_slot.h"
#include "store/slot_index.h"

namespace latchkey::commands {

using namespace server;
using store::KeySizes;
using store::Type;

namespace {

// Counts all keys anew behind each call. O(keys).
class KeySizesCheck final : public CallMeter {
 public:
  explicit KeySizesCheck(Server& server) : server_(server) {}

  void called(const MeteredCall& call) override {
    if (call.nested) return;
    server_.database(0).update_sizes();
    for (int i = 0; i < server_.database_count(); ++i) check(server_.database(i), call);
  }

 private:
  void check(const store::Keyspace& keyspace, const MeteredCall& call) {
    static constexpr Type kTypes[] = {Type::kString,    Type::kList, Type::kSet,
                                      Type::kSortedSet, Type::kHash, Type::kStream};
    if (keyspace.sizes() == nullptr) return;
    KeySizes sizes;
    keyspace.table().for_each([&](const store::Entry* entry) {
      const size_t size = entry->is_string() ? entry->string_size() : entry->element_count();
      sizes.add(entry->type(), KeySizes::bin_of(size));
    });
    for (const Type type : kTypes) {
      for (size_t bin = 0; bin < KeySizes::kBins; ++bin) {
        if (sizes.count(type, bin) == keyspace.sizes()->count(type, bin)) continue;
        server_.panic("The histogram of key sizes is wrong behind " + call.command.full_name +
                          ": " + std::to_string(keyspace.sizes()->count(type, bin)) +
                          " instead of " + std::to_string(sizes.count(type, bin)) + " in bin " +
                          std::to_string(bin) + " of " + std::string(store::type_name(type)),
                      __FILE__, __LINE__);
      }
    }
  }

  Server& server_;
};

// What the keys of a slot take is measured when somebody asks; what is kept is their number.
class SlotIndexCheck final : public CallMeter {
 public:
  explicit SlotIndexCheck(Server& server) : server_(server) {}

  void called(const MeteredCall& call) override {
    const store::Keyspace& keyspace = server_.database(0);
    if (call.nested || keyspace.slot_index() == nullptr) return;
    std::vector<size_t> counts(store::kKeySlots);
    keyspace.table().for_each([&](const store::Entry* entry) {
      ++counts[static_cast<size_t>(store::key_slot(entry->key()))];
    });
    for (int slot = 0; slot < store::kKeySlots; ++slot) {
      if (counts[static_cast<size_t>(slot)] == keyspace.slot_index()->in(slot)) continue;
      server_.panic("The number of keys in slot " + std::to_string(slot) + " is wrong behind " +
                        call.command.full_name,
                    __FILE__, __LINE__);
    }
  }

 private:
  Server& server_;
};

template <typename Check>
void set_check(CommandContext& ctx) {
  constexpr size_t kArgument = 2;
  ctx.server.dispatcher().meters().set_checker(
      is_on(ctx.args[kArgument]) ? std::make_unique<Check>(ctx.server) : nullptr);
  ctx.reply.ok();
}

}  // namespace

void debug_keysizes_hist_assert(CommandContext& ctx) {
  set_check<KeySizesCheck>(ctx);
}

void debug_allocsize_slots_assert(CommandContext& ctx) {
  set_check<SlotIndexCheck>(ctx);
}

}  // namespace latchkey::commands

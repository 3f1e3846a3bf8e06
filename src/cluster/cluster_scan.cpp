// CLUSTERSCAN: iterates over the keys of the cluster, slot by slot, from one node to the next.
//
// A cursor is "<fingerprint>-{<tag>}-<place>". It is in the slot of its tag (slot_tags.h), so that
// clients send it to the node that serves this slot. The place is one in the slot's table
// (store/slot_index.h), and of use only where keys are hashed as they were by the node that made
// the cursor: the fingerprint tells that. With another fingerprint the slot is scanned from its
// beginning. "0" is the fingerprint of a cursor that another node is to go on with.
//
// Every key that is there from the first call to the last is returned at least once, as by SCAN.
#include <optional>
#include <string>

#include "cluster/cluster.h"
#include "cluster/slot_commands.h"
#include "cluster/slot_tags.h"
#include "commands/keys/scan_cursor.h"
#include "commands/keys/scan_request.h"
#include "server/command/command_context.h"
#include "server/server.h"
#include "store/slot_index.h"

namespace latchkey::cluster {

using namespace server;

namespace {

constexpr std::string_view kNoFingerprint = "0";
constexpr std::string_view kEnd = "0";

struct ScanPlace {
  int slot = 0;
  uint64_t cursor = 0;
};

// Six characters that follow from how this server hashes keys.
std::string fingerprint_of(Server& server) {
  constexpr std::string_view kDigits =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  constexpr size_t kSize = 6;
  uint64_t rest = server.environment().secret.hash("CLUSTERSCAN");
  std::string text;
  for (size_t i = 0; i < kSize; ++i, rest /= kDigits.size()) text += kDigits[rest % kDigits.size()];
  return text;
}

std::string cursor_text(std::string_view fingerprint, const ScanPlace& place) {
  return std::string(fingerprint) + "-{" + std::string(slot_tag(place.slot)) + "}-" +
         std::to_string(place.cursor);
}

// Nothing when the text is no cursor.
std::optional<ScanPlace> parse_place(std::string_view text, std::string_view own_fingerprint) {
  const size_t first = text.find('-');
  const size_t last = text.rfind('-');
  if (first == text.npos || first == last || text.find('-', first + 1) != last) return std::nullopt;
  ScanPlace place{.slot = store::key_slot(text)};
  if (!commands::parse_cursor(text.substr(last + 1), &place.cursor)) return std::nullopt;
  const std::string_view fingerprint = text.substr(0, first);
  if (fingerprint != own_fingerprint) place.cursor = 0;
  return place;
}

// Reads SLOT. True when the option was there, whether or not an error has been sent.
bool read_slot_option(CommandContext& ctx, ArgReader& reader, std::optional<int>* slot) {
  std::string_view text;
  if (!reader.word("SLOT", &text)) return false;
  if (*slot) {
    ctx.reply.error("ERR SLOT option can only be specified once");
  } else if (int number = 0; parse_slot(text, &number)) {
    *slot = number;
  } else {
    ctx.reply.error("ERR Invalid or out of range slot");
  }
  return true;
}

// The cursor of the next call.
std::string scan_from(CommandContext& ctx, Cluster& cluster, ScanPlace place, bool one_slot,
                      commands::ScanRequest& request) {
  const std::string fingerprint = fingerprint_of(ctx.server);
  const Node* const master = cluster.shard_master();
  const store::SlotIndex& index = *ctx.db.slot_index();
  const auto visit = [&](const store::Entry& entry) { request.visit(ctx.db, entry); };
  uint64_t steps = 0;
  for (;;) {
    if (index.in(place.slot) > 0) {
      do {
        place.cursor = index.scan(place.slot, place.cursor, visit);
      } while (!request.is_enough(++steps) && place.cursor != 0);
      if (place.cursor != 0) return cursor_text(fingerprint, place);
    }
    if (one_slot || place.slot + 1 == store::kKeySlots) return std::string(kEnd);
    place = {.slot = place.slot + 1};
    if (cluster.nodes().owner(place.slot) != master) return cursor_text(kNoFingerprint, place);
    if (index.in(place.slot) > 0 && request.is_enough(steps))
      return cursor_text(fingerprint, place);
  }
}

}  // namespace

void clusterscan(CommandContext& ctx, Cluster& cluster) {
  const std::string_view cursor = ctx.args[1];
  std::optional<int> slot;
  commands::ScanRequest request;
  request.refuses_unknown_types = true;
  const auto read_more = [&](ArgReader& reader) { return read_slot_option(ctx, reader, &slot); };
  if (!request.read(ctx, 2, read_more)) return;
  const bool begins = cursor == "0";
  const auto place = begins ? ScanPlace() : parse_place(cursor, fingerprint_of(ctx.server));
  if (!place) return ctx.reply.error("ERR Invalid cursor");
  const std::optional<int> only = store::pattern_slot(request.pattern());
  if (!begins && slot && *slot != place->slot)
    return ctx.reply.error("ERR Cursor slot mismatch with SLOT argument");
  if (only && slot && *only != *slot) return request.reply(ctx, kEnd);
  // Any node is asked the first time, and the slot may be another's.
  if (begins) {
    const ScanPlace first{.slot = slot ? *slot : only.value_or(0)};
    return request.reply(ctx, cursor_text(kNoFingerprint, first));
  }
  if (only && place->slot > *only) return request.reply(ctx, kEnd);
  if (only && place->slot < *only)
    return request.reply(ctx, cursor_text(kNoFingerprint, {.slot = *only}));
  request.reply(ctx, scan_from(ctx, cluster, *place, slot || only, request));
}

}  // namespace latchkey::cluster

// Requests of producers that add an entry under an id of their own, so that they can be sent again:
// XADD's IDMP and IDMPAUTO.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "server/command/command_context.h"
#include "store/encoding/stream_id.h"
#include "store/value/stream.h"

namespace latchkey::commands {

// What XADD was told of its producer.
class ProducerRequest {
 public:
  enum class Step : uint8_t { kTaken, kNotMine, kFailed };
  // Consumes IDMP or IDMPAUTO with its values. Sends the error if it returns kFailed.
  Step take(server::CommandContext& ctx, server::ArgReader& words);
  bool given() const { return !producer_.empty(); }
  // Names the request after its fields if it has no name (IDMPAUTO). REQUIRES: given().
  void name_after(server::Arguments fields);

  // The entry that this request has added before, which is counted; nothing when there is none.
  std::optional<store::StreamId> repeats(const server::CommandContext& ctx,
                                         const store::Stream& stream) const;
  // Remembers that the request has added the entry.
  void remember(const server::CommandContext& ctx, store::Stream& stream, store::StreamId id) const;

 private:
  std::string_view producer_;
  std::string name_;  // of the request
};

}  // namespace latchkey::commands

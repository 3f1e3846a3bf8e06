#include "server/command/command_descriptions.h"

#include <string_view>

#include "base/assert.h"
#include "base/buffer_pool.h"
#include "server/command/command_docs.h"
#include "server/command/command_table.h"

namespace latchkey::server {

namespace {

constexpr std::string_view kLineBreak = "\r\n";

void write_named_docs(const Command& command, const Edition& edition, resp::ReplyBuilder& reply) {
  reply.bulk(command.full_name);
  write_command_docs(command, edition, reply);
}

size_t index_of(const resp::ReplyBuilder& reply) {
  return reply.is_resp3() ? 1 : 0;
}

}  // namespace

void CommandDescriptions::write_infos(std::span<const Command* const> commands,
                                      resp::ReplyBuilder& reply) {
  reply.array(commands.size());
  write(commands, write_command_info, &infos_[index_of(reply)], reply);
}

void CommandDescriptions::write_docs(std::span<const Command* const> commands,
                                     resp::ReplyBuilder& reply) {
  reply.map(commands.size());
  write(commands, write_named_docs, &docs_[index_of(reply)], reply);
}

void CommandDescriptions::forget() {
  for (Kept* const kept : {&infos_[0], &infos_[1], &docs_[0], &docs_[1]}) *kept = Kept();
}

void CommandDescriptions::keep(Writer writer, int protocol, Kept* kept) const {
  base::BufferPool pool;
  resp::OutputBuffer out(pool);
  resp::ReplyBuilder reply(out);
  reply.set_protocol(protocol);
  kept->parts.assign(set_->all().size(), Part());
  for (const Command* command : set_->commands()) {
    const size_t begin = out.size();
    writer(*command, set_->edition(), reply);
    kept->parts[command->id] = {static_cast<uint32_t>(begin),
                                static_cast<uint32_t>(out.size() - begin)};
  }
  kept->bytes = base::BlobRef::adopt(base::Blob::create(out.since(0)));
}

void CommandDescriptions::write(std::span<const Command* const> commands, Writer writer, Kept* kept,
                                resp::ReplyBuilder& reply) const {
  if (commands.empty()) return;
  if (!kept->bytes) keep(writer, reply.protocol(), kept);
  const auto append = [&](const Command& command, size_t without) {
    const Part part = kept->parts[command.id];
    LK_ASSERT(part.size > without);
    reply.raw(kept->bytes.get(), kept->bytes.view().substr(part.begin, part.size - without));
  };
  // The last line break is the buffer's own, so that marks behind the reply are told from marks
  // before it (OutputBuffer::append_shared).
  for (const Command* command : commands.first(commands.size() - 1)) append(*command, 0);
  append(*commands.back(), kLineBreak.size());
  reply.raw(kLineBreak);
}

}  // namespace latchkey::server

// DEBUG PROTOCOL: one reply of each type, for tests of clients.
#include "commands/server/debug.h"

namespace latchkey::commands {

using namespace server;

namespace {

constexpr int kElements = 3;

void reply_map(resp::ReplyBuilder& reply) {
  reply.map(kElements);
  for (int i = 0; i < kElements; ++i) {
    reply.integer(i);
    reply.boolean(i == 1);
  }
}

void reply_attribute(resp::ReplyBuilder& reply) {
  if (reply.is_resp3()) {
    reply.attribute(1);
    reply.bulk("key-popularity");
    reply.array(2);
    reply.bulk("key:123");
    reply.integer(90);
  }
  reply.bulk("Some real reply following the attribute");
}

void reply_push(resp::ReplyBuilder& reply) {
  if (!reply.is_resp3()) return reply.error("ERR RESP2 is not supported by this command");
  reply.bulk("Some real reply following the push reply");
  reply.push(2);
  reply.bulk("server-cpu-usage");
  reply.integer(42);
}

}  // namespace

void debug_protocol(CommandContext& ctx) {
  resp::ReplyBuilder& reply = ctx.reply;
  const std::string_view type = ctx.args[2];
  const auto integers = [&] {
    for (int i = 0; i < kElements; ++i) reply.integer(i);
  };
  if (is_word(type, "STRING")) {
    reply.bulk("Hello World");
  } else if (is_word(type, "INTEGER")) {
    reply.integer(12345);
  } else if (is_word(type, "DOUBLE")) {
    reply.number(3.141);
  } else if (is_word(type, "BIGNUM")) {
    reply.big_number("1234567999999999999999999999999999999");
  } else if (is_word(type, "NULL")) {
    reply.null();
  } else if (is_word(type, "ARRAY")) {
    reply.array(kElements);
    integers();
  } else if (is_word(type, "SET")) {
    reply.set(kElements);
    integers();
  } else if (is_word(type, "MAP")) {
    reply_map(reply);
  } else if (is_word(type, "ATTRIB")) {
    reply_attribute(reply);
  } else if (is_word(type, "PUSH")) {
    reply_push(reply);
  } else if (is_word(type, "VERBATIM")) {
    reply.verbatim("txt", "This is a verbatim\nstring");
  } else if (is_word(type, "TRUE")) {
    reply.boolean(true);
  } else if (is_word(type, "FALSE")) {
    reply.boolean(false);
  } else {
    reply.error(
        "ERR Wrong protocol type name. Please use one of the following: "
        "string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false");
  }
}

}  // namespace latchkey::commands

// Converts the result of a script to a reply, in the client's protocol.
//
// Strings become bulk strings, numbers integers (rounded towards zero), tables arrays up to their
// first nil. A table with a field err, ok, double, map, set, big_number or verbatim_string becomes
// that type. Ignores metatables.
#pragma once

#include "resp/reply_builder.h"

struct lua_State;

namespace latchkey::script {

// Pops the value. Booleans depend on the protocol that the script itself chose (redis.setresp):
// under RESP2 true becomes the integer 1 and false null, under RESP3 both are booleans. True when
// the last error in the reply came from a command, which has counted it.
bool write_reply(lua_State* lua, int script_protocol, resp::ReplyBuilder& reply);

}  // namespace latchkey::script

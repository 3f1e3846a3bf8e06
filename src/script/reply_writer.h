// Turns what a script returned into a reply, in the protocol of the client that asked.
//
// Strings become bulk strings, numbers integers (towards zero), tables arrays up to their first
// nil, and tables with one of the fields err, ok, double, map, set, big_number and verbatim_string
// what that field says. Metatables are not asked.
#pragma once

#include "resp/reply_builder.h"

struct lua_State;

namespace latchkey::script {

// What booleans become depends on the protocol that the script itself speaks (redis.setresp): under
// 2 true is the integer 1 and false null, under 3 both are booleans. Takes the value off the stack.
// True when the last error in the reply came from a command, which has counted it.
bool write_reply(lua_State* lua, int script_protocol, resp::ReplyBuilder& reply);

}  // namespace latchkey::script

// Turns the reply of a command that a script called into a Lua value.
//
//     +text      {ok = text}                $bytes     string
//     -text      {err = text, ...}          $-1, *-1   false
//     :1         number                     _          nil
//     *2 ...     {...}                      #t         boolean
//     ,1.5       {double = 1.5}             (123       {big_number = "123"}
//     %, map     {map = {key = value}}      ~, set     {set = {member = true}}
//     =7 txt:abc {verbatim_string = {format = "txt", string = "abc"}}
//
// Costs are those of making the Lua values.
#pragma once

#include <string_view>

struct lua_State;

namespace latchkey::script {

// Pushes the value of the one complete reply that `bytes` holds. Raises a Lua error when the reply
// nests deeper than the Lua stack goes. The reply is the server's own: anything malformed is a
// programmer's mistake.
void push_reply(lua_State* lua, std::string_view bytes);

}  // namespace latchkey::script

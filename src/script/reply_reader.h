// Converts the reply of a command called by a script to a Lua value.
//
//     +text      {ok = text}                $bytes     string
//     -text      {err = text, ...}          $-1, *-1   false
//     :1         number                     _          nil
//     *2 ...     {...}                      #t         boolean
//     ,1.5       {double = 1.5}             (123       {big_number = "123"}
//     %, map     {map = {key = value}}      ~, set     {set = {member = true}}
//     =7 txt:abc {verbatim_string = {format = "txt", string = "abc"}}
//
// Costs no more than creating the Lua values.
#pragma once

#include <string_view>

struct lua_State;

namespace latchkey::script {

// Pushes the value of the one complete reply in `bytes`. Raises a Lua error when the reply nests
// deeper than the Lua stack allows. The reply is the server's own: a malformed one is a programming
// error.
void push_reply(lua_State* lua, std::string_view bytes);

}  // namespace latchkey::script

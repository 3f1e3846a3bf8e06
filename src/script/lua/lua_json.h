// The library `cjson` of scripts.
#pragma once

struct lua_State;

namespace latchkey::script {

// The field of a metatable that makes its tables arrays for the encoder, unless it is nil or false.
inline constexpr char kArrayMark[] = "__is_cjson_array";
// Where the registry has the metatable that the decoder gives to arrays: a proxy that scripts
// cannot change (Interpreter), whose own fields are none.
inline constexpr char kArrayMetatable[] = "json array";

// Pushes what that proxy stands for.
void push_json_array_mark(lua_State* lua);

// Pushes a new table of the library, which has its own settings.
void push_json_library(lua_State* lua);

}  // namespace latchkey::script

// The library `cmsgpack` of scripts: Lua values as MessagePack
// (https://github.com/msgpack/msgpack/blob/master/spec.md) and back.
//
// Tables with keys 1..n become arrays, others maps. Numbers without a fraction become integers in
// their shortest form, others 32-bit floats when that loses nothing, else 64-bit ones. Values
// without a MessagePack form (functions, tables nested more than 16 deep) become nil. Unpacking
// reads the types that existed before `bin` and `ext`.
//
// Unpacked bytes are not trusted: every size is checked against the bytes left before it is used.
#pragma once

struct lua_State;

namespace latchkey::script {

// Pushes a new table of the library.
void push_msgpack_library(lua_State* lua);

}  // namespace latchkey::script

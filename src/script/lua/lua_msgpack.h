// The library that scripts know as `cmsgpack`: Lua values as MessagePack
// (https://github.com/msgpack/msgpack/blob/master/spec.md) and back.
//
// Tables whose keys are 1..n become arrays, others maps. Numbers without a fraction become integers
// in their shortest form, others 32-bit floats when nothing is lost. What MessagePack cannot say
// (functions, tables in tables in ... more than 16 deep) becomes nil. Read are the types that
// existed before `bin` and `ext`.
//
// What is unpacked comes from anywhere: every size is checked against what is there before it is
// used.
#pragma once

struct lua_State;

namespace latchkey::script {

// Pushes a new table of the library.
void push_msgpack_library(lua_State* lua);

}  // namespace latchkey::script

// The library `struct` of scripts: packs numbers and strings into bytes by a format, as C's
// structures are laid out. The format's letters are those of Roberto Ierusalimschy's library for
// Lua 5.1 (http://www.inf.puc-rio.br/~roberto/struct/):
//
//     >  <  !n      big or little endian, alignment to at most n (8)
//     b h i l T     signed integers of 1, 2, 4 (or "in": n, up to 32), 8 bytes; T like L
//     B H I L       the same without sign
//     f d           floats of 4 and 8 bytes
//     s             a string and a null character
//     c cn c0       a character, n of them, all of a string (read: as many as the last number says)
//     x             a byte of padding; spaces mean nothing
//
// Formats and bytes are not trusted: every size is checked against the bytes left.
#pragma once

struct lua_State;

namespace latchkey::script {

// Pushes a new table of the library.
void push_struct_library(lua_State* lua);

}  // namespace latchkey::script

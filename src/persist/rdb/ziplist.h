// Ziplists and zipmaps, the compact encodings that listpacks have replaced. They occur in files of
// old servers and are only read. Source: https://rdb.fnordig.de/file_format.html, which draws both.
//
//     ziplist:  bytes (4) | offset of the last entry (4) | entries (2) | entry ... | 0xFF
//     entry:    bytes of the entry before (1, or 0xFE and 4) | encoding and length | bytes
//
//     zipmap:   pairs (1) | pair ... | 0xFF
//     pair:     length (1, or 0xFE and 4) | key | length | unused (1) | value | unused bytes
#pragma once

#include <span>

#include "store/encoding/listpack.h"

namespace latchkey::persist {

// Appends the ziplist's entries to the listpack. False when the bytes, which may be any, are not a
// valid ziplist in every detail, or are too many for a listpack; the contents of the listpack are
// then undefined.
bool append_ziplist(std::span<const char> bytes, store::Listpack& to);

// The same for a zipmap's alternating keys and values.
bool append_zipmap(std::span<const char> bytes, store::Listpack& to);

}  // namespace latchkey::persist

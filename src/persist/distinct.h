// Whether the elements of a listpack (every `stride`th of them) are all different as texts.
//
// Listpacks from outside may hold a number in more than one way; those are the same text. O(n)
// expected; hashes are keyed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/hash.h"
#include "store/encoding/listpack.h"

namespace latchkey::persist {

// REQUIRES: the number of elements is a multiple of `stride`.
bool are_distinct(const store::Listpack& pack, size_t stride, const base::HashSecret& secret);

}  // namespace latchkey::persist

// For buffers that are filled again and again: they keep their memory, unless one time took much.
#pragma once

#include <cstddef>

namespace latchkey::base {

// Empties a string or vector and frees its memory if it has room for more than `most_kept`
// elements; otherwise leaves it as it is.
template <typename Buffer>
void free_if_large(Buffer* buffer, size_t most_kept) {
  if (buffer->capacity() > most_kept) Buffer().swap(*buffer);
}

}  // namespace latchkey::base

// Copies the dataset of one server into another one of the process, for spaces that begin as
// copies.
#pragma once

#include "base/result.h"

namespace latchkey::server {
class Server;
}

namespace latchkey::testing {

// Copies all keys with their deadlines, all functions, and the time that the data lives in. Fails
// when it cannot be done now, or when `to` emulates a release that has no such values; the error is
// the text after "ERR ". REQUIRES: `to` is empty and has as many databases.
//
// Costs as much as writing and reading an RDB file in memory, which is what it does: some tenths of
// a second for a million small keys, in one piece, and the size of that file meanwhile.
base::Result<> copy_dataset(server::Server& from, server::Server& to);

}  // namespace latchkey::testing

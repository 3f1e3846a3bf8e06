// Makes the servers of spaces (testing/spaces.h): whole servers with the configuration of the first
// server as it stands, without what a space does not have.
#pragma once

#include <memory>

#include "base/clock.h"
#include "net/loop.h"
#include "testing/spaces.h"

namespace latchkey::composition {

class WholeServer;

// The spaces of a process. `main` and the others must outlive them.
std::unique_ptr<testing::Spaces> make_spaces(WholeServer& main, base::Clock& clock,
                                             net::Loop& loop);

}  // namespace latchkey::composition

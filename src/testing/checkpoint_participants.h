// The participants in checkpoints that every server has.
#pragma once

#include <memory>
#include <vector>

#include "testing/checkpoint_participant.h"

namespace latchkey::server {
class Server;
}

namespace latchkey::testing {

// Function libraries, scripts, configuration, users and the clock, in the order in which they are
// restored:
// the configuration before the users, because `requirepass` changes the default user.
std::vector<std::unique_ptr<CheckpointParticipant>> standard_participants(server::Server& server);

}  // namespace latchkey::testing

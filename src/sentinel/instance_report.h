// The reply of SENTINEL MASTER, REPLICAS and SENTINELS about one instance.
#pragma once

#include <string>

#include "resp/reply_builder.h"
#include "sentinel/instance.h"

namespace latchkey::sentinel {

class Sentinel;

// "s_down,master,disconnected" and the like.
std::string flag_names(const Instance& instance);

// A map of names and texts.
void reply_instance(Sentinel& sentinel, Instance& instance, resp::ReplyBuilder* reply);

}  // namespace latchkey::sentinel

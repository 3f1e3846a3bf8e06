// LOCK DOCTOR: describes the findings.
#pragma once

#include <cstdint>
#include <string>

#include "locks/lock_model.h"

namespace latchkey::locks {

// A report on all findings, or those of one lock. `since_ms`: when the watch began, Unix time.
// `edition`: of the server, whose commands are advised.
std::string diagnose(const LockModel& model, const Record* only, const server::Edition& edition,
                     int64_t since_ms, int64_t now_ms);

}  // namespace latchkey::locks

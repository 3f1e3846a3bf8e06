// What LOCK LIST, INFO, LOG and CHECK reply.
#pragma once

#include <string_view>

#include "locks/lock_watch.h"
#include "resp/reply_builder.h"

namespace latchkey::locks {

void reply_lock(resp::ReplyBuilder& reply, const Record& record, int64_t now_ms);
// More of it: who was refused, who waits, who has held it.
void reply_lock_in_full(resp::ReplyBuilder& reply, const Record& record, LockWatch& watch,
                        int64_t now_ms);
void reply_event(resp::ReplyBuilder& reply, const Event& event);
// `edition`: of the server, whose commands are advised.
void reply_finding(resp::ReplyBuilder& reply, const Finding& finding,
                   const server::Edition& edition);

}  // namespace latchkey::locks

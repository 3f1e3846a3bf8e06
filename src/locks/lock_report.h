// The replies of LOCK LIST, INFO, LOG and CHECK.
#pragma once

#include "locks/lock_watch.h"
#include "resp/reply_builder.h"

namespace latchkey::locks {

void reply_lock(resp::ReplyBuilder& reply, const Record& record, int64_t now_ms);
// With the clients that were refused, those that wait, and former holders.
void reply_lock_in_full(resp::ReplyBuilder& reply, const Record& record, LockWatch& watch,
                        int64_t now_ms);
void reply_event(resp::ReplyBuilder& reply, const Event& event);
// `edition`: of the server, whose commands are advised.
void reply_finding(resp::ReplyBuilder& reply, const Finding& finding,
                   const server::Edition& edition);

}  // namespace latchkey::locks

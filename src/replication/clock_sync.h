// A replica follows the clock of its master where CLOCK has moved it: the stream then carries
//
//     REPLCONF CLOCK wall | frozen:<us>:<rate> | running:<us>:<rate>
//
// for replicas that announced `capa clock`; <us> is Unix time in microseconds when the request was
// written. It is our own extension: replicas of other makes do not announce it, and CLOCK is
// refused while one is attached.
//
// The master writes it when CLOCK moves, and when a replica comes online while the clock is moved.
// A replica relays its master's stream and cannot add to it: when a replica of its own comes, it
// sends its master
//
//     REPLCONF CLOCK ?
//
// once the stream has carried a clock in this session, and the first master of the chain writes the
// clock anew.
#pragma once

#include <string>
#include <string_view>

#include "base/settable_clock.h"

namespace latchkey::replication {

std::string clock_state(const base::SettableClock& clock);
// Has the clock show what the text says. False when it says nothing that can be shown.
bool follow_clock(std::string_view state, base::SettableClock* clock);

}  // namespace latchkey::replication

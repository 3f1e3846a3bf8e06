// rdb-key-save-delay and key-load-delay: pauses by which tests make saving and loading slow.
#pragma once

#include <unistd.h>

#include <cstdint>

namespace latchkey::persist {

// To be called after each key. `delay_us`: microseconds; a negative value -n pauses for 1
// microsecond after every n keys; 0: no pause. `keys`: how many there have been.
inline void delay_key(int delay_us, uint64_t keys) {
  if (delay_us > 0) usleep(static_cast<useconds_t>(delay_us));
  if (delay_us < 0 && keys % static_cast<uint64_t>(-int64_t{delay_us}) == 0) usleep(1);
}

}  // namespace latchkey::persist

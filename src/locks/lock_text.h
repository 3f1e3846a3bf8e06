// Recognises names and tokens of locks, and formats times and tokens for the replies of LOCK.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace latchkey::locks {

// Whether a key says by its name that it is a lock: "lock:orders", "orders.mutex".
bool names_lock(std::string_view key);
// Whether a value looks as if it had been drawn at random: at least 16 letters and digits, as of
// hexadecimal numbers, Base64 or UUIDs, and not few different ones.
bool is_random(std::string_view token);
// Whether a name is that of the lock, or has it in it as words of its own: "orders:queue" has
// "orders", "reorders" has not.
bool has_name(std::string_view name, std::string_view lock);
// Whether a field names a client as Redisson's do: a UUID, a colon, the number of a thread.
bool names_client(std::string_view field);
// The time that a value is, in seconds or milliseconds of Unix time, as long as that is within 30
// days of `now_ms`; in milliseconds.
std::optional<int64_t> time_stamp(std::string_view token, int64_t now_ms);

// "13:05:00.250", UTC.
std::string clock_time(int64_t unix_ms);
// "2026-11-22 13:05:00.250".
std::string date_and_time(int64_t unix_ms);
// "250 ms", "1.5 s", "3 min", "2 h".
std::string duration(int64_t ms);
// "1st" is 1 and "st".
std::string_view ordinal_suffix(uint64_t number);
// With what is no printable ASCII as \xhh.
std::string printable(std::string_view text);

}  // namespace latchkey::locks

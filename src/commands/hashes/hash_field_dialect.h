// What differs between releases in the commands of hash fields that have deadlines: Redis has had
// them since 7.4, in a fixed order of words until 8.4, and Valkey built its own in 9.0. A release
// has one of these dialects; handlers ask it what is to be done and need not know for whom.
#pragma once

#include <string_view>

#include "server/emulation/edition.h"

namespace latchkey::commands {

struct HashFieldDialect {
  // --- How requests are read ---

  // FIELDS ends the request, behind all options. Otherwise it may stand anywhere among them.
  bool fields_come_last;
  // A key of another type is refused after the arguments have been read, not before.
  bool checks_key_last;
  // A time is read behind all options and the number of fields.
  bool reads_time_last;
  // Wrong options, numbers of fields and times below zero have errors of their own. Otherwise they
  // get the errors of any wrong syntax and any time out of range.
  bool names_errors;
  // PERSIST and KEEPTTL may be given again.
  bool word_may_repeat;
  // Deadlines later than a hash can hold are taken for the last one. Otherwise they are out of
  // range.
  bool takes_far_deadlines;

  // --- What becomes of fields that are past their deadline ---

  // A request that reads such a field leaves it to expiry, and takes it for missing; one that sets
  // it propagates nothing but itself for that. Otherwise both delete the field, by a request of its
  // own for replicas.
  bool leaves_expired_fields;
  // Fields that are given a deadline in the past expire: the event says so, after HSETEX's own, and
  // one request deletes all of them on replicas. Otherwise they are deleted, each by a request.
  bool expires_at_once;

  // --- What HSETEX propagates ---

  // The conditions of the request, too. Otherwise replicas do not ask again.
  bool propagates_conditions;

  // "hexpired" or "hdel": the event of fields that were given a deadline in the past.
  std::string_view event_of_passed_deadline() const {
    return expires_at_once ? "hexpired" : "hdel";
  }

  static const HashFieldDialect& of(const server::Edition& edition);
};

// Of Redis, and of Latchkey itself.
inline constexpr HashFieldDialect kRedisHashFields{.fields_come_last = false,
                                                   .checks_key_last = false,
                                                   .reads_time_last = false,
                                                   .names_errors = true,
                                                   .word_may_repeat = false,
                                                   .takes_far_deadlines = false,
                                                   .leaves_expired_fields = false,
                                                   .expires_at_once = false,
                                                   .propagates_conditions = true};
// Of Redis before 8.4.
inline constexpr HashFieldDialect kEarlyRedisHashFields = [] {
  HashFieldDialect dialect = kRedisHashFields;
  dialect.fields_come_last = true;
  return dialect;
}();
// Of Valkey since 9.0.
inline constexpr HashFieldDialect kValkeyHashFields{.fields_come_last = true,
                                                    .checks_key_last = true,
                                                    .reads_time_last = true,
                                                    .names_errors = false,
                                                    .word_may_repeat = true,
                                                    .takes_far_deadlines = true,
                                                    .leaves_expired_fields = true,
                                                    .expires_at_once = true,
                                                    .propagates_conditions = false};

inline const HashFieldDialect& HashFieldDialect::of(const server::Edition& edition) {
  if (edition.is_valkey_since({9, 0})) return kValkeyHashFields;
  return edition.has({8, 4}) ? kRedisHashFields : kEarlyRedisHashFields;
}

}  // namespace latchkey::commands

#include "locks/findings.h"

#include <array>
#include <utility>

#include "base/text/text.h"

namespace latchkey::locks {

namespace {

using server::Edition;

constexpr std::string_view kReleaseByScript =
    "EVAL \"if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end "
    "return 0\" 1 <lock> <your value>";
constexpr std::string_view kProlongByScript =
    "EVAL \"if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], "
    "ARGV[2]) end return 0\" 1 <lock> <your value> <milliseconds>";

// Not every release has a command that compares and deletes.
std::string_view release_command(const Edition& edition) {
  if (edition.has({8, 4})) return "DELEX <lock> IFEQ <your value>";
  if (edition.has(server::kNever, {9, 0})) return "DELIFEQ <lock> <your value>";
  return kReleaseByScript;
}

bool has_set_ifeq(const Edition& edition) {
  return edition.has({8, 4}, {8, 1});
}

// What stands for a command in a remedy: the mark, and what it is in that release.
std::array<std::pair<std::string_view, std::string>, 4> commands_of(const Edition& edition) {
  const std::string release(release_command(edition));
  const std::string prolong(has_set_ifeq(edition)
                                ? "SET <lock> <your value> IFEQ <your value> PX <milliseconds>"
                                : kProlongByScript);
  return {
      {{"{release or script}",
        release == kReleaseByScript ? release : release + ", or " + std::string(kReleaseByScript)},
       {"{release}", release},
       {"{failed prolong}", prolong + (has_set_ifeq(edition) ? " replies nil" : " replies 0")},
       {"{prolong}", prolong}}};
}

constexpr FindingDescription kFindings[] = {
    {FindingKind::kNoDeadline, "no-deadline", Severity::kHigh,
     "Nobody releases a lock whose holder has gone, and without a deadline it does not end by "
     "itself: everybody else is refused for ever.",
     "Take the lock and set its deadline in one step: SET <lock> <random value> NX PX "
     "<milliseconds>."},
    {FindingKind::kNotAtomic, "not-atomic", Severity::kMedium,
     "A client that crashes between the two requests leaves a lock without a deadline, which "
     "nobody can take any more.",
     "Take the lock and set its deadline in one step: SET <lock> <random value> NX PX "
     "<milliseconds>."},
    {FindingKind::kProlongedByLoser, "prolonged-by-loser", Severity::kHigh,
     "Clients that are refused prolong the lock of its holder; if they try often enough, the lock "
     "of a holder that has crashed never ends.",
     "Set the deadline only for whoever has won: SET <lock> <random value> NX PX <milliseconds>, "
     "which does both in one step."},
    {FindingKind::kForeignRelease, "foreign-release", Severity::kHigh,
     "The holder goes on in the belief that it has the lock, while the next client gets it: two "
     "are at work at the same time.",
     "Release by comparing and deleting in one step: {release or script}."},
    {FindingKind::kLateRelease, "late-release", Severity::kHigh,
     "The work took longer than the lock lived, so another client may have worked at the same "
     "time; and a DEL that comes late removes the lock of that other client.",
     "Choose a longer time to live, or prolong the lock while you work: {prolong}. Release with "
     "{release}, which removes nobody else's lock, and treat the reply 0 as a failure of the "
     "work."},
    {FindingKind::kForeignToken, "foreign-token", Severity::kHigh,
     "Clients that use the same value cannot tell their locks apart: each can release or prolong "
     "that of the other.",
     "Draw at least 16 random bytes each time you take a lock: SET <lock> <random value> NX PX "
     "<milliseconds>."},
    {FindingKind::kOverwritten, "overwritten", Severity::kHigh,
     "A SET without NX takes the lock from its holder, who does not notice: two are at work at the "
     "same time.",
     "Take locks with NX: SET <lock> <random value> NX PX <milliseconds>. Prolong your own with "
     "{prolong}."},
    {FindingKind::kStaleDelete, "stale-delete", Severity::kHigh,
     "Two clients that see the stale lock may both delete it: the second deletes the lock that the "
     "first one has just taken, and both hold it.",
     "Take a stale lock over by GETSET <lock> <new time stamp>; it is yours if the reply is the "
     "stale stamp. Better: SET <lock> <random value> NX PX <milliseconds>, so that stale locks "
     "end by themselves."},
    {FindingKind::kTakeoverLost, "takeover-lost", Severity::kHigh,
     "The reply to GETSET was a time stamp that had not passed: another client was faster and "
     "holds "
     "the lock. Two are at work at the same time.",
     "The lock is yours only if the reply to GETSET is the stale stamp; else wait and begin again. "
     "Better: SET <lock> <random value> NX PX <milliseconds>."},
    {FindingKind::kStarved, "starved", Severity::kMedium,
     "A client that never gets the lock does none of its work.",
     "Wait a random time between attempts, longer after each refusal; or queue: BLPOP a list that "
     "the holder pushes to when it releases."},
    {FindingKind::kHeldLong, "held-long", Severity::kLow,
     "The lock ends by itself soon after it is released: a little slower, and another client gets "
     "it while the holder still works.",
     "Choose a longer time to live, or prolong the lock while you work: {prolong}."},
    {FindingKind::kOutlived, "outlived", Severity::kHigh,
     "The work went on without the lock that guards it: another client may have done the same work "
     "at the same time, and one has written over what the other wrote.",
     "Choose a longer time to live, or prolong the lock while you work, and stop when that fails: "
     "{failed prolong}. Where a write must not come late, do it in a script that compares the "
     "lock's value first."},
    {FindingKind::kReentryLost, "reentry-lost", Severity::kMedium,
     "A lock that was taken again by its holder and not released as often stays held; everybody "
     "else waits until its deadline, or for ever while it is prolonged.",
     "Release as often as you take: each lock() has its unlock() in a finally block."},
    {FindingKind::kUnbalanced, "unbalanced", Severity::kHigh,
     "With more tokens than it was created with, a semaphore lets more clients in than it should; "
     "with fewer it lets fewer in, and when none is left everybody waits for ever.",
     "Put back one token for each that you took. Write down who has it, and since when, in the "
     "same "
     "transaction, so that those of clients that crashed can be put back; or keep the holders in a "
     "sorted set by time: a script that calls ZREMRANGEBYSCORE <semaphore> -inf <now - time to "
     "live>, and ZADD if ZCARD is below the limit."},
};

constexpr bool in_order() {
  size_t place = 0;
  for (const FindingDescription& words : kFindings) {
    if (static_cast<size_t>(words.kind) != place++) return false;
  }
  return true;
}
static_assert(in_order());

constexpr std::array<std::string_view, 3> kSeverities = {"low", "medium", "high"};

}  // namespace

std::span<const FindingDescription> all_findings() {
  return kFindings;
}

const FindingDescription& description_of(FindingKind kind) {
  return kFindings[static_cast<size_t>(kind)];
}

std::string remedy_of(FindingKind kind, const Edition& edition) {
  std::string text(description_of(kind).remedy);
  for (const auto& [mark, command] : commands_of(edition)) {
    if (const size_t at = text.find(mark); at != std::string::npos)
      text.replace(at, mark.size(), command);
  }
  return text;
}

std::string_view name_of(Severity severity) {
  return kSeverities[static_cast<size_t>(severity)];
}

std::optional<Severity> parse_severity(std::string_view text) {
  for (size_t i = 0; i < kSeverities.size(); ++i) {
    if (base::equal_ignoring_case(text, kSeverities[i])) return static_cast<Severity>(i);
  }
  return std::nullopt;
}

}  // namespace latchkey::locks

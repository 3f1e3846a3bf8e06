"""Sorted sets. What is asked by bytes is asked of keys whose members all have one score: of others the answer means nothing."""

from .rows import blocking, call, shared, unordered

ADDING = [
    call("ZADD <zset> <scored>"),
    call("ZADD <zset> <scored>"),
    call("ZADD <zset> [NX|XX] [GT|LT] [CH] <scored>"),
    call("ZADD <zset> (NX|XX|GT|LT|CH|INCR)+ <score> <element>"),
    call("ZADD <zset> (NX|XX|GT|LT|CH|INCR|<word>)+ (<score> <element>)+"),
    call("ZADD <lexset> <equally_scored>", exact=True),
    call("ZADD <lexset> <equally_scored>", exact=True),
    call("ZINCRBY <zset> <score> <element>"),
    call("ZREM <zset> <element>+"),
    call("ZREM <zset> <elements>"),
    call("ZREM <lexset> <element>+"),
]

ASKING = [
    call("ZCARD <zset>"),
    call("ZSCORE <zset> <element>"),
    call("ZMSCORE <zset> <element>+"),
    call("ZRANK <zset> <element> [WITHSCORE|<word>]"),
    call("ZREVRANK <zset> <element> [WITHSCORE]"),
    call("ZCOUNT <zset> <bound> <bound>"),
    call("ZLEXCOUNT <lexset> <lex> <lex>"),
    call("ZRANDMEMBER <zset> <no_count> [WITHSCORES|<word>]"),
    call("ZRANDMEMBER <zset> [-3|2]", "same_type"),
    call("ZRANDMEMBER <zset> (-3|2) WITHSCORES", "same_type"),
    call("ZRANDMEMBER <zset> 100000", "any_order"),
    call("ZRANDMEMBER <zset> 100000 WITHSCORES", "any_order"),
    unordered("ZSCAN <zset> 0 [COUNT 100000] [MATCH <pattern>]", "scan_step_fields"),
    unordered("ZSCAN <zset> <int> (MATCH <pattern>|COUNT <pops>|<word>)+", "cursor_and_any"),
]

RANGES = [
    call("ZRANGE <zset> 0 -1 WITHSCORES"),
    call("ZRANGE <zset> <index> <index> [REV] [WITHSCORES]"),
    call("ZRANGE <zset> <bound> <bound> BYSCORE [REV] [LIMIT <skipped> <index>] [WITHSCORES]"),
    call("ZRANGE <lexset> <lex> <lex> BYLEX [REV] [LIMIT <skipped> <index>]"),
    call("ZRANGE <lexset> <index> <index> (BYSCORE|BYLEX|REV|LIMIT 0 5|WITHSCORES|<word>)+"),
    call("ZRANGESTORE <zset> <zset> <index> <index> [REV]"),
    call("ZRANGESTORE <zset> <zset> <bound> <bound> BYSCORE [REV] [LIMIT <skipped> <index>]"),
    call("ZRANGESTORE <zset> <lexset> <lex> <lex> BYLEX [REV] [LIMIT <skipped> <index>]"),
    call("ZRANGESTORE <zset> <zset> <index> <index> (BYSCORE|REV|LIMIT 0 5|WITHSCORES|<word>)+"),
    call("ZREVRANGE <zset> <index> <index> [WITHSCORES|<word>]"),
    call("ZRANGEBYSCORE <zset> <bound> <bound> [WITHSCORES] [LIMIT <skipped> <index>]"),
    call("ZREVRANGEBYSCORE <zset> <bound> <bound> [WITHSCORES] [LIMIT <skipped> <index>]"),
    call("ZRANGEBYSCORE <zset> <bound> <bound> (WITHSCORES|LIMIT 0 5|LIMIT|REV|<word>)+"),
    call("ZRANGEBYLEX <lexset> <lex> <lex> [LIMIT <skipped> <index>]"),
    call("ZREVRANGEBYLEX <lexset> <lex> <lex> [LIMIT <skipped> <index>]"),
    # Before Redis 8.6 negative offsets meant something else in a large sorted set.
    call("ZRANGE <zset> <bound> <bound> BYSCORE [REV] LIMIT <index> <index>", needs="msetex"),
    call("ZRANGEBYSCORE <zset> <bound> <bound> LIMIT <index> <index>", needs="msetex"),
    call("ZREVRANGEBYLEX <lexset> <lex> <lex> LIMIT <index> <index>", needs="msetex"),
    call("ZREMRANGEBYRANK <zset> <index> <index>"),
    call("ZREMRANGEBYSCORE <zset> <bound> <bound>"),
    call("ZREMRANGEBYLEX <lexset> <lex> <lex>"),
    call("ZPOPMIN <zset> [<pops>]"),
    call("ZPOPMAX <zset> [<pops>]"),
    call("ZMPOP <counted_zsets> (MIN|MAX|<word>) [COUNT <pops>]"),
]



def each(names, rest):
    return [call(name + rest) for name in names.split()]


ALGEBRA = [
    *each("ZUNION ZINTER", " <counted_zsets> [AGGREGATE (SUM|MIN|MAX|<word>)] [WITHSCORES]"),
    *each("ZUNION ZINTER", " <weighted_zsets> [AGGREGATE (SUM|MIN|MAX)] [WITHSCORES]"),
    *each("ZDIFF", " <counted_zsets> [WITHSCORES|<word>]"),
    *each("ZUNIONSTORE ZINTERSTORE", " <zset> <counted_zsets> [AGGREGATE (SUM|MIN|MAX)]"),
    *each("ZUNIONSTORE ZINTERSTORE", " <zset> <weighted_zsets> [AGGREGATE (SUM|MIN|MAX)]"),
    *each("ZUNION ZINTER ZDIFF", " <counted_zsets> (AGGREGATE MIN|WEIGHTS 1 2|WITHSCORES|<word>)+"),
    *each("ZUNIONSTORE ZINTERSTORE ZDIFFSTORE", " <zset> <counted_zsets> (AGGREGATE MIN|WEIGHTS 1 2|WITHSCORES|<word>)+"),
    *each("ZDIFFSTORE", " <zset> <counted_zsets>"),
    *each("ZINTERCARD", " <counted_zsets> [LIMIT <pops>]"),
    # Plain sets take part too.
    call("SADD <set> <element>+"),
    # A sorted set that is sorted becomes a large one.
    call("SORT <zset> ALPHA [DESC]", "any_order", scatters=True),
    call("SORT <zset> ALPHA [DESC] [LIMIT <skipped> <index>] STORE <list>", scatters=True),
    call("SORT <zset> BY nosort [DESC] [LIMIT <skipped> <index>] [GET #] [STORE <list>]", scatters=True),
]

BLOCKING = [
    blocking("BZPOPMIN <zset>+ <timeout>"),
    blocking("BZPOPMAX <zset>+ <timeout>"),
    blocking("BZMPOP <timeout> <counted_zsets> (MIN|MAX) [COUNT <pops>]"),
]

ROWS = ADDING * 2 + ASKING + RANGES + ALGEBRA + BLOCKING + shared("zset")

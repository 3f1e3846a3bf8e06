"""Hashes."""

from .rows import call, shared, unordered

COMMANDS = [
    call("HSET <hash> <fields>"),
    call("HSET <hash> <fields>"),
    call("HSET <hash> (<element> <element>)+"),
    call("HMSET <hash> (<element> <element>)+"),
    call("HSETNX <hash> <element> <element>"),
    call("HGET <hash> <element>"),
    call("HMGET <hash> <element>+"),
    call("HDEL <hash> <element>+"),
    call("HDEL <hash> <elements>"),
    call("HLEN <hash>"),
    call("HEXISTS <hash> <element>"),
    call("HSTRLEN <hash> <element>"),
    call("HINCRBY <hash> <element> <int>"),
    call("HINCRBY <hash> <counter> <int>"),
    call("HINCRBYFLOAT <hash> <counter> <float>"),
    call("HINCRBYFLOAT <hash> <element> <float>"),
    call("HSET <hash> <counter> <float>"),
    unordered("HGETALL <hash>", "any_order_pairs"),
    unordered("HGETALL <hash>", "any_order_pairs"),
    unordered("HKEYS <hash>"),
    unordered("HVALS <hash>"),
    call("HRANDFIELD <hash> <no_count> [WITHVALUES|<word>]"),
    call("HRANDFIELD <hash> [-3|2]", "same_type"),
    call("HRANDFIELD <hash> (-3|2) WITHVALUES", "same_type"),
    call("HRANDFIELD <hash> 100000", "any_order"),
    call("HRANDFIELD <hash> 100000 WITHVALUES", "any_order"),
    unordered("HSCAN <hash> 0 [COUNT 100000] [MATCH <pattern>]", "scan_step_fields"),
    unordered("HSCAN <hash> 0 COUNT 100000 NOVALUES", "scan_step"),
    unordered("HSCAN <hash> <int> (MATCH <pattern>|COUNT <pops>|NOVALUES|<word>)+", "cursor_and_any"),
]

# Deadlines of fields lie far off or have passed already, as those of keys do.
_WHICH = " FIELDS <counted_fields>"
DEADLINES = [
    call("HEXPIREAT <hash> <at_seconds> [NX|XX|GT|LT]" + _WHICH, "newer_refusal"),
    call("HPEXPIREAT <hash> <at_milliseconds> [NX|XX|GT|LT]" + _WHICH, "newer_refusal"),
    call("HEXPIREAT <hash> <at_seconds> (NX XX|GT LT|XX GT|<word>)" + _WHICH, "newer_refusal"),
    call("HEXPIRE <hash> (0|-1|abc|9223372036854775807|4611686018427387904)" + _WHICH, "newer_refusal"),
    call("HPEXPIRE <hash> (0|-1|abc|9223372036854775807)" + _WHICH, "newer_refusal"),
    call("HEXPIRETIME <hash>" + _WHICH),
    call("HPEXPIRETIME <hash>" + _WHICH),
    call("HTTL <hash>" + _WHICH, "near_each"),
    call("HPTTL <hash>" + _WHICH, "near_each_ms"),
    call("HPERSIST <hash>" + _WHICH),
    call("HGETDEL <hash>" + _WHICH),
    call("HGETEX <hash> [EXAT <at_seconds>|PXAT <at_milliseconds>|PERSIST]" + _WHICH, "newer_refusal"),
    call("HGETEX <hash> (EXAT 4102444800|PERSIST|PX 0|EX abc|<word>)+" + _WHICH, "newer_refusal"),
    call("HSETEX <hash> [FNX|FXX] [EXAT <at_seconds>|PXAT <at_milliseconds>|KEEPTTL] FIELDS <counted_pairs>", "newer_refusal"),
    call("HSETEX <hash> (FNX|FXX|EXAT 4102444800|KEEPTTL|PX 0|<word>)+ FIELDS <counted_pairs>", "newer_refusal"),
]

ROWS = COMMANDS + DEADLINES + shared("hash")

"""Sets, one at a time and several together."""

from .rows import call, shared, unordered

COMMANDS = [
    call("SADD <set> <elements>"),
    call("SADD <set> <elements>"),
    call("SADD <set> <element>+"),
    call("SADD <set> <integers>"),
    call("SREM <set> <element>+"),
    call("SREM <set> <elements>"),
    call("SREM <set> <integers>"),
    call("SCARD <set>"),
    call("SISMEMBER <set> <element>"),
    call("SMISMEMBER <set> <element>+"),
    unordered("SMEMBERS <set>"),
    unordered("SMEMBERS <set>"),
    call("SMOVE <set> <set> <element>"),
    unordered("SINTER <set>+"),
    call("SUNION <set>+", "any_order"),
    call("SDIFF <set>+", "any_order"),
    call("SINTERCARD <counted_sets> [LIMIT <pops>]"),
    call("SINTERCARD <counted_sets> (LIMIT <pops>|<word>)+"),
    call("SINTERSTORE <set> <set>+"),
    call("SUNIONSTORE <set> <set>+", scatters=True),
    call("SDIFFSTORE <set> <set>+", scatters=True),
    # What is taken out by chance is only the same on both servers when it is nothing or all.
    call("SPOP <set> <no_count>"),
    call("SPOP <set> 100000", "any_order"),
    call("SRANDMEMBER <set> <no_count>"),
    call("SRANDMEMBER <set> [-3|2]", "same_type"),
    call("SRANDMEMBER <set> 100000", "any_order"),
    unordered("SSCAN <set> 0 [COUNT 100000] [MATCH <pattern>]", "scan_step"),
    unordered("SSCAN <set> <int> (MATCH <pattern>|COUNT <pops>|<word>)+", "cursor_and_any"),
    call("SORT <set> ALPHA [DESC] [LIMIT <index> <index>] STORE <set>"),
    # To the language's order texts are alike up to the first NUL: then they stand as the hash table has them.
    call("SORT <set> ALPHA [DESC]", "any_order"),
    call("SORT <set> [BY <weights>] [LIMIT <index> <index>] [GET <sort_pattern>] [DESC]"),
]

ROWS = COMMANDS + shared("set")

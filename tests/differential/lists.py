"""Lists, and the commands that wait for them."""

from .rows import blocking, call, shared, unordered

COMMANDS = [
    call("LPUSH <list> <elements>"),
    call("RPUSH <list> <elements>"),
    call("RPUSH <list> <elements>"),
    call("RPUSH <list> <element>+"),
    call("LPUSHX <list> <element>+"),
    call("RPUSHX <list> <element>+"),
    call("LPOP <list> [<pops>]"),
    call("RPOP <list> [<pops>]"),
    call("LLEN <list>"),
    call("LINDEX <list> <index>"),
    call("LSET <list> <place> <element>"),
    call("LINSERT <list> (BEFORE|AFTER|BEFORE|AFTER|<word>) <element> <element>"),
    call("LRANGE <list> 0 -1"),
    call("LRANGE <list> <index> <index>"),
    call("LTRIM <list> <index> <index>"),
    call("LREM <list> <index> <element>"),
    call("LPOS <list> <element> [RANK <index>] [COUNT <pops>] [MAXLEN <pops>]"),
    call("LPOS <list> <element> (RANK <index>|COUNT <pops>|MAXLEN <index>|<word>)+"),
    call("LMOVE <list> <list> (LEFT|RIGHT|<word>) (LEFT|RIGHT)"),
    call("LMOVE <list> <list> (LEFT|RIGHT) (LEFT|RIGHT)"),
    call("RPOPLPUSH <list> <list>"),
    call("LMPOP <counted_lists> (LEFT|RIGHT|<word>) [COUNT <pops>]"),
    call("SORT <list> [BY <sort_pattern>] [LIMIT <index> <index>] (GET <sort_pattern>|ASC|DESC)+"),
    call("SORT <list> [BY <sort_pattern>] (GET <sort_pattern>|ASC|DESC)+"),
    call("SORT <list> (GET <sort_pattern>|ASC|DESC|ALPHA)+"),
    # What has no weight, or the same text as weight, stays in the order it had: a hash table's where the key is no list.
    unordered("SORT <list> BY <sort_pattern> ALPHA [ASC|DESC]"),
    call("SORT <list> ALPHA [DESC] [LIMIT <index> <index>] STORE <list>"),
    call("SORT_RO <list> ALPHA [DESC]"),
]

BLOCKING = [
    blocking("BLPOP <list>+ <timeout>"),
    blocking("BRPOP <list>+ <timeout>"),
    blocking("BLMOVE <list> <list> (LEFT|RIGHT) (LEFT|RIGHT) <timeout>"),
    blocking("BRPOPLPUSH <list> <list> <timeout>"),
    blocking("BLMPOP <timeout> <counted_lists> (LEFT|RIGHT) [COUNT <pops>]"),
]

ROWS = COMMANDS + BLOCKING + shared("list")

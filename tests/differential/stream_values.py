"""Streams (the type; what is sent is a stream too, see streams.py). Ids are never the clock's: the two servers would part.
What replies with maps is not called by scripts: these have no order in Lua."""

from .rows import Row, blocking, call, shared

ENTRIES = [
    call("XADD <stream> <new_id> <entry>"),
    call("XADD <stream> <new_id> <entry>"),
    call("XADD <stream> <new_id> <entry>"),
    call("XADD <stream> [NOMKSTREAM] [<trim>] <new_id> <entry>"),
    call("XADD <stream> (NOMKSTREAM|MAXLEN 5|LIMIT 3|<word>)+ <entry_id> <entry>"),
    call("XADD <stream> (KEEPREF|DELREF|ACKED) [<trim>] <new_id> <entry>", needs="xdelex"),
    call("XADD <stream> (IDMP p r|IDMPAUTO p|IDMP p) [KEEPREF|NOMKSTREAM] <entry_id> <entry>", needs="xcfgset"),
    call("XTRIM <stream> <trim> (KEEPREF|DELREF|ACKED)", needs="xdelex"),
    call("XDELEX <stream> [KEEPREF|DELREF|ACKED] IDS <counted_ids>"),
    call("XDELEX <stream> (IDS <counted_ids>|KEEPREF|ACKED|<word>)+"),
    call("XCFGSET <stream> (IDMP-DURATION <reads>|IDMP-MAXSIZE <reads>|<word>)+"),
    call("XLEN <stream>"),
    call("XRANGE <stream> - +"),
    call("XRANGE <stream> <id_bound> <id_bound> [COUNT <pops>]"),
    call("XREVRANGE <stream> <id_bound> <id_bound> [COUNT <pops>]"),
    call("XRANGE <stream> - + (COUNT 1|COUNT|<word>)+"),
    call("XDEL <stream> <entry_id>+"),
    call("XTRIM <stream> <trim>"),
    call("XTRIM <stream> (MAXLEN|MINID|LIMIT|~|=|5|<word>)+"),
    call("XSETID <stream> <new_id>"),
    call("XSETID <stream> <new_id> [ENTRIESADDED <reads>] [MAXDELETEDID <entry_id>]"),
    Row("XREAD [COUNT <pops>] STREAMS <stream> (<entry_id>|0|$|+)"),
    Row("XREAD [COUNT <pops>] STREAMS <stream> <stream> <entry_id> (0|$|+|<word>)"),
    Row("XREAD (COUNT 1|BLOCK abc|NOACK|GROUP g c|<word>)+ STREAMS <stream> 0"),
    Row("XINFO STREAM <stream>", "newer_stream"),
    Row("XINFO STREAM <stream>", "newer_stream"),
    Row("XINFO STREAM <stream> FULL [COUNT <pops>]", "newer_stream"),
    Row("XINFO STREAM <stream> (FULL|COUNT|<word>)+", "newer_stream"),
]

GROUPS = [
    call("XGROUP CREATE <stream> <group> (<entry_id>|0|$) [MKSTREAM] [ENTRIESREAD <reads>]"),
    call("XGROUP CREATE <stream> <group> 0 MKSTREAM"),
    call("XGROUP CREATE <stream> <group> 0 (MKSTREAM|ENTRIESREAD|<word>)+"),
    call("XGROUP SETID <stream> <group> (<entry_id>|0|$) [ENTRIESREAD <reads>]"),
    call("XGROUP DESTROY <stream> <group>"),
    call("XGROUP CREATECONSUMER <stream> <group> <consumer>"),
    call("XGROUP DELCONSUMER <stream> <group> <consumer>"),
    call("XGROUP NOSUCH <stream>"),
    Row("XREADGROUP GROUP <group> <consumer> [COUNT <pops>] [NOACK] STREAMS <stream> >"),
    Row("XREADGROUP GROUP <group> <consumer> [COUNT <pops>] [NOACK] STREAMS <stream> >"),
    Row("XREADGROUP GROUP <group> <consumer> [COUNT <pops>] STREAMS <stream> (<entry_id>|0|$|+)"),
    Row("XREADGROUP GROUP <group> <consumer> STREAMS <stream> <stream> > (0|>)"),
    Row("XREADGROUP (GROUP g0 c0|COUNT 1|NOACK|<word>)+ STREAMS <stream> >"),
    call("XACK <stream> <group> <entry_id>+"),
    call("XACK <stream> <group> <entry_id>+"),
    call("XACKDEL <stream> <group> [KEEPREF|DELREF|ACKED] IDS <counted_ids>"),
    call("XACKDEL <stream> <group> (IDS <counted_ids>|KEEPREF|DELREF|<word>)+"),
    Row("XREADGROUP GROUP <group> <consumer> [CLAIM <idle>] [COUNT <pops>] STREAMS <stream> >", "near_deep_ms", needs="xcfgset"),
    call("XPENDING <stream> <group>"),
    call("XPENDING <stream> <group> [IDLE <idle>] <id_bound> <id_bound> <pops> [<consumer>]", "near_deep_ms"),
    call("XPENDING <stream> <group> (IDLE 5|-|+|10|<word>)+", "near_deep_ms"),
    call("XCLAIM <stream> <group> <consumer> <idle> <entry_id>+ [IDLE <idle>] [TIME <at_milliseconds>] [RETRYCOUNT <reads>] [FORCE] "
         "[JUSTID] [LASTID <entry_id>]"),
    call("XCLAIM <stream> <group> <consumer> 0 <entry_id>+ (FORCE|JUSTID|IDLE|TIME 5|RETRYCOUNT abc|<word>)+"),
    call("XAUTOCLAIM <stream> <group> <consumer> <idle> <id_bound> [COUNT <pops>] [JUSTID]"),
    call("XAUTOCLAIM <stream> <group> <consumer> 0 0 (COUNT 2|JUSTID|COUNT|<word>)+"),
    Row("XINFO GROUPS <stream>"),
    Row("XINFO CONSUMERS <stream> <group>", "near_deep_ms"),
    Row("XINFO NOSUCH <stream>"),
]

BLOCKING = [
    blocking("XREAD BLOCK <wait_ms> STREAMS <stream> ($|0|<entry_id>|+)"),
    blocking("XREAD COUNT 1 BLOCK <wait_ms> STREAMS <stream> <stream> $ $"),
    blocking("XREADGROUP GROUP <group> <consumer> BLOCK <wait_ms> STREAMS <stream> >"),
    blocking("XREADGROUP GROUP <group> <consumer> COUNT 1 BLOCK <wait_ms> NOACK STREAMS <stream> >"),
]

ROWS = ENTRIES + GROUPS + BLOCKING + shared("stream")

"""The commands that are generated, as data: one template a line, under the themes that streams are made of.

A template is used only when both servers know its command. Collections have modules of their own.
"""

from . import bitmaps, geo, grammar, hashes, hyperloglog, lists, scripts, sets, sorted_sets, stream_values, streams, tracking, users, vector_sets
from .rows import Row


STRINGS = [
    Row("SET <key> <value>"),
    Row("SET <key> <value> [NX|XX] [GET] [EX <seconds>|PX <milliseconds>|EXAT <at_seconds>|PXAT <at_milliseconds>|KEEPTTL]"),
    Row("SET <key> <value> [GET] [KEEPTTL|EX <seconds>] [NX|XX]"),
    Row("SET <key> <value> (NX|XX|GET|KEEPTTL|EX|PX|EXAT|PXAT|EX 100|PX 100000|IFGT|<word>)+"),
    Row("GET <key>"),
    Row("SETNX <key> <value>"),
    Row("SETEX <key> <seconds> <value>"),
    Row("PSETEX <key> <milliseconds> <value>"),
    Row("GETSET <key> <value>"),
    Row("GETDEL <key>"),
    Row("GETEX <key> [EX <seconds>|PX <milliseconds>|EXAT <at_seconds>|PXAT <at_milliseconds>|PERSIST]"),
    Row("GETEX <key> (EX 10|PERSIST|KEEPTTL|PX|<word>)+"),
    Row("MGET <key>+"),
    Row("MSET (<key> <value>)+"),
    Row("MSETNX (<key> <value>)+"),
    Row("APPEND <key> <value>"),
    Row("STRLEN <key>"),
    Row("GETRANGE <key> <offset> <offset>"),
    Row("SUBSTR <key> <offset> <offset>"),
    Row("SETRANGE <key> <write_offset> <small>"),
    Row("INCR <key>"),
    Row("DECR <key>"),
    Row("INCRBY <key> <int>"),
    Row("DECRBY <key> <int>"),
    Row("INCRBYFLOAT <key> <float>"),
    Row("LCS <key> <key> [LEN|IDX] [MINMATCHLEN <count>] [WITHMATCHLEN]"),
    Row("LCS <key> <key> (LEN|IDX|MINMATCHLEN 1|WITHMATCHLEN|<word>)+"),
]

# Of Redis 8.4.
CONDITIONS = "(IFEQ <value>|IFNE <value>|IFDEQ <digest>|IFDNE <digest>)"
NEWER_STRINGS = [
    Row("SET <key> <value> " + CONDITIONS, needs="msetex"),
    Row("SET <key> <value> " + CONDITIONS + " [EX <seconds>|PX <milliseconds>|KEEPTTL]", needs="msetex"),
    # With GET the reference does not say that a digest is none.
    Row("SET <key> <value> (IFEQ <value>|IFNE <value>) GET [EX <seconds>|KEEPTTL]", needs="msetex"),
    # Behind one of these the reference takes NX or XX as well, and heeds the last one; before it, it refuses them, as ours does.
    Row("SET <key> <value> [NX|XX] (IFEQ|IFNE) [GET|KEEPTTL|abc]", needs="msetex"),
    Row("DELEX <key>"),
    Row("DELEX <key> " + CONDITIONS),
    Row("DELEX <key> (IFEQ a|IFNE|IFDEQ <digest>|<word>)+"),
    Row("DIGEST <key>"),
    Row("DIGEST <key> <key>"),
    Row("MSETEX <counted_values> [NX|XX] [EX <seconds>|PX <milliseconds>|EXAT <at_seconds>|PXAT <at_milliseconds>|KEEPTTL]"),
    Row("MSETEX <counted_values> (NX|XX|KEEPTTL|EX 100|EX|PXAT|<word>)+"),
]

KEYSPACE = [
    Row("DEL <key>+"),
    Row("UNLINK <key>+"),
    Row("EXISTS <key>+"),
    Row("TOUCH <key>+"),
    Row("TYPE <key>"),
    Row("RENAME <key> <key>"),
    Row("RENAMENX <key> <key>"),
    Row("COPY <key> <key> [DB <db>] [REPLACE]"),
    Row("MOVE <key> <db>"),
    Row("SWAPDB <db> <db>"),
    Row("SELECT <db>"),
    # Counts what has expired but was not found yet, so it wants a server that looks only when asked.
    Row("DBSIZE", needs="debug"),
    Row("RANDOMKEY", compare="same_type"),
    Row("KEYS <pattern>", compare="any_order"),
    Row("FLUSHDB [ASYNC|SYNC|<word>]"),
    Row("OBJECT ENCODING <key>"),
    # The reference has one object for a small integer in several keys, but not in all, and its clock is whose it was last.
    Row("OBJECT REFCOUNT <key>", compare="same_type"),
    Row("OBJECT IDLETIME <key>", compare="same_type"),
    Row("OBJECT FREQ <key>"),
    Row("RESTORE <key> <milliseconds> <small> [REPLACE|ABSTTL|IDLETIME (5|-1|abc)|FREQ (5|256|abc)|<word>]"),
    Row("OBJECT (ENCODING|NOSUCH|<word>) [<key>]"),
]
# A cursor's number is a server's own, and so is how many keys a step returns; whole walks are compared as sets.
WALKS = [
    Row("SCAN <int> (MATCH|COUNT|TYPE|NOVALUES|<word>) <word>", compare="cursor_and_any"),
    Row("SCAN abc"),
    Row("SCAN 0 COUNT (0|-1|abc)"),
]

EXPIRY = [
    Row("SET <key> <value> [EX <seconds>|PX <milliseconds>]"),
    Row("EXPIRE <key> <seconds> [NX|XX|GT|LT]"),
    Row("PEXPIRE <key> <milliseconds> [NX|XX|GT|LT]"),
    Row("EXPIREAT <key> <at_seconds> [NX|XX|GT|LT]"),
    Row("PEXPIREAT <key> <at_milliseconds> [NX|XX|GT|LT]"),
    Row("EXPIRE <key> <seconds> (NX|XX|GT|LT|<word>)+"),
    Row("TTL <key>", compare="near"),
    Row("PTTL <key>", compare="near_ms"),
    Row("EXPIRETIME <key>", compare="near"),
    Row("PEXPIRETIME <key>", compare="near_ms"),
    Row("PERSIST <key>"),
    Row("RENAME <key> <key>"),
    Row("COPY <key> <key> [DB <db>] [REPLACE]"),
    Row("MOVE <key> <db>"),
    Row("DEL <key>"),
    Row("EXISTS <key>"),
    Row("INCR <key>"),
    Row("APPEND <key> <small>"),
    Row("GET <key>"),
]
# Their deadline passes in the pause that follows, on both servers.
SHORT_LIVED = [
    Row("SET <key> <value> PX 1", alone=True, in_multi=False, pause=True),
    Row("PEXPIRE <key> 1 [NX|XX|GT|LT]", alone=True, in_multi=False, pause=True),
]

TRANSACTIONS = [
    Row("MULTI"),
    Row("EXEC"),
    Row("DISCARD"),
    Row("WATCH <key>+"),
    Row("UNWATCH"),
    Row("SET <key> <small>"),
    Row("INCR <key>"),
    Row("GET <key>"),
    Row("DEL <key>+"),
    Row("PEXPIREAT <key> <at_milliseconds>"),
    Row("APPEND <key> <small>"),
    Row("SELECT <db>"),
    Row("SWAPDB <db> <db>"),
    Row("FLUSHDB"),
    Row("FLUSHALL"),
    Row("MSET (<key> <small>)+"),
    Row("GET"),
    Row("NOSUCHCOMMAND <small>", always=True),
    Row("PING [<small>]"),
    Row("RESET"),
]

CONNECTION = [
    Row("PING [<value>]"),
    Row("ECHO <value>"),
    Row("SELECT <db>"),
    Row("RESET"),
    Row("QUIT", alone=True),
    Row("HELLO [2|3|4|1|abc] [SETNAME <name>]", compare="hello"),
    # The reference does not answer a wrong password while replies wait to be sent, and so never ends the reply of an EXEC.
    Row("HELLO (2|3) (AUTH <small> <small>|SETNAME|AUTH default|<word>)+", compare="hello", alone=True, in_multi=False),
    Row("AUTH <small> [<small>]", alone=True, in_multi=False),
    Row("CLIENT SETNAME <name>"),
    Row("CLIENT GETNAME"),
    Row("CLIENT ID", compare="same_type"),
    Row("CLIENT SETINFO (lib-name|lib-ver|LIB-NAME|nosuch) <name>"),
    Row("CLIENT KILL <small>"),
    Row("CLIENT KILL ID (0|-1|abc|99999999)"),
    Row("CLIENT KILL (TYPE (master|nosuch)|USER nosuch|ADDR 1.2.3.4:5|LADDR 1.2.3.4:5|ID 99999999|MAXAGE (99999999|abc|-1)"
        "|SKIPME maybe|ID abc|NOSUCH a)+", alone=True),
    Row("CLIENT UNBLOCK 99999999 [TIMEOUT|ERROR|<word>]"),
    Row("CLIENT NO-EVICT (ON|OFF|<word>)"),
    Row("CLIENT NO-TOUCH (ON|OFF|<word>)"),
    # What makes a client track is in tracking.py.
    Row("CLIENT TRACKING OFF"),
    Row("CLIENT TRACKING OFF (BCAST|OPTIN|OPTOUT|NOLOOP|REDIRECT (0|-1|abc|99999999)|PREFIX <name>|PREFIX|<word>)+"),
    Row("CLIENT TRACKING ON (NOLOOP|OPTIN)+ (PREFIX <name>|REDIRECT (0|-1|abc|99999999)|<word>)", exact=True),
    Row("CLIENT TRACKING ON BCAST (OPTIN|OPTOUT|PREFIX same PREFIX same|PREFIX longer PREFIX long|PREFIX)", exact=True),
    Row("CLIENT TRACKING <word>"),
    Row("CLIENT CACHING (YES|NO|<word>)"),
    Row("CLIENT GETREDIR"),
    Row("CLIENT TRACKINGINFO"),
    Row("CLIENT PAUSE (0|-1|abc|1) [ALL|WRITE|<word>]"),
    Row("CLIENT UNPAUSE"),
    Row("CLIENT REPLY <word>"),
    # Ours takes several filters, as Valkey's does.
    Row("CLIENT LIST (TYPE|ID) (nosuch|abc|99999999)", alone=True),
    Row("CLIENT NOSUCH"),
    Row("CLIENT INFO", compare="fields"),
]

SERVER = [
    Row("TIME", compare="same_type"),
    Row("WAIT 0 0"),
    Row("WAIT (0|abc|-1) (0|-1|abc)"),
    Row("COMMAND GETKEYS <request>"),
    Row("COMMAND GETKEYSANDFLAGS <request>"),
    Row("COMMAND INFO <described>+", compare="unordered_flags"),
    Row("COMMAND DOCS <described>+", compare="any_order_deep"),
    Row("COMMAND NOSUCH"),
    Row("CONFIG GET (maxmemory|maxmemory-policy|appendonly|databases|timeout|nosuch|hz|port-nosuch|list-max-listpack-size)+",
        compare="any_order_pairs"),
    Row("CONFIG GET"),
    Row("CONFIG SET (nosuch|hz|databases|timeout|appendonly) (abc|-1|<word>)"),
    Row("CONFIG SET maxmemory-policy (abc|-1|<word>)", compare="newer_refusal"),
    Row("CONFIG SET (maxmemory-samples 5|maxmemory-samples 0|maxmemory-samples abc)+"),
    Row("CONFIG NOSUCH"),
    Row("DEBUG SLEEP 0"),
    Row("DEBUG STRINGMATCH-LEN 10 k*"),
    Row("DEBUG PROTOCOL (string|integer|double|null|array|set|map|attrib|verbatim|true|false|bignum|nosuch)"),
    Row("DEBUG DIGEST-VALUE <missing>+"),
    Row("MEMORY USAGE <missing>"),
    Row("MEMORY NOSUCH"),
    Row("SCRIPT NOSUCH"),
    Row("INFO nosuchsection"),
    Row("LASTSAVE", compare="same_type"),
    Row("SLOWLOG GET (abc|-2|0|1.5)", compare="same_kind"),
    Row("SLOWLOG [RESET|NOSUCH|LEN a]", compare="same_kind"),
    Row("LATENCY [LATEST|NOSUCH|RESET|GRAPH|HISTORY]"),
    Row("LATENCY (HISTORY|GRAPH|RESET) (command|<small>)"),
    Row("LATENCY HISTOGRAM (nosuch|noneither)+", compare="same_kind"),
    Row("MODULE (LOAD|LOADEX|UNLOAD|NOSUCH) <small>"),
    # Nobody subscribes: what others would be sent comes between the replies.
    Row("PUBLISH <name> <small>"),
    Row("SPUBLISH <name> <small>"),
    Row("PUBSUB CHANNELS [<pattern>]"),
    Row("PUBSUB SHARDCHANNELS [<pattern>]"),
    Row("PUBSUB NUMSUB [<name>]"),
    Row("PUBSUB SHARDNUMSUB [<name>]"),
    Row("PUBSUB NUMPAT"),
    Row("PUBSUB (CHANNELS|NUMPAT|SHARDCHANNELS|NOSUCH) <word> [<word>]"),
    Row("CLUSTER INFO"),
    Row("CLUSTER KEYSLOT <key>"),
    Row("CLUSTER (NODES|SLOTS|MYID|RESET|COUNTKEYSINSLOT 1|NOSUCH) [<word>]"),
    Row("ASKING"),
    Row("READONLY"),
    Row("READWRITE"),
    Row("ROLE"),
    Row("WAITAOF (0|2|-1|abc) (0|-1|abc) (0|-1|abc)", exact=True),
    Row("FAILOVER (ABORT|FORCE|TIMEOUT 0|TIMEOUT abc|TO a b|<word>)+", exact=True),
    Row("COMMAND COUNT", compare="same_type"),
    Row("COMMAND LIST FILTERBY (MODULE nosuch|ACLCAT nosuch|PATTERN nosuch*|PATTERN|<word>)", exact=True),
    Row("MEMORY (DOCTOR|STATS|PURGE|MALLOC-STATS) <word>", exact=True),
    Row("<word>", always=True),
    Row("(nosuch|GETX|se-t|g) <value>+", always=True),
    Row("NOSUCHCOMMAND <value>+", always=True),
]

SCRIPTING = [
    Row("EVAL <script>", compare="script"),
    Row("EVAL <script>", compare="script"),
    Row("EVAL <script>", compare="script"),
    Row("EVAL_RO <script>", compare="script"),
    Row("EVALSHA <loaded>"),
    Row("EVALSHA_RO <loaded>"),
    Row("SCRIPT LOAD <body>", compare="script"),
    Row("SCRIPT EXISTS <sha>+"),
    Row("SCRIPT FLUSH [ASYNC|SYNC|<word>]"),
    Row("SCRIPT KILL"),
    Row("EVALSHA (abc|ffffffffffffffffffffffffffffffffffffffff) 0"),
    Row("EVAL [<small>] (0|1|-1|abc|2) [<key>]", compare="script"),
    Row("GET <key>"),
    Row("SET <key> <value>"),
]

# Libraries stay as they are, for what a compiler says is its own.
FUNCTIONS = [
    Row("FUNCTION LOAD <library>", exact=True),
    Row("FUNCTION LOAD <library>", exact=True),
    Row("FUNCTION LOAD <library>", exact=True),
    Row("FUNCTION LOAD REPLACE <library>", exact=True),
    Row("FUNCTION LOAD REPLACE <library>", exact=True),
    Row("FUNCTION LOAD <word> <library>", exact=True),
    Row("FUNCTION DELETE <library_name>"),
    Row("FUNCTION LIST", compare="any_order", exact=True),
    Row("FUNCTION LIST LIBRARYNAME <library_pattern> [WITHCODE]", compare="any_order", exact=True),
    Row("FUNCTION LIST (WITHCODE|LIBRARYNAME|<word>)+", compare="any_order", exact=True),
    Row("FUNCTION STATS"),
    Row("FUNCTION FLUSH [ASYNC|SYNC|<word>]"),
    Row("FUNCTION KILL"),
    Row("FUNCTION RESTORE <small> [FLUSH|APPEND|REPLACE|<word>]"),
    Row("FCALL <function> 1 <key> <value>"),
    Row("FCALL <function> 1 <key> <value>"),
    Row("FCALL <function> 1 <key> <int>"),
    Row("FCALL_RO <function> 1 <key> <value>"),
    Row("FCALL <function> (0|1|-1|abc|2) [<key>]"),
    Row("SET <key> <value>"),
    Row("GET <key>"),
]

# So that strings meet the other types.
OTHER_TYPES = [
    Row("RPUSH <key> <small>"),
    Row("SADD <key> <small>"),
    Row("HSET <key> <small> <small>"),
    Row("ZADD <key> 1 <small>"),
]

THEMES = {
    "strings": STRINGS + NEWER_STRINGS + KEYSPACE[:5] + OTHER_TYPES[:1],
    "keyspace": STRINGS[:3] + KEYSPACE + WALKS + EXPIRY + OTHER_TYPES,
    "bitmaps": bitmaps.ROWS,
    "lists": lists.ROWS,
    "hashes": hashes.ROWS,
    "sets": sets.ROWS,
    "sorted_sets": sorted_sets.ROWS,
    "stream_values": stream_values.ROWS,
    "geo": geo.ROWS,
    "hyperloglogs": hyperloglog.ROWS,
    "collections": lists.ROWS + hashes.ROWS + sets.ROWS + sorted_sets.ROWS,
    "vector_sets": vector_sets.ROWS,
    "expiry": EXPIRY + SHORT_LIVED + STRINGS[:12],
    "transactions": TRANSACTIONS + STRINGS[:6] + SHORT_LIVED[:1],
    "connection": CONNECTION + STRINGS[:2] + TRANSACTIONS[:3],
    "server": SERVER + STRINGS[:2],
    "scripting": SCRIPTING + KEYSPACE[:3],
    "functions": FUNCTIONS,
    "users": users.ROWS,
    "tracking": tracking.ROWS,
    "everything": STRINGS + NEWER_STRINGS + KEYSPACE + WALKS + EXPIRY + SHORT_LIVED + TRANSACTIONS + CONNECTION + SERVER + SCRIPTING,
}

# How the rest of a dataset is read at the end: for a type, the command, and whether its order means something.
READERS = {
    "string": (["GET"], [], True),
    "list": (["LRANGE"], ["0", "-1"], True),
    "set": (["SMEMBERS"], [], False),
    "hash": (["HGETALL"], [], False),
    "zset": (["ZRANGE"], ["0", "-1", "WITHSCORES"], True),
    "stream": (["XRANGE"], ["-", "+"], True),
    "vectorset": (["VRANDMEMBER"], ["1000"], False),
}


# Documented with what newer versions than the reference added, or with their flags. 8.0 tells nothing of the commands of vector sets.
GROWN = {"bgsave", "bitop", "eval", "eval_ro", "evalsha", "evalsha_ro", "fcall", "fcall_ro", "psubscribe", "set", "ssubscribe", "subscribe", "xadd", "xinfo", "xinfo|stream", "xread", "xreadgroup", "xtrim",
         "zinter", "zinterstore", "zscan", "zunion", "zunionstore",
         # Described otherwise: which words are optional, and the summary of HELP.
         "cluster", "cluster|migration", "hotkeys", "hotkeys|help", "hotkeys|start",
         "vadd", "vcard", "vdim", "vemb", "vgetattr", "vinfo", "vismember", "vlinks", "vrandmember", "vrem", "vsetattr", "vsim"}


CHANCE = {"spop", "srandmember", "hrandfield", "zrandmember"}


def _leaves_no_choice(count):
    """Whether so many are none, all, or no number."""
    try:
        return bool(count) and (int(count[0]) == 0 or int(count[0]) >= 100000)
    except ValueError:
        return True


class Vocabulary:
    """The rows and scripts that both servers know, by theme. `not_shared`: commands that only one of them knows."""

    def __init__(self, commands, not_shared):
        self.commands = sorted(commands)
        self.not_shared = not_shared
        outgrown = {name.split("|")[0] for name in not_shared if "|" in name}
        self.described = sorted(commands - GROWN - outgrown)
        self.themes = {}
        for theme, rows in THEMES.items():
            known = [row for row in rows if row.known_to(commands)]
            if any(not row.always for row in known):
                self.themes[theme] = known
        self.scripts = [(grammar.Template(arguments), body.encode())
                        for needs, arguments, body in scripts.SCRIPTS
                        if all(need.lower() in commands for need in needs.split())]

    def comparable(self, words, compare=None):
        """Whether a request is not about commands that only one server knows, nor about all that there is, nor left to chance."""
        if words[1:2] and words[1] in streams.CALLERS:
            return self.comparable(words[3:], compare)
        names = [word.decode("latin1").lower() for word in words]
        if not names or not names[0] or names in (["command"], ["info"]):
            return False
        if names[:2] == ["config", "get"] and any("*" in name for name in names):
            return False
        if names[0] in CHANCE:
            return compare == "same_type" and names[0] != "spop" or _leaves_no_choice(names[2:3])
        if names[0] != "command":
            return names[0] not in self.not_shared
        if len(names) == 2 and names[1] in ("docs", "info"):
            return False
        if names[1] in ("docs", "info"):
            return all(name in self.described or name not in self.not_shared and name not in self.commands for name in names[2:])
        return not self.not_shared.intersection(names[2:3])

"""Clients that are told of changes, and what is done to keys before their eyes. They are told between steps (see pair.py), which only
those hear who speak RESP3."""

from .rows import Row


def exact(template, compare=None, **how):
    return Row(template, compare, exact=True, **how)


def alone(template):
    """What changes how a turn's changes are told is a turn of its own: where turns end within a pipeline is a matter of chance."""
    return Row(template, alone=True, in_multi=False)


LISTENING = [
    Row("HELLO 3", compare="hello", alone=True, in_multi=False),
    alone("CLIENT TRACKING ON [NOLOOP]"),
    alone("CLIENT TRACKING ON (OPTIN|OPTOUT) [NOLOOP]"),
    alone("CLIENT TRACKING ON BCAST [NOLOOP] [PREFIX k|PREFIX k1 PREFIX k2 PREFIX l|PREFIX k2]"),
    alone("CLIENT TRACKING OFF"),
    exact("CLIENT CACHING (YES|NO)"),
    exact("CLIENT CACHING (YES|NO)"),
    exact("CLIENT TRACKINGINFO"),
    exact("CLIENT GETREDIR"),
    alone("RESET"),
]
READING = [
    Row("GET <key>"),
    Row("MGET <key>+"),
    Row("EXISTS <key>+"),
    Row("TTL <key>", compare="near"),
    Row("TYPE <key>"),
    Row("OBJECT ENCODING <key>"),
    Row("STRLEN <key>"),
    Row("BITCOUNT <key>"),
    Row("PFCOUNT <key>"),
    Row("LRANGE <list> 0 -1"),
    exact("EVAL <tracked_reader> 1 k1"),
    exact("BITOP OR <key> <key> <key>"),
]
CHANGING = [
    Row("SET <key> <small> [NX|XX] [KEEPTTL|EX <seconds>] [GET]"),
    Row("SET <key> <small>"),
    Row("DEL <key>+"),
    Row("GETDEL <key>"),
    Row("GETEX <key> [EX <seconds>|PERSIST]"),
    Row("INCR <key>"),
    Row("APPEND <key> <small>"),
    Row("SETRANGE <key> 0 <small>"),
    Row("SETBIT <key> 5 <bit>"),
    Row("PFADD <key> <small>"),
    Row("MSET (<key> <small>)+"),
    Row("MSETNX (<key> <small>)+"),
    Row("RENAME <key> <key>"),
    Row("COPY <key> <key> [REPLACE]"),
    Row("MOVE <key> <db>"),
    Row("EXPIRE <key> <seconds> [NX|XX|GT|LT]"),
    Row("PERSIST <key>"),
    Row("RPUSH <list> <element>+"),
    Row("LPOP <list> [<pops>]"),
    Row("LMOVE <list> <list> LEFT RIGHT"),
    Row("SELECT <db>"),
    Row("FLUSHDB"),
    Row("SWAPDB <db> <db>"),
    exact("EVAL <tracked_writer> 1 k1"),
    exact("SET <key> <small> PX 1", alone=True, in_multi=False, pause=True),
]
QUEUEING = [Row("MULTI"), Row("EXEC"), Row("EXEC"), Row("DISCARD")]

ROWS = LISTENING + READING + READING + CHANGING + QUEUEING

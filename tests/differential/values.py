"""Kinds of words. Every kind is a function of a random.Random that returns bytes."""

import random
import struct

from . import functions

# Deadlines lie so far off that none passes while a stream runs, or have passed already.
FAR_SECONDS = 4102444800


def choose(*words):
    words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return lambda rng: rng.choice(words)


def often(likely, rare, chance=0.15):
    return lambda rng: (rare if rng.random() < chance else likely)(rng)


def binary(rng: random.Random, longest=64):
    return rng.randbytes(rng.randrange(longest))


def text(rng):
    return bytes(rng.choices(b"abcdefghijklmnopqrstuvwxyz0123456789 :-", k=rng.randrange(1, 30)))


def around_embedded(rng):
    """Lengths about the one where a string changes its encoding."""
    return b"v" * rng.choice([43, 44, 45, 20, 21, 63, 64, 65, 127, 128, 255, 256])


def large(rng):
    return rng.choice([b"x", b"ab", b"\x00\xff"]) * rng.choice([500, 5000, 16384, 40000])


integer = often(
    lambda rng: str(rng.randrange(-20, 100)).encode(),
    choose(2**31 - 1, 2**31, 2**32, 2**63 - 1, -(2**63), 2**63, 2**64, 10**30, -1, 0, 9999, 10000))
not_integer = choose("", " 1", "1 ", "+1", "01", "-0", "0x10", "1.0", "1e3", "abc", "--1", b"1\x00", "١")
float_ = often(
    choose("0.1", "1.5", "-2.25", "3", "1e3", "3.0e-2", "100", "5.0", "10.5", "-0", "0.00000001", "123456789.123"),
    choose("1e400", "-1e400", "nan", "inf", "-inf", "+inf", "1e308", "0x1p3", "1.0.0", "", " 1.5", "1.5 ", "1e-400",
           "17976931348623157e292", "1e17", "12345678901234567890", "1e5000", "abc"))


def value(rng):
    return rng.choices([text, binary, integer, float_, not_integer, around_embedded, large, choose("")],
                       weights=[30, 10, 25, 8, 5, 8, 1, 3])[0](rng)


KEYS = [b"k%d" % i for i in range(12)] + [b"key:{tag}:1", b"key:{tag}:2", b"", b"\x00\xff\r\n", b"a" * 70, b"1", b"k[1]*?"]


def key(rng):
    return rng.choice(KEYS) if rng.random() < 0.7 else rng.choice(KEYS[:4])


def word(rng):
    return rng.choice([b"foo", b"bar", b"", b"x y", b"NX", b"GET", b"0", b"-1", b"\xff", b"*", b"COUNT"])


# --- Of collections ------------------------------------------------------------------------------

# Few enough that the same come again, at the edges of what a listpack packs as an integer, and some that only look like one.
ELEMENTS = [b"a", b"b", b"c", b"d", b"e", b"foo", b"bar", b"ab", b"abc", b"", b"\x00", b"\xff\x00\r\n", b"0", b"1", b"2", b"3", b"10",
            b"-1", b"127", b"128", b"-128", b"4095", b"4096", b"-4096", b"-4097", b"32767", b"32768", b"-32769", b"8388607",
            b"8388608", b"2147483647", b"2147483648", b"-2147483649", b"9223372036854775807", b"-9223372036854775808",
            b"9223372036854775808", b"01", b"+1", b"-0", b"1.0", b" 1", b"1 ", b"0x1", b"1e3", b"99999999999999999999"]


def long_element(rng):
    return rng.choice([b"m", b"n", b"1", b"\x00"]) * rng.choice([9, 20, 21, 63, 64, 65, 66, 127, 128, 253, 254, 255, 256])


def huge_element(rng):
    """About what a node of a list holds, by its several measures."""
    return rng.choice([b"h", b"i"]) * rng.choice([1000, 2000, 4000, 4080, 4096, 5000, 8170, 8180, 8192, 9000, 16384, 40000, 70000])


def element(rng):
    return rng.choices([lambda r: r.choice(ELEMENTS), lambda r: b"%d" % r.randrange(-50, 300), text, binary, long_element, huge_element],
                       weights=[60, 24, 4, 4, 7, 1])[0](rng)


def how_many(rng):
    """Of what a request brings: mostly few, sometimes more than the thresholds."""
    return rng.choices([rng.randrange(1, 5), rng.randrange(5, 40), rng.randrange(100, 300), rng.randrange(500, 600)],
                       weights=[80, 15, 4, 1])[0]


def elements(rng):
    if rng.random() < 0.2:
        start = rng.randrange(1000)
        return [b"e%d" % (start + i) for i in range(how_many(rng))]
    return [element(rng) for _ in range(how_many(rng))]


def integers(rng):
    start = rng.choice([0, 0, 100, 32760, -32770, 2147483640, -(2**63)])
    return [b"%d" % (start + rng.randrange(300)) for _ in range(how_many(rng))]


def fields(rng):
    if rng.random() < 0.2:
        start = rng.randrange(1000)
        return [word for i in range(how_many(rng)) for word in (b"f%d" % (start + i), element(rng))]
    return [element(rng) for _ in range(2 * how_many(rng))]


score = often(
    choose(0, 0, 1, 1, 2, 3, -1, 5, 10, 1.5, 2.25, -2.5, 0.1, 0.2, 100, 1000),
    choose("inf", "-inf", "+inf", "-0", "1e3", "1e308", "-1e308", "1.7976931348623157e308", "5e-324", "1e-320", "1e-5", "1e17", "1e21",
           "1e22", "123456789012345678", "9007199254740993", "4294967296", "2147483648", "3.0", "3.14159265358979", "0x1p3", "1e400",
           "Infinity", "0.30000000000000004", "1e-7", "-1.5e-9", "9223372036854775807", "-9223372036854775808", "1e15", "1e16"), 0.25)
not_score = choose("nan", "", "abc", " 1", "1 ", "1.0.0", b"1\x00", "NaN", "--1", "1,5")
any_score = often(score, not_score, 0.02)


def scored(rng):
    """Scores and members in turn, as ZADD takes them."""
    if rng.random() < 0.2:
        start = rng.randrange(1000)
        return [word for i in range(how_many(rng)) for word in (score(rng), b"e%d" % (start + i))]
    return [word for _ in range(how_many(rng)) for word in (any_score(rng), element(rng))]


def equally_scored(rng):
    return [word for _ in range(how_many(rng)) for word in (b"0", element(rng))]


def bound(rng):
    kind = rng.random()
    if kind < 0.2:
        return rng.choice([b"-inf", b"+inf", b"inf", b"(-inf", b"(+inf"])
    return (b"(" if kind < 0.5 else b"") + any_score(rng)


def lex(rng):
    kind = rng.random()
    if kind < 0.3:
        return rng.choice([b"-", b"+"])
    if kind < 0.33:
        return rng.choice([b"a", b"", b"-x", b"+x", b"(-", b"[+"])
    return rng.choice([b"[", b"("]) + element(rng)


# --- Of places ------------------------------------------------------------------------------------

_length_unit = often(choose("m", "km", "ft", "mi", "KM", "Mi"), choose("", "yd", "meters"), 0.04)
_size = often(lambda rng: repr(10 ** rng.uniform(-1, 7)).encode(),
              choose(0, 1, 1000, 40000000, "inf", "1e300", "-1", "nan", "abc", ""), 0.1)


def place(rng):
    """Longitude and latitude, near the others or anywhere, seldom at an end of the world or beyond it."""
    spread = rng.choice([0.0005, 0.1, 5, 90])
    longitude = rng.choice([0, 0, 180, -180]) + rng.uniform(-spread, spread)
    longitude -= 360 if longitude > 180 else -360 if longitude < -180 else 0
    latitude = max(-85.05, min(85.05, rng.choice([0, 0, 60, 85, -85]) + rng.uniform(-spread, spread) / 2))
    words = [repr(longitude).encode(), repr(latitude).encode()]
    if rng.random() < 0.06:
        words[rng.randrange(2)] = rng.choice([b"180", b"-180", b"0", b"85.05112878", b"-85.05112878", b"85.06", b"181", b"abc", b"nan",
                                              b"inf", b"1e300", b""])
    return words


def places(rng):
    return [word for _ in range(how_many(rng)) for word in (*place(rng), element(rng))]


def length(rng):
    return [_size(rng), _length_unit(rng)]


# --- HyperLogLogs -------------------------------------------------------------------------------

def numbered(rng):
    """Elements without end, so that registers fill."""
    start = rng.randrange(100000)
    return [b"%d" % (start + i) for i in range(how_many(rng))]


def sketch_bytes(rng):
    """Of a HyperLogLog, sound or with no registers at all; of what has wrong ones the reference changes a part before it finds out."""
    header = b"HYLL" + rng.choice([b"\x01", b"\x01", b"\x01", b"\x00", b"\x02"]) + rng.randbytes(3)
    header += rng.choice([bytes(8), bytes(7) + b"\x80", b"\x05" + bytes(7), rng.randbytes(8)])
    runs = b""
    left = 16384
    while left > 0:
        zeros = min(left, rng.choice([1, 2, 63, 64, 65, 1000, 8000, 16384]))
        runs += b"%c" % (zeros - 1) if zeros <= 64 else b"%c%c" % (0x40 | (zeros - 1) >> 8, (zeros - 1) & 255)
        left -= zeros
        for _ in range(rng.randrange(4)):
            length = min(left, rng.randrange(1, 5))
            if length:
                runs += b"%c" % (0x80 | rng.choice([0, 0, 1, 2, 31]) << 2 | (length - 1))
            left -= length
    return header + (b"" if rng.random() < 0.05 else runs)


# --- Of vectors -----------------------------------------------------------------------------------

def vector(rng):
    """Two components, seldom more or none, in one of the two forms."""
    numbers = [rng.randrange(-3, 4) for _ in range(2 if rng.random() < 0.9 else rng.randrange(0, 4))]
    if rng.random() < 0.5:
        return [rng.choice([b"FP32", b"fp32"]), struct.pack("<%df" % len(numbers), *numbers)]
    # The largest number there is ends the reference.
    count = rng.choice([b"0", b"-1", b"abc", b"9"]) if rng.random() < 0.04 else b"%d" % len(numbers)
    return [b"VALUES", count, *(b"%d" % number for number in numbers)]


def filter_expression(rng, depth):
    """An expression on the fields of attributes, most of the time a valid one."""
    if depth == 0 or rng.random() < 0.3:
        return rng.choice([b".a", b".s", b".l", b".n", b".nosuch", b"1", b"-2", b"0.5", b'"foo"', b"'1'", b"[1,2]", b'["foo", 3]',
                           b"[]", b'""', b"1e2", b"@", b"foo"])
    left = filter_expression(rng, depth - 1)
    if rng.random() < 0.2:
        # Ours takes a not of a not, as Redis 8.12 does.
        nots = [] if left.startswith((b"!", b"not ")) else [b"!%s", b"not %s", b"! %s"]
        return rng.choice([*nots, b"(%s)", b"(%s"]) % left
    operator = rng.choice([b"+", b"-", b"*", b"/", b"%", b"**", b"<", b"<=", b">", b">=", b"==", b"!=", b"in", b"and", b"or", b"&&",
                           b"||", b"=", b"AND"])
    return left + rng.choice([b" ", b" ", b" ", b""]) + operator + b" " + filter_expression(rng, depth - 1)


# --- Keys -----------------------------------------------------------------------------------------

def keys_of(letter, count=4, others=(b"l", b"h", b"s", b"z", b"k"), missing=(b"nosuchkey",)):
    """Kind of keys that hold one type, seldom another's, seldom none."""
    own = [b"%s%d" % (letter, i) for i in range(count)]
    others = [b"%s0" % other for other in others if other != letter] + list(missing)
    return lambda rng: rng.choice(own) if rng.random() < 0.97 else rng.choice(others)


def counted(kind, wrong=0.04):
    """Words of a kind behind their number, which is seldom wrong."""
    def words(rng):
        found = [word for _ in range(rng.choice([1, 1, 2, 2, 3, 4])) for word in _listed(kind(rng))]
        return [_number(rng, len(found), wrong), *found]
    return words


def _listed(word):
    return word if isinstance(word, list) else [word]


def _number(rng, number, wrong):
    return rng.choice([b"0", b"-1", b"abc", b"%d" % (number + 1), b"1", b"9223372036854775807"]) if rng.random() < wrong \
        else b"%d" % number


def counted_values(rng):
    """Keys and their values, behind their number."""
    pairs = [word for _ in range(rng.choice([1, 1, 2, 3])) for word in (key(rng), value(rng))]
    return [_number(rng, len(pairs) // 2, 0.04), *pairs]


def counted_pairs(rng):
    pairs = [word for _ in range(rng.choice([1, 1, 2, 3])) for word in (element(rng), element(rng))]
    return [_number(rng, len(pairs) // 2, 0.04), *pairs]


def weighted_zsets(rng):
    found = counted(either_set)(rng)
    weights = [any_score(rng) for _ in found[1:]]
    if rng.random() < 0.05:
        weights = weights[1:] or weights * 2
    return [*found, b"WEIGHTS", *weights]


own_list, own_hash, own_set, own_zset = map(keys_of, (b"l", b"h", b"s", b"z"))


def row_bytes(rng):
    kind = rng.random()
    if kind < 0.3:
        return binary(rng)
    return rng.choice([b"\x00", b"\xff"]) * rng.choice([0, 1, 2, 3, 7, 8, 9, 63, 64, 65, 255, 256, 5000]) + binary(rng, 1 if kind < 0.5 else 4)


def field_type(rng):
    if rng.random() < 0.04:
        return rng.choice([b"u64", b"i65", b"u0", b"i0", b"U8", b"u", b"", b"8", b"u08", b"i-1", b"abc"])
    return rng.choice([b"u", b"i"]) + b"%d" % rng.choice([1, 2, 3, 4, 5, 7, 8, 8, 8, 9, 13, 16, 31, 32, 33, 62, 63])


def either_set(rng):
    return (own_set if rng.random() < 0.2 else own_zset)(rng)


own_stream = keys_of(b"t", 3)


def new_id(rng):
    """An id above those before, mostly."""
    if rng.random() < 0.1:
        return entry_id(rng)
    rng.last_stream_ms = getattr(rng, "last_stream_ms", 0) + rng.choice([0, 0, 1, 1, 2, 300])
    return b"%d-%s" % (rng.last_stream_ms, b"*" if rng.random() < 0.7 else b"%d" % rng.randrange(20))


def entry_id(rng):
    """An id that an entry may have."""
    if rng.random() < 0.1:
        return rng.choice([b"0", b"0-0", b"0-1", b"007", b"+7", b"5-", b"-", b"+", b"abc", b"", b"1-1-1", b"-1", b"1--05",
                           b"18446744073709551615", b"18446744073709551616", b"18446744073709551615-18446744073709551615",
                           b"1-18446744073709551615", b"5-*"])
    ms = max(0, getattr(rng, "last_stream_ms", 0) - rng.choice([0, 1, 2, 3, 5, 10, 20]))
    return b"%d" % ms if rng.random() < 0.2 else b"%d-%d" % (ms, rng.choice([0, 0, 0, 1, 1, 2, 3, 10]))


def id_bound(rng):
    kind = rng.random()
    return rng.choice([b"-", b"+"]) if kind < 0.4 else (b"(" if kind < 0.55 else b"") + entry_id(rng)


def entry(rng):
    names = rng.choice([[b"a"], [b"a", b"b"], [b"a", b"b"], [b"b", b"a", b"1"], [element(rng)]])
    return [word for name in names for word in (name, element(rng))]


def trim(rng):
    how = rng.choice([b"MAXLEN", b"MINID"])
    words = [how, *rng.choice([[], [b"="], [b"~"], [b"~"]])]
    words.append(entry_id(rng) if how == b"MINID" else rng.choice([b"0", b"1", b"3", b"10", b"20", b"-1", b"abc"]))
    if rng.random() < 0.3:
        words += [b"LIMIT", rng.choice([b"0", b"1", b"3", b"10", b"-1", b"abc"])]
    return words


# Settings that say when a collection changes its encoding, each with small values and with others; its default is the first of these.
THRESHOLDS = {
    b"list-compress-depth": ([0, 1, 1, 2, 3], [0, 1]),
    b"list-max-listpack-size": ([-1, 1, 2, 3, 5], [-2, 128, 8, 32, 512, -3, -5, 0]),
    b"hash-max-listpack-entries": ([0, 1, 2, 4, 8], [512, 128, 20]),
    b"hash-max-listpack-value": ([0, 1, 3, 8, 20], [64, 30]),
    b"set-max-intset-entries": ([0, 1, 2, 4, 8], [512, 20]),
    b"set-max-listpack-entries": ([0, 1, 2, 4, 8], [128, 20]),
    b"set-max-listpack-value": ([0, 1, 3, 8, 20], [64, 30]),
    b"hll-sparse-max-bytes": ([0, 18, 22, 30], [3000, 100, 400]),
    b"zset-max-listpack-entries": ([0, 1, 2, 4, 8], [128, 20]),
    b"zset-max-listpack-value": ([0, 1, 3, 8, 20], [64, 30]),
    b"stream-node-max-entries": ([1, 2, 3, 5], [100, 0, 20]),
    b"stream-node-max-bytes": ([1, 40, 100, 300], [4096, 0]),
}
DEFAULTS = {name: usual[0] for name, (_, usual) in THRESHOLDS.items()}
COMPACT = {name: 1000000 for name in THRESHOLDS} | {b"list-max-listpack-size": 128, b"list-compress-depth": 0}


class Settings:
    """What the thresholds of a stream are.

    `compact`    every collection stays in an encoding that keeps an order
    `scatter`    members of sets may be taken in the order of a hash table, because the encoding of a set that is made of them does
                 not depend on it: as many integers as an intset may not hold are too many for a listpack as well
    """

    def __init__(self, rng):
        how = rng.random()
        self.compact = 0.25 <= how < 0.5
        self.scatter = not self.compact and rng.random() < 0.7
        if how < 0.5:
            self.values = DEFAULTS if how < 0.25 else COMPACT
            return
        self.values = {name: rng.choice(small if how < 0.75 or rng.random() < 0.5 else usual)
                       for name, (small, usual) in THRESHOLDS.items()}
        if self.scatter:
            self.values[b"set-max-intset-entries"] = max(self.values[b"set-max-intset-entries"],
                                                         self.values[b"set-max-listpack-entries"])

    def change(self, rng):
        """Words that change one of them."""
        names = set(THRESHOLDS)
        if self.scatter:
            names -= {b"set-max-intset-entries", b"set-max-listpack-entries"}
        name = rng.choice(sorted(names))
        small, usual = THRESHOLDS[name]
        return [name, b"%d" % rng.choice(small + usual)]


# --- Users ---

DIGEST_OF_ONE = "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"
# Not here: what the reference cannot read again itself ("%R~*" made "~*" by "%W~*", parentheses and quotes within selectors,
# spaces within a first argument).
ACL_RULES = [
    "on", "on", "off", "nopass", "resetpass", ">one", ">one", ">two", "<one", "#" + DIGEST_OF_ONE, "!" + DIGEST_OF_ONE, "#abc", "!x",
    "allkeys", "~*", "resetkeys", "resetkeys", "~k1", "~k*", "%R~k1", "%W~k2", "%RW~k3", "%R~k2", "%w~k1", "%", "%~", "%R", "%RR~a",
    "%X~a", "~", "allchannels", "&*", "resetchannels", "resetchannels", "&news", "&news*", "&",
    "+@all", "-@all", "allcommands", "nocommands", "+@read", "+@write", "-@read", "-@write", "+@string", "-@string", "+@FAST", "-@slow",
    "+@dangerous", "-@admin", "+@pubsub", "+@connection", "+@scripting", "+@zebra", "+@", "-@zebra", "+@transaction",
    "+get", "-get", "+set", "-set", "+GET", "+mget", "+del", "-del", "+acl", "-acl", "+acl|whoami", "-acl|whoami", "+acl|list", "+config",
    "+config|get", "-config|get", "-config|set", "+config|zebra", "+config|get|a", "+config|", "+select|0", "+select|1", "+SELECT|0",
    "-select", "+select", "-select|0", "+get|k1", "+get|", "+get|k1|k2", "+zebra", "-zebra", "+", "-", "+eval", "+multi", "+exec",
    "+auth", "zebra", "reset", "reset", "sanitize-payload", "skip-sanitize-payload", "clearselectors", "(", ")", "()", "(on)", "(+get",
    "~k1)", "(+get ~k1)", "( +@read ~k* )", "(%W~k2 +@write &news)", "(+@all (+get))", "(%R~k* +@all)", "(+zebra)", "(~a ~* ~b)", "",
]
ACL_REQUESTS = [
    "GET k1", "GET k2", "SET k1 v", "SET k2 v GET", "SET k3 v XX", "MGET k1 k2 k3", "DEL k1 k2", "COPY k1 k2", "RENAME k2 k1",
    "EXISTS k1 k3", "STRLEN k2", "APPEND k1 a", "PUBLISH news a", "PUBLISH other a", "SPUBLISH news a", "CONFIG GET maxmemory",
    "CONFIG SET maxmemory 0", "CONFIG", "CONFIG ZEBRA", "SELECT 0", "SELECT 1", "SORT k4", "SORT k4 STORE k5", "SORT k4 BY k*", "SORT k4 GET #",
    "SORT_RO k4", "EVAL return(1) 1 k1", "EVAL return(1) 0", "EVAL return(1) -1 k1", "EVAL return(1) 5 k1", "EVAL_RO return(1) 1 k2",
    "BITFIELD k1 GET u4 0", "BITFIELD k1 SET u4 0 1", "GETEX k1", "GETDEL k2", "OBJECT ENCODING k1", "XREAD STREAMS k6 0", "ZUNIONSTORE k7 2 k8 k9", "LMOVE k4 k5 LEFT LEFT", "GET", "ZEBRA a", "PING", "ECHO a", "WATCH k1", "UNWATCH",
    "ACL WHOAMI", "ACL LIST", "SUNSUBSCRIBE news",
]


def acl_rules(rng):
    """Words, each a rule or part of one."""
    return [word.encode() for word in rng.choices(ACL_RULES, k=rng.choice([1, 1, 2, 3, 5]))]


def acl_request(rng):
    return [word.encode() for word in rng.choice(ACL_REQUESTS).split(" ")]


KINDS = {
    "acl_user": choose("anna", "anna", "berta", "carla"),
    "acl_password": choose("one", "one", "two", "three", ""),
    "acl_rules": acl_rules,
    "acl_caller": choose("return redis.pcall(unpack(ARGV))"),
    "acl_checker": choose("return redis.acl_check_cmd(unpack(ARGV))"),
    # Of "a", "b", "hello", and none at all.
    "digest": choose("e6c632b61e964e1f", "575a0b1c44d8843f", "9555e8555c62dcfd", "0000000000000000", "E6C632B61E964E1F", "abc", ""),
    "acl_request": acl_request,
    "tracked_reader": choose("return redis.call('GET', KEYS[1])", "return redis.call('MGET', 'k2', 'k3')", "return redis.call('GET', 'k2')"),
    "tracked_writer": choose("return redis.call('SET', KEYS[1], '1')", "redis.call('SET', 'k2', '1') return redis.call('DEL', 'k3')"),
    "list": own_list,
    "hash": own_hash,
    "set": own_set,
    "zset": own_zset,
    "lexset": keys_of(b"x", 3, (b"l", b"h", b"s", b"k"), (b"neverset",)),
    "row": keys_of(b"b"),
    "row_bytes": row_bytes,
    "bit": often(choose(0, 1), choose(2, -1, "abc", "", "01", 2**63), 0.06),
    "bit_offset": often(lambda rng: b"%d" % rng.randrange(rng.choice([8, 100, 3000])),
                        choose(-1, 2**32, 2**63 - 1, 2**63, -(2**63), "abc", "", "1.0", "#1", 1000000), 0.06),
    "bit_index": often(lambda rng: b"%d" % rng.randrange(-200, 200), choose(2**63 - 1, -(2**63), 2**63, -5000, 5000, "abc"), 0.1),
    "field_type": field_type,
    # Numbers of fields so large that their product with the width overflows become small offsets in the reference.
    "field_offset": often(lambda rng: rng.choice([b"", b"#"]) + b"%d" % rng.randrange(rng.choice([4, 64, 500])),
                          choose(-1, "#-1", 2**32, "#4294967296", 2**63, "#9223372036854775808", "abc", "", "#", "#x", "+1", 100000), 0.06),
    # The smallest number there is overflows in the reference when it is saturated.
    "field_number": often(lambda rng: b"%d" % rng.randrange(-rng.choice([2, 20, 300, 70000]), rng.choice([3, 20, 300, 70000])),
                          choose(2**63 - 1, -(2**62), 2**62, 2**31, 2**32 - 1, -(2**31) - 1, 2**63, "abc", "", "1.5"), 0.15),
    "stream": own_stream,
    "new_id": new_id,
    "entry_id": entry_id,
    "id_bound": id_bound,
    "entry": entry,
    "trim": trim,
    "group": often(choose("g0", "g0", "g1"), choose("nosuch", ""), 0.05),
    "consumer": choose("c0", "c0", "c1", "c2", ""),
    "reads": often(choose(0, 1, 5, 100), choose(-1, -2, "abc", 2**63, 2**63 - 1), 0.15),
    "idle": often(choose(0, 0, 0, 3600000), choose(-1, "abc", "", 2**63 - 1), 0.1),
    "wait_ms": often(choose(10, 1, 20), choose(-1, "abc", "", "1.5", 2**63 - 1), 0.2),
    "vset": keys_of(b"v", 3),
    "vector": vector,
    "component": often(lambda rng: b"%d" % rng.randrange(-3, 4), choose("nan", "abc", "", "1e999", "0x2", "1 "), 0.03),
    "vector_element": often(choose("e0", "e1", "e2", "e3", "e4", "e5", "e6"), choose("", "nosuch", "x y"), 0.1),
    "attributes": choose('{"a":1}', '{"a":2,"s":"foo"}', '{"a":3,"l":[1,"x"]}', '{"s":"bar","n":null}', "no JSON", "{"),
    "no_attributes": choose(""),
    "filter": lambda rng: filter_expression(rng, 3),
    "sketch": keys_of(b"y", 4),
    "sketch_bytes": sketch_bytes,
    "numbered": numbered,
    "geo": keys_of(b"g", 3),
    "place": place,
    "places": places,
    "size": _size,
    "length": length,
    "length_unit": _length_unit,
    "other": choose("l0", "h0", "s0", "z0", "k0"),
    "element": element,
    "elements": elements,
    "integers": integers,
    "fields": fields,
    "counter": choose("n", "m", "10"),
    "score": any_score,
    "scored": scored,
    "equally_scored": equally_scored,
    "bound": bound,
    "lex": lex,
    "skipped": often(choose(0, 0, 1, 2, 3, 5, 10, 100, 127, 130), choose(1000, 2**63 - 1, 2**63, "abc", ""), 0.1),
    "index": often(choose(0, 0, 1, 2, 3, 5, 10, -1, -2, -3, -5, 100, 127, 130), choose(-1000, 1000, 2**63 - 1, -(2**63), 2**63, "abc", ""), 0.1),
    # LSET takes indexes below -2^32 for others in the reference, and so hits the wrong element.
    "place": often(choose(0, 0, 1, 2, 3, 5, 10, -1, -2, -3, -5, 100, 127, 130), choose(-1000, 1000, 2**31 - 1, 2**63, "abc", ""), 0.1),
    "pops": often(choose(1, 1, 2, 3, 5, 20), choose(0, -1, 1000, 2**63 - 1, 2**63, -(2**63), "abc", ""), 0.1),
    "no_count": choose(0, "-0", "abc", "1.5", "", 2**63, -(2**63) - 1, -(2**63), "00"),
    "timeout": often(choose("0.01", "0.001", "0.02"), choose(-1, "-0.5", "abc", "", "nan", "inf", "1e400", "1e300", " 1"), 0.2),
    "counted_lists": counted(own_list),
    "counted_sets": counted(own_set),
    "counted_zsets": counted(either_set),
    "counted_fields": counted(element),
    "counted_values": counted_values,
    "counted_ids": counted(lambda rng: entry_id(rng)),
    "counted_pairs": counted_pairs,
    "weighted_zsets": weighted_zsets,
    "sort_pattern": choose("k*", "*", "h0->*", "h*->a", "nosort", "#", "l*", "nosuch_*", "*->", "->*"),
    "weights": choose("k*", "*", "h0->*", "h*->a", "#*", "l*", "nosuch_*", "*->", "->*"),
    "key": key,
    "missing": choose("nosuchkey", "neverset"),
    "value": value,
    "small": choose("a", "b", "c", "x", "hello", "hello world", "10", ""),
    "int": often(integer, not_integer, 0.06),
    "float": often(float_, integer),
    "offset": often(choose(0, 1, 2, 3, 5, 10, 40, -1, -2, -5, 100),
                    choose(-(2**63), 2**63 - 1, 2**63, 536870911, 536870912, 2**32, "abc", "", "1.5")),
    "write_offset": often(choose(0, 1, 2, 5, 10, 45, 100),
                          choose(-1, 2**63 - 1, 536870911, 536870912, 2**32, "abc", "")),
    "count": often(choose(1, 2, 5, 10, 100), choose(0, -1, "abc", 2**63, "")),
    "seconds": often(choose(100, 1000, 86400, 10**8),
                     choose(0, -1, -100, 2**63 - 1, 9223372036854775, 9223372036854776, 2**63, "abc", "", "1.5", -(2**63))),
    "milliseconds": often(choose(100000, 1000000, 86400000, 10**11),
                          choose(0, -1, -100, 2**63 - 1, 9223372036854775807 - 10**13, 2**63, "abc", "", -(2**63))),
    "at_seconds": often(choose(FAR_SECONDS, FAR_SECONDS + 1, FAR_SECONDS - 50, 10**11),
                        choose(0, 1, -1, 1000000000, 2**63 - 1, 9223372036854775, 9223372036854776, "abc", -(2**63))),
    "at_milliseconds": often(choose(FAR_SECONDS * 1000, FAR_SECONDS * 1000 + 1, 10**14),
                             choose(0, 1, -1, 1000000000000, 2**63 - 1, 2**63, "abc", -(2**63))),
    "db": often(choose(0, 1, 2, 3), choose(4, -1, 16, "abc", "", 2**31, 2**63)),
    "pattern": choose("*", "k*", "k?", "k[0-5]", "k[^1]", "[", "k\\1", "*1*", "", "?*", "key:*", "k[5-0]", "**", "\\", "a*a"),
    "type": choose("string", "list", "set", "zset", "hash", "stream", "STRING", "nosuch", ""),
    "word": word,
    "library": choose(*functions.LIBRARIES),
    "library_name": choose(*functions.NAMES),
    "library_pattern": choose(*functions.PATTERNS),
    "function": choose(*functions.FUNCTIONS),
    "name": choose("anna", "a-b", "", "with space", "tab\there", "äöü", "x"),
}

"""Kinds of words. Every kind is a function of a random.Random that returns bytes."""

import random

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


KINDS = {
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
    "name": choose("anna", "a-b", "", "with space", "tab\there", "äöü", "x"),
}

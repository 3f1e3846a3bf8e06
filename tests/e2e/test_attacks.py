"""The attacks of tests/ATTACKS.md that need no script: each is sent as it was found, and leaves a server that is well and has not
given away or lost anything. The texts of errors are the reference's (8.0.2) unless said otherwise."""

import contextlib
import os
import random
import socket
import struct
import threading
import unittest

import harness
import scenes

LARGEST = 2**63 - 1
SMALLEST = -(2**63)


class Attack(scenes.FaultTestCase):
    options = {}

    def setUp(self):
        self.server = self.start(**self.options)
        self.client = self.connect(self.server)

    def tearDown(self):
        self.client.close()
        self.expect_rest(self.server)

    def ask(self, *words):
        self.client.send(*words)
        return self.client.read()

    def expect_error(self, *words, begins="ERR"):
        reply = self.ask(*words)
        self.assertTrue(scenes.is_error(reply, begins), (words, reply))

    def used_memory(self):
        return int(scenes.figures(self.server, "memory")["used_memory"])


class Sizes(Attack):
    """Numbers that overflow where sizes are computed."""

    def test_lcs_of_long_strings(self):
        self.ask("MSET", "a", "x" * 3_000_000, "b", "y" * 3_000_000)
        # Nine million million pairs of characters.
        for more in ((), ("LEN",), ("IDX",)):
            self.expect_error("LCS", "a", "b", *more, begins="ERR Insufficient memory")
        self.ask("MSET", "a", "x" * 70_000, "b", "y" * 70_000)
        self.expect_error("LCS", "a", "b", begins="ERR Insufficient memory")

    def test_strings_as_long_as_configured(self):
        self.assertEqual(self.ask("CONFIG", "SET", "proto-max-bulk-len", LARGEST), "OK")
        for offset in (LARGEST, LARGEST - 1, -1, SMALLEST):
            self.expect_error("SETRANGE", "key", offset, "xx")
        self.ask("SET", "key", "value")
        for first, last in ((SMALLEST, LARGEST), (LARGEST, SMALLEST), (SMALLEST, SMALLEST), (0, LARGEST), (LARGEST, LARGEST)):
            self.assertIn(self.ask("GETRANGE", "key", first, last), ("value", "", "v"))

    def test_a_length_that_is_announced_is_not_allocated(self):
        self.assertEqual(self.ask("CONFIG", "SET", "proto-max-bulk-len", LARGEST), "OK")
        before = self.used_memory()
        clients = [self.connect(self.server) for _ in range(10)]
        for client in clients:
            client.send_raw(b"*2\r\n$4\r\nECHO\r\n$%d\r\nx" % (LARGEST - 10))
        for client in clients:
            other = self.connect(self.server)
            self.assertEqual(other.call("PING"), "PONG")
            other.close()
        # What is announced is believed up to a certain size.
        self.assertLess(self.used_memory() - before, 200_000_000)
        for client in clients:
            client.close()
        self.eventually(lambda: self.used_memory() - before < 1_000_000, self.server, what="freeing")

    def test_bits_far_away(self):
        self.ask("SET", "key", "value")
        for offset in (LARGEST, LARGEST - 1, LARGEST // 8 + 1, 2**32, -1, SMALLEST, 2**64):
            self.expect_error("SETBIT", "key", offset, "1")
            self.expect_error("BITFIELD", "key", "SET", "u8", offset, "1")
            self.expect_error("BITFIELD", "key", "GET", "i64", "#%d" % offset)
        for unit in ("BYTE", "BIT"):
            for first, last in ((SMALLEST, LARGEST), (LARGEST, SMALLEST), (LARGEST, LARGEST), (SMALLEST, SMALLEST)):
                self.assertIsInstance(self.ask("BITCOUNT", "key", first, last, unit), int)
                self.assertIsInstance(self.ask("BITPOS", "key", "1", first, last, unit), int)

    def test_compact_encodings_without_limits(self):
        for name in ("hash-max-listpack-entries", "hash-max-listpack-value", "zset-max-listpack-entries", "zset-max-listpack-value",
                     "set-max-intset-entries", "set-max-listpack-entries", "set-max-listpack-value"):
            self.assertEqual(self.ask("CONFIG", "SET", name, LARGEST), "OK", name)
        value = "x" * 1_000_000
        for i in range(20):
            self.ask("HSET", "hash", "field-%d" % i, value)
            self.ask("ZADD", "zset", i, value + str(i))
            self.ask("SADD", "texts", value + str(i))
        for first in range(0, 20_000, 500):
            self.ask("SADD", "numbers", *range(first, first + 500))
        self.ask("SADD", "numbers", SMALLEST, LARGEST)
        self.assertEqual(self.ask("COPY", "numbers", "copy"), 1)
        self.assertEqual(self.ask("SCARD", "copy"), 20_002)
        self.assertEqual(self.ask("DEBUG", "RELOAD"), "OK")
        self.assertEqual([self.ask(*words) for words in (("HLEN", "hash"), ("ZCARD", "zset"), ("SCARD", "texts"), ("SCARD", "copy"))],
                         [20, 20, 20, 20_002])
        self.assertEqual(self.ask("HGET", "hash", "field-19"), value)

    def test_a_stream_of_large_entries_without_limits(self):
        for name, value in (("stream-node-max-bytes", "0"), ("stream-node-max-entries", "0"), ("proto-max-bulk-len", LARGEST),
                            ("client-query-buffer-limit", LARGEST)):
            self.assertEqual(self.ask("CONFIG", "SET", name, value), "OK", name)
        value = "x" * 3_000_000
        for i in range(1, 16):
            self.assertEqual(self.ask("XADD", "stream", "%d-1" % i, "field", value), "%d-1" % i)
        self.assertEqual(self.ask("DEBUG", "RELOAD"), "OK")
        self.assertEqual(self.ask("XLEN", "stream"), 15)
        self.assertEqual(self.ask("XRANGE", "stream", "15-1", "15-1"), [["15-1", ["field", value]]])


class Counts(Attack):
    """Numbers of elements that overflow where they are negated or multiplied."""

    options = {"client_output_buffer_limit": "normal 20mb 0 0"}

    def setUp(self):
        super().setUp()
        self.ask("HSET", "hash", "a", "1", "b", "2")
        self.ask("SADD", "set", "a", "b")
        self.ask("ZADD", "zset", "1", "a", "2", "b")
        self.ask("VADD", "vectors", "VALUES", "1", "1", "a")
        self.ask("XADD", "stream", "1-1", "f", "v")
        self.ask("XADD", "stream", "2-1", "f", "v")
        self.ask("XGROUP", "CREATE", "stream", "group", "0")
        self.ask("XREADGROUP", "GROUP", "group", "one", "STREAMS", "stream", ">")
        self.ask("XDEL", "stream", "1-1")

    def bounded(self, *words):
        """An error, an answer, or the end of the connection because it would be too long; but an end."""
        with self.server.connect() as client:
            client.send(*words)
            try:
                self.assertIsInstance(client.read(), (list, harness.ReplyError))
            except (ConnectionError, harness.ConnectionClosed):
                pass
        self.assertEqual(scenes.ask(self.server, "PING"), "PONG")

    def test_random_elements(self):
        for count in (SMALLEST, SMALLEST + 1, SMALLEST // 2, SMALLEST // 2 - 1, -(2**62), -(2**33), LARGEST, LARGEST - 1, 2**64):
            for words in (("HRANDFIELD", "hash", count), ("HRANDFIELD", "hash", count, "WITHVALUES"), ("ZRANDMEMBER", "zset", count),
                          ("ZRANDMEMBER", "zset", count, "WITHSCORES"), ("SRANDMEMBER", "set", count),
                          ("VRANDMEMBER", "vectors", count)):
                with self.subTest(words):
                    self.bounded(*words)
        # What the reference refuses.
        for words in (("HRANDFIELD", "hash", SMALLEST), ("HRANDFIELD", "hash", SMALLEST // 2 - 1, "WITHVALUES"),
                      ("ZRANDMEMBER", "zset", SMALLEST // 2 - 1, "WITHSCORES"), ("SRANDMEMBER", "set", SMALLEST),
                      ("VRANDMEMBER", "vectors", SMALLEST)):
            self.expect_error(*words)

    def test_claims(self):
        for count in (LARGEST, LARGEST - 1, LARGEST // 16, LARGEST // 16 + 1, LARGEST // 24, 2**60, 2**32, 0, -1, SMALLEST):
            for more in ((), ("JUSTID",)):
                reply = self.ask("XAUTOCLAIM", "stream", "group", "two", "0", "0", "COUNT", count, *more)
                self.assertTrue(isinstance(reply, list) or scenes.is_error(reply, "ERR"), reply)
        self.expect_error("XAUTOCLAIM", "stream", "group", "two", "0", "0", "COUNT", LARGEST)

    def test_ranges(self):
        for words in (("LRANGE", "list"), ("ZRANGE", "zset"), ("LTRIM", "list"), ("ZREMRANGEBYRANK", "zset")):
            for first, last in ((SMALLEST, LARGEST), (LARGEST, SMALLEST)):
                self.assertNotIsInstance(self.ask(*words, first, last), harness.ReplyError)
        self.ask("RPUSH", "numbers", "2", "1")
        for offset, count in ((LARGEST, LARGEST), (1, LARGEST), (SMALLEST, SMALLEST)):
            self.assertIsInstance(self.ask("SORT", "numbers", "LIMIT", offset, count), list)
            self.assertIsInstance(self.ask("SORT_RO", "numbers", "LIMIT", offset, count), list)


class Patterns(Attack):
    def test_patterns_that_take_exponential_time(self):
        """A matcher that tries every way to divide the key among forty stars would not be back in a lifetime."""
        self.ask("SET", "a" * 200, "value")
        self.ask("HSET", "hash", "a" * 200, "value")
        pattern = "a*" * 40 + "b"
        for words in (("KEYS", pattern), ("CONFIG", "GET", pattern), ("COMMAND", "LIST", "FILTERBY", "PATTERN", pattern),
                      ("FUNCTION", "LIST", "LIBRARYNAME", pattern)):
            self.assertEqual(self.ask(*words), [])
        self.assertEqual(self.ask("SCAN", "0", "MATCH", pattern, "COUNT", "1000")[1], [])
        self.assertEqual(self.ask("HSCAN", "hash", "0", "MATCH", pattern)[1], [])
        listener = self.connect(self.server)
        listener.call("PSUBSCRIBE", pattern)
        self.assertEqual(self.ask("PUBLISH", "a" * 200, "message"), 0)
        self.assertEqual(self.ask("PUBSUB", "CHANNELS", pattern), [])
        listener.close()

    def test_patterns_without_end(self):
        """A matcher that calls itself for each star, bracket or escape runs out of stack."""
        self.ask("SET", "key", "value")
        self.ask("SADD", "set", "member", "other")
        for piece in ("*", "?*", "*?", "[", "[^", "[a-", "\\", "\\*", "[]", "[a]*", "*[", "a*"):
            # A class that does not end is read to the end of the pattern for each place in the text: as much as that takes time.
            pattern = piece * ((50_000 if piece == "*[" else 300_000) // len(piece))
            with self.subTest(piece):
                for words in (("KEYS", pattern), ("SCAN", "0", "MATCH", pattern), ("SSCAN", "set", "0", "MATCH", pattern),
                              ("CONFIG", "GET", pattern), ("COMMAND", "LIST", "FILTERBY", "PATTERN", pattern),
                              ("FUNCTION", "LIST", "LIBRARYNAME", pattern), ("PUBSUB", "CHANNELS", pattern)):
                    self.assertIsInstance(self.ask(*words), list, words[0])
                self.assertEqual(self.ask("ACL", "SETUSER", "other", "on", "nopass", "+@all", "~" + pattern, "&" + pattern), "OK")
                self.assertIsInstance(self.ask("ACL", "DRYRUN", "other", "GET", "key"), str)
                self.assertIsInstance(self.ask("ACL", "LIST"), list)
                self.ask("ACL", "DELUSER", "other")
                listener = self.connect(self.server)
                listener.send("PSUBSCRIBE", pattern)
                listener.read()
                self.assertIsInstance(self.ask("PUBLISH", "channel", "message"), int)
                listener.close()


class Values(Attack):
    def test_msetnx_names_a_key_twice(self):
        self.assertEqual(self.ask("MSETNX", "key", "one", "key", "two"), 1)
        self.assertEqual(self.ask("GET", "key"), "two")
        self.assertEqual(self.ask("MSETNX", "key", "three", "other", "four"), 0)

    def test_numbers_in_hashes_that_are_none(self):
        for text in ("nan", "inf", "-inf", "1e400", "0x1p1000", "", " 1", "1 ", "1\0"):
            self.ask("HSET", "hash", "field", text)
            reply = self.ask("HINCRBYFLOAT", "hash", "field", "1")
            self.assertTrue(isinstance(reply, str) or scenes.is_error(reply, "ERR"), reply)
            self.ask("HSET", "hash", "number", "1e308")
            for increment in (text, "1e308", "nan", "inf"):
                reply = self.ask("HINCRBYFLOAT", "hash", "number", increment)
                self.assertTrue(isinstance(reply, str) or scenes.is_error(reply, "ERR"), reply)
            self.assertNotIn("nan", self.ask("HGET", "hash", "number"))
        long_field = "f" * 100_000
        self.assertEqual(self.ask("HINCRBYFLOAT", "hash", long_field, "0.1"), "0.1")
        values = self.ask("HGETALL", "hash")
        self.assertEqual(self.ask("DEBUG", "RELOAD"), "OK")
        self.assertEqual(self.ask("HGETALL", "hash"), values)

    def test_hyperloglogs_whose_runs_lead_too_far(self):
        zeros = bytes([0x7F, 0xFF])
        value = bytes([0x84])
        bodies = {
            "many long runs": zeros * 10_000,
            "a run beyond the end, then a value": zeros * 2 + value * 100,
            "runs up to an overflow": zeros * 140_000 + value * 10,
            "a run cut off": zeros[:1],
            "too few registers": value,
            "values without end": value * 20_000,
            "nothing": b"",
            "the right number, and one more": zeros + bytes([0x00]),
        }
        for name, body in bodies.items():
            for encoding in (b"\1", b"\0", b"\2", b"\xff"):
                for count in (b"\0" * 7 + b"\x80", b"\xff" * 8, b"\0" * 8):
                    with self.subTest(name):
                        self.ask("SET", "crafted", b"HYLL" + encoding + b"\0" * 3 + count + body)
                        self.ask("DEL", "other", "target")
                        self.ask("PFADD", "other", "a", "b")
                        for words in (("PFCOUNT", "crafted"), ("PFCOUNT", "crafted", "other"), ("PFMERGE", "target", "crafted", "other"),
                                      ("PFADD", "crafted", *range(100)), ("PFMERGE", "crafted", "other"), ("PFDEBUG", "GETREG", "crafted"),
                                      ("PFDEBUG", "TODENSE", "crafted"), ("PFCOUNT", "crafted")):
                            self.ask(*words)
        self.ask("DEL", "crafted")

    def test_payloads_that_are_wrong_somewhere(self):
        """Thousands of payloads with one to three bytes changed and the right checksum: each is refused, or is a value that can be
        read, changed and saved."""
        chance = random.Random(14)
        self.fill_every_type()
        names = self.ask("KEYS", "*")
        payloads = {name: self.dump(name) for name in sorted(names)}
        reads = {"string": ("GET",), "list": ("LRANGE", "0", "-1"), "set": ("SMEMBERS",), "hash": ("HGETALL",),
                 "zset": ("ZRANGE", "0", "-1", "WITHSCORES"), "stream": ("XINFO", "STREAM")}
        client = self.server.connect(binary=True)
        for name, payload in payloads.items():
            for _ in range(250):
                mutated = bytearray(payload[:-8])
                for _ in range(chance.randint(1, 3)):
                    # The version of the format stays.
                    mutated[chance.randrange(len(mutated) - 2)] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
                mutated = bytes(mutated) + struct.pack("<Q", crc64(bytes(mutated)))
                client.send("RESTORE", "crafted", "0", mutated, "REPLACE")
                if client.read() != b"OK":
                    continue
                client.send("TYPE", "crafted")
                kind = client.read().decode()
                if kind == "none":
                    continue
                command = reads[kind]
                requests = [(*command, "crafted", "FULL") if kind == "stream" else (command[0], "crafted", *command[1:]),
                            ("OBJECT", "ENCODING", "crafted"), ("DEBUG", "DIGEST-VALUE", "crafted"), ("DUMP", "crafted")]
                requests += {"hash": [("HSET", "crafted", "new", "value"), ("HDEL", "crafted", "a")],
                             "list": [("LPUSH", "crafted", "new"), ("LPOP", "crafted"), ("RPOP", "crafted")],
                             "set": [("SADD", "crafted", "new"), ("SPOP", "crafted")],
                             "zset": [("ZADD", "crafted", "3", "new"), ("ZPOPMIN", "crafted")],
                             "stream": [("XADD", "crafted", "NOMKSTREAM", "*", "f", "v"), ("XRANGE", "crafted", "-", "+"),
                                        ("XREADGROUP", "GROUP", "group", "c", "COUNT", "3", "STREAMS", "crafted", ">"),
                                        ("XAUTOCLAIM", "crafted", "group", "d", "0", "0"), ("XTRIM", "crafted", "MAXLEN", "1")],
                             "string": [("APPEND", "crafted", "x")]}[kind]
                for request in requests:
                    client.send(*request)
                    client.read()
            self.assertTrue(self.server.is_alive(), name)
        client.close()
        self.assertEqual(self.ask("DEBUG", "RELOAD"), "OK")

    def dump(self, name):
        with self.server.connect(binary=True) as client:
            client.send("DUMP", name)
            return client.read()

    def fill_every_type(self):
        def fill(prefix):
            for words in (("SET", "string", "value" * 20), ("SET", "number", "12345"), ("RPUSH", "list", *"abcdefgh", "x" * 100),
                          ("SADD", "numbers", *range(1000, 1020)), ("SADD", "set", *"abcdefgh"), ("HSET", "hash", *"aabbccddee"),
                          ("ZADD", "zset", "1", "a", "2.5", "b", "-inf", "c"), ("PFADD", "hll", *range(100)),
                          ("XADD", "stream", "1-1", "f", "v"), ("XADD", "stream", "1-2", "f", "v", "g", "w"), ("XADD", "stream", "2-1", "f", "v")):
                self.ask(words[0], prefix + words[1], *words[2:])
            self.ask("XGROUP", "CREATE", prefix + "stream", "group", "0")
            self.ask("XREADGROUP", "GROUP", "group", "consumer", "COUNT", "2", "STREAMS", prefix + "stream", ">")
            self.ask("HSET", prefix + "fields", *"aabbcc")
            self.ask("HEXPIRE", prefix + "fields", "1000", "FIELDS", "1", "a")

        fill("compact-")
        for name in ("hash-max-listpack-entries", "zset-max-listpack-entries", "set-max-listpack-entries", "set-max-intset-entries"):
            self.ask("CONFIG", "SET", name, "1")
        self.ask("CONFIG", "SET", "list-max-listpack-size", "2")
        fill("large-")


def crc64(data, table=[]):
    """The checksum of a payload: the polynomial of Jones, reflected."""
    if not table:
        for byte in range(256):
            for _ in range(8):
                byte = byte >> 1 ^ (0x95AC9329AC4BC9B5 if byte & 1 else 0)
            table.append(byte)
    crc = 0
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc


class Keys(Attack):
    """Finding keys in requests whose number of keys is a lie, and rights that hang on it."""

    NUMBERS = (SMALLEST, -(2**31) - 1, -(2**31), -1, 0, 3, 4, 2**31 - 1, 2**31, 2**32 + 1, 2**61 + 1, LARGEST, 2**64, "x", "")

    def requests(self):
        for number in self.NUMBERS:
            yield ("EVAL", "return 1", number, "a", "b")
            yield ("FCALL", "f", number, "a", "b")
            yield ("ZUNIONSTORE", "dst", number, "a", "b")
            yield ("ZINTER", number, "a", "b")
            yield ("SINTERCARD", number, "a", "b")
            yield ("LMPOP", number, "a", "b", "LEFT")
            yield ("BLMPOP", "1", number, "a", "b", "LEFT")
            yield ("ZDIFF", number)
        for words in (("MIGRATE", "host", "1", "", "0", "1", "KEYS"), ("MIGRATE", "host", "1", "", "0", "1", "AUTH", "KEYS", "KEYS", "a"),
                      ("MIGRATE", "host", "1", "key", "0", "1", "AUTH2", "a"), ("SORT", "a", "STORE"), ("SORT", "a", "STORE", "b", "STORE", "c"),
                      ("XREAD", "STREAMS"), ("XREAD", "STREAMS", "a"), ("XREAD", "COUNT", "STREAMS", "STREAMS", "a", "0"),
                      ("XREADGROUP", "GROUP", "STREAMS", "STREAMS", "STREAMS", "a", "0"), ("GEORADIUS", "a", "1", "1", "1", "m", "STORE"),
                      ("GEORADIUS", "a", "1", "1", "1", "m", "STORE", "b", "STOREDIST", "c"), ("MSET", "a"), ("EVAL",), ("OBJECT",), ("",)):
            yield words

    def test_keys_of_odd_requests(self):
        for request in self.requests():
            for words in (("COMMAND", "GETKEYS", *request), ("COMMAND", "GETKEYSANDFLAGS", *request)):
                reply = self.ask(*words)
                self.assertTrue(scenes.is_error(reply, "ERR") or all(isinstance(key, (str, list)) for key in reply), (words, reply))

    def test_rights_on_odd_requests(self):
        self.ask("ACL", "SETUSER", "limited", "on", "nopass", "+@all", "-@blocking", "~own:*", "(%R~read:* +@read)")
        limited = self.connect(self.server)
        limited.call("AUTH", "limited", "")
        self.ask("SET", "a", "secret")
        for request in self.requests():
            self.assertIsInstance(self.ask("ACL", "DRYRUN", "limited", *request), (str, harness.ReplyError))
            if request[0] in ("MIGRATE", ""):
                continue
            limited.send(*request)
            reply = limited.read()
            names_no_key = request[:3] == ("EVAL", "return 1", 0)
            self.assertTrue(reply == 1 if names_no_key else isinstance(reply, harness.ReplyError), (request, reply))
        self.assertEqual(self.ask("KEYS", "*"), ["a"])
        limited.close()

    def test_sort_reads_no_key_without_the_right(self):
        self.ask("ACL", "SETUSER", "limited", "on", "nopass", "+@all", "~own:*")
        self.ask("RPUSH", "secret", "2", "1")
        self.ask("RPUSH", "own:list", "2", "1")
        self.ask("MSET", "weight_1", "9", "weight_2", "8")
        limited = self.connect(self.server)
        limited.call("AUTH", "limited", "")
        for command in ("SORT", "SORT_RO"):
            self.assertEqual(limited.call(command, "own:list"), ["1", "2"])
            self.assertTrue(limited.error_of(command, "secret").startswith("NOPERM"))
            for option in ("BY", "GET"):
                self.assertTrue(limited.error_of(command, "own:list", option, "weight_*").startswith(("ERR BY option", "ERR GET option")))
        self.assertTrue(limited.error_of("SORT", "own:list", "STORE", "other").startswith("NOPERM"))
        limited.close()


class Selectors(Attack):
    RULES = ("(", ")", "()", "( )", "((", "))", "((+get))", "(+get", "+get)", "(+get) )", "(+get))", "%", "%~", "%R", "%R~", "%~x", "%RW", "%RW~",
             "%WR~x", "%RR~x", "%X~x", "%R%W~x", "(%)", "(%~)", "(%R)", "(%~x)", "(~)", "(&)", "(+)", "(-)", "(+@)", "(+get|)", "(>p)",
             "(on)", "(reset)", "(nopass)", "(clearselectors)", "(allkeys", "( allkeys )", "(\t+get)", "(+get\0)", "(~\0 +get)", "~", "&", "+", "-",
             "+@", "-@", "+|", "+get|", "+|get", "+config|get|set", ">", "<", "#", "!", "#" + "z" * 64, "~(", "~)", "&(", "(~( +get)", "(%R~%W~ +get)",
             "(" * 1000, ")" * 1000, "(" + "+get " * 1000 + ")", "(~" + "x" * 100_000 + ")")

    def test_rules_of_every_malformed_kind(self):
        for rule in self.RULES:
            for rules in ((rule,), ("on", rule, "+get"), (rule, rule), ("(+get ~x)", rule), (rule, "~x)"), ("(+set", rule, "~y)")):
                with self.subTest(rules[:2]):
                    self.ask("ACL", "SETUSER", "crafted", *rules)
                    self.read_back()
        self.ask("ACL", "DELUSER", "crafted")

    def read_back(self):
        for words in (("ACL", "LIST"), ("ACL", "GETUSER", "crafted"), ("ACL", "DRYRUN", "crafted", "GET", "x"), ("ACL", "USERS")):
            self.ask(*words)

    def test_rules_that_are_accepted_can_be_loaded_again(self):
        path = os.path.join(self.server.directory, "users")
        server = self.start(aclfile=path) if self.touch(path) else None
        client = self.connect(server)
        for number, rule in enumerate(self.RULES):
            client.send("ACL", "SETUSER", "user-%d" % number, "on", rule)
            client.read()
        client.call("ACL", "SAVE")
        users = client.call("ACL", "LIST")
        self.assertEqual(client.call("ACL", "LOAD"), "OK")
        self.assertEqual(client.call("ACL", "LIST"), users)
        client.close()

    @staticmethod
    def touch(path):
        open(path, "w").close()
        return True


class Strangers(Attack):
    """Who has not logged in costs little."""

    options = {"requirepass": "secret"}

    def setUp(self):
        super().setUp()
        self.client.call("AUTH", "secret")

    def tearDown(self):
        self.client.call("CONFIG", "SET", "requirepass", "")
        super().tearDown()

    def used_memory(self):
        return int(self.client.call("INFO", "memory").split("used_memory:")[1].split("\r\n")[0])

    def test_large_requests_are_refused_before_they_are_read(self):
        for request, error in ((b"*11\r\n", "ERR Protocol error: unauthenticated multibulk length"),
                               (b"*2\r\n$16385\r\n", "ERR Protocol error: unauthenticated bulk length"),
                               (b"*1048577\r\n", "ERR Protocol error: unauthenticated multibulk length"),
                               (b"*2147483648\r\n", "ERR Protocol error: invalid multibulk length")):
            client = self.connect(self.server)
            client.send_raw(request)
            self.assertEqual(str(client.read()), error)
            self.assertEqual(client.read_until_closed(), b"")

    def test_many_connections_that_announce_much_get_little(self):
        before = self.used_memory()
        clients = [self.connect(self.server) for _ in range(200)]
        for client in clients:
            client.send_raw(b"*10\r\n" + b"$16384\r\n")
        self.eventually(lambda: int(self.client.call("INFO", "clients").split("connected_clients:")[1].split("\r\n")[0]) >= 200, self.server)
        self.assertLess(self.used_memory() - before, 50_000_000)
        for client in clients:
            client.close()

    def test_errors_that_nobody_reads_do_not_pile_up(self):
        before = self.used_memory()
        client = scenes.connect_narrow(self.server)
        self.addCleanup(client.close)
        piece = harness.encode("GET", "key") * 10_000
        try:
            for _ in range(2000):
                client.send_raw(piece)
            self.fail("the server has taken 600 MB of requests whose replies nobody has read")
        except OSError:
            pass
        self.assertLess(self.used_memory() - before, 20_000_000)

    def test_connections_that_fail_again_and_again_keep_nobody_out(self):
        """Reset before they are accepted, and answered with errors of the protocol."""
        stop = threading.Event()

        def disturb(seed):
            chance = random.Random(seed)
            while not stop.is_set():
                try:
                    peer = self.server.connect()
                    if chance.random() < 0.5:
                        peer.send_raw(chance.choice((b"*-5\r\n", b"*x\r\n", b"$1\r\n\r\n", b"\0\r\n", b"*1\r\n$-1\r\n", b"*1\r\n!1\r\n")))
                    scenes.reset(peer)
                except OSError:
                    pass

        threads = [threading.Thread(target=disturb, args=(seed,)) for seed in range(2)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(200):
                with self.server.connect() as other:
                    self.assertEqual(other.call("AUTH", "secret"), "OK")
        finally:
            stop.set()
            for thread in threads:
                thread.join()

    def test_more_connections_than_there_may_be_keep_nobody_out_for_long(self):
        self.client.call("CONFIG", "SET", "maxclients", "20")
        clients = [self.connect(self.server) for _ in range(60)]
        refused = 0
        for client in clients:
            client.send_raw(b"PING\r\n")
            try:
                refused += "max number of clients" in str(client.read())
            except (OSError, harness.ConnectionClosed):
                refused += 1
        self.assertGreaterEqual(refused, 40)
        for client in clients:
            client.close()

        def is_served():
            reply = scenes.ask(self.server, "AUTH", "secret")
            return reply == "OK"

        self.eventually(is_served, self.server)


class Buffers(Attack):
    def test_requests_that_come_in_pieces_of_awkward_sizes(self):
        """Buffers grow, are trimmed when a client is idle, and grow again, while half a request is in them."""
        chance = random.Random(41056)
        clients = [self.connect(self.server) for _ in range(8)]
        sizes = [base + change for base in (16_384, 32_768, 65_536, 131_072, 1 << 20) for change in (-64, -1, 0, 1, 64)]
        for size in sizes:
            text = "x" * size
            for client in clients:
                request = harness.encode("ECHO", text)
                cut = chance.choice((1, 12, 20, len(request) // 2, len(request) - 1, len(request) - 2))
                client.send_raw(request[:cut])
                client.rest = request[cut:]
            self.ask("MEMORY", "PURGE")
            for client in clients:
                client.send_raw(client.rest)
                self.assertEqual(client.read(), text)
        for client in clients:
            client.close()

    def test_a_buffer_that_is_trimmed_in_the_middle_of_a_request(self):
        client = self.connect(self.server)
        client_id = client.call("CLIENT", "ID")
        client.call("ECHO", "x" * 200_000)
        client.send_raw(b"*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$100000\r\n" + b"y" * 10)
        memory = []

        def is_trimmed():
            line = self.client.call("CLIENT", "LIST", "ID", client_id)
            memory.append(int(line.split("tot-mem=")[1].split()[0]))
            return int(line.split(" idle=")[1].split()[0]) >= 3

        self.eventually(is_trimmed, self.server)
        client.send_raw(b"y" * 99_990 + b"\r\n")
        self.assertEqual(client.read(), "OK")
        self.assertEqual(self.ask("GET", "key"), "y" * 100_000)
        client.close()


class Debugger(Attack):
    def test_what_is_no_command_of_the_debugger(self):
        for request in (b"*1\r\n$-10\r\n", b"*1000000\r\n$1\r\nx\r\n", b"*-1\r\n", b"*1\r\n$1000000000\r\nx", b"\0\0\0\r\n", b"*2\r\n$5\r\nprint\r\n$5\r\nxx\r\n",
                        b"x" * 200_000):
            client = self.connect(self.server)
            self.assertEqual(client.call("SCRIPT", "DEBUG", "YES"), "OK")
            client.send("EVAL", "local a = 1\nlocal b = 2\nreturn a + b", "0")
            client.read()
            # The debugger may have hung up on what it has read so far.
            with contextlib.suppress(OSError):
                client.send_raw(request)
                client.socket.shutdown(socket.SHUT_WR)
                client.read_until_closed()
            client.close()


class EvictedWhileServed(Attack):
    """A client that waits for a key is served, and thereby takes more memory than clients may have."""

    options = {"maxmemory_clients": "3mb"}

    def check(self, wait, *wake):
        for _ in range(2):
            waiting = []
            for _ in range(5):
                client = scenes.connect_narrow(self.server)
                client.call("CLIENT", "SETNAME", "waiting")
                client.send(*wait)
                waiting.append(client)
            self.eventually(lambda: scenes.figures(self.server, "clients").get("blocked_clients") == "5", self.server)
            for request in wake:
                self.client.send(*request)
            for _ in wake:
                self.client.read()
            self.eventually(lambda: int(scenes.figures(self.server, "stats")["evicted_clients"]) > 0, self.server, what="eviction")
            for client in waiting:
                scenes.reset(client)
            self.assertEqual(self.ask("CONFIG", "RESETSTAT"), "OK")
            self.eventually(lambda: scenes.figures(self.server, "clients").get("connected_clients") == "2", self.server)
            self.ask("DEL", "key", "other")

    # More than the kernel takes for a client that does not read.
    VALUE = "x" * 6_000_000

    def setUp(self):
        super().setUp()
        self.client.call("CLIENT", "NO-EVICT", "on")

    def test_blpop(self):
        self.check(("BLPOP", "key", "0"), *[("RPUSH", "key", self.VALUE)] * 5)

    def test_blmpop(self):
        self.check(("BLMPOP", "0", "1", "key", "LEFT", "COUNT", "10"), *[("RPUSH", "key", self.VALUE)] * 5)

    def test_blmove(self):
        self.check(("BLMOVE", "key", "other", "LEFT", "RIGHT", "0"), *[("RPUSH", "key", self.VALUE)] * 5)

    def test_bzpopmin(self):
        self.check(("BZPOPMIN", "key", "0"), *[("ZADD", "key", "1", self.VALUE + str(i)) for i in range(5)])

    def test_xread(self):
        self.check(("XREAD", "BLOCK", "0", "STREAMS", "key", "0"), ("XADD", "key", "*", "field", self.VALUE))

    def test_by_a_transaction(self):
        self.check(("BLPOP", "key", "0"), ("MULTI",), *[("RPUSH", "key", self.VALUE)] * 5, ("EXEC",))

    def test_by_a_script(self):
        self.check(("BLPOP", "key", "0"), ("EVAL", "for i = 1, 5 do redis.call('RPUSH', KEYS[1], ARGV[1]) end", "1", "key", self.VALUE))


HEADER_SIZE = 2256
GOSSIP_SIZE = 104
PING, PONG = 0, 1
HAS_EXTENSIONS = 4


class ClusterBus(Attack):
    """A peer of the bus whose messages announce more than they bring."""

    def setUp(self):
        self.bus_port = harness.free_port()
        self.options = {"cluster_enabled": "yes", "cluster_port": self.bus_port}
        super().setUp()
        self.ask("CLUSTER", "ADDSLOTSRANGE", "0", "16383")

    def test_messages_cut_and_stretched(self):
        template = self.meet()
        chance = random.Random(21863)
        for kind in range(12):
            self.send(*(self.message(template, kind, gossip=count) for count in (0, 1, 2, 100, 65_535)))
        for extension in self.extensions():
            for kind in (PING, PONG):
                self.send(self.message(template, kind, extension=extension, extensions=chance.choice((1, 2, 65_535))))
        for _ in range(300):
            raw = bytearray(self.message(template, chance.randrange(12), extension=chance.randbytes(chance.choice((0, 8, 40)))))
            for _ in range(chance.randint(1, 6)):
                raw[chance.choice((chance.randrange(8, len(raw)), chance.randrange(2200, len(raw))))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF))
            self.send(bytes(raw))
        for length in (0, 1, 15, 16, 2255, 2256, 2**31, 2**32 - 1):
            self.send(template[:4] + struct.pack(">I", length) + template[8:])
        self.assertIn("cluster_known_nodes", self.ask("CLUSTER", "INFO"))

    def send(self, *messages):
        """On a connection of their own: a peer that talks nonsense is hung up on, at any moment."""
        try:
            with socket.create_connection(("127.0.0.1", self.bus_port), 10) as peer:
                for raw in messages:
                    peer.sendall(raw)
        except OSError:
            pass

    def meet(self):
        """Has the server meet a listener, and become known by it: the first message of the server's is a template."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        port = listener.getsockname()[1]
        self.assertEqual(self.ask("CLUSTER", "MEET", "127.0.0.1", port, port), "OK")
        peer, _ = listener.accept()
        self.addCleanup(peer.close)
        peer.settimeout(10)
        raw = b""
        while len(raw) < 8 or len(raw) < struct.unpack(">I", raw[4:8])[0]:
            raw += peer.recv(4096)
        self.assertEqual(raw[:4], b"RCmb")
        raw = raw[:HEADER_SIZE]
        own = raw[:40] + b"a" * 40 + b"\0" * 2048 + raw[2128:2248] + struct.pack(">H", port) + raw[2250:]
        peer.sendall(self.message(own, PONG))
        self.eventually(lambda: "a" * 40 in self.ask("CLUSTER", "NODES"), self.server, what="being known")
        return own

    @staticmethod
    def message(template, kind, gossip=0, extension=b"", extensions=None):
        """As long as it says it is; `gossip` and `extensions` are what it announces."""
        raw = bytearray(template[:HEADER_SIZE] + extension)
        raw[12:14] = struct.pack(">H", kind)
        raw[14:16] = struct.pack(">H", gossip)
        raw[2214:2216] = struct.pack(">H", extensions or 0)
        if extension or extensions:
            raw[2253] |= HAS_EXTENSIONS
        raw[4:8] = struct.pack(">I", len(raw))
        return bytes(raw)

    @staticmethod
    def extensions():
        for length in (0, 1, 7, 8, 9, 15, 16, 24, 40, 48, 1000, 2**16, 2**31, 2**32 - 8, 2**32 - 1):
            for kind in range(6):
                for body in (b"", b"host", b"h" * 8, b"h" * 40, b"h" * 39 + b"\0"):
                    yield struct.pack(">IHH", length, kind, 0) + body


class PeersThatAnnounceMuch(Attack):
    """Where the server reads replies itself: of the target of MIGRATE, and of a master."""

    PIECES = (b"*4294967296\r\n", b"*1073741824\r\n", b"$9223372036854775807\r\n", b"*-1\r\n", b"%9223372036854775807\r\n", b"+" + b"x" * 200_000, b"\0" * 1000)

    def answer_with(self, piece):
        listener = socket.create_server(("127.0.0.1", 0))

        def serve():
            while True:
                try:
                    peer, _ = listener.accept()
                except OSError:
                    return
                with peer:
                    try:
                        peer.recv(1000)
                        peer.sendall(piece)
                        peer.recv(1000)
                    except OSError:
                        pass

        threading.Thread(target=serve, daemon=True).start()
        self.addCleanup(listener.close)
        self.addCleanup(listener.shutdown, socket.SHUT_RDWR)
        return listener.getsockname()[1]

    def test_targets_of_migrate(self):
        self.ask("SET", "key", "value")
        for piece in self.PIECES:
            self.assertIsInstance(self.ask("MIGRATE", "127.0.0.1", self.answer_with(piece), "key", "0", "300"), harness.ReplyError)
            self.assertEqual(self.ask("GET", "key"), "value")

    def test_masters(self):
        for piece in self.PIECES:
            self.assertEqual(self.ask("REPLICAOF", "127.0.0.1", self.answer_with(piece)), "OK")
            self.eventually(lambda: "MASTER <-> REPLICA sync started" in self.server.log(), self.server)
            self.assertIsInstance(self.ask("GET", "key"), (str, type(None)))
        self.assertEqual(self.ask("REPLICAOF", "NO", "ONE"), "OK")


if __name__ == "__main__":
    unittest.main()

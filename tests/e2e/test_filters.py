"""Bloom and cuckoo filters between servers: files, payloads, dumps in parts and the replication stream, to the reference and from it."""

import random
import struct
import unittest

import harness
import values

try:
    import redis
except ImportError:
    redis = None

REFERENCE = harness.reference("redis-server", "8.6-modules")
KEYS = ("bloom", "fixed", "precise", "cuckoo", "wide", "quick")


def fill(client):
    """Filters that have grown, and of which items were removed."""
    client.call("BF.RESERVE", "bloom", "0.01", "20")
    client.call("BF.RESERVE", "fixed", "0.001", "500", "NONSCALING")
    client.call("BF.RESERVE", "precise", "1e-9", "7", "EXPANSION", "5")
    client.call("CF.RESERVE", "cuckoo", "64", "EXPANSION", "2")
    client.call("CF.RESERVE", "wide", "100", "BUCKETSIZE", "5", "MAXITERATIONS", "300")
    client.call("CF.RESERVE", "quick", "32", "BUCKETSIZE", "1", "EXPANSION", "4", "MAXITERATIONS", "1")
    rng = random.Random(1)
    for _ in range(30):
        items = ["item%d" % rng.randrange(100_000) for _ in range(20)]
        for key in KEYS[:3]:
            client.call("BF.INSERT", key, "ITEMS", *items)
        for key in KEYS[3:]:
            client.call("CF.INSERT", key, "ITEMS", *items)
            client.call("CF.DEL", key, items[0])
            client.call("CF.DEL", key, items[7])


def family(key):
    return "BF" if key in KEYS[:3] else "CF"


def parts(client, key):
    """What SCANDUMP gives until its end. `client`: a binary one."""
    found = []
    position = 0
    while True:
        position, data = client.call(family(key) + ".SCANDUMP", key, str(position))
        if position == 0:
            return found
        found.append((position, data))


class Filters(values.ValuesTestCase):
    programs = [REFERENCE]

    def fill(self, client):
        fill(client)

    def change(self, client):
        client.call("BF.MADD", "bloom", "late", "later")
        client.call("CF.COMPACT", "quick")
        client.call("CF.ADD", "cuckoo", "late")
        self.assertEqual(client.call("CF.DEL", "cuckoo", "late"), 1)

    def described(self, server):
        """What the filters hold and say."""
        with server.connect(binary=True) as client:
            said = {(key, "parts"): parts(client, key) for key in KEYS}
            for key in KEYS:
                said[key, "info"] = client.call(family(key) + ".INFO", key)
                said[key, "others"] = client.call(family(key) + ".MEXISTS", key, *["other%d" % i for i in range(1000)])
            return said

    @unittest.skipUnless(REFERENCE, "the reference has no modules here")
    def test_filters_are_the_same_as_in_the_reference(self):
        ours, client = self.server()
        theirs, other = self.server(REFERENCE)
        fill(client)
        fill(other)
        self.assertEqual(self.described(ours), self.described(theirs))
        with ours.connect(binary=True) as one, theirs.connect(binary=True) as two:
            for key in KEYS:
                self.assertEqual(one.call("DUMP", key)[: -values.FOOTER_SIZE], two.call("DUMP", key)[: -values.FOOTER_SIZE], key)
                self.assertEqual(client.call("TYPE", key), other.call("TYPE", key))

    def test_parts_are_loaded_by_the_other_server(self):
        for first, second in self.pairs():
            with self.subTest(first=first, second=second):
                writer, client = self.server(first)
                reader, other = self.server(second)
                fill(client)
                for key in KEYS:
                    with writer.connect(binary=True) as binary:
                        for position, data in parts(binary, key):
                            self.assertEqual(other.call(family(key) + ".LOADCHUNK", key, str(position), data), "OK")
                self.assertEqual(self.described(reader), self.described(writer))

    def test_replicas_follow_filters_that_come_in_parts(self):
        for first, second in self.pairs():
            with self.subTest(first=first, second=second):
                master, client = self.server(first)
                replica, other = self.server(second)
                client.call("BF.ADD", "before", "x")
                self.follow(other, master)
                fill(client)
                client.call("CF.COMPACT", "cuckoo")
                with master.connect(binary=True) as binary:
                    found = parts(binary, "wide")
                    client.call("DEL", "wide")
                    for position, data in found:
                        binary.call("CF.LOADCHUNK", "wide", str(position), data)
                client.call("SET", "end", "1")
                self.eventually(lambda: other.call("GET", "end") == "1")
                self.assertEqual(self.described(replica), self.described(master))
                self.assertEqual(other.call("BF.EXISTS", "before", "x"), 1)

    def test_large_filters_come_in_several_parts(self):
        for first, second in self.pairs():
            with self.subTest(first=first, second=second):
                writer, client = self.server(first)
                reader, other = self.server(second)
                client.call("BF.RESERVE", "bloom", "0.01", "20000000")
                client.call("CF.RESERVE", "cuckoo", "30000000")
                items = [str(i) for i in range(1000)]
                client.call("BF.MADD", "bloom", *items)
                client.call("CF.INSERT", "cuckoo", "ITEMS", *items)
                with writer.connect(binary=True) as binary, reader.connect(binary=True) as loading:
                    for key, sizes in (("bloom", [73, 16 << 20, 10792168]), ("cuckoo", [38, 16 << 20, 16 << 20])):
                        found = parts(binary, key)
                        self.assertEqual([len(data) for _, data in found], sizes)
                        for position, data in found:
                            loading.call(family(key) + ".LOADCHUNK", key, str(position), data)
                        self.assertEqual(parts(loading, key), found)

    def test_a_damaged_payload_is_refused_or_harmless(self):
        server, client = self.server()
        client.call("DEBUG", "SET-SKIP-CHECKSUM-VALIDATION", "1")
        fill(client)
        rng = random.Random(3)
        restored = 0
        with server.connect(binary=True) as binary:
            for key in KEYS:
                payload = binary.call("DUMP", key)
                for _ in range(300):
                    damaged = bytearray(payload)
                    for _ in range(rng.randrange(1, 4)):
                        damaged[rng.randrange(10, min(len(damaged) - values.FOOTER_SIZE, 80))] = rng.randrange(256)
                    binary.send("RESTORE", "damaged", "0", bytes(damaged), "REPLACE")
                    if isinstance(binary.read(), harness.ReplyError):
                        continue
                    restored += 1
                    for request in (("MEXISTS", "a", "b"), ("INSERT", "ITEMS", "a", "b", "c"), ("INFO",), ("SCANDUMP", "0")):
                        binary.send(family(key) + "." + request[0], "damaged", *request[1:])
                        binary.read()
            # So many layers as nobody has memory for: the payload ends behind the first.
            payload = binary.call("DUMP", "fixed")
            layers = payload.index(b"\x02\x01\x02\x0d") + 1
            many = payload[:layers] + b"\x81" + struct.pack(">Q", 1 << 40) + payload[layers + 1 :]
            binary.send("RESTORE", "damaged", "0", many, "REPLACE")
            self.assertIsInstance(binary.read(), harness.ReplyError)
        self.assertGreater(restored, 0)
        self.assertEqual(client.call("PING"), "PONG")

    @unittest.skipUnless(redis, "redis-py is not there")
    def test_redis_py_has_methods_for_them(self):
        server, _ = self.server()
        client = redis.Redis(port=server.port)
        self.addCleanup(client.close)
        self.assertTrue(client.bf().create("b", 0.01, 100))
        self.assertEqual(client.bf().madd("b", "x", "y", "x"), [1, 1, 0])
        self.assertEqual(client.bf().exists("b", "x"), 1)
        info = client.bf().info("b")
        self.assertEqual((info.capacity, info.size, info.filterNum, info.insertedNum, info.expansionRate), (100, 240, 1, 2, 2))
        self.assertTrue(client.cf().create("c", 1000))
        self.assertEqual(client.cf().insert("c", ["x", "y"]), [1, 1])
        self.assertEqual(client.cf().count("c", "x"), 1)
        self.assertEqual(client.cf().delete("c", "x"), 1)
        info = client.cf().info("c")
        self.assertEqual((info.bucketNum, info.insertedNum, info.deletedNum, info.maxIteration), (512, 1, 1, 20))


if __name__ == "__main__":
    unittest.main()

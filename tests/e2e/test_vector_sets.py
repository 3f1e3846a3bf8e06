"""Vector sets between servers: files, payloads and the replication stream, to the reference and from it."""

import random
import struct
import unittest

import harness
import values

# 8.0, which reads and writes the same version of RDB as this server, and 8.6, which reads it and writes a newer one.
REFERENCE = harness.reference("redis-server")
NEWER = harness.reference("redis-server", "8.6")
QUANTIZATIONS = ("Q8", "NOQUANT", "BIN")
ELEMENTS = 300
DIMENSIONS = 12


def vector(rng):
    return struct.pack("<%df" % DIMENSIONS, *[rng.uniform(-1, 1) for _ in range(DIMENSIONS)])


def fill(client):
    """A set of each form, with attributes, with holes where elements have been, one with a projection."""
    rng = random.Random(1)
    for quantization in QUANTIZATIONS:
        for i in range(ELEMENTS):
            client.call("VADD", quantization, "FP32", vector(rng), "e%d" % i, quantization, "M", "8")
        for i in range(0, ELEMENTS, 3):
            client.call("VREM", quantization, "e%d" % i)
        client.call("VSETATTR", quantization, "e1", '{"year": 1984}')
    for i in range(50):
        client.call("VADD", "projected", "REDUCE", "5", "FP32", vector(rng), "e%d" % i)


def described(client):
    """What the sets hold and say."""
    said = {}
    rng = random.Random(2)
    for key in QUANTIZATIONS + ("projected",):
        names = sorted(client.call("VRANDMEMBER", key, "1000"))
        said[key, "names"] = names
        said[key, "info"] = client.call("VINFO", key)[:10]
        for name in names[::10]:
            said[key, name, "links"] = [sorted(level) for level in client.call("VLINKS", key, name)]
            said[key, name, "vector"] = [float(part) for part in client.call("VEMB", key, name)]
            said[key, name, "attributes"] = client.call("VGETATTR", key, name)
        for query in [vector(rng) for _ in range(10)]:
            # Elements that are equally near may come in any order.
            found = client.call("VSIM", key, "FP32", query, "WITHSCORES", "TRUTH", "COUNT", "20")
            said[key, query, "scores"] = [float(score) for score in found[1::2]]
    return said


class VectorSets(values.ValuesTestCase):
    programs = [REFERENCE, NEWER]

    def fill(self, client):
        fill(client)

    def described(self, server):
        with server.connect() as client:
            return described(client)

    def assert_same(self, ours, theirs):
        """Numbers may differ in their last digits: sums of floats depend on their order."""
        self.assertEqual(ours.keys(), theirs.keys())
        for what, expected in theirs.items():
            if what[-1] in ("vector", "scores"):
                self.assertEqual(len(ours[what]), len(expected), what)
                for one, other in zip(ours[what], expected):
                    self.assertAlmostEqual(one, other, 5, what)
            else:
                self.assertEqual(ours[what], expected, what)

    # Levels of elements are chosen at random, and so are their links: what comes behind a file is not the same in two servers.

    def test_a_file_is_read_by_the_other_server(self):
        for first, second in self.pairs():
            with self.subTest(first=first, second=second):
                writer, client = self.server(first)
                fill(client)
                expected = described(client)
                self.assertEqual(client.call("SAVE"), "OK")
                _, other = self.server(second, dir=writer.directory, dbfilename="dump.rdb")
                self.assert_same(described(other), expected)
                # The graph is whole: elements come and go.
                for i in range(1, ELEMENTS, 3):
                    for key in QUANTIZATIONS:
                        self.assertEqual(other.call("VREM", key, "e%d" % i), 1)

    def test_a_damaged_payload_is_refused_or_harmless(self):
        server, client = self.server()
        client.call("DEBUG", "SET-SKIP-CHECKSUM-VALIDATION", "1")
        rng = random.Random(3)
        for i in range(20):
            client.call("VADD", "v", "FP32", vector(rng), "e%d" % i, "M", "4", "SETATTR", "{}")
        with server.connect(binary=True) as binary:
            payload = binary.call("DUMP", "v")
            for _ in range(3000):
                damaged = bytearray(payload)
                for _ in range(rng.randrange(1, 4)):
                    damaged[rng.randrange(1, len(damaged) - 10)] = rng.randrange(256)
                binary.send("RESTORE", "damaged", "0", bytes(damaged), "REPLACE")
                restored = not isinstance(binary.read(), harness.ReplyError)
                if restored:
                    binary.send("VSIM", "damaged", "ELE", "e1", "WITHSCORES")
                    binary.read()
                    binary.send("VREM", "damaged", "e2")
                    binary.read()
        self.assertEqual(client.call("PING"), "PONG")

    def test_replicas_follow(self):
        for first, second in self.pairs():
            with self.subTest(first=first, second=second):
                master, client = self.server(first)
                _, other = self.server(second)
                fill(client)
                self.follow(other, master)
                for key in QUANTIZATIONS:
                    client.call("VADD", key, "FP32", vector(random.Random(4)), "late", key, "M", "8", "SETATTR", "{}")
                    client.call("VREM", key, "e1")
                    client.call("VSETATTR", key, "e2", "other")
                client.call("SET", "end", "1")
                self.eventually(lambda: other.call("GET", "end") == "1")
                for key in QUANTIZATIONS:
                    self.assertEqual(other.call("VCARD", key), client.call("VCARD", key))
                    self.assertEqual(other.call("VEMB", key, "late"), client.call("VEMB", key, "late"))
                    self.assertEqual(other.call("VGETATTR", key, "e2"), "other")
                    self.assertEqual(other.call("VGETATTR", key, "late"), "{}")
                    self.assertEqual(other.call("VISMEMBER", key, "e1"), 0)

    def test_an_append_only_file_keeps_them(self):
        for preamble in ("yes", "no"):
            with self.subTest(preamble=preamble):
                server, client = self.server(appendonly="yes", aof_use_rdb_preamble=preamble)
                fill(client)
                self.rewrite_append_only_file(client)
                expected = described(client)
                client.call("DEBUG", "LOADAOF")
                self.assert_same(described(client), expected)
                # What was added behind the rewrite is added again, at a level of its own.
                client.call("VREM", "Q8", "e1")
                client.call("VADD", "Q8", "FP32", vector(random.Random(4)), "late", "M", "8")
                names = sorted(client.call("VRANDMEMBER", "Q8", "1000"))
                components = client.call("VEMB", "Q8", "late")
                client.call("DEBUG", "LOADAOF")
                self.assertEqual(sorted(client.call("VRANDMEMBER", "Q8", "1000")), names)
                self.assertEqual(client.call("VEMB", "Q8", "late"), components)


if __name__ == "__main__":
    unittest.main()

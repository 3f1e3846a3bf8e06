"""Vector sets between servers: files, payloads and the replication stream, to the reference and from it."""

import os
import random
import shutil
import struct
import time
import unittest

import harness

# 8.0, which reads and writes the same version of RDB as this server, and 8.6, which reads it and writes a newer one.
REFERENCE = harness.reference("redis-server")
NEWER = REFERENCE and REFERENCE.replace("-8.0", "-8.6")
READERS = [path for path in (REFERENCE, NEWER) if path and os.path.exists(path)]
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


class VectorSets(unittest.TestCase):
    def server(self, program=None, **options):
        server = harness.Server(program, **{"enable_debug_command": "yes", **options})
        self.addCleanup(self.discard, server)
        client = server.connect()
        self.addCleanup(client.close)
        return server, client

    @staticmethod
    def discard(server):
        if server.process is not None and server.process.poll() is None:
            server.process.kill()
            server.process.wait()
        shutil.rmtree(server.directory, ignore_errors=True)

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

    def eventually(self, condition):
        deadline = time.monotonic() + harness.REPLY_TIMEOUT_S
        while not condition():
            if time.monotonic() > deadline:
                self.fail("did not come to pass")
            time.sleep(0.01)

    def pairs(self):
        """Who writes and who reads; None is this server."""
        for reader in READERS:
            yield None, reader
        if REFERENCE:
            yield REFERENCE, None
        yield None, None

    def follow(self, server, client, master):
        client.call("REPLICAOF", "127.0.0.1", str(master.port))
        self.eventually(lambda: "master_link_status:up" in client.call("INFO", "replication"))

    def test_a_file_is_read_by_the_other_server(self):
        for first, second in self.pairs():
            with self.subTest(first=first, second=second):
                writer, client = self.server(first)
                fill(client)
                expected = described(client)
                self.assertEqual(client.call("SAVE"), "OK")
                reader = harness.Server(second, enable_debug_command="yes", dir=writer.directory, dbfilename="dump.rdb")
                self.addCleanup(self.discard, reader)
                with reader.connect() as other:
                    self.assert_same(described(other), expected)
                    # The graph is whole: elements come and go.
                    for i in range(1, ELEMENTS, 3):
                        for key in QUANTIZATIONS:
                            self.assertEqual(other.call("VREM", key, "e%d" % i), 1)

    def test_a_payload_is_restored_by_the_other_server(self):
        for first, second in [*self.pairs(), *((newer, None) for newer in READERS[1:])]:
            with self.subTest(first=first, second=second):
                writer, client = self.server(first)
                reader, other = self.server(second)
                fill(client)
                for key in QUANTIZATIONS + ("projected",):
                    with writer.connect(binary=True) as binary:
                        payload = binary.call("DUMP", key)
                    if first is not None and first != REFERENCE:
                        # A footer of this version, without a checksum.
                        payload = payload[:-10] + struct.pack("<HQ", 12, 0)
                    self.assertEqual(other.call("RESTORE", key, "0", payload), "OK")
                self.assert_same(described(other), described(client))

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
                replica, other = self.server(second)
                fill(client)
                self.follow(replica, other, master)
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
                client.call("BGREWRITEAOF")
                self.eventually(lambda: "aof_rewrite_in_progress:0" in client.call("INFO", "persistence"))
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

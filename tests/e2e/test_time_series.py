"""Time series between servers: files, payloads and the replication stream, to the reference and from it, what becomes of rules between
keys, and redis-py's commands for them."""

import random
import unittest

import harness
import values

try:
    import redis
except ImportError:
    redis = None

REFERENCE = harness.reference("redis-server", "8.6-modules")
AGGREGATIONS = "avg sum min max range count first last std.p std.s var.p var.s twa".split()
SAMPLES = 400


def fill(client, seed=1):
    """Series of both encodings in many small chunks, and a rule of each aggregation."""
    rng = random.Random(seed)
    client.call("TS.CREATE", "plain", "ENCODING", "UNCOMPRESSED", "CHUNK_SIZE", "64", "DUPLICATE_POLICY", "LAST", "LABELS", "kind", "plain", "n", "1")
    client.call("TS.CREATE", "packed", "CHUNK_SIZE", "128", "DUPLICATE_POLICY", "SUM", "LABELS", "kind", "packed")
    client.call("TS.CREATE", "short", "RETENTION", "500", "IGNORE", "2", "0.5", "DUPLICATE_POLICY", "LAST")
    client.call("TS.CREATE", "empty", "LABELS", "kind", "none")
    for name in AGGREGATIONS:
        client.call("TS.CREATE", "by:" + name, "LABELS", "of", "packed")
        client.call("TS.CREATERULE", "packed", "by:" + name, "AGGREGATION", name, "50", "7")
    add(client, rng)


def add(client, rng):
    newest = client.call("TS.GET", "packed")
    at = newest[0] if newest else 0
    for _ in range(SAMPLES):
        at += rng.choice((1, 5, 10, 10, 10, 300))
        for key in ("plain", "packed", "short"):
            client.call("TS.ADD", key, at, rng.choice(("1", "2.5", repr(rng.random()), "-4e10")))
        if rng.random() < 0.2:
            client.call("TS.ADD", "packed", max(at - rng.randrange(200), 0), "3")


def described(client):
    said = {}
    for key in ["plain", "packed", "short", "empty"] + ["by:" + name for name in AGGREGATIONS]:
        info = client.call("TS.INFO", key)
        info = dict(zip(info[::2], info[1::2]))
        # The reference does not tell of a bucket that a late sample began, and reads rules in any order.
        for name in ("memoryUsage", "chunkCount", "lastTimestamp"):
            del info[name]
        info["rules"].sort()
        said[key, "info"] = info
        said[key, "samples"] = [(at, "%.9g" % float(value)) for at, value in client.call("TS.RANGE", key, "-", "+", "LATEST")]
    said["labels"] = client.call("TS.MGET", "WITHLABELS", "FILTER", "kind=(plain,packed)")
    said["index"] = client.call("TS.QUERYINDEX", "of=packed")
    return said


class TimeSeries(values.ValuesTestCase):
    programs = [REFERENCE]

    def fill(self, client):
        fill(client)

    def change(self, client):
        add(client, random.Random(2))
        client.call("TS.DEL", "packed", "100", "900")
        client.call("TS.INCRBY", "counter", "2", "TIMESTAMP", "10")

    def described(self, server):
        with server.connect() as client:
            return described(client)

    def test_the_reference_says_the_same(self):
        if not REFERENCE:
            self.skipTest("there is no reference with modules")
        _, ours = self.server()
        _, theirs = self.server(REFERENCE)
        for client in (ours, theirs):
            fill(client)
        self.assertEqual(described(ours), described(theirs))

    def test_a_payload_is_restored_by_the_other_server(self):
        """Rules are none of a payload's."""
        for first, second in self.pairs():
            with self.subTest(first=first, second=second):
                writer, client = self.server(first)
                reader, other = self.server(second)
                fill(client)
                keys = ["plain", "packed", "short", "empty", "by:avg"]
                self.carry(writer, reader, keys)
                for key in keys:
                    self.assertEqual(other.call("TS.RANGE", key, "-", "+"), client.call("TS.RANGE", key, "-", "+"))
                info = other.call("TS.INFO", "packed")
                self.assertEqual(info[info.index("rules") + 1], [])
                self.assertEqual(other.call("TS.QUERYINDEX", "kind=plain"), ["plain"])

    def test_the_time_of_the_master_is_the_replicas(self):
        for _, second in self.pairs():
            with self.subTest(second=second):
                master, client = self.server()
                _, other = self.server(second)
                self.follow(other, master)
                client.call("TS.ADD", "now", "*", "1")
                client.call("TS.INCRBY", "counter", "2")
                client.call("TS.MADD", "now", "5", "2", "nokey", "1", "1")
                client.call("SET", "end", "1")
                self.eventually(lambda: other.call("GET", "end") == "1")
                for key in ("now", "counter"):
                    self.assertEqual(other.call("TS.RANGE", key, "-", "+"), client.call("TS.RANGE", key, "-", "+"))

    def test_rules_follow_their_series(self):
        _, client = self.server()

        def rules(key):
            info = client.call("TS.INFO", key)
            return [rule[0] for rule in info[info.index("rules") + 1]]

        def source(key):
            info = client.call("TS.INFO", key)
            return info[info.index("sourceKey") + 1]

        for key in ("a", "b", "c"):
            client.call("TS.CREATE", key)
        client.call("TS.CREATERULE", "a", "b", "AGGREGATION", "sum", "10")
        client.call("TS.CREATERULE", "a", "c", "AGGREGATION", "sum", "10")
        client.call("RENAME", "b", "d")
        client.call("RENAME", "a", "e")
        self.assertEqual((rules("e"), source("d")), (["d", "c"], "e"))
        client.call("EXPIRE", "d", "1000")
        client.call("PERSIST", "d")
        client.call("TS.ADD", "e", "1", "1")
        client.call("TS.ADD", "e", "11", "1")
        self.assertEqual(client.call("TS.GET", "d"), [0, "1"])
        client.call("SWAPDB", "0", "1")
        client.call("SELECT", "1")
        self.assertEqual(rules("e"), ["d", "c"])
        client.call("MOVE", "c", "0")
        self.assertEqual(rules("e"), ["d"])
        client.call("DEL", "d")
        client.call("TS.CREATE", "d")
        self.assertEqual((rules("e"), source("d")), ([], None))
        client.call("COPY", "e", "f")
        self.assertEqual(rules("f"), [])
        client.call("FLUSHALL")
        self.assertEqual(client.call("TS.QUERYINDEX", "a=b"), [])

    def test_the_index_follows_the_keys(self):
        _, client = self.server()

        def found():
            return client.call("TS.QUERYINDEX", "a=b")

        client.call("TS.ADD", "k", "1", "1", "LABELS", "a", "b")
        client.call("COPY", "k", "l")
        self.assertEqual(found(), ["k", "l"])
        client.call("RENAME", "k", "m")
        self.assertEqual(found(), ["l", "m"])
        client.call("TS.ALTER", "l", "LABELS", "a", "c")
        self.assertEqual(found(), ["m"])
        client.call("PEXPIRE", "m", "1")
        self.eventually(lambda: found() == [])
        client.call("TS.ALTER", "l", "LABELS", "a", "b")
        self.assertEqual(found(), ["l"])
        client.call("DEBUG", "RELOAD")
        self.assertEqual(found(), ["l"])
        client.call("SET", "l", "x")
        self.assertEqual(found(), [])
        client.call("TS.ADD", "n", "1", "1", "LABELS", "a", "b")
        client.call("FLUSHALL", "ASYNC")
        self.assertEqual(found(), [])

    def test_no_request_asks_for_much_memory(self):
        _, client = self.server()
        client.call("TS.ADD", "k", "0", "1", "LABELS", "a", "b")
        client.call("TS.ADD", "k", "9223372036854775807", "1")
        for request in ("TS.RANGE k - +", "TS.REVRANGE k - +", "TS.NRANGE 1 k - +", "TS.MRANGE - +"):
            words = (request + " AGGREGATION count 1 EMPTY" + (" FILTER a=b" if "MRANGE" in request else "")).split()
            self.assertIn("too many buckets", client.error_of(*words))
        self.assertEqual(len(client.call("TS.RANGE", "k", "-", "+", "AGGREGATION", "count", "1", "EMPTY", "COUNT", "3")), 3)

    @unittest.skipUnless(redis, "redis-py is not installed")
    def test_redis_py_understands_the_replies(self):
        server, _ = self.server()
        # redis-py has RESP3 from version 5 on.
        is_new = redis.VERSION[0] >= 5
        for protocol in (2, 3) if is_new else (2,):
            with self.subTest(protocol=protocol):
                options = {"protocol": protocol} if is_new else {}
                with redis.Redis(port=server.port, decode_responses=True, **options) as client:
                    client.flushall()
                    series = client.ts()
                    self.assertTrue(series.create("t", labels={"a": "b"}))
                    self.assertEqual(series.madd([("t", 1, 1.5), ("t", 2, 2)]), [1, 2])
                    self.assertEqual([list(sample) for sample in series.range("t", "-", "+")], [[1, 1.5], [2, 2.0]])
                    info = series.info("t")
                    self.assertEqual(info["totalSamples"] if protocol == 3 else info.total_samples, 2)
                    self.assertEqual(series.queryindex(["a=b"]), ["t"])
                    self.assertEqual(len(series.mrange("-", "+", ["a=b"])), 1)


if __name__ == "__main__":
    unittest.main()

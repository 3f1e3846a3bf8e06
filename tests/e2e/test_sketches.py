"""Count-min sketches, top-k lists and t-digests between servers: files, payloads and the replication stream, to the reference and
from it, and redis-py's commands for them."""

import random
import unittest

import harness
import values

try:
    import redis
except ImportError:
    redis = None

REFERENCE = harness.reference("redis-server", "8.6-modules")
# So small that nothing decays: what decays is chosen at random.
NO_DECAY = "0.0000000001"
ITEMS = 200


def fill(client, seed=1):
    rng = random.Random(seed)
    client.call("CMS.INITBYDIM", "sketch", 100, 5)
    client.call("CMS.INITBYPROB", "exact", "0.01", "0.01")
    client.call("TOPK.RESERVE", "list", 10, 50, 5, NO_DECAY)
    client.call("TOPK.RESERVE", "free", 10)
    client.call("TDIGEST.CREATE", "digest", "COMPRESSION", 50)
    client.call("TDIGEST.CREATE", "empty")
    client.call("TDIGEST.CREATE", "two")
    client.call("TDIGEST.ADD", "two", "7.5", "7.25")
    count(client, rng)


def count(client, rng):
    for _ in range(ITEMS):
        item = "item%d" % rng.expovariate(0.1)
        client.call("CMS.INCRBY", "sketch", item, rng.randrange(100), "other" + item, 1)
        client.call("TOPK.ADD", "list", item, item, "other" + item)
        client.call("TDIGEST.ADD", "digest", *[repr(rng.gauss(10, 3)) for _ in range(20)])
    client.call("CMS.MERGE", "sketch", 2, "sketch", "sketch", "WEIGHTS", 1, 2)
    client.call("TDIGEST.MERGE", "merged", 2, "digest", "two", "COMPRESSION", 30)


def described(client):
    items = ["item%d" % i for i in range(40)]
    said = {}
    for key in ("sketch", "exact"):
        said[key, "counts"] = client.call("CMS.QUERY", key, *items)
        said[key, "info"] = client.call("CMS.INFO", key)
    for key in ("list", "free"):
        said[key, "list"] = client.call("TOPK.LIST", key, "WITHCOUNT")
        said[key, "counts"] = client.call("TOPK.COUNT", key, *items)
        said[key, "queries"] = client.call("TOPK.QUERY", key, *items)
        said[key, "info"] = client.call("TOPK.INFO", key)
    for key in ("digest", "empty", "two", "merged"):
        numbers = [str(i) for i in range(0, 20, 3)]
        said[key, "quantiles"] = client.call("TDIGEST.QUANTILE", key, "0", "0.01", "0.3", "0.5", "0.9", "1")
        said[key, "fractions"] = client.call("TDIGEST.CDF", key, *numbers)
        said[key, "ranks"] = client.call("TDIGEST.RANK", key, *numbers)
        said[key, "mean"] = client.call("TDIGEST.TRIMMED_MEAN", key, "0.1", "0.9")
        said[key, "info"] = client.call("TDIGEST.INFO", key)
    return said


class Sketches(values.ValuesTestCase):
    programs = [REFERENCE]

    def fill(self, client):
        fill(client)

    def change(self, client):
        count(client, random.Random(2))

    def described(self, server):
        with server.connect() as client:
            return described(client)

    def test_the_reference_estimates_the_same(self):
        if not REFERENCE:
            self.skipTest("there is no reference with modules")
        _, ours = self.server()
        _, theirs = self.server(REFERENCE)
        for seed in (1, 2):
            fill(ours, seed)
            fill(theirs, seed)
            self.assertEqual(described(ours), described(theirs))
            ours.call("FLUSHALL")
            theirs.call("FLUSHALL")

    def test_replicas_follow(self):
        """When a digest merges what it has, and so what it estimates, is each server's own."""
        for first, second in self.pairs():
            with self.subTest(first=first, second=second):
                master, client = self.server(first)
                _, other = self.server(second)
                fill(client)
                self.follow(other, master)
                count(client, random.Random(3))
                client.call("CMS.INCRBY", "sketch", "late", "4294967296")
                client.call("TOPK.INCRBY", "list", "late", "5", "wrong", "x")
                client.call("TDIGEST.RESET", "two")
                client.call("SET", "end", "1")
                self.eventually(lambda: other.call("GET", "end") == "1")
                self.assertEqual(other.call("CMS.QUERY", "sketch", "late"), client.call("CMS.QUERY", "sketch", "late"))
                self.assertEqual(other.call("TOPK.LIST", "list", "WITHCOUNT"), client.call("TOPK.LIST", "list", "WITHCOUNT"))
                self.assertEqual(other.call("TDIGEST.QUANTILE", "merged", "0", "0.5", "1"), client.call("TDIGEST.QUANTILE", "merged", "0", "0.5", "1"))
                self.assertEqual(other.call("TDIGEST.MIN", "two"), "nan")

    def test_an_append_only_file_keeps_them(self):
        """As the other test has it, of digests only what was counted."""
        for preamble in ("yes", "no"):
            with self.subTest(preamble=preamble):
                _, client = self.server(appendonly="yes", aof_use_rdb_preamble=preamble)
                fill(client)
                self.rewrite_append_only_file(client)
                count(client, random.Random(4))
                sketch = client.call("CMS.QUERY", "sketch", "item0", "item1")
                listed = client.call("TOPK.LIST", "list", "WITHCOUNT")
                observations = client.call("TDIGEST.INFO", "digest")[13]
                digest = client.call("DEBUG", "DIGEST-VALUE", "sketch", "list")
                client.call("DEBUG", "LOADAOF")
                self.assertEqual(client.call("CMS.QUERY", "sketch", "item0", "item1"), sketch)
                self.assertEqual(client.call("TOPK.LIST", "list", "WITHCOUNT"), listed)
                self.assertEqual(client.call("TDIGEST.INFO", "digest")[13], observations)
                self.assertEqual(client.call("DEBUG", "DIGEST-VALUE", "sketch", "list"), digest)

    def test_copies_are_independent(self):
        _, client = self.server()
        fill(client)
        for key in ("sketch", "list", "digest"):
            self.assertEqual(client.call("COPY", key, "copy:" + key), 1)
        before = client.call("DEBUG", "DIGEST-VALUE", "copy:sketch", "copy:list", "copy:digest")
        self.assertEqual(client.call("DEBUG", "DIGEST-VALUE", "sketch", "list", "digest"), before)
        count(client, random.Random(5))
        self.assertEqual(client.call("DEBUG", "DIGEST-VALUE", "copy:sketch", "copy:list", "copy:digest"), before)
        self.assertNotEqual(client.call("DEBUG", "DIGEST-VALUE", "sketch"), before[:1])

    def test_no_request_asks_for_much_memory(self):
        _, client = self.server()
        for request in (
            "CMS.INITBYDIM k 100000000000 10",
            "CMS.INITBYDIM k 9223372036854775807 1",
            "CMS.INITBYPROB k 1e-12 0.5",
            "TOPK.RESERVE k 4294967295",
            "TOPK.RESERVE k 1 4294967295 2 0.9",
            "TDIGEST.CREATE k COMPRESSION 4294967296",
        ):
            with self.subTest(request=request):
                self.assertIsNotNone(client.error_of(*request.split()))
        self.assertEqual(client.call("DBSIZE"), 0)
        # What is allowed costs nothing until it is used.
        client.call("TOPK.RESERVE", "k", "10000000", "10000000", "10", "0.9")
        client.call("CMS.INITBYDIM", "c", "100000000", "2")
        client.call("TDIGEST.CREATE", "d", "COMPRESSION", "10000000")
        resident = dict(line.split(":", 1) for line in client.call("INFO", "memory").splitlines() if ":" in line)
        self.assertLess(int(resident["used_memory_rss"]), 300_000_000)

    @unittest.skipUnless(redis, "redis-py is not installed")
    def test_redis_py_understands_the_replies(self):
        server, _ = self.server()
        # redis-py has RESP3 from version 5 on, and most of t-digest's methods.
        is_new = redis.VERSION[0] >= 5
        for protocol in (2, 3) if is_new else (2,):
            with self.subTest(protocol=protocol):
                options = {"protocol": protocol} if is_new else {}
                with redis.Redis(port=server.port, decode_responses=True, **options) as client:
                    client.flushall()
                    client.cms().initbydim("c", 1000, 5)
                    self.assertEqual(client.cms().incrby("c", ["a", "b"], [3, 4]), [3, 4])
                    self.assertEqual(client.cms().query("c", "a", "b", "x"), [3, 4, 0])
                    info = client.cms().info("c")
                    self.assertEqual(info["count"] if protocol == 3 else info.count, 7)
                    client.topk().reserve("t", 3, 50, 4, 0.9)
                    client.topk().add("t", "a", "a", "b")
                    self.assertEqual(client.topk().list("t"), ["a", "b"])
                    self.assertEqual(client.topk().query("t", "a", "x"), [1, 0])
                    info = client.topk().info("t")
                    self.assertAlmostEqual(float(info["decay"] if protocol == 3 else info.decay), 0.9)
                    if not is_new:
                        continue
                    client.tdigest().create("d", 100)
                    client.tdigest().add("d", [1, 2, 3, 4, 5])
                    self.assertEqual(client.tdigest().min("d"), 1)
                    self.assertEqual(client.tdigest().quantile("d", 0.5), [3])
                    self.assertEqual(client.tdigest().rank("d", 3), [2])
                    self.assertEqual(client.tdigest().byrank("d", 0), [1])
                    self.assertEqual(client.tdigest().trimmed_mean("d", 0, 1), 3)


if __name__ == "__main__":
    unittest.main()

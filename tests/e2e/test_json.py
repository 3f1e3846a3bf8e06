"""JSON documents between servers: files, payloads and the replication stream, to the reference and from it, and redis-py's commands
for them."""

import json
import random
import unittest

import harness
import values

try:
    import redis
except ImportError:
    redis = None

REFERENCE = harness.reference("redis-server", "8.6-modules")
DOCUMENTS = 40


def value(rng, depth=0):
    kind = rng.randrange(8 if depth < 4 else 6)
    if kind == 0:
        return rng.choice([None, True, False])
    if kind == 1:
        return rng.randrange(-(1 << 62), 1 << 62) >> rng.randrange(62)
    if kind == 2:
        return rng.choice([0.5, -1.25, 1e100, 3.0, 1e-9])
    if kind in (3, 4):
        return "".join(rng.choice("ab \"\\\n\u00e9\u20ac\U0001f600") for _ in range(rng.randrange(20)))
    if kind == 5:
        return [rng.randrange(300) for _ in range(rng.randrange(20))]
    if kind == 6:
        return [value(rng, depth + 1) for _ in range(rng.randrange(6))]
    return {"key %d" % rng.randrange(30): value(rng, depth + 1) for _ in range(rng.randrange(30))}


def fill(client, seed=1):
    rng = random.Random(seed)
    for i in range(DOCUMENTS):
        client.call("JSON.SET", "doc:%d" % i, "$", json.dumps({"n": i, "list": [1, 2], "any": value(rng)}))


def change(client):
    for i in range(DOCUMENTS):
        key = "doc:%d" % i
        client.call("JSON.NUMINCRBY", key, "$.n", "1.5")
        client.call("JSON.ARRAPPEND", key, "$.list", '"x"', '{"y":[]}')
        client.call("JSON.ARRPOP", key, "$.list", "0")
        client.call("JSON.MERGE", key, "$", '{"added":{"a":1,"b":null}}')
        client.call("JSON.SET", key, "$.added.c", "[%d]" % i)
    client.call("JSON.MSET", "doc:0", "$.n", "7", "new", "$", "[1,2,3]")
    client.call("JSON.DEL", "doc:1", "$.any")
    client.call("JSON.DEL", "doc:2")


class Json(values.ValuesTestCase):
    programs = [REFERENCE]

    def fill(self, client):
        fill(client)

    def change(self, client):
        change(client)

    def described(self, server):
        """The documents; the order of members is no part of them."""
        with server.connect() as client:
            keys = sorted(set(client.call("KEYS", "*")) - {"end"})
            return {key: json.loads(client.call("JSON.GET", key)) for key in keys}

    def test_copies_are_independent(self):
        _, client = self.server()
        fill(client)
        client.call("COPY", "doc:3", "copy")
        before = client.call("DEBUG", "DIGEST-VALUE", "copy")
        self.assertEqual(client.call("DEBUG", "DIGEST-VALUE", "doc:3"), before)
        change(client)
        self.assertEqual(client.call("DEBUG", "DIGEST-VALUE", "copy"), before)
        self.assertNotEqual(client.call("DEBUG", "DIGEST-VALUE", "doc:3"), before)

    def test_no_request_asks_for_much(self):
        _, client = self.server()
        client.call("JSON.SET", "deep", "$", "[" * 120 + "]" * 120)
        client.call("JSON.SET", "wide", "$", "[%s]" % ",".join(["[1]"] * 20000))
        for request in (
            ("JSON.ARRLEN", "deep", "$" + "..*" * 12),
            ("JSON.DEL", "deep", "$" + "..*" * 12),
            ("JSON.GET", "deep", "$" + "..*" * 12),
            ("JSON.GET", "wide", "$[?(@[0]==$[*][0])]"[:-1] + "&&@[0]==2]"),
            ("JSON.GET", "wide", "$[?(@==$[*])]"),
            ("JSON.GET", "wide", "INDENT", "x" * 100000, "$"),
        ):
            self.assertIn("too", client.error_of(*request), request)
        client.call("JSON.SET", "k", "$", "[]")
        for _ in range(20):
            try:
                client.call("JSON.ARRAPPEND", "k", "$" + "[0]" * (126 * _), "[" * 126 + "]" * 126)
            except harness.ReplyError as error:
                self.assertIn("too deep", str(error))
                break
        else:
            self.fail("a document may be nested without a limit")
        client.call("DEBUG", "RELOAD")
        self.assertEqual(client.call("EXISTS", "k"), 1)

    @unittest.skipUnless(REFERENCE, "the reference with its modules is not there")
    def test_replies_to_random_requests_are_the_references(self):
        (_, ours), (_, theirs) = self.server(), self.server(REFERENCE)
        rng = random.Random(5)
        paths = ["$", ".", "$.*", "$..*", "$.a", "$.b", ".a", "..a", "$..a", "$.a[0]", "$.a[-1]", "$[1:]", "$..[0]", "$[?(@.a)]", "$..[?(@>1)]"]
        values = ["1", "-2.5", '"s"', "null", "true", "[]", "[1,2]", '["x",1.5]', "{}", '{"a":1}', '{"a":{"b":[0]}}', '[{"a":2},3]']
        documents = ['{"a":[1,2,{"a":"x"}],"b":{"a":true,"c":2.5}}', '[[1,2],[3,[4]],{"a":5}]', '{"a":{"a":{"a":[]}}}', '"text"', "7"]
        for step in range(3000):
            key, path, new = "k%d" % rng.randrange(3), rng.choice(paths), rng.choice(values)
            request = rng.choice(
                [
                    ("JSON.SET", key, "$", rng.choice(documents)),
                    # The reference ends when a value that is no number is put into an array of numbers.
                    ("JSON.SET", key, rng.choice(["$", ".", "$.a", "$.b", ".a", "$.*"]), new),
                    ("JSON.DEL", key, path),
                    ("JSON.CLEAR", key, path),
                    ("JSON.ARRAPPEND", key, path, new),
                    ("JSON.ARRINSERT", key, path, rng.randrange(-2, 3), new),
                    ("JSON.ARRPOP", key, path, rng.randrange(-2, 3)),
                    ("JSON.ARRTRIM", key, path, rng.randrange(-2, 3), rng.randrange(-2, 3)),
                    ("JSON.ARRINDEX", key, path, new),
                    ("JSON.NUMINCRBY", key, path, rng.choice(["1", "2.5", "-3"])),
                    ("JSON.NUMMULTBY", key, path, rng.choice(["2", "0.5"])),
                    ("JSON.STRAPPEND", key, path, '"y"'),
                    ("JSON.TOGGLE", key, path),
                    ("JSON.TYPE", key, path),
                    ("JSON.OBJKEYS", key, path),
                    ("JSON.ARRLEN", key, path),
                    ("JSON.GET", key, path),
                    ("JSON.MGET", "k0", "k1", "k2", path),
                ]
            )
            for sent in (request, ("JSON.GET", key)):
                replies = []
                for client in (ours, theirs):
                    try:
                        replies.append(client.call(*sent))
                    except Exception as problem:
                        replies.append(str(problem))
                if replies[1] == "ERR bad object type":
                    # What the reference cannot do in arrays of numbers.
                    for client in (ours, theirs):
                        client.call("JSON.SET", key, "$", "{}")
                    break
                self.assertEqual(replies[0], replies[1], (step, sent, request))

    @unittest.skipUnless(redis, "redis-py is not there")
    def test_redis_py(self):
        server, _ = self.server()
        client = redis.Redis(port=server.port, decode_responses=True)
        self.addCleanup(client.close)
        documents = client.json()
        self.assertTrue(documents.set("d", "$", {"a": [1, 2], "s": "x", "b": True, "o": {"k": None}}))
        self.assertEqual(documents.get("d", "$.a"), [[1, 2]])
        self.assertEqual(documents.get("d"), {"a": [1, 2], "s": "x", "b": True, "o": {"k": None}})
        self.assertEqual(documents.arrappend("d", "$.a", 3, {"x": 1}), [4])
        self.assertEqual(documents.arrlen("d", "$.a"), [4])
        self.assertEqual(documents.arrindex("d", "$.a", 3), [2])
        self.assertEqual(documents.arrinsert("d", "$.a", 0, "first"), [5])
        self.assertEqual(documents.arrpop("d", "$.a"), ['{"x":1}'])
        self.assertEqual(documents.arrtrim("d", "$.a", 1, 2), [2])
        self.assertEqual(documents.numincrby("d", "$.a[0]", 2), [3])
        self.assertEqual(documents.strappend("d", "y", "$.s"), [2])
        self.assertEqual(documents.strlen("d", "$.s"), [2])
        self.assertEqual(documents.toggle("d", "$.b"), [0])
        self.assertEqual(documents.objkeys("d", "$.o"), [["k"]])
        self.assertEqual(documents.objlen("d", "$"), [4])
        self.assertEqual(documents.type("d", "$.s"), ["string"])
        self.assertEqual(client.execute_command("JSON.MERGE", "d", "$", '{"o": null}'), "OK")
        self.assertEqual(documents.mget(["d", "none"], "$.s"), [["xy"], None])
        self.assertEqual(documents.clear("d", "$.a"), 1)
        self.assertEqual(documents.delete("d", "$.a"), 1)
        self.assertEqual(documents.get("d"), {"s": "xy", "b": False})


if __name__ == "__main__":
    unittest.main()

"""What Redis 8.8 and 8.10 brought: through the client library that speaks it, and through files and replicas. No server of those
releases is at hand."""

import json
import shutil
import subprocess
import tempfile
import unittest

import clients
import harness

# The first of Node's libraries that has the commands of Redis 8.10. It needs Node 20, the others' package.json is for 18.
LIBRARY = "redis@6.3.1"
NODE = 20

SAID = {
    "increx": [5, 5],
    "increx refused": [5, 0],
    "increx saturated": [7, 2],
    "ttl": 100,
    "sunioncard": 4,
    "sdiffcard": 2,
    "lmovem": ["2", "1"],
    "lmovem exactly": None,
    "blmovem": ["3", "4"],
    "xnack": 1,
    "arset": 3,
    "arget": "y",
    "argetrange": ["z", "y", "x"],
    "arscan": [{"index": 0, "value": "x"}, {"index": 1, "value": "y"}],
    "argrep": [0, 2],
    "arring": 0,
    "arlastitems": ["b", "c"],
    "arinsert": 0,
    "arnext": 1,
    "ardel": 1,
    "arlen": 3,
    "arcount": 2,
}


def node_is_new_enough():
    node = shutil.which("node")
    if not node or not shutil.which("npm"):
        return False
    version = subprocess.run([node, "--version"], stdout=subprocess.PIPE, text=True).stdout
    return int(version.lstrip("v").split(".")[0]) >= NODE


def install_library(directory):
    """Whether npm has installed the library there."""
    try:
        return subprocess.run(["npm", "install", "--prefix", directory, "--no-package-lock", "--ignore-scripts", "--no-audit",
                               "--no-fund", LIBRARY], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120).returncode == 0
    except subprocess.TimeoutExpired:
        return False


class NewestLibrary(harness.ServerTestCase):
    @unittest.skipUnless(node_is_new_enough(), "there is no Node of version 20 with npm")
    def test_the_newest_library_of_node_finds_what_it_knows(self):
        with tempfile.TemporaryDirectory() as directory:
            if not install_library(directory):
                self.skipTest("npm cannot install " + LIBRARY)
            program = shutil.copy(clients.HERE / "newer_redis.mjs", directory)
            for protocol in "2", "3":
                with self.subTest(protocol=protocol):
                    done = subprocess.run(["node", program, str(self.server.port), protocol], stdout=subprocess.PIPE,
                                          stderr=subprocess.PIPE, text=True, timeout=60)
                    self.assertEqual(done.stderr, "")
                    said = json.loads(done.stdout)
                    xread = said.pop("xread")
                    self.assertEqual(said, SAID)
                    messages = xread[0]["messages"] if isinstance(xread, list) else xread["s"]
                    self.assertEqual([message["id"] for message in messages], ["1-0"])


def fill(client):
    """Arrays of several shapes, and a stream with released entries."""
    for i in range(500):
        client.call("ARSET", "dense", str(i), "value %d" % i)
        client.call("ARMSET", "sparse", str(i * 0x9E3779B97F4A7C15 % (2**64 - 1)), str(i))
    client.call("ARDELRANGE", "dense", "10", "19")
    client.call("ARRING", "ring", "3", "a", "b", "c", "d")
    client.call("ARSEEK", "dense", "18446744073709551615")
    for i in range(1, 5):
        client.call("XADD", "stream", "%d-0" % i, "f", "v")
    client.call("XGROUP", "CREATE", "stream", "group", "0")
    client.call("XREADGROUP", "GROUP", "group", "consumer", "STREAMS", "stream", ">")
    client.call("XNACK", "stream", "group", "FATAL", "IDS", "2", "3-0", "1-0")
    client.call("INCREX", "counter", "BYINT", "7", "EX", "1000")


def described(client):
    return {
        "digest": client.call("DEBUG", "DIGEST"),
        "cursors": [client.call("ARNEXT", key) for key in ("dense", "sparse", "ring")],
        "last": client.call("ARLASTITEMS", "ring", "9"),
        "pending": [entry[:2] + entry[3:] for entry in client.call("XPENDING", "stream", "group", "-", "+", "9")],
        "consumers": client.call("XINFO", "CONSUMERS", "stream", "group")[0][:4],
        "released": client.call("XINFO", "STREAM", "stream", "FULL")[-1][0][-1],
    }


class FilesAndReplicas(unittest.TestCase):
    def server(self, **options):
        server = harness.Server(**{"enable_debug_command": "yes", **options})
        self.addCleanup(server.stop)
        return server

    def eventually_equal(self, client, expected):
        harness.ServerTestCase.eventually(self, lambda: described_or_none(client) == expected)

    def test_a_snapshot_keeps_arrays_and_released_entries(self):
        client = self.server().connect()
        fill(client)
        before = described(client)
        client.call("DEBUG", "RELOAD")
        self.assertEqual(described(client), before)
        # In the order of their release.
        self.assertEqual([entry[0] for entry in client.call("XREADGROUP", "GROUP", "group", "next", "CLAIM", "1000000", "STREAMS",
                                                            "stream", ">")[0][1]], ["3-0", "1-0"])

    def test_the_append_only_file_keeps_them_with_and_without_a_preamble(self):
        for preamble in "yes", "no":
            with self.subTest(preamble=preamble):
                server = self.server(appendonly="yes", aof_use_rdb_preamble=preamble)
                client = server.connect()
                fill(client)
                before = described(client)
                client.call("DEBUG", "LOADAOF")
                self.assertEqual(described(client), before)
                client.call("BGREWRITEAOF")
                harness.ServerTestCase.eventually(self, lambda: "aof_rewrite_in_progress:0" in client.call("INFO", "persistence")
                                                  and "aof_rewrite_scheduled:0" in client.call("INFO", "persistence"))
                client.call("DEBUG", "LOADAOF")
                self.assertEqual(described(client), before)

    def test_a_replica_gets_them_at_once_and_as_they_change(self):
        master = self.server()
        client = master.connect()
        fill(client)
        replica = self.server(replicaof=("127.0.0.1", master.port)).connect()
        self.eventually_equal(replica, described(client))
        client.call("ARINSERT", "ring", "e")
        client.call("ARDEL", "sparse", "0")
        client.call("XNACK", "stream", "group", "SILENT", "IDS", "1", "2-0")
        client.call("XCLAIM", "stream", "group", "other", "0", "3-0")
        client.call("INCREX", "counter", "BYFLOAT", "0.1", "PERSIST")
        self.eventually_equal(replica, described(client))


def used_memory(client):
    return int(client.call("INFO", "memory").split("used_memory:")[1].split()[0])


class CompactHashes(unittest.TestCase):
    """Hashes that share the names of their fields."""
    SHARED = "template-listpack"

    def server(self, **options):
        server = harness.Server(**{"enable_debug_command": "yes", **options})
        self.addCleanup(server.stop)
        return server

    def import_users(self, client):
        self.assertEqual(client.call("HIMPORT", "PREPARE", "user", "name", "age"), "OK")
        for i in range(5):
            self.assertEqual(client.call("HIMPORT", "SET", f"user:{i}", "user", f"name{i}", str(i)), "OK")

    def test_fieldsets_in_transactions_and_scripts(self):
        client = self.server().connect()
        client.call("MULTI")
        client.call("HIMPORT", "PREPARE", "f", "a", "b")
        client.call("HIMPORT", "SET", "h", "f", "1", "2")
        self.assertEqual(client.call("EXEC"), ["OK", "OK"])
        # A script has those that it has prepared itself, and leaves none.
        uses = "return redis.call('HIMPORT', 'SET', KEYS[1], 'f', '3', '4')"
        self.assertIn("no such fieldset", str(client.error_of("EVAL", uses, "1", "s")))
        self.assertEqual(client.call("EVAL", "redis.call('HIMPORT', 'PREPARE', 'f', 'x', 'y') " + uses, "1", "s"), "OK")
        self.assertIn("no such fieldset", str(client.error_of("EVAL", uses, "1", "s")))
        self.assertEqual(client.call("HGETALL", "s"), ["x", "3", "y", "4"])
        self.assertEqual(client.call("HGETALL", "h"), ["a", "1", "b", "2"])

    def test_files_have_them_whole_and_loading_shares_their_names(self):
        server = self.server(hash_rdb_load_min_template_entries=2)
        client = server.connect()
        self.import_users(client)
        client.call("HSET", "one", "field", "alone")
        digest = client.call("DEBUG", "DIGEST")
        client.call("DEBUG", "RELOAD")
        self.assertEqual(client.call("DEBUG", "DIGEST"), digest)
        self.assertEqual(client.call("OBJECT", "ENCODING", "user:3"), self.SHARED)
        self.assertEqual(client.call("OBJECT", "ENCODING", "one"), "listpack")
        client.call("CONFIG", "SET", "hash-rdb-load-min-template-entries", "0")
        client.call("DEBUG", "RELOAD")
        self.assertEqual(client.call("OBJECT", "ENCODING", "user:3"), "listpack")
        self.assertEqual(client.call("DEBUG", "DIGEST"), digest)
        # A payload is what every release reads.
        self.import_users(client)
        payload = server.connect(binary=True).call("DUMP", "user:1")
        self.assertEqual(client.call("RESTORE", "copy", "0", payload), "OK")
        self.assertEqual(sorted(client.call("HGETALL", "copy")), sorted(client.call("HGETALL", "user:1")))

    def test_replicas_and_the_append_only_file_get_fields_and_values(self):
        master = self.server(appendonly="yes")
        client = master.connect()
        replica = self.server(replicaof=("127.0.0.1", master.port)).connect()
        harness.ServerTestCase.eventually(self, lambda: "master_link_status:up" in replica.call("INFO", "replication"))
        client.call("HSET", "user:1", "old", "1")
        self.import_users(client)
        client.call("HDEL", "user:2", "age")
        digest = client.call("DEBUG", "DIGEST")
        harness.ServerTestCase.eventually(self, lambda: replica.call("DEBUG", "DIGEST") == digest)
        client.call("DEBUG", "LOADAOF")
        self.assertEqual(client.call("DEBUG", "DIGEST"), digest)

    def test_they_take_less_memory(self):
        client = self.server().connect()
        fields = [f"a_field_of_everyone_{i}" for i in range(10)]
        sizes = {}
        for least in "0", "1":
            client.call("FLUSHALL")
            client.call("CONFIG", "SET", "hash-min-template-entries", least)
            before = used_memory(client)
            for i in range(2000):
                client.call("HSET", f"h:{i}", *(word for field in fields for word in (field, f"value{i}")))
            sizes[least] = used_memory(client) - before
        self.assertLess(sizes["1"], sizes["0"] * 0.6)


class Backups(unittest.TestCase):
    def server(self, **options):
        server = harness.Server(**options)
        self.addCleanup(server.stop)
        return server

    def state(self, client):
        reply = client.call("BACKUP", "STATUS")
        return dict(zip(reply[::2], reply[1::2]))["state"]

    def test_a_backup_under_writes_is_what_a_new_server_starts_with(self):
        for appendonly in "yes", "no":
            with self.subTest(appendonly=appendonly):
                client = self.server(appendonly=appendonly).connect()
                for i in range(100):
                    client.call("SET", f"before:{i}", "x")
                self.assertEqual(client.call("BACKUP", "START"), "OK")
                written = 0
                while self.state(client) != "incrementing":
                    client.call("SET", f"during:{written}", "x")
                    written += 1
                client.call("SET", "last", "x")
                self.assertEqual(client.call("BACKUP", "SEAL"), "OK")
                client.call("SET", "late", "x")
                files = client.call("BACKUP", "LIST")
                self.assertEqual(len(files), 3)
                restored = self.server(preload_file="aof:" + files[-1], appendonly=appendonly).connect()
                self.assertEqual(restored.call("DBSIZE"), 100 + written + 1)
                self.assertEqual(restored.call("EXISTS", "late", "last"), 1)
                self.assertEqual(client.call("BACKUP", "CLEANUP"), "OK")
                self.assertEqual(self.state(client), "idle")

    def test_a_start_with_nothing_to_preload_says_so(self):
        for value in "rdb:/tmp/none", "none", "aof:/tmp/none.rdb":
            with self.subTest(value=value):
                with self.assertRaisesRegex(AssertionError, "preload-file"):
                    self.server(preload_file=value)


def described_or_none(client):
    """Nothing while the replica has no dataset yet."""
    try:
        return described(client)
    except harness.ReplyError:
        return None

"""Real replicas: servers of the reference that follow this one, under load, and stay equal to it."""

import os
import random
import signal
import subprocess
import tempfile
import threading
import time
import unittest

import harness


class Load:
    """Writes of every type, in several databases, from a seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def key(self, kind):
        return "%s:%d" % (kind, self.random.randrange(200))

    def value(self):
        return "".join(self.random.choices("abcdef", k=self.random.choice((1, 5, 20, 100, 3000))))

    def number(self, most=100):
        return str(self.random.randrange(most))

    def request(self):
        return getattr(self, self.random.choice(self.kinds))()

    kinds = ("strings", "lists", "sets", "hashes", "sorted_sets", "streams", "deadlines", "keys", "scripts")

    def choose(self, *requests):
        return self.random.choice(requests)

    def strings(self):
        key = self.key("string")
        return self.choose(("SET", key, self.value()), ("SETEX", key, "1000", self.value()), ("APPEND", key, "tail"),
                           ("SETRANGE", key, "3", "xyz"), ("MSET", key, "1", self.key("string"), "2"), ("GETDEL", key),
                           ("SETBIT", key, self.number(), "1"), ("INCR", self.key("counter")),
                           ("INCRBYFLOAT", self.key("counter"), "0.25"), ("PFADD", self.key("hll"), self.value()))

    def lists(self):
        key = self.key("list")
        return self.choose(("RPUSH", key, self.value(), "b", "c"), ("LPUSH", key, self.value()), ("LPOP", key, "2"),
                           ("LMOVE", key, self.key("list"), "LEFT", "RIGHT"), ("LREM", key, "1", "b"),
                           ("LTRIM", key, "0", "20"), ("LINSERT", key, "BEFORE", "c", "x"))

    def sets(self):
        key = self.key("set")
        return self.choose(("SADD", key, self.number(), self.number(), self.value()), ("SREM", key, self.number()),
                           ("SPOP", key), ("SPOP", key, "3"), ("SMOVE", key, self.key("set"), self.number()),
                           ("SUNIONSTORE", self.key("set"), key, self.key("set")))

    def hashes(self):
        key = self.key("hash")
        return self.choose(("HSET", key, self.number(), self.value()), ("HDEL", key, self.number()),
                           ("HINCRBY", key, "n", "3"), ("HINCRBYFLOAT", key, "f", "1.5"),
                           ("HEXPIRE", key, "1000", "FIELDS", "1", self.number()),
                           ("HPERSIST", key, "FIELDS", "1", self.number()))

    def sorted_sets(self):
        key = self.key("zset")
        return self.choose(("ZADD", key, self.number(), self.number(), "1.5", self.value()), ("ZINCRBY", key, "2", self.number()),
                           ("ZPOPMIN", key), ("ZREM", key, self.number()), ("GEOADD", key, "13.3", "38.1", self.number()),
                           ("ZRANGESTORE", self.key("zset"), key, "0", "5"))

    def streams(self):
        key = self.key("stream")
        return self.choose(("XADD", key, "*", "field", self.value()), ("XADD", key, "MAXLEN", "~", "50", "*", "a", "b"),
                           ("XGROUP", "CREATE", key, "g" + self.number(3), "$", "MKSTREAM"),
                           ("XREADGROUP", "GROUP", "g" + self.number(3), "c", "COUNT", "2", "STREAMS", key, ">"),
                           ("XTRIM", key, "MAXLEN", "30"))

    def deadlines(self):
        key = self.key(self.choose("string", "list", "set", "hash", "zset", "stream"))
        return self.choose(("EXPIRE", key, "1000"), ("PEXPIRE", key, "30"), ("PERSIST", key), ("GETEX", self.key("string"), "EX", "500"),
                           ("SET", self.key("string"), "short", "PX", "20"))

    def keys(self):
        kind = self.choose("string", "list", "set", "hash", "zset", "stream")
        return self.choose(("DEL", self.key(kind)), ("RENAME", self.key(kind), self.key(kind)), ("COPY", self.key(kind), self.key(kind)),
                           ("MOVE", self.key(kind), self.number(4)), ("SELECT", self.number(4)), ("UNLINK", self.key(kind)))

    def scripts(self):
        return ("EVAL", "redis.call('SADD', KEYS[1], ARGV[1]) redis.call('SPOP', KEYS[1]) return redis.call('INCR', KEYS[2])", "2",
                self.key("set"), self.key("counter"), self.value())

    def run(self, client, requests):
        """Pipelines the requests, some of them in transactions, and reads what comes back, errors too."""
        for _ in range(requests // 20):
            batch = [self.request() for _ in range(20)]
            if self.random.random() < 0.2:
                batch = [("MULTI",), *batch, ("EXEC",)]
            client.send_raw(b"".join(harness.encode(*request) for request in batch))
            for _ in batch:
                client.read()


@harness.needs_reference
class FollowedServer(harness.ServerTestCase):
    options = {"enable-debug-command": "yes", "repl-diskless-sync-delay": "0"}

    def setUp(self):
        self.client = self.connect()
        self.client.call("FLUSHALL")
        self.client.call("CONFIG", "SET", "repl-diskless-sync", "yes")
        self.client.call("CONFIG", "RESETSTAT")

    def follow(self, **options):
        replica = harness.Server(harness.reference("redis-server"), enable_debug_command="yes", replicaof=["127.0.0.1", self.server.port],
                                 **options)
        self.addCleanup(replica.stop)
        return replica

    def figures(self, client, section="replication"):
        return dict(line.split(":", 1) for line in client.call("INFO", section).splitlines() if ":" in line)

    @staticmethod
    def reply_of(client, *words):
        client.send(*words)
        return client.read()

    def is_up(self, replica):
        with replica.connect() as client:
            return self.figures(client)["master_link_status"] == "up"

    def expect_equal(self, *replicas):
        """Once nobody writes any more, the replicas come to hold what the server holds."""
        for replica in replicas:
            self.eventually(lambda: self.is_up(replica), 60)
        # Keys whose time has come go, and the replicas hear of it.
        time.sleep(0.3)
        client = self.connect()
        for replica in replicas:
            with replica.connect() as other:
                self.eventually(lambda: self.figures(other)["master_repl_offset"] == self.figures(client)["master_repl_offset"])
                if other.call("DEBUG", "DIGEST") != client.call("DEBUG", "DIGEST"):
                    self.fail("differ: " + ", ".join(self.different(client, other)))
        self.assertNotEqual(client.call("DEBUG", "DIGEST"), "0" * 40)

    @staticmethod
    def different(*clients):
        """The keys, with their databases, whose values are not the same in both servers."""
        values = []
        for client in clients:
            values.append({})
            for database in range(16):
                client.call("SELECT", database)
                for key in client.call("KEYS", "*"):
                    values[-1]["%d %s" % (database, key)] = client.call("DEBUG", "DIGEST-VALUE", key)
        ours, theirs = values
        return sorted(key for key in {*ours, *theirs} if ours.get(key) != theirs.get(key))

    def in_background(self, seed, requests=4000):
        def work():
            with self.server.connect() as client:
                Load(seed).run(client, requests)

        thread = threading.Thread(target=work)
        thread.start()
        self.addCleanup(thread.join)
        return thread


class Following(FollowedServer):
    def check_under_load(self, seed):
        Load(seed).run(self.connect(), 2000)
        self.client.call("DEBUG", "POPULATE", "30000", "filler", "100")
        load = [self.in_background(seed + 1), self.in_background(seed + 2)]
        first = self.follow()
        second = self.follow()
        self.eventually(lambda: self.is_up(first) and self.is_up(second), 60)
        load.append(self.in_background(seed + 3))
        for thread in load:
            thread.join()
        self.expect_equal(first, second)
        self.assertEqual(self.figures(self.client)["connected_slaves"], "2")
        self.assertEqual(self.figures(self.client, "stats")["sync_partial_ok"], "0")

    def test_replicas_get_the_dataset_by_pipe_and_stay_equal_under_load(self):
        self.check_under_load(100)

    def test_replicas_get_the_dataset_from_disk_and_stay_equal_under_load(self):
        self.client.call("CONFIG", "SET", "repl-diskless-sync", "no")
        self.check_under_load(200)

    def test_a_replica_whose_connection_broke_goes_on_where_it_was(self):
        replica = self.follow()
        self.eventually(lambda: self.is_up(replica), 60)
        load = self.in_background(300)
        for _ in range(3):
            self.eventually(lambda: self.figures(self.client)["connected_slaves"] == "1")
            self.client.call("CLIENT", "KILL", "TYPE", "replica")
            self.eventually(lambda: self.figures(self.client)["connected_slaves"] == "1", 60)
        load.join()
        self.expect_equal(replica)
        stats = self.figures(self.client, "stats")
        self.assertEqual(stats["sync_full"], "1")
        self.assertEqual(stats["sync_partial_ok"], "3")

    def test_a_replica_that_is_killed_and_started_again_catches_up(self):
        replica = self.follow()
        self.eventually(lambda: self.is_up(replica), 60)
        load = self.in_background(400)
        replica.process.send_signal(signal.SIGKILL)
        replica.process.wait()
        replica.start()
        load.join()
        self.expect_equal(replica)

    def test_a_replica_that_does_not_read_is_dropped_and_the_others_go_on(self):
        self.client.call("CONFIG", "SET", "client-output-buffer-limit", "replica 2mb 0 0", "repl-backlog-size", "1mb")
        self.addCleanup(self.client.call, "CONFIG", "SET", "client-output-buffer-limit", "replica 256mb 64mb 60")
        good = self.follow()
        self.eventually(lambda: self.is_up(good), 60)
        lazy = self.connect()
        lazy.send("SYNC")
        self.eventually(lambda: self.figures(self.client)["connected_slaves"] == "2")
        value = "x" * 100_000
        for i in range(400):
            self.client.call("SET", "big:%d" % (i % 10), value)
            if i % 20 == 0:
                self.client.call("WAIT", "1", "1000")
        self.assertEqual(self.figures(self.client)["connected_slaves"], "1")
        self.expect_equal(good)
        self.assertEqual(self.figures(self.client, "stats")["sync_full"], "2")

    def test_wait_counts_the_replicas_that_have_what_was_written(self):
        replicas = [self.follow(), self.follow()]
        self.eventually(lambda: all(self.is_up(replica) for replica in replicas), 60)
        self.client.call("SET", "key", "value")
        self.assertEqual(self.client.call("WAIT", "2", "5000"), 2)
        for replica in replicas:
            with replica.connect() as other:
                self.assertEqual(other.call("GET", "key"), "value")
        replicas[0].process.send_signal(signal.SIGSTOP)
        self.addCleanup(replicas[0].process.send_signal, signal.SIGCONT)
        self.client.call("SET", "key", "other")
        self.assertEqual(self.client.call("WAIT", "1", "5000"), 1)
        self.assertEqual(self.client.call("WAIT", "2", "300"), 1)

    def test_messages_reach_the_subscribers_of_a_replica(self):
        replica = self.follow()
        self.eventually(lambda: self.is_up(replica), 60)
        with replica.connect() as subscriber:
            subscriber.call("SUBSCRIBE", "channel")
            self.client.call("PUBLISH", "channel", "hello")
            self.assertEqual(subscriber.read(), ["message", "channel", "hello"])


@harness.needs_reference
class CommandLineClient(FollowedServer):
    def cli(self, *arguments):
        return [harness.reference("redis-cli"), "-p", str(self.server.port), *arguments]

    def check_rdb(self):
        Load(500).run(self.connect(), 1000)
        self.client.call("DEBUG", "POPULATE", "20000")
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "dump.rdb")
            subprocess.run(self.cli("--rdb", path), check=True, capture_output=True, timeout=60)
            other = harness.Server(harness.reference("redis-server"), enable_debug_command="yes", dir=directory)
            self.addCleanup(other.stop)
            with other.connect() as client:
                self.eventually(lambda: not str(self.reply_of(client, "DBSIZE")).startswith("LOADING"))
                self.assertEqual(client.call("DEBUG", "DIGEST"), self.client.call("DEBUG", "DIGEST"))

    def test_the_dataset_is_fetched_by_pipe(self):
        self.check_rdb()

    def test_the_dataset_is_fetched_from_disk(self):
        self.client.call("CONFIG", "SET", "repl-diskless-sync", "no")
        self.check_rdb()

    def test_the_stream_is_shown(self):
        process = subprocess.Popen(self.cli("--replica"), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        self.eventually(lambda: "state=online" in self.figures(self.client).get("slave0", ""))
        self.client.call("SET", "shown", "value")
        for line in process.stdout:
            if "shown" in line:
                break
        self.assertIn("shown", line)


@harness.needs_reference
class Migrating(FollowedServer):
    def setUp(self):
        super().setUp()
        self.other = harness.Server(harness.reference("redis-server"), enable_debug_command="yes")
        self.addCleanup(self.other.stop)
        self.there = self.other.connect()
        self.addCleanup(self.there.close)

    def test_keys_of_every_type_move_there_and_back(self):
        for request in (("SET", "string", "value"), ("RPUSH", "list", "a", "b"), ("SADD", "set", "1", "2"),
                        ("HSET", "hash", "field", "value"), ("ZADD", "zset", "1", "member"), ("XADD", "stream", "1-1", "f", "v")):
            self.client.call(*request)
        self.client.call("PEXPIRE", "string", "100000")
        keys = ("string", "list", "set", "hash", "zset", "stream")
        digests = self.client.call("DEBUG", "DIGEST-VALUE", *keys)
        self.assertEqual(self.client.call("MIGRATE", "127.0.0.1", self.other.port, "", "0", "5000", "KEYS", *keys), "OK")
        self.assertEqual(self.client.call("DBSIZE"), 0)
        self.assertEqual(self.there.call("DEBUG", "DIGEST-VALUE", *keys), digests)
        self.assertGreater(self.there.call("PTTL", "string"), 90000)
        self.assertEqual(self.there.call("MIGRATE", "127.0.0.1", self.server.port, "", "0", "5000", "KEYS", *keys), "OK")
        self.assertEqual(self.there.call("DBSIZE"), 0)
        self.assertEqual(self.client.call("DEBUG", "DIGEST-VALUE", *keys), digests)

    def test_what_is_there_already_stays_where_it_is(self):
        self.client.call("MSET", "taken", "ours", "free", "ours")
        self.there.call("SET", "taken", "theirs")
        move = ("MIGRATE", "127.0.0.1", self.other.port, "", "0", "5000")
        error = self.client.error_of(*move, "KEYS", "taken", "free")
        self.assertEqual(error, "ERR Target instance replied with error: BUSYKEY Target key name already exists.")
        self.assertEqual(self.client.call("MGET", "taken", "free"), ["ours", None])
        self.assertEqual(self.client.call(*move, "COPY", "REPLACE", "KEYS", "taken"), "OK")
        self.assertEqual(self.client.call("GET", "taken"), "ours")
        self.assertEqual(self.there.call("MGET", "taken", "free"), ["ours", "ours"])

    def test_connections_are_kept_and_made_anew_when_the_other_side_has_closed_them(self):
        move = ("MIGRATE", "127.0.0.1", self.other.port, "key", "3", "5000", "REPLACE")
        for _ in range(3):
            self.client.call("SET", "key", "value")
            self.assertEqual(self.client.call(*move), "OK")
        self.assertEqual(self.figures(self.client, "stats")["migrate_cached_sockets"], "1")
        self.there.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        self.client.call("SET", "key", "value")
        self.assertEqual(self.client.call(*move), "OK")

    def test_failures_leave_the_keys_here(self):
        self.client.call("SET", "key", "value")
        move = ("MIGRATE", "127.0.0.1", self.other.port, "key", "0", "200")
        self.assertEqual(self.client.error_of("MIGRATE", "127.0.0.1", harness.free_port(), "key", "0", "200"),
                         "IOERR error or timeout writing to target instance")
        self.assertEqual(self.client.error_of(*move, "AUTH", "secret"),
                         "ERR Target instance replied with error: ERR AUTH <password> called without any password configured for "
                         "the default user. Are you sure your configuration is correct?")
        self.other.process.send_signal(signal.SIGSTOP)
        self.assertEqual(self.client.error_of(*move, "REPLACE"), "IOERR error or timeout reading to target instance")
        self.other.process.send_signal(signal.SIGCONT)
        self.assertEqual(self.client.call("GET", "key"), "value")


if __name__ == "__main__":
    unittest.main()

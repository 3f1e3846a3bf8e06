"""CHECKPOINT through real clients, over an append-only file that is loaded again, and with a replica that follows."""

import unittest

import clients
import harness
import test_following
import test_replicas


class Clients(harness.ServerTestCase):
    """One server for several libraries, each with names of its own."""

    def crew(self, kind):
        crew = kind(port=self.server.port, count=2)
        self.addCleanup(crew.close)
        return crew

    def check(self, kind):
        crew = self.crew(kind)
        one, other = crew
        one.ask("raw", "FLUSHALL")
        one.ask("raw", "SET", "fixture", "old")
        one.ask("raw", "RPUSH", "list", "a", "b")
        self.assertEqual(one.ask("raw", "CHECKPOINT", "CREATE", "fixtures"), "fixtures")
        for _ in range(3):
            other.ask("raw", "SET", "fixture", "new")
            other.ask("raw", "FLUSHALL")
            other.ask("raw", "INCR", "made")
            other.ask("raw", "CONFIG", "SET", "maxmemory-samples", "9")
            self.assertEqual(one.ask("raw", "CHECKPOINT", "ROLLBACK", "fixtures"), "OK")
            self.assertEqual(other.ask("get", "fixture"), "old")
            self.assertEqual(other.ask("raw", "LRANGE", "list", "0", "-1"), ["a", "b"])
            self.assertEqual(other.ask("raw", "DBSIZE"), 2)
        with self.assertRaisesRegex(clients.ClientError, "No such checkpoint"):
            one.ask("raw", "CHECKPOINT", "ROLLBACK", "none")
        self.assertEqual(one.ask("raw", "CHECKPOINT", "DROP", "fixtures"), "OK")
        with self.assertRaisesRegex(clients.ClientError, "There is no checkpoint"):
            one.ask("raw", "CHECKPOINT", "ROLLBACK")

    def test_redis_py(self):
        self.check(clients.PythonRedis)

    def test_phpredis(self):
        self.check(clients.PhpRedis)

    def test_ruby_redis(self):
        self.check(clients.RubyRedis)

    def test_a_script_that_is_busy_is_not_rolled_back(self):
        client = self.connect()
        client.call("CONFIG", "SET", "busy-reply-threshold", "1")
        client.call("CHECKPOINT", "CREATE", "before")
        client.call("SET", "key", "changed")
        running = self.connect()
        running.send("EVAL", "while true do end", "0")
        self.eventually(lambda: client_is_refused(client))
        self.assertTrue(client.error_of("CHECKPOINT", "ROLLBACK").startswith("BUSY "))
        self.assertTrue(client.error_of("CHECKPOINT", "CREATE").startswith("BUSY "))
        client.call("SCRIPT", "KILL")
        self.assertIsInstance(running.read(), harness.ReplyError)
        client.call("CHECKPOINT", "ROLLBACK")
        self.assertIsNone(client.call("GET", "key"))
        client.call("CHECKPOINT", "DROP")

    def test_a_client_that_waits_is_served_by_a_rollback(self):
        client = self.connect()
        client.call("RPUSH", "queue", "job")
        client.call("CHECKPOINT", "CREATE", "full")
        for empty in (("DEL", "queue"), ("FLUSHALL",)):
            client.call(*empty)
            waiting = self.connect()
            waiting.send("BLPOP", "queue", "0")
            self.eventually(lambda: "blocked_clients:1" in client.call("INFO", "clients"))
            client.call("CHECKPOINT", "ROLLBACK", "full")
            self.assertEqual(waiting.read(), ["queue", "job"])
        client.call("CHECKPOINT", "DROP", "full")


def client_is_refused(client):
    client.send("GET", "key")
    return isinstance(client.read(), harness.ReplyError)


class SlowLoad(test_replicas.Load):
    """In which nothing expires while the test runs."""

    kinds = tuple(kind for kind in test_replicas.Load.kinds if kind != "deadlines")


def disturb(server, load):
    """Checkpoints, writes of every type, and rollbacks, some of them over a flush and an exchange of databases."""
    with server.connect() as client:
        load.run(client, 1500)
        client.call("CHECKPOINT", "CREATE", "outer")
        load.run(client, 300)
        client.call("CHECKPOINT", "CREATE", "inner")
        load.run(client, 300)
        client.call("CHECKPOINT", "ROLLBACK", "inner")
        client.call("SWAPDB", "0", "1")
        load.run(client, 300)
        client.call("CHECKPOINT", "ROLLBACK", "inner")
        client.call("FLUSHALL")
        load.run(client, 300)
        client.call("FUNCTION", "LOAD", "#!lua name=made\nredis.register_function('made', function() return 1 end)")
        client.call("CHECKPOINT", "ROLLBACK", "outer")
        load.run(client, 300)
        client.call("CHECKPOINT", "DROP", "outer")


class AppendOnlyFile(harness.ServerTestCase):
    options = {"appendonly": "yes", "appendfsync": "no", "enable-debug-command": "yes"}

    def test_the_file_loads_what_a_rollback_restored(self):
        disturb(self.server, SlowLoad(1))
        with self.server.connect() as client:
            client.call("CHECKPOINT", "CREATE")
            client.call("SET", "last", "word")
            client.call("CHECKPOINT", "ROLLBACK")
            before = client.call("DEBUG", "DIGEST")
            self.assertEqual(client.call("FUNCTION", "LIST"), [])
            self.assertEqual(client.call("DEBUG", "LOADAOF"), "OK")
            self.assertEqual(client.call("DEBUG", "DIGEST"), before)
            self.assertEqual(client.call("EXISTS", "last"), 0)
            self.assertEqual(client.call("FUNCTION", "LIST"), [])
            # It is another dataset now.
            self.assertEqual(client.error_of("CHECKPOINT", "ROLLBACK"), "ERR There is no checkpoint")


class Replicas(test_following.Network):
    def test_a_replica_of_our_own_follows(self):
        master = self.start()
        replica = self.start(of=master)
        self.expect_up(replica)
        for seed in range(3):
            disturb(master, test_replicas.Load(seed))
            self.expect_equal(master, replica)
        self.assertEqual(self.call(master, "FUNCTION", "LIST"), self.call(replica, "FUNCTION", "LIST"))

    @harness.needs_reference
    def test_a_replica_of_the_reference_follows(self):
        master = self.start()
        replica = self.start(program="redis-server", of=master)
        self.expect_up(replica)
        disturb(master, test_replicas.Load(7))
        self.expect_equal(master, replica)

    def test_checkpoints_are_dropped_by_a_server_that_becomes_a_replica(self):
        master = self.start()
        server = self.start()
        self.call(server, "CHECKPOINT", "CREATE", "own")
        self.call(server, "REPLICAOF", "127.0.0.1", str(master.port))
        self.expect_up(server)
        with server.connect() as client:
            self.assertIn("not possible on a replica", client.error_of("CHECKPOINT", "CREATE"))
            client.call("REPLICAOF", "NO", "ONE")
            self.assertEqual(client.error_of("CHECKPOINT", "ROLLBACK"), "ERR There is no checkpoint")
        self.assertIn("Checkpoints are dropped, because the server follows a master.", server.log())


if __name__ == "__main__":
    unittest.main()

"""CLUSTER MIGRATION: whole slots that move between nodes while clients write, also from nodes of the reference and to them."""

import os
import signal
import socket
import threading
import time
import unittest

import harness
from test_cluster_nodes import ClusterTestCase

REFERENCE = harness.reference("redis-server")
REDIS_86 = REFERENCE and os.path.join(os.path.dirname(REFERENCE), "redis-server-8.6")
needs_redis_86 = unittest.skipUnless(REDIS_86 and os.path.isfile(REDIS_86), "scripts/reference has not brought Redis 8.6")
# Keys with these tags are in the slots 0, 1, 2, 101, 6000 and 16383.
TAGS = {0: "{06S}", 1: "{Qi}", 2: "{5L5}", 101: "{1j2}", 6000: "{4L7}", 16383: "{6ZJ}"}


def fields(flat):
    return dict(zip(flat[::2], flat[1::2]))


class Writer(threading.Thread):
    """Increments a counter, wherever its slot is, and remembers what was acknowledged."""

    def __init__(self, ports, key):
        super().__init__(daemon=True)
        self.ports, self.key = ports, key
        self.port = ports[0]
        self.acknowledged = 0
        self.attempts = 0
        self.surprises = []
        self.stopped = threading.Event()

    def run(self):
        client = None
        while not self.stopped.is_set():
            try:
                if client is None:
                    client = harness.Client(socket.create_connection(("127.0.0.1", self.port), harness.REPLY_TIMEOUT_S))
                self.attempts += 1
                value = client.call("INCR", self.key)
                if value <= self.acknowledged:
                    self.surprises.append("%s went back from %d to %d" % (self.key, self.acknowledged, value))
                self.acknowledged = value
            except harness.ReplyError as error:
                self.attempts -= 1
                if str(error).startswith("MOVED"):
                    self.port = int(str(error).rsplit(":", 1)[1])
                    client.close()
                    client = None
                elif not str(error).startswith("CLUSTERDOWN"):
                    self.surprises.append(str(error))
            except (OSError, harness.ConnectionClosed):
                client = None
                self.port = self.ports[self.attempts % len(self.ports)]
                time.sleep(0.01)

    def finish(self):
        self.stopped.set()
        self.join(20)


class SlotMigrationTestCase(ClusterTestCase):
    def pair(self, programs, **options):
        """Masters of a part of the slots each, mostly two."""
        servers = self.start(programs, enable_debug_command="yes", repl_diskless_sync_delay="0", **options)
        ranges = ((0, 8191), (8192, 16383)) if len(servers) == 2 else ((0, 8191), (8192, 12287), (12288, 16383))
        for server, (first, last) in zip(servers, ranges):
            with server.connect() as client:
                client.call("CLUSTER", "ADDSLOTSRANGE", first, last)
        with servers[0].connect() as client:
            client.call("CLUSTER", "SET-CONFIG-EPOCH", "1")
            for other in servers[1:]:
                client.call("CLUSTER", "MEET", "127.0.0.1", other.port)
        self.wait_until_up(servers)
        return servers

    def add_replica(self, master, **options):
        server = harness.Server(cluster_enabled="yes", cluster_node_timeout=1000, enable_debug_command="yes", **options)
        self.addCleanup(server.stop)
        self.servers.append(server)
        with server.connect() as client:
            client.call("CLUSTER", "MEET", "127.0.0.1", master.port)
            name = self.identity(master)
            self.eventually(lambda: name in self.nodes(server), "knowing the master")
            client.call("CLUSTER", "REPLICATE", name)
        self.eventually(lambda: self.link_is_up(server), "the link")
        self.wait_until_up(self.servers)
        return server

    def status(self, server, task):
        with server.connect() as client:
            tasks = client.call("CLUSTER", "MIGRATION", "STATUS", "ID", task)
        return fields(tasks[0]) if tasks else {"state": "unknown", "last_error": ""}

    def migrate(self, dest, *ranges):
        with dest.connect() as client:
            return client.call("CLUSTER", "MIGRATION", "IMPORT", *ranges)

    def wait_for_state(self, server, task, *states):
        self.eventually(lambda: self.status(server, task)["state"] in states, "state %s of %s" % (states, self.status(server, task)))

    def set_option(self, server, name, value):
        with server.connect() as client:
            client.call("CONFIG", "SET", name, value)

    def value(self, server, *words):
        with server.connect() as client:
            return client.call(*words)

    def make_keys(self, server):
        with server.connect() as client:
            client.call("SET", TAGS[0] + "string", "text")
            client.call("SET", TAGS[0] + "expires", "text", "EX", "1000")
            client.call("SETRANGE", TAGS[0] + "long", "100000", "x")
            client.call("RPUSH", TAGS[1] + "list", *range(1000))
            client.call("SADD", TAGS[1] + "set", *range(1000))
            client.call("SADD", TAGS[1] + "few", "1", "2", "x")
            client.call("EXPIRE", TAGS[1] + "few", "1000")
            client.call("ZADD", TAGS[2] + "ranks", *(word for i in range(1000) for word in (i / 3, "m%d" % i)))
            client.call("HSET", TAGS[2] + "hash", *(word for i in range(1000) for word in ("f%d" % i, i)))
            client.call("HPEXPIREAT", TAGS[2] + "hash", "4102444800000", "FIELDS", "1", "f7")
            client.call("HSET", TAGS[2] + "small", "a", "1", "b", "2")
            for i in range(1, 50):
                client.call("XADD", TAGS[2] + "stream", "%d-1" % i, "n", i)
            client.call("XGROUP", "CREATE", TAGS[2] + "stream", "group", "7-1")
            client.call("SET", TAGS[101] + "stays", "here")
            client.call("FUNCTION", "LOAD", "REPLACE", "#!lua name=lib\nredis.register_function('f', function() return 'hello' end)")

    def digests(self, server):
        keys = [tag + name for tag, names in ((TAGS[0], ("string", "expires", "long")), (TAGS[1], ("list", "set", "few")),
                (TAGS[2], ("ranks", "hash", "small", "stream"))) for name in names]
        return self.value(server, "DEBUG", "DIGEST-VALUE", *keys)

    def check_no_loss(self, writers, servers):
        for writer in writers:
            writer.finish()
        self.assertEqual([surprise for writer in writers for surprise in writer.surprises], [])
        for writer in writers:
            self.assertGreater(writer.acknowledged, 0)
            values = []
            for server in servers:
                with server.connect() as client:
                    try:
                        values.append(int(client.call("GET", writer.key)))
                    except harness.ReplyError as error:
                        self.assertTrue(str(error).startswith("MOVED"), error)
            self.assertEqual(len(values), 1, "one node serves " + writer.key)
            self.assertGreaterEqual(values[0], writer.acknowledged)
            self.assertLessEqual(values[0], writer.attempts)

    def write_to(self, servers, slots=(0, 1, 101)):
        writers = [Writer([server.port for server in servers], TAGS[slot] + "counter") for slot in slots]
        for writer in writers:
            writer.start()
        self.eventually(lambda: all(writer.acknowledged > 20 for writer in writers), "writes")
        return writers


class Moving(SlotMigrationTestCase):
    def check_there_and_back(self, programs):
        servers = first, second = self.pair(programs)
        self.make_keys(first)
        before = self.digests(first)
        writers = self.write_to(servers)
        for source, dest in ((first, second), (second, first)):
            # Some writes come while the snapshot is being sent.
            self.set_option(source, "rdb-key-save-delay", "20000")
            task = self.migrate(dest, 0, 100)
            self.wait_for_state(dest, task, "completed")
            self.wait_for_state(source, task, "completed")
            self.assertEqual(self.digests(dest), before)
            self.assertGreater(self.value(dest, "TTL", TAGS[0] + "expires"), 900)
            self.assertEqual(self.value(dest, "HPEXPIRETIME", TAGS[2] + "hash", "FIELDS", "1", "f7"), [4102444800000])
            self.assertEqual(self.value(dest, "XINFO", "GROUPS", TAGS[2] + "stream")[0][7], "7-1")
            self.assertEqual(self.value(dest, "FCALL", "f", "0"), "hello")
            self.eventually(lambda source=source: self.value(source, "CLUSTER", "COUNTKEYSINSLOT", "0") == 0, "trimming")
        self.check_no_loss(writers, servers)
        self.assertEqual(self.value(first, "GET", TAGS[101] + "stays"), "here")

    def test_slots_move_between_two_nodes_and_back_while_clients_write(self):
        self.check_there_and_back([None, None])

    @needs_redis_86
    def test_slots_move_to_the_reference_and_back(self):
        self.check_there_and_back([None, REDIS_86])

    @needs_redis_86
    def test_slots_move_from_the_reference_and_back(self):
        self.check_there_and_back([REDIS_86, None])

    def test_replicas_have_what_their_masters_have(self):
        first, second = self.pair([None, None])
        replicas = self.add_replica(first), self.add_replica(second)
        self.make_keys(first)
        before = self.digests(first)
        task = self.migrate(second, 0, 100)
        self.wait_for_state(second, task, "completed")
        self.eventually(lambda: self.value(replicas[1], "DBSIZE") == self.value(second, "DBSIZE"), "the copy")
        self.assertEqual(self.digests(replicas[1]), before)
        self.eventually(lambda: self.value(replicas[0], "DBSIZE") == 1, "trimming at the replica")
        self.assertEqual(self.value(first, "DBSIZE"), 1)

    def test_what_is_imported_is_not_seen_before_it_is_served(self):
        first, second = self.pair([None, None])
        with first.connect() as client:
            for i in range(20):
                client.call("SET", TAGS[0] + str(i), i)
        self.set_option(first, "rdb-key-save-delay", "100000")
        task = self.migrate(second, 0, 0)
        self.eventually(lambda: "keys=" in self.value(second, "INFO", "keyspace"), "keys")
        self.assertEqual(self.value(second, "DBSIZE"), 0)
        self.assertEqual(self.value(second, "SCAN", "0"), ["0", []])
        self.assertIsNone(self.value(second, "RANDOMKEY"))
        self.wait_for_state(second, task, "completed")
        self.assertEqual(self.value(second, "DBSIZE"), 20)

    def test_only_other_nodes_may_ask_for_slots(self):
        first = self.pair([None, None])[0]
        client = self.connect(first)
        self.assertEqual(client.error_of("AUTH", "internal connection", "x" * 40), "WRONGPASS invalid internal password")
        error = client.error_of("CLUSTER", "SYNCSLOTS", "SYNC", "a" * 40, "0", "100")
        self.assertEqual(error, "ERR CLUSTER SYNCSLOTS subcommands are only allowed for internal clients")
        client.read_until_closed()


class Losing(SlotMigrationTestCase):
    """Whatever is lost in the middle, the slots stay with one of the two, and nothing acknowledged is gone."""

    def begin(self, nodes=2, **options):
        servers = self.pair([None] * nodes, **options)
        first, second = servers[:2]
        self.make_keys(first)
        writers = self.write_to((first, second))
        self.set_option(first, "rdb-key-save-delay", "300000")
        task = self.migrate(second, 0, 100)
        self.wait_for_state(first, task, "send-bulk-and-stream")
        self.wait_for_state(second, task, "accumulate-buffer")
        return (first, second), writers, task

    def check_nothing_is_left(self, server):
        self.eventually(lambda: "keys=" not in self.value(server, "INFO", "keyspace"), "trimming")

    def test_a_canceled_import_leaves_nothing_behind(self):
        (first, second), writers, task = self.begin()
        self.assertEqual(self.value(second, "CLUSTER", "MIGRATION", "CANCEL", "ID", task), 1)
        self.wait_for_state(first, task, "failed")
        self.assertIn("user request", self.status(second, task)["last_error"])
        self.check_nothing_is_left(second)
        self.check_no_loss(writers, (first, second))

    def test_the_source_may_cancel_and_the_destination_tries_again(self):
        (first, second), writers, task = self.begin()
        self.set_option(first, "rdb-key-save-delay", "0")
        self.assertEqual(self.value(first, "CLUSTER", "MIGRATION", "CANCEL", "ALL"), 1)
        self.wait_for_state(second, task, "completed")
        self.assertGreater(int(self.status(second, task)["retries"]), 0)
        self.check_no_loss(writers, (first, second))

    def test_the_destination_is_killed(self):
        (first, second), writers, task = self.begin(nodes=3, cluster_require_full_coverage="no")
        second.process.send_signal(signal.SIGKILL)
        second.process.wait()
        second.process = None
        self.wait_for_state(first, task, "failed")
        before = [writer.acknowledged for writer in writers]
        self.eventually(lambda: all(writer.acknowledged > count for writer, count in zip(writers, before)), "writes at the source")
        self.check_no_loss(writers, (first,))

    def test_a_handoff_that_fails_lets_writes_go_on(self):
        first, second = self.pair([None, None], repl_timeout="2")
        self.make_keys(first)
        before = self.digests(first)
        self.value(first, "DEBUG", "ASM-FAILPOINT", "migrate-main-channel", "handoff")
        task = self.migrate(second, 0, 100)
        self.wait_for_state(first, task, "failed")
        self.wait_for_state(second, task, "failed")
        # Writes go on at the source.
        self.assertEqual(self.value(first, "SET", TAGS[0] + "written", "1"), "OK")
        self.value(first, "DEBUG", "ASM-FAILPOINT", "", "")
        self.wait_for_state(second, task, "completed")
        self.assertEqual(self.digests(second), before)
        self.assertEqual(self.value(second, "GET", TAGS[0] + "written"), "1")

    def test_a_failure_in_any_state_is_overcome(self):
        servers = first, second = self.pair([None, None])
        self.make_keys(first)
        before = self.digests(first)
        writers = self.write_to(servers)
        points = [(second, "import-main-channel", state) for state in
                  ("connecting", "auth-reply", "handshake-reply", "syncslots-reply", "accumulate-buffer", "streaming-buffer", "wait-stream-eof")]
        points += [(second, "import-rdb-channel", state) for state in ("connecting", "auth-reply", "rdbchannel-reply", "rdbchannel-transfer")]
        points += [(first, "migrate-main-channel", state) for state in ("wait-bgsave-start", "send-bulk-and-stream", "send-stream", "handoff")]
        for server, channel, state in points:
            with self.subTest(channel=channel, state=state):
                self.value(server, "DEBUG", "ASM-FAILPOINT", channel, state)
                task = self.migrate(second, 0, 100)
                self.wait_for_state(second, task, "failed")
                self.assertEqual(self.value(second, "CLUSTER", "MIGRATION", "CANCEL", "ID", task), 1)
                self.value(server, "DEBUG", "ASM-FAILPOINT", "", "")
                self.eventually(lambda: self.state(first)["cluster_slot_migration_active_tasks"] == "0", "the end at the source")
                self.check_nothing_is_left(second)
        task = self.migrate(second, 0, 100)
        self.wait_for_state(second, task, "completed")
        self.assertEqual(self.digests(second), before)
        self.check_no_loss(writers, servers)

    def test_a_flush_ends_it(self):
        for index in (0, 1):
            with self.subTest(server=index):
                servers, writers, task = self.begin()
                for writer in writers:
                    writer.finish()
                self.value(servers[index], "FLUSHALL")
                self.wait_for_state(servers[index], task, "canceled")

    def test_a_promoted_replica_of_the_destination_drops_what_was_imported(self):
        first, second = self.pair([None, None])
        replica = self.add_replica(second)
        self.make_keys(first)
        self.set_option(first, "rdb-key-save-delay", "300000")
        task = self.migrate(second, 0, 100)
        self.eventually(lambda: "keys=" in self.value(replica, "INFO", "keyspace"), "keys at the replica")
        self.assertEqual(self.value(replica, "DBSIZE"), 0)
        self.value(replica, "CLUSTER", "FAILOVER")
        self.eventually(lambda: self.role(replica) == "master", "the promotion")
        self.wait_for_state(second, task, "canceled")
        self.check_nothing_is_left(replica)

    def test_a_promoted_replica_of_the_source_serves_as_the_source_did(self):
        first, second = self.pair([None, None])
        replica = self.add_replica(first)
        self.make_keys(first)
        before = self.digests(first)
        self.eventually(lambda: self.value(replica, "DBSIZE") == self.value(first, "DBSIZE"), "the copy")
        self.set_option(first, "rdb-key-save-delay", "300000")
        task = self.migrate(second, 0, 100)
        self.wait_for_state(first, task, "send-bulk-and-stream")
        self.value(replica, "CLUSTER", "FAILOVER")
        self.eventually(lambda: self.role(replica) == "master", "the promotion")
        self.wait_for_state(first, task, "canceled")
        self.wait_for_state(second, task, "completed")
        self.assertEqual(self.digests(second), before)

    def test_a_node_that_starts_drops_keys_of_slots_that_are_not_its_own(self):
        first, second = self.pair([None, None], appendonly="yes")
        self.make_keys(first)
        self.set_option(first, "rdb-key-save-delay", "300000")
        self.migrate(second, 0, 100)
        self.eventually(lambda: "keys=" in self.value(second, "INFO", "keyspace"), "keys")
        second.process.send_signal(signal.SIGKILL)
        second.process.wait()
        second.start()
        self.assertIn("Detected keys in slots that do not belong to this node", second.log())
        self.check_nothing_is_left(second)


class Emulating(unittest.TestCase):
    def test_a_release_before_it_does_not_have_it(self):
        server = harness.Server(cluster_enabled="yes", emulate="redis 8.0")
        self.addCleanup(server.stop)
        with server.connect() as client:
            self.assertIn("unknown subcommand", client.error_of("CLUSTER", "MIGRATION", "STATUS", "ALL"))
            self.assertIn("unknown command", client.error_of("TRIMSLOTS", "RANGES", "1", "0", "0"))
            self.assertNotIn("slot_migration", client.call("CLUSTER", "INFO"))
            self.assertEqual(client.call("CONFIG", "GET", "cluster-slot-migration*"), [])


if __name__ == "__main__":
    unittest.main()

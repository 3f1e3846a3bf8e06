"""CLOCK: the time that data and commands live in, moved by a test that does not sleep."""

import glob
import os
import time
import unittest

import harness

try:
    import redis
except ImportError:
    redis = None

NEW_YEAR_MS = 1_704_067_200_000  # 2024-01-01


class Moved(harness.ServerTestCase):
    def setUp(self):
        self.client = self.connect()
        self.client.call("FLUSHALL")
        self.client.call("CLOCK", "RESET")

    def test_keys_expire_without_sleep(self):
        self.client.call("SET", "lock", "token", "NX", "PX", "30000")
        self.client.call("CLOCK", "FREEZE")
        self.client.call("CLOCK", "ADVANCE", "29s")
        self.assertEqual(self.client.call("SET", "lock", "other", "NX", "PX", "30000"), None)
        self.client.call("CLOCK", "ADVANCE", "1001ms")
        self.assertEqual(self.client.call("SET", "lock", "other", "NX", "PX", "30000"), "OK")

    def test_all_that_was_due_has_been_sent_before_the_reply(self):
        self.client.call("CONFIG", "SET", "notify-keyspace-events", "Ex")
        watcher = self.connect()
        watcher.call("PSUBSCRIBE", "__keyevent@*__:expired")
        waiter = self.connect()
        waiter.send("BLPOP", "queue", "5")
        behind = self.connect()
        behind.send_raw(harness.encode("BLPOP", "queue", "7") + harness.encode("GET", "late")
                        + harness.encode("GET", "later"))
        self.eventually(lambda: "blocked_clients:2" in self.client.call("INFO", "clients"))
        self.client.call("CLOCK", "FREEZE")
        for i in range(100):
            self.client.call("SET", f"key:{i}", "v", "PX", str(1 + (i * 37) % 100))
        # The client behind its wait sees one of them.
        self.client.call("SET", "late", "v", "PX", "6000")
        self.client.call("SET", "later", "v", "PX", "8000")
        self.client.call("CLOCK", "ADVANCE", "1m")
        # Nothing is waited for from here on: what is there has come before the reply, or never comes.
        expected = [f"key:{i}" for _, i in sorted(((i * 37) % 100, i) for i in range(100))]
        told = [watcher.read()[3] for _ in range(102)]
        self.assertEqual(told, expected + ["late", "later"])
        self.assertEqual(waiter.read(), None)
        # This client went on at its own time, when one of the keys was still there.
        self.assertEqual([behind.read() for _ in range(3)], [None, None, "v"])

    def test_time_in_replies_and_logs_follows(self):
        self.client.call("CLOCK", "FREEZE")
        self.client.call("CLOCK", "SET", "2024-01-01T00:00:00Z")
        now = self.client.call("CLOCK")
        self.assertEqual(now[0:2], ["mode", "frozen"])
        seconds = int(self.client.call("TIME")[0])
        self.assertEqual(seconds, NEW_YEAR_MS // 1000)
        self.assertEqual(self.client.call("XADD", "s", "*", "f", "v").split("-")[0], str(now[3]))
        self.client.call("CONFIG", "SET", "slowlog-log-slower-than", "0")
        self.client.call("PING")
        self.assertEqual(self.client.call("SLOWLOG", "GET", "1")[0][1], seconds)
        self.client.call("CONFIG", "SET", "slowlog-log-slower-than", "10000")
        monitor = self.connect()
        monitor.call("MONITOR")
        self.client.call("ECHO", "x")
        self.assertTrue(monitor.read().startswith(f"{seconds}."))

    def test_a_fast_clock_ends_waits_early(self):
        self.client.call("CLOCK", "RATE", "100000")
        started = time.monotonic()
        self.assertEqual(self.client.call("BLPOP", "queue", "600"), None)
        # Ten minutes would not have passed; the harness gives up much earlier.
        self.assertLess(time.monotonic() - started, harness.REPLY_TIMEOUT_S)

    def test_a_frozen_clock_ends_no_wait(self):
        self.client.call("CLOCK", "FREEZE")
        waiter = self.connect()
        waiter.send("BLPOP", "queue", "0.01")
        self.eventually(lambda: "blocked_clients:1" in self.client.call("INFO", "clients"))
        # Two ticks of the server pass.
        uptime = self.client.call("INFO", "server")
        self.eventually(lambda: self.client.call("INFO", "server").split("uptime_in_seconds:")[1]
                        != uptime.split("uptime_in_seconds:")[1])
        self.assertIn("blocked_clients:1", self.client.call("INFO", "clients"))
        self.client.call("CLOCK", "RESUME")
        self.assertEqual(waiter.read(), None)

    def test_others_are_served_while_many_keys_expire(self):
        for start in range(0, 200_000, 10_000):
            self.client.send_raw(b"".join(harness.encode("SET", f"k:{i}", "v", "PX", str(1 + i % 1000))
                                          for i in range(start, start + 10_000)))
            for _ in range(10_000):
                self.client.read()
        other = self.connect()
        self.client.send("CLOCK", "ADVANCE", "2s")
        seen = []
        while not seen or seen[-1] != 0:
            seen.append(other.call("DBSIZE"))
        self.client.read()
        self.assertEqual(other.call("DBSIZE"), 0)

    @unittest.skipIf(redis is None, "python3-redis is not installed")
    def test_with_redis_py(self):
        client = redis.Redis(port=self.server.port, decode_responses=True)
        client.execute_command("CLOCK", "FREEZE")
        lock = client.lock("resource", timeout=10, blocking=False)
        self.assertTrue(lock.acquire())
        client.execute_command("CLOCK", "ADVANCE", "11s")
        with self.assertRaises(redis.exceptions.LockError):
            lock.release()
        client.close()


class Replicated(harness.ServerTestCase):
    options = {"repl-diskless-sync-delay": "0"}

    def replica(self, port=None):
        server = harness.Server(replicaof=["127.0.0.1", port or self.server.port], repl_diskless_sync_delay="0")
        self.addCleanup(server.stop)
        client = server.connect()
        client.port = server.port
        self.addCleanup(client.close)
        return client

    def test_a_replica_lives_in_the_time_of_its_master(self):
        master = self.connect()
        other = self.replica()
        self.eventually(lambda: "master_link_status:up" in other.call("INFO", "replication"))
        self.eventually(lambda: "state=online" in master.call("INFO", "replication"))
        master.call("CLOCK", "FREEZE")
        master.call("SET", "k", "v", "PX", "60000")
        master.call("CLOCK", "ADVANCE", "30s")
        self.eventually(lambda: other.call("TIME") == master.call("TIME"))
        self.assertEqual(other.call("PTTL", "k"), 30_000)
        self.assertEqual(other.error_of("CLOCK", "RESET"), "ERR A replica follows the clock of its master")
        # One that comes later learns of it, too.
        third = self.replica()
        self.eventually(lambda: third.call("TIME") == master.call("TIME"))
        # So does a replica of a replica, and one of that.
        below = self.replica(other.port)
        self.eventually(lambda: below.call("TIME") == master.call("TIME"))
        lowest = self.replica(below.port)
        self.eventually(lambda: lowest.call("TIME") == master.call("TIME"))
        self.assertEqual(lowest.call("PTTL", "k"), 30_000)
        master.call("CLOCK", "RESET")

    def test_a_replica_that_does_not_know_of_it_keeps_the_clock_in_place(self):
        master = self.connect()
        stranger = self.connect()
        stranger.call("REPLCONF", "listening-port", "1", "capa", "eof", "capa", "psync2")
        stranger.send("PSYNC", "?", "-1")
        self.eventually(lambda: "connected_slaves:1" in master.call("INFO", "replication"))
        self.assertEqual(master.error_of("CLOCK", "ADVANCE", "1s"),
                         "ERR CLOCK is refused while a replica is attached that cannot follow it")
        stranger.close()
        self.eventually(lambda: "connected_slaves:0" in master.call("INFO", "replication"))
        master.call("CLOCK", "ADVANCE", "1s")
        master.call("CLOCK", "RESET")


class Started(harness.ServerTestCase):
    options = {"clock": "frozen 2024-01-01T00:00:00Z", "appendonly": "yes"}

    def test_the_configuration_sets_the_clock_before_anything_is_loaded(self):
        client = self.connect()
        client.call("SET", "k", "v", "EX", "10")
        self.assertEqual(client.call("TIME"), [str(NEW_YEAR_MS // 1000), "0"])
        client.call("CLOCK", "ADVANCE", "4s")
        client.send("SHUTDOWN", "NOSAVE")
        self.server.process.wait(harness.START_TIMEOUT_S)
        self.server.start()
        client = self.connect()
        self.assertEqual(client.call("TTL", "k"), 10)
        self.assertIn("CLOCK has moved the time of this server", self.server.log())

    def test_a_file_that_was_written_by_hand_moves_no_clock(self):
        client = self.connect()
        client.call("SET", "before", "v")
        client.send("SHUTDOWN", "NOSAVE")
        self.server.process.wait(harness.START_TIMEOUT_S)
        [increment] = glob.glob(os.path.join(self.server.directory, "appendonlydir", "*.incr.aof"))
        with open(increment, "ab") as file:
            file.write(harness.encode("CLOCK", "ADVANCE", "1h") + harness.encode("CLOCK", "SET", "2025-01-01T00:00:00Z"))
            file.write(harness.encode("SET", "after", "v"))
        self.server.start()
        client = self.connect()
        self.assertEqual(client.call("TIME"), [str(NEW_YEAR_MS // 1000), "0"])
        self.assertEqual(client.call("MGET", "before", "after"), ["v", "v"])


if __name__ == "__main__":
    unittest.main()

"""FAULT over real connections: what raw sockets see of each action, and what redis-py, redis-rb and ioredis make of it."""

import json
import re
import socket
import subprocess
import tempfile
import threading
import unittest

import clients
import harness

# What the libraries send for incr().
COUNTING = ["COMMAND", "incr", "COMMAND", "incrby"]
COMPARE_AND_DELETE = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"


class FaultTestCase(harness.ServerTestCase):
    def setUp(self):
        self.tester = self.connect()
        self.tester.call("FLUSHALL")
        self.addCleanup(self.clear)

    def clear(self):
        with self.server.connect() as client:
            client.call("FAULT", "CLEAR")

    def fault(self, *words):
        return self.tester.call("FAULT", "ADD", *words)

    def hits(self):
        return [dict(zip(fault[::2], fault[1::2]))["hits"] for fault in self.tester.call("FAULT", "LIST")]


class Sockets(FaultTestCase):
    def test_a_lost_reply_to_incr_counts_twice(self):
        self.fault("COMMAND", "incr", "TIMES", "1", "DO", "LOSE-REPLY")
        client = self.connect()
        client.send_raw(harness.encode("PING") + harness.encode("INCR", "visits"))
        self.assertEqual(client.read_until_closed(), b"+PONG\r\n")
        self.assertEqual(self.connect().call("INCR", "visits"), 2)

    def answer(self, *words):
        client = self.connect()
        client.send(*words)
        return str(client.read())

    def test_a_script_without_end_can_be_ended_in_spite_of_faults(self):
        self.tester.call("CONFIG", "SET", "busy-reply-threshold", "20")
        for action in (("HANG",), ("DELAY", "1h"), ("PAUSE", "1h"), ("DROP",), ("ERROR", "LOADING no")):
            self.fault("AFTER", "1", "DO", *action)
            script = self.connect()
            script.send("EVAL", "while true do end", "0")
            self.eventually(lambda: self.answer("FAULT", "RESET").startswith("BUSY"))
            self.assertEqual(self.connect().call("SCRIPT", "KILL"), "OK")
            self.assertIn("Script killed by user", str(script.read()))
            self.assertEqual(self.connect().call("FAULT", "CLEAR"), "OK")

    def test_a_dropped_request_has_not_run(self):
        self.fault("COMMAND", "incr", "TIMES", "1", "DO", "DROP")
        client = self.connect()
        client.send("INCR", "visits")
        self.assertEqual(client.read_until_closed(), b"")
        self.assertEqual(self.connect().call("INCR", "visits"), 1)

    def test_reset_is_seen_as_one(self):
        self.fault("COMMAND", "incr", "DO", "RESET")
        client = self.connect()
        client.send("INCR", "visits")
        with self.assertRaises(ConnectionResetError):
            client.read()
        self.assertEqual(self.tester.call("EXISTS", "visits"), 0)

    def test_a_cut_reply_ends_in_its_middle(self):
        value = "x" * 100_000
        self.tester.call("SET", "large", value)
        self.fault("COMMAND", "get", "DO", "CUT", "70000")
        client = self.connect()
        client.send("GET", "large")
        self.assertEqual(client.read_until_closed(), (b"$100000\r\n" + value.encode())[:70_000])

    def test_a_delay_holds_up_one_client_and_keeps_its_order(self):
        self.fault("COMMAND", "incr", "TIMES", "1", "DO", "DELAY", "50")
        client = self.connect()
        client.send_raw(harness.encode("INCR", "n") + harness.encode("GET", "n") + harness.encode("SET", "n", "7"))
        self.eventually(lambda: self.hits() == [1])
        self.assertEqual([client.read() for _ in range(3)], [1, "1", "OK"])
        self.fault("COMMAND", "ping", "DO", "DELAY-REPLY", "20", "50")
        self.fault("COMMAND", "get", "DO", "TRICKLE", "1/1")
        client.send_raw(harness.encode("PING") + harness.encode("GET", "n") + harness.encode("INCR", "n"))
        self.assertEqual([client.read() for _ in range(3)], ["PONG", "7", 8])

    def test_a_delay_does_not_end_before_its_time(self):
        # The clock stands still, so that a delay lasts until it is moved.
        self.fault("COMMAND", "incr", "DO", "DELAY", "60s")
        self.tester.call("CLOCK", "FREEZE")
        self.addCleanup(lambda: self.tester.call("CLOCK", "RESET"))
        client = self.connect()
        client.send("INCR", "n")
        self.eventually(lambda: self.hits() == [1])
        self.tester.call("CLOCK", "ADVANCE", "59999")
        self.assertEqual(self.tester.call("EXISTS", "n"), 0)
        self.tester.call("CLOCK", "ADVANCE", "1")
        self.assertEqual(client.read(), 1)

    def test_who_hangs_hears_nothing_until_it_is_closed(self):
        self.fault("COMMAND", "incr", "DO", "HANG")
        self.fault("COMMAND", "decr", "DO", "HANG-REPLY")
        first, second = self.connect(), self.connect()
        ids = [client.call("CLIENT", "ID") for client in (first, second)]
        first.send("INCR", "n")
        second.send("DECR", "m")
        self.eventually(lambda: self.hits() == [1, 1])
        self.assertEqual(self.tester.call("MGET", "n", "m"), [None, "-1"])
        self.assertTrue(first.is_open() and second.is_open())
        for client_id in ids:
            self.assertEqual(self.tester.call("CLIENT", "KILL", "ID", client_id), 1)
        self.assertEqual(first.read_until_closed() + second.read_until_closed(), b"")

    def test_garbage_is_no_reply(self):
        self.fault("COMMAND", "incr", "TIMES", "1", "DO", "GARBAGE")
        client = self.connect()
        client.send("INCR", "n")
        with self.assertRaises(AssertionError):
            client.read()
        self.assertEqual(client.call("INCR", "n"), 2)

    def test_refused_connections_are_closed_at_once(self):
        self.fault("TIMES", "2", "DO", "REFUSE")
        for _ in range(2):
            with socket.create_connection(("127.0.0.1", self.server.port), harness.REPLY_TIMEOUT_S) as refused:
                try:
                    self.assertEqual(refused.recv(1), b"")
                except ConnectionResetError:
                    pass
        self.assertEqual(self.connect().call("PING"), "PONG")
        self.assertEqual(self.hits(), [2])

    def test_a_pause_holds_up_everybody(self):
        self.fault("COMMAND", "set", "TIMES", "1", "DO", "PAUSE", "50")
        client = self.connect()
        client.send("SET", "a", "1")
        self.eventually(lambda: self.hits() == [1])
        self.assertEqual(client.read(), "OK")

    def test_a_lock_expires_under_its_holder(self):
        holder, other = self.connect(), self.connect()
        self.assertEqual(holder.call("SET", "lock", "mine", "NX", "PX", "30000"), "OK")
        self.assertIsNone(other.call("SET", "lock", "theirs", "NX", "PX", "30000"))
        # As the holder writes what the lock protects its time is up, and another takes it.
        self.tester.call("CONFIG", "SET", "notify-keyspace-events", "KEx")
        listener = self.connect()
        listener.call("SUBSCRIBE", "__keyevent@0__:expired")
        self.fault("COMMAND", "pttl", "KEY", "lock", "TIMES", "1", "DO", "EXPIRE")
        self.assertEqual(holder.call("PTTL", "lock"), -2)
        self.assertEqual(listener.read(), ["message", "__keyevent@0__:expired", "lock"])
        self.assertEqual(other.call("SET", "lock", "theirs", "NX", "PX", "30000"), "OK")
        self.assertEqual(holder.call("EVAL", COMPARE_AND_DELETE, "1", "lock", "mine"), 0)
        self.assertEqual(other.call("EVAL", COMPARE_AND_DELETE, "1", "lock", "theirs"), 1)

    def test_a_lock_expires_within_the_script_that_would_free_it(self):
        holder = self.connect()
        holder.call("SET", "lock", "mine", "NX", "PX", "30000")
        self.fault("COMMAND", "get", "KEY", "lock", "TIMES", "1", "DO", "EXPIRE")
        self.assertEqual(holder.call("EVAL", COMPARE_AND_DELETE, "1", "lock", "mine"), 0)
        self.assertEqual(holder.call("EXISTS", "lock"), 0)

    def test_a_popped_element_is_lost_with_its_reply(self):
        self.fault("COMMAND", "blpop", "DO", "LOSE-REPLY")
        client = self.connect()
        client.send("BLPOP", "jobs", "0")
        self.eventually(lambda: self.hits() == [1])
        self.assertEqual(self.tester.call("RPUSH", "jobs", "job"), 1)
        self.assertEqual(client.read_until_closed(), b"")
        self.assertEqual(self.tester.call("LLEN", "jobs"), 0)

    def test_a_space_has_faults_and_calls_of_its_own(self):
        here, there = self.connect(), self.connect()
        there.call("AUTH", "space-faulty", "any")
        there.call("FAULT", "ADD", "COMMAND", "get", "DO", "ERROR", "BUSY there")
        there.call("CALLS", "START")
        self.fault("COMMAND", "get", "DO", "ERROR", "BUSY here")
        self.assertEqual(here.error_of("GET", "a"), "BUSY here")
        self.assertEqual(there.error_of("GET", "a"), "BUSY there")
        self.assertEqual(there.call("CALLS", "COUNT"), 1)
        self.assertEqual(here.call("CALLS", "COUNT"), 0)
        self.clear()
        self.assertIsNone(here.call("GET", "a"))
        self.assertEqual(there.error_of("GET", "a"), "BUSY there")

    def test_clients_come_and_go_while_everything_fails(self):
        for action in (["ERROR", "LOADING x"], ["DELAY", "0", "2"], ["DELAY-REPLY", "0", "2"], ["DROP"], ["LOSE-REPLY"],
                       ["CUT", "3"], ["TRICKLE", "1/1"], ["RESET"], ["GARBAGE"], ["EXPIRE"], ["EVICT"], ["HANG"], ["HANG-REPLY"]):
            self.fault("CLIENT", "user", "PROBABILITY", "0.07", "DO", *action)

        requests = (harness.encode("SET", "a", "1") + harness.encode("MULTI") + harness.encode("GET", "a") + harness.encode("EXEC")
                    + harness.encode("EVAL", "return redis.call('GET', 'a')", "0") + harness.encode("BLPOP", "list", "0.001"))

        def use():
            for _ in range(40):
                with self.server.connect() as client:
                    try:
                        client.send("CLIENT", "SETNAME", "user")
                        client.send_raw(requests * 5)
                        client.socket.shutdown(socket.SHUT_WR)
                        client.read_until_closed()
                    except OSError:
                        pass  # the server was first

        users = [threading.Thread(target=use) for _ in range(4)]
        for user in users:
            user.start()
        for user in users:
            user.join()
        self.assertEqual(self.tester.call("PING"), "PONG")
        self.assertGreater(sum(self.hits()), 0)


class Disk(FaultTestCase):
    options = {"appendonly": "yes", "appendfsync": "everysec"}

    def info(self, name):
        for line in self.tester.call("INFO", "persistence").splitlines():
            if line.startswith(name + ":"):
                return line.split(":", 1)[1]
        return None

    def test_a_full_disk_stops_writes_until_it_has_room(self):
        self.fault("DO", "DISK-FULL")
        client = self.connect()
        client.call("SET", "a", "1")
        self.eventually(lambda: self.info("aof_last_write_status") == "err")
        self.assertIn("MISCONF Errors writing to the AOF file: No space left on device", client.error_of("SET", "b", "1"))
        self.assertEqual(client.call("GET", "a"), "1")
        self.tester.call("FAULT", "CLEAR")
        self.eventually(lambda: self.info("aof_last_write_status") == "ok")
        self.assertEqual(client.call("SET", "b", "1"), "OK")

    def test_syncs_fail_until_they_succeed(self):
        self.fault("DO", "FSYNC-ERROR")
        client = self.connect()
        client.call("SET", "a", "1")
        self.eventually(lambda: self.info("aof_last_write_status") == "err")
        self.assertIn("MISCONF Errors writing to the AOF file: Input/output error", client.error_of("SET", "b", "1"))
        self.tester.call("FAULT", "CLEAR")
        self.eventually(lambda: self.info("aof_last_write_status") == "ok")
        self.assertEqual(client.call("SET", "b", "1"), "OK")

    def test_snapshots_and_rewrites_fail(self):
        for action in ("DISK-FULL", "FSYNC-ERROR"):
            with self.subTest(action):
                self.tester.call("FAULT", "ADD", "DO", action)
                self.tester.error_of("SAVE")
                self.tester.call("BGSAVE")
                self.eventually(lambda: self.info("rdb_bgsave_in_progress") == "0")
                self.assertEqual(self.info("rdb_last_bgsave_status"), "err")
                self.tester.call("BGREWRITEAOF")
                self.eventually(lambda: self.info("aof_rewrite_in_progress") == "0")
                self.assertEqual(self.info("aof_last_bgrewrite_status"), "err")
                self.tester.call("FAULT", "CLEAR")
                self.assertEqual(self.tester.call("SAVE"), "OK")
                self.tester.call("BGREWRITEAOF")
                self.eventually(lambda: self.info("aof_last_bgrewrite_status") == "ok")


class Replicas(FaultTestCase):
    options = {"repl-diskless-sync-delay": "0"}

    def replica(self, program=None):
        server = harness.Server(program, replicaof=["127.0.0.1", self.server.port], save="")
        self.addCleanup(server.stop)
        client = server.connect()
        self.addCleanup(client.close)
        self.eventually(lambda: "state=online" in self.tester.call("INFO", "replication"))
        self.tester.call("SET", "before", "it")
        self.assertEqual(self.tester.call("WAIT", "1", "10000"), 1)
        return client

    def behind(self):
        """By how many bytes the replica is behind, as INFO says."""
        text = self.tester.call("INFO", "replication")
        acknowledged = re.search(r"slave0:.*offset=(\d+)", text)
        return int(re.search(r"master_repl_offset:(\d+)", text)[1]) - int(acknowledged[1])

    def check_lag(self, replica):
        self.tester.call("FAULT", "ADD", "DO", "REPLICA-LAG", "1h")
        self.tester.call("SET", "a", "1")
        self.assertEqual(self.tester.call("WAIT", "1", "50"), 0)
        self.assertIsNone(replica.call("GET", "a"))
        self.assertGreater(self.behind(), 0)
        self.tester.call("FAULT", "CLEAR")
        self.assertEqual(self.tester.call("WAIT", "1", "10000"), 1)
        self.assertEqual(replica.call("GET", "a"), "1")

    def test_the_stream_lags_until_the_fault_is_removed(self):
        self.check_lag(self.replica())

    @harness.needs_reference
    def test_the_stream_to_the_reference_lags_as_well(self):
        self.check_lag(self.replica(harness.reference("redis-server")))

    def test_the_lag_follows_the_clock(self):
        replica = self.replica()
        self.tester.call("CLOCK", "FREEZE")
        self.assertEqual(self.tester.call("WAIT", "1", "0"), 1)
        self.tester.call("FAULT", "ADD", "TIMES", "1", "DO", "REPLICA-LAG", "30s")
        self.tester.call("SET", "a", "1")
        self.tester.call("CLOCK", "ADVANCE", "29s")
        self.assertGreater(self.behind(), 0)
        self.assertIsNone(replica.call("GET", "a"))
        self.tester.call("CLOCK", "ADVANCE", "1s")
        self.eventually(lambda: replica.call("GET", "a") == "1")
        self.tester.call("CLOCK", "RESET")

    def test_a_replica_that_goes_gets_what_it_missed(self):
        replica = self.replica()
        self.tester.call("FAULT", "ADD", "DO", "REPLICA-LAG", "1h")
        self.tester.call("SET", "a", "1")
        self.tester.call("CLIENT", "KILL", "TYPE", "replica")
        self.eventually(lambda: "state=online" in self.tester.call("INFO", "replication"))
        self.assertIsNone(replica.call("GET", "a"))
        self.tester.call("FAULT", "CLEAR")
        self.eventually(lambda: replica.call("GET", "a") == "1")
        self.assertIn("sync_partial_ok:1", self.tester.call("INFO", "stats"))


class Libraries(FaultTestCase):
    """Scenes of clients/fault_scenes.py, fault_scenes.rb and fault_scenes.mjs."""

    def play(self, program, scene, *command, cwd=None):
        command = [*command, program, str(self.server.port), scene]
        return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=60, cwd=cwd).stdout)

    def play_in_python(self, scene):
        return self.play(str(clients.HERE / "fault_scenes.py"), scene, "/usr/bin/python3")

    def play_in_ruby(self, scene):
        return self.play(str(clients.HERE / "fault_scenes.rb"), scene, "ruby")

    def play_in_node(self, scene):
        with tempfile.TemporaryDirectory() as directory:
            return self.play(clients.beside_node_modules(directory, clients.HERE / "fault_scenes.mjs"), scene, "node")

    def meets_loading_three_times(self, play):
        self.fault(*COUNTING, "TIMES", "3", "DO", "ERROR", "LOADING Redis is loading the dataset in memory")
        self.assertEqual(play("counts_once_loaded"), 1)
        self.assertEqual(self.hits(), [3])

    def counts_twice(self, play):
        self.fault(*COUNTING, "TIMES", "1", "DO", "LOSE-REPLY")
        self.assertEqual(play("counts_again_after_a_lost_reply"), 2)
        self.assertEqual(self.hits(), [1])

    def test_a_retry_loop_of_redis_py_meets_loading_three_times_and_then_succeeds(self):
        self.meets_loading_three_times(self.play_in_python)

    def test_a_retry_loop_of_redis_rb_meets_loading_three_times_and_then_succeeds(self):
        self.meets_loading_three_times(self.play_in_ruby)

    @clients.needs_node_modules
    def test_a_retry_loop_of_ioredis_meets_loading_three_times_and_then_succeeds(self):
        self.meets_loading_three_times(self.play_in_node)

    @clients.needs_node_modules
    def test_ioredis_that_connects_again_meets_loading_three_times_and_then_succeeds(self):
        self.fault(*COUNTING, "TIMES", "3", "DO", "ERROR", "LOADING Redis is loading the dataset in memory")
        self.assertEqual(self.play_in_node("counts_once_loaded_by_connecting_again"), 1)
        self.assertEqual(self.hits(), [3])

    def test_a_retry_of_redis_py_after_a_lost_reply_counts_twice(self):
        self.counts_twice(self.play_in_python)

    def test_a_retry_of_redis_rb_after_a_lost_reply_counts_twice(self):
        self.counts_twice(self.play_in_ruby)

    @clients.needs_node_modules
    def test_a_retry_of_ioredis_after_a_lost_reply_counts_twice(self):
        self.counts_twice(self.play_in_node)

    def test_a_lock_of_redis_py_notices_that_it_has_expired(self):
        self.assertEqual(self.play_in_python("holds_a_lock"), [True, "released"])
        self.fault("COMMAND", "get", "KEY", "lock", "TIMES", "1", "DO", "EXPIRE")
        self.assertEqual(self.play_in_python("holds_a_lock"), [True, "lost"])


if __name__ == "__main__":
    unittest.main()

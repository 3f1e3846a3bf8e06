"""The program that makes the load of scripts/bench."""

import subprocess
import sys
import tempfile
from pathlib import Path

import harness

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CHECKOUT / "scripts" / "lib"))
import bench_load  # noqa: E402


class Load(harness.ServerTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.directory = tempfile.TemporaryDirectory()
        cls.program = Path(cls.directory.name) / "load"
        bench_load.compile_program(cls.program)

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()
        super().tearDownClass()

    def setUp(self):
        self.client = self.connect()
        self.client.call("FLUSHALL")

    def load(self, clients, pipeline, operations, *words, first=(), keys=100):
        command = [self.program, self.server.port, clients, pipeline, operations, keys]
        for request in first:
            command += ["-x", request]
        return subprocess.run([str(word) for word in (*command, "--", *words)], capture_output=True, text=True, timeout=60)

    def test_it_sends_so_many_requests_and_more_where_a_pipeline_asks_for_it(self):
        for clients, pipeline, operations, sent in ((1, 1, 10, 10), (3, 4, 10, 12), (50, 16, 1000, 1008), (50, 16, 1, 16)):
            self.client.call("DEL", "counter")
            done, rate, p99_ms = self.load(clients, pipeline, operations, "INCR", "counter").stdout.split()
            self.assertEqual((int(done), self.client.call("GET", "counter")), (sent, str(sent)))
            self.assertGreater(float(rate), 0)
            self.assertGreater(float(p99_ms), 0)

    def test_numbers_are_below_the_limit_and_the_same_in_each_run(self):
        def keys():
            self.client.call("FLUSHALL")
            self.assertEqual(self.load(2, 8, 200, "MSET", "a:__rand_int__", "x", "b:__rand_int__", "y", keys=10).returncode, 0)
            return sorted(self.client.call("KEYS", "*"))

        once = keys()
        self.assertLessEqual(set(once), {f"{letter}:{number:012}" for letter in "ab" for number in range(10)})
        self.assertGreater(len(once), 10)
        self.assertEqual(keys(), once)

    def test_replies_of_all_shapes_are_counted(self):
        self.client.call("RPUSH", "list", *range(1000))
        self.client.call("SET", "large", "x" * 1_000_000)
        self.client.call("HSET", "hash", "a", "1", "b", "\r\n$-1\r\n")
        for command in (("LRANGE", "list", "0", "-1"), ("GET", "large"), ("GET", "missing"), ("HGETALL", "hash"),
                        ("LRANGE", "missing", "0", "-1"), ("CONFIG", "GET", "*"), ("COMMAND", "INFO", "get")):
            for first in ((), ("HELLO 3",)):
                done = self.load(3, 4, 24, *command, first=first)
                self.assertEqual(done.stdout.split()[:1], ["24"], (command, done.stderr))

    def test_messages_do_not_count_as_replies(self):
        done = self.load(2, 4, 400, "SET", "key:__rand_int__", "x", first=["HELLO 3", "CLIENT TRACKING on BCAST"], keys=3)
        self.assertEqual(done.stdout.split()[:1], ["400"], done.stderr)

    def test_an_error_ends_it(self):
        self.client.call("SET", "text", "x")
        failed = self.load(2, 4, 100, "INCR", "text")
        self.assertEqual(failed.returncode, 1)
        self.assertIn("ERR value is not an integer", failed.stderr)
        self.assertEqual(self.load(1, 1, 1, "PING", first=["NONSENSE"]).returncode, 1)
        self.assertIn("not a number", self.load(0, 1, 1, "PING").stderr)

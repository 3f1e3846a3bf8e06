"""What depends on jemalloc, the release's allocator: it counts by thread, at each request, and keeps pages as it is told. With another
one, as a sanitizer's, all of it is skipped; scripts/test runs this file with the release."""

import contextlib
import os
import re
import resource
import signal
import unittest
from pathlib import Path

import harness
import scenes
from test_spaces import SpaceTestCase, ask


def setUpModule():
    server = harness.Server()
    try:
        with server.connect() as client:
            if "mem_allocator:jemalloc" not in client.call("INFO", "memory"):
                raise unittest.SkipTest("this build has another allocator")
    finally:
        server.stop()


class AllocatorThread(unittest.TestCase):
    """jemalloc-bg-thread: the thread that gives freed memory back is there from the start, or not at all."""

    def threads_of(self, **options):
        server = harness.Server(**options)
        try:
            with server.connect() as client:
                return len(os.listdir("/proc/%d/task" % server.process.pid))
        finally:
            server.stop()

    def test_it_runs_unless_it_is_turned_off(self):
        self.assertEqual(self.threads_of(), self.threads_of(jemalloc_bg_thread="no") + 1)


class LargeValues(harness.ServerTestCase):
    def test_memory_of_former_ones_is_used_again(self):
        client = self.connect()
        size = 20_000_000

        def faults_of_setting_it():
            path = "/proc/%d/stat" % self.server.process.pid
            before = int(open(path).read().split()[9])
            client.call("SET", "again", "x" * size)
            return int(open(path).read().split()[9]) - before

        # The first ones find no room that was used before.
        faults = [faults_of_setting_it() for _ in range(6)]
        self.assertLess(min(faults), size // 4096 // 4, faults)


class Exhaustion(unittest.TestCase):
    def test_a_script_that_gets_no_memory_ends_the_server_and_not_its_writes(self):
        """Half of a command would have been done, and what follows been neither written nor replicated."""
        server = harness.Server(appendonly="yes", appendfsync="always")
        try:
            with server.connect() as client:
                client.call("SET", "before", "1")
                client.call("EVAL", "return 1", "0")
                pages = int(Path(f"/proc/{server.process.pid}/statm").read_text().split()[0])
                resource.prlimit(server.process.pid, resource.RLIMIT_AS, (pages * resource.getpagesize() + (60 << 20), -1))
                client.send("EVAL", "return redis.call('SETBIT', 'b', 4000000000, 1)", "0")
                with self.assertRaises((harness.ConnectionClosed, ConnectionError)):
                    client.read()
            self.assertEqual(server.process.wait(), -signal.SIGABRT)
            self.assertIn("Out Of Memory: the system gives no more", server.log())
            server.start()
            with server.connect() as client:
                self.assertEqual(client.call("GET", "before"), "1")
        finally:
            server.stop()


class EvictionOrder(harness.ServerTestCase):
    options = {"maxmemory-policy": "allkeys-lru", "maxmemory": "11mb", "maxmemory-clients": "3mb", "enable-debug-command": "yes"}

    def test_clients_that_take_too_much_go_before_keys_do(self):
        client = self.connect()
        client.call("CLIENT", "NO-EVICT", "on")
        client.call("DEBUG", "REPLY-COPY-AVOIDANCE", "0")
        for key in range(50):
            client.call("SETRANGE", str(key), "99999", "x")
        # Nobody of these reads; what they ask for at once is a multiple of what there is room for.
        clients = [scenes.connect_narrow(self.server) for _ in range(20)]
        for reader in clients:
            with contextlib.suppress(OSError):
                for _ in range(100):
                    reader.send("GET", "1")
        self.eventually(lambda: int(scenes.figures(self.server, "stats")["evicted_clients"]) >= 10)
        self.assertEqual(scenes.figures(self.server, "stats")["evicted_keys"], "0")
        self.assertEqual(client.call("DBSIZE"), 50)


class LimitsOfSpaces(SpaceTestCase):
    options = {"space-maxmemory": "2mb", "maxmemory": "500mb"}

    def memory(self, client):
        return int(re.search(r"used_memory:(\d+)", client.call("INFO", "memory"))[1])

    def test_clients_that_come_and_go_leave_the_count_as_it_is(self):
        one, two = self.enter("one"), self.enter("two")
        self.addCleanup(one.call, "FLUSHALL")
        one.call("SET", "long", "v" * 300_000)
        before = self.memory(one), self.memory(two)

        def visit(space, request):
            """A client that leaves without reading, as another space works."""
            with self.server.connect() as client:
                client.call("AUTH", "space-" + space, "x")
                client.send(*request)
                two.call("PING")

        for _ in range(100):
            visit("one", ("PING",))
            visit("one", ("GET", "long"))
            visit("two", ("SET", "k", "w" * 100_000))
            visit("two", ("DEL", "k"))
        self.eventually(lambda: "clients\n1" in "\n".join(map(str, one.call("SPACE", "INFO", "one"))))
        self.eventually(lambda: "clients\n1" in "\n".join(map(str, one.call("SPACE", "INFO", "two"))))
        for client, was in zip((one, two), before):
            self.assertAlmostEqual(self.memory(client), was, delta=40_000)

    def test_spaces_that_come_and_go_cost_those_that_stay_nothing(self):
        one, two, main = self.enter("maker"), self.enter("bystander"), self.connect()
        before = self.memory(one), self.memory(two)
        for i in range(30):
            one.call("SPACE", "CREATE", f"made{i}", "KEEP")
            main.call("SPACE", "DROP", f"made{i}")
            main.call("SPACE", "LISTEN", f"listening{i}")
            one.call("SPACE", "DROP", f"listening{i}")
            one.call("SPACE", "LISTEN", f"open{i}")
            two.call("SPACE", "DROP", f"open{i}")
        self.eventually(lambda: len(main.call("SPACE", "LIST")) == 2)
        for client, was in zip((one, two), before):
            self.assertAlmostEqual(self.memory(client), was, delta=30_000)

    def test_each_is_counted_and_limited_by_itself(self):
        one, two, main = self.enter("one"), self.enter("two"), self.connect()
        value = "v" * 10000
        small = self.memory(two)
        kept = 0
        while ask(one, "SET", f"k{kept}", value) == "OK":
            kept += 1
            self.assertLess(kept, 1000)
        self.assertGreater(kept, 50)
        self.assertEqual(one.error_of("SET", "more", value), "OOM command not allowed when used memory > 'maxmemory'.")
        self.assertEqual(two.call("SET", "k", value), "OK")
        self.assertLess(self.memory(two), small + 100_000)
        self.assertEqual(main.call("SET", "k", value), "OK")
        main.call("CONFIG", "SET", "space-maxmemory", "1mb")
        self.addCleanup(main.call, "CONFIG", "SET", "space-maxmemory", "2mb")
        self.assertEqual(main.error_of("SPACE", "CREATE", "three", "FROM", "one"),
                         "ERR The copy is larger than space-maxmemory allows")
        one.call("FLUSHALL", "ASYNC")
        self.eventually(lambda: ask(one, "SET", "k", value) == "OK")
        self.eventually(lambda: self.memory(one) < 500_000)
        self.assertEqual(one.call("CONFIG", "SET", "maxmemory", "1mb"), "OK")
        for wanted in ("3mb", "0"):
            self.assertIn("a space may have as much as space-maxmemory allows",
                          one.error_of("CONFIG", "SET", "maxmemory", wanted))
        self.assertIn("only the first server has spaces", one.error_of("CONFIG", "SET", "space-maxmemory", "9mb"))

    def test_keys_are_evicted_from_the_space_that_is_full(self):
        one, main = self.enter("evicting"), self.connect()
        main.call("SET", "k", "v")
        one.call("CONFIG", "SET", "maxmemory-policy", "allkeys-random")
        for i in range(1000):
            self.assertEqual(one.call("SET", f"k{i}", "v" * 10000), "OK")
        self.assertIn(one.call("DBSIZE"), range(50, 250))
        self.assertEqual(main.call("GET", "k"), "v")


if __name__ == "__main__":
    unittest.main()

"""Function libraries: they outlive the server, follow it to replicas and other servers, and can be stopped."""

import os
import shutil
import signal
import subprocess
import time
import unittest

import harness

LIBRARY = """#!lua name=counter
local function add(keys, args)
  return redis.call('INCRBY', keys[1], args[1])
end
redis.register_function('add', add)
redis.register_function{function_name='look', callback=function(keys) return redis.call('GET', keys[1]) end,
                        description='Only looks', flags={'no-writes'}}
"""
# Long enough to be compressed.
LONG_LIBRARY = "#!lua name=long\nredis.register_function('long', function() return '" + "x" * 2000 + "' end)"


def shown(client):
    """All that FUNCTION LIST tells, in an order of its own."""
    client.call("HELLO", "3")
    libraries = client.call("FUNCTION", "LIST", "WITHCODE")
    client.call("HELLO", "2")
    for library in libraries:
        library["functions"].sort(key=lambda function: function["name"])
    return sorted(libraries, key=lambda library: library["library_name"])


class FunctionTestCase(unittest.TestCase):
    def server(self, **options):
        server = harness.Server(**{"enable_debug_command": "yes", **options})
        self.addCleanup(self.discard, server)
        return server

    @staticmethod
    def discard(server):
        if server.process is not None and server.process.poll() is None:
            server.process.kill()
            server.process.wait()
        shutil.rmtree(server.directory, ignore_errors=True)

    def connect(self, server, binary=False):
        client = server.connect(binary=binary)
        self.addCleanup(client.close)
        return client

    def load(self, client):
        client.call("FUNCTION", "LOAD", LIBRARY)
        client.call("FUNCTION", "LOAD", LONG_LIBRARY)

    def restart(self, server):
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(harness.START_TIMEOUT_S)
        server.start()
        client = self.connect(server)
        self.eventually(lambda: "loading:0" in client.call("INFO", "persistence"))
        return client

    def eventually(self, condition):
        deadline = time.monotonic() + harness.REPLY_TIMEOUT_S
        while not condition():
            if time.monotonic() > deadline:
                self.fail("did not come to pass")
            time.sleep(0.01)


class Files(FunctionTestCase):
    def test_functions_are_in_a_snapshot(self):
        server = self.server()
        client = self.connect(server)
        self.load(client)
        before = shown(client)
        client.call("SAVE")
        client = self.restart(server)
        self.assertEqual(shown(client), before)
        self.assertEqual(client.call("FCALL", "add", 1, "n", 5), 5)

    def test_functions_are_in_an_append_only_file_and_in_both_forms_of_its_base(self):
        for preamble in ("yes", "no"):
            with self.subTest(preamble=preamble):
                server = self.server(appendonly="yes", aof_use_rdb_preamble=preamble)
                client = self.connect(server)
                self.load(client)
                client.call("FCALL", "add", 1, "n", 5)
                before = shown(client)
                client = self.restart(server)
                self.assertEqual(shown(client), before)
                client.call("BGREWRITEAOF")
                self.eventually(lambda: "aof_rewrite_in_progress:0" in client.call("INFO", "persistence"))
                client.call("FUNCTION", "DELETE", "long")
                before = shown(client)
                client = self.restart(server)
                self.assertEqual(shown(client), before)
                self.assertEqual(client.call("FCALL_RO", "look", 1, "n"), "5")

    def test_a_reload_loads_functions_anew(self):
        server = self.server()
        client = self.connect(server)
        self.load(client)
        before = shown(client)
        client.call("DEBUG", "RELOAD")
        self.assertEqual(shown(client), before)
        self.assertIn("Error trying to load", client.error_of("DEBUG", "RELOAD", "NOFLUSH"))
        client.call("DEBUG", "RELOAD", "NOFLUSH", "MERGE")
        self.assertEqual(shown(client), before)


@harness.needs_reference
class WithTheReference(FunctionTestCase):
    def both(self):
        return self.server(), self.server(program=harness.reference("redis-server"))

    def test_dumps_go_both_ways(self):
        ours, theirs = self.both()
        for source, target in ((ours, theirs), (theirs, ours)):
            giver, taker = self.connect(source, binary=True), self.connect(target, binary=True)
            for client in (giver, taker):
                client.call("FUNCTION", "FLUSH")
            self.load(giver)
            dump = giver.call("FUNCTION", "DUMP")
            self.assertEqual(taker.call("FUNCTION", "RESTORE", dump), b"OK")
            self.assertEqual(shown(self.connect(source)), shown(self.connect(target)))

    def test_snapshots_go_both_ways(self):
        for source, target in (self.both(), reversed(self.both())):
            client = self.connect(source)
            self.load(client)
            client.call("SET", "n", 7)
            client.call("SAVE")
            before = shown(client)
            self.discard_process(target)
            shutil.copy(os.path.join(source.directory, "dump.rdb"), os.path.join(target.directory, "dump.rdb"))
            target.start()
            client = self.connect(target)
            self.eventually(lambda: "loading:0" in client.call("INFO", "persistence"))
            self.assertEqual(shown(client), before)
            self.assertEqual(client.call("FCALL_RO", "look", 1, "n"), "7")

    @staticmethod
    def discard_process(server):
        server.process.kill()
        server.process.wait()

    def test_the_checker_of_the_reference_accepts_a_file_with_functions(self):
        server = self.server()
        client = self.connect(server)
        self.load(client)
        client.call("SAVE")
        path = os.path.join(server.directory, "dump.rdb")
        for command in ([harness.reference("redis-check-rdb"), path], ["redis-check-rdb", path]):
            program = command[0] if os.path.isabs(command[0]) else server.program
            done = subprocess.run(command, executable=program, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("RDB looks OK!", done.stdout)

    def test_functions_follow_to_a_replica(self):
        ours, theirs = self.both()
        client, replica = self.connect(ours), self.connect(theirs)
        client.call("FUNCTION", "LOAD", LIBRARY)
        replica.call("REPLICAOF", "127.0.0.1", ours.port)
        self.eventually(lambda: "master_link_status:up" in replica.call("INFO", "replication"))
        self.eventually(lambda: shown(replica) == shown(client))
        client.call("FUNCTION", "LOAD", LONG_LIBRARY)
        self.eventually(lambda: shown(replica) == shown(client))
        client.call("FUNCTION", "DELETE", "counter")
        self.eventually(lambda: shown(replica) == shown(client))
        dump = self.connect(ours, binary=True).call("FUNCTION", "DUMP")
        client.call("FUNCTION", "FLUSH")
        self.eventually(lambda: shown(replica) == [])
        client.call("FUNCTION", "RESTORE", dump)
        self.eventually(lambda: shown(replica) == shown(client) != [])


class Slow(FunctionTestCase):
    LOOP = "#!lua name=slow\nredis.register_function('loop', function() while true do end end)"

    def test_a_slow_function_is_told_of_and_killed(self):
        server = self.server(busy_reply_threshold=10)
        client, other = self.connect(server), self.connect(server)
        client.call("FUNCTION", "LOAD", self.LOOP)
        client.send("FCALL", "loop", 1, "key", "argument")

        def is_busy():
            other.send("PING")
            return isinstance(other.read(), harness.ReplyError)

        self.eventually(is_busy)
        busy = "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE."
        self.assertEqual(other.error_of("GET", "key"), busy)
        self.assertEqual(other.error_of("SCRIPT", "KILL"), busy)
        running = other.call("FUNCTION", "STATS")[1]
        self.assertEqual(running[:4], ["name", "loop", "command", ["FCALL", "loop", "1", "key", "argument"]])
        self.assertEqual(other.call("FUNCTION", "KILL"), "OK")
        self.assertIn("Script killed by user", str(client.read()))
        self.assertEqual(other.call("PING"), "PONG")

    def test_functions_are_not_what_script_kill_is_for(self):
        server = self.server(busy_reply_threshold=10)
        client, other = self.connect(server), self.connect(server)
        client.send("EVAL", "while true do end", 0)
        busy = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
        self.eventually(lambda: self.reply_of(other, "FUNCTION", "KILL") == busy)
        self.assertEqual(self.reply_of(other, "FUNCTION", "STATS"), busy)
        self.assertEqual(other.call("SCRIPT", "KILL"), "OK")
        client.read()

    @staticmethod
    def reply_of(client, *words):
        client.send(*words)
        return str(client.read())

    def test_a_library_whose_code_does_not_end_is_not_loaded(self):
        server = self.server()
        client = self.connect(server)
        self.assertEqual(client.error_of("FUNCTION", "LOAD", "#!lua name=loop\nwhile true do end"),
                         "ERR Error registering functions: ERR FUNCTION LOAD timeout")
        self.assertEqual(client.call("FUNCTION", "LIST"), [])


if __name__ == "__main__":
    unittest.main()

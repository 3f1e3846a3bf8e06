"""Scripts that run for too long, as those meet them who wait meanwhile, and what ends such scripts. The recorded texts are the
reference's (8.0.2)."""

import itertools
import unittest

import harness

BUSY = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
UNKILLABLE = ("UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the script "
              "termination or kill the server in a hard way using the SHUTDOWN NOSAVE command.")
THRESHOLD_MS = 50

LOOPS = {
    "an empty loop": "while true do end",
    "a loop that calls": "while true do redis.call('get', 'key') end",
    "a loop around pcall": "while true do pcall(function() while true do end end) end",
    "tail calls": "local function f() return f() end return f()",
}


class BusyScript(harness.ServerTestCase):
    options = {"busy-reply-threshold": THRESHOLD_MS}

    def start_script(self, body):
        """Sends the script and waits until others are told of it."""
        runner = self.connect()
        runner.send("EVAL", body, 0)
        other = self.connect()

        def is_busy():
            other.send("PING")
            reply = other.read()
            return isinstance(reply, harness.ReplyError) and str(reply) == BUSY

        self.eventually(is_busy)
        return runner, other

    def test_others_are_told_and_can_end_it(self):
        for name, body in LOOPS.items():
            with self.subTest(name):
                runner, other = self.start_script(body)
                self.assertEqual(other.error_of("GET", "key"), BUSY)
                self.assertEqual(other.call("SCRIPT", "KILL"), "OK")
                error = runner.read()
                self.assertIsInstance(error, harness.ReplyError)
                self.assertIn("Script killed by user with SCRIPT KILL", str(error))
                self.assertEqual(other.call("PING"), "PONG")
                self.assertEqual(runner.call("PING"), "PONG")

    def test_there_is_nothing_to_end_when_none_runs(self):
        self.assertEqual(self.connect().error_of("SCRIPT", "KILL"), "NOTBUSY No scripts in execution right now.")


class ScriptThatHasWritten(BusyScript):
    def setUp(self):
        self.own = harness.Server(**self.options)
        self.addCleanup(self.own.stop)

    def connect(self, **how):
        client = self.own.connect(**how)
        self.addCleanup(client.close)
        return client

    test_others_are_told_and_can_end_it = None
    test_there_is_nothing_to_end_when_none_runs = None

    def test_only_shutdown_without_saving_ends_it(self):
        _, other = self.start_script("redis.call('set', 'key', 'value') while true do end")
        self.assertEqual(other.error_of("SCRIPT", "KILL"), UNKILLABLE)
        self.assertEqual(other.error_of("SHUTDOWN"), BUSY)
        self.assertEqual(other.error_of("GET", "key"), BUSY)
        other.send("SHUTDOWN", "NOSAVE")
        self.assertEqual(self.own.process.wait(harness.START_TIMEOUT_S), 0)


class Conversions(harness.ServerTestCase):
    def test_a_script_in_resp3_sees_and_gives_the_types_of_resp3(self):
        client = self.connect()
        client.call("HELLO", 3)
        for body, reply in {
            "return {double=3.5}": 3.5,
            "return {map={a=1}}": {"a": 1},
            "return {set={a=true}}": ["a"],
            "redis.setresp(3) return true": True,
            "return true": 1,
            "return false": None,
            "redis.setresp(3) return redis.call('get', 'missing') == nil": True,
            "return redis.call('get', 'missing') == false": 1,
        }.items():
            with self.subTest(body):
                self.assertEqual(client.call("EVAL", body, 0), reply)

    def test_a_script_in_resp2_gets_the_types_of_resp2(self):
        client = self.connect()
        for body, reply in {
            "return {double=3.5}": "3.5",
            "return {map={a=1}}": ["a", 1],
            "return {set={a=true}}": ["a"],
            "return 3.99": 3,
            "return {1, 2, nil, 4}": [1, 2],
        }.items():
            with self.subTest(body):
                self.assertEqual(client.call("EVAL", body, 0), reply)


class FullMemory(harness.ServerTestCase):
    options = {"maxmemory-policy": "allkeys-lru"}

    def test_what_a_script_takes_before_it_begins_is_no_reason_to_refuse_its_writes(self):
        client = self.connect()

        def info(name):
            return next(int(line.split(":")[1]) for line in client.call("INFO").splitlines() if line.startswith(name + ":"))

        client.call("CONFIG", "SET", "maxmemory", info("used_memory") + 3_000_000)
        keys = itertools.count()

        def is_full():
            for number in itertools.islice(keys, 1000):
                client.call("SET", "key:%d" % number, "v" * 10_000)
            return info("evicted_keys") > 0

        self.eventually(is_full)
        # For the first one the interpreter is made, and each text is compiled.
        for number in range(1000):
            body = "local n = %d return redis.call('set', KEYS[1], string.rep('v', 10000))" % number
            self.assertEqual(client.call("EVAL", body, 1, "key:%d" % number), "OK")
        # Where nothing can be given up, memory is short.
        client.call("CONFIG", "SET", "maxmemory-policy", "noeviction", "maxmemory", 1)
        self.assertTrue(client.error_of("EVAL", "return redis.call('set', 'a', 'b')", 0).startswith("OOM command not allowed"))


if __name__ == "__main__":
    unittest.main()

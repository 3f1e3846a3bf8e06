"""MONITOR, SLOWLOG and LATENCY of a server that clients are connected to; replies that grow too large for their clients."""

import re
import unittest

import harness


def seen(line):
    """A monitor's line without its time: database, origin and words."""
    time, rest = line.split(" ", 1)
    assert re.fullmatch(r"\d{10}\.\d{6}", time), line
    return rest


class Monitored(harness.ServerTestCase):
    def setUp(self):
        self.listener = self.connect()
        self.assertEqual(self.listener.call("MONITOR"), "OK")
        self.client = self.connect()
        self.address = "%s:%d" % self.client.socket.getsockname()

    def test_who_sent_what(self):
        self.client.call("SELECT", "2")
        self.client.call("SET", "a b", b"\x00\xff")
        self.assertEqual(seen(self.listener.read()), '[2 %s] "SELECT" "2"' % self.address)
        self.assertEqual(seen(self.listener.read()), '[2 %s] "SET" "a b" "\\x00\\xff"' % self.address)

    def test_a_script_before_what_it_calls(self):
        self.client.call("EVAL", "return redis.call('SET', KEYS[1], 1)", "1", "k")
        self.assertEqual(
            [seen(self.listener.read()) for _ in range(2)],
            ['[0 %s] "EVAL" "return redis.call(\'SET\', KEYS[1], 1)" "1" "k"' % self.address, '[0 lua] "SET" "k" "1"'],
        )

    def test_requests_of_a_pipeline_in_their_order(self):
        self.client.send_raw(b"".join(harness.encode("SET", "key:%d" % i, "v") for i in range(100)))
        lines = [seen(self.listener.read()) for _ in range(100)]
        self.assertEqual(lines, ['[0 %s] "SET" "key:%d" "v"' % (self.address, i) for i in range(100)])

    def test_a_monitor_is_told_of_as_one(self):
        told = self.client.call("CLIENT", "LIST", "TYPE", "normal")
        self.assertEqual(re.findall(r"flags=(\w+)", told), ["O", "N"])
        self.assertEqual(self.listener.call("RESET"), "RESET")
        self.client.call("PING")
        self.assertEqual(self.listener.call("GET", "key"), None)

    def test_a_monitor_that_is_gone_is_no_concern_of_others(self):
        self.listener.close()
        self.eventually(lambda: "flags=O" not in self.client.call("CLIENT", "LIST"))
        self.assertEqual(self.client.call("PING"), "PONG")

    def test_migrate_hides_what_it_logs_in_with(self):
        self.client.call("MIGRATE", "127.0.0.1", "1", "none", "0", "10", "AUTH2", "anna", "secret")
        self.assertIn('"AUTH2" "(redacted)" "(redacted)"', self.listener.read())


class Slow(harness.ServerTestCase):
    options = {"slowlog-log-slower-than": "20000", "latency-monitor-threshold": "20", "enable-debug-command": "yes"}

    def test_slow_calls_are_logged_and_sampled(self):
        client = self.connect()
        client.call("CLIENT", "SETNAME", "anna")
        client.call("SET", "quick", "1")
        client.call("DEBUG", "SLEEP", "0.05")
        ((number, _, duration_us, words, address, name),) = client.call("SLOWLOG", "GET")
        self.assertEqual((number, words, name), (0, ["DEBUG", "SLEEP", "0.05"], "anna"))
        self.assertEqual(address, "%s:%d" % client.socket.getsockname())
        self.assertGreaterEqual(duration_us, 50_000)
        ((event, _, latest_ms, worst_ms),) = client.call("LATENCY", "LATEST")
        self.assertEqual((event, latest_ms), ("command", worst_ms))
        self.assertGreaterEqual(latest_ms, 50)
        self.assertIn("command - high ", client.call("LATENCY", "GRAPH", "command"))

    def test_what_scripts_call_has_no_address(self):
        client = self.connect()
        client.call("CONFIG", "SET", "slowlog-log-slower-than", "0")
        client.call("EVAL", "return redis.call('GET', 'key')", "0")
        logged = {entry[3][0]: entry[4] for entry in client.call("SLOWLOG", "GET", "-1")}
        self.assertEqual(logged["GET"], "")
        self.assertEqual(logged["EVAL"], "%s:%d" % client.socket.getsockname())


class TooLarge(harness.ServerTestCase):
    def test_a_reply_past_the_hard_limit_ends_the_connection(self):
        admin = self.connect()
        admin.call("CONFIG", "SET", "client-output-buffer-limit", "normal 100000 0 0")
        admin.call("HSET", "hash", "field", "value")
        client = self.connect()
        client.send("HRANDFIELD", "hash", "-999999999")
        client.read_until_closed()
        self.assertEqual(admin.call("PING"), "PONG")

    def test_a_scripts_command_is_not_stopped(self):
        admin = self.connect()
        admin.call("CONFIG", "SET", "client-output-buffer-limit", "normal 100000 0 0")
        admin.call("HSET", "hash", "field", "value")
        self.assertEqual(admin.call("EVAL", "return #redis.call('HRANDFIELD', 'hash', -50000)", "0"), 50_000)


if __name__ == "__main__":
    unittest.main()

"""FLUSHALL and FLUSHDB: what is flushed is freed on another thread, and the command ends when it is."""

import unittest

import harness


class Flushed(harness.ServerTestCase):
    options = {"enable-debug-command": "yes"}

    def figure(self, client, name):
        fields = dict(line.split(":", 1) for line in client.call("INFO", "memory").splitlines() if ":" in line)
        fields.update(line.split(":", 1) for line in client.call("INFO", "stats").splitlines() if ":" in line)
        return int(fields[name])

    def test_the_command_ends_when_all_is_freed(self):
        client = self.connect()
        client.call("CONFIG", "RESETSTAT")
        client.call("DEBUG", "POPULATE", "10000")
        self.assertEqual(client.call("FLUSHALL"), "OK")
        self.assertEqual(self.figure(client, "lazyfree_pending_objects"), 0)
        self.assertEqual(self.figure(client, "lazyfreed_objects"), 10_000)
        self.assertEqual(client.call("DBSIZE"), 0)

    def test_requests_behind_it_wait_their_turn(self):
        client = self.connect()
        client.call("DEBUG", "POPULATE", "10000")
        client.send_raw(harness.encode("FLUSHALL") + harness.encode("SET", "a", "1") + harness.encode("FLUSHDB", "SYNC")
                        + harness.encode("DBSIZE"))
        self.assertEqual([client.read() for _ in range(4)], ["OK", "OK", "OK", 0])

    def test_in_a_transaction_and_in_a_script_nothing_waits(self):
        client = self.connect()
        client.call("DEBUG", "POPULATE", "1000")
        client.call("MULTI")
        client.call("FLUSHALL")
        client.call("DBSIZE")
        self.assertEqual(client.call("EXEC"), ["OK", 0])
        client.call("DEBUG", "POPULATE", "1000")
        self.assertEqual(client.call("EVAL", "redis.call('FLUSHALL') return redis.call('DBSIZE')", "0"), 0)

    def test_who_leaves_meanwhile_takes_nothing_along(self):
        client = self.connect()
        for _ in range(5):
            client.call("DEBUG", "POPULATE", "10000")
            leaving = self.connect()
            leaving.send("FLUSHALL")
            leaving.close()
            self.eventually(lambda: client.call("DBSIZE") == 0)
        self.assertEqual(client.call("PING"), "PONG")

    def test_nobody_hears_of_it_who_wants_no_replies(self):
        client = self.connect()
        client.call("DEBUG", "POPULATE", "10000")
        client.send("CLIENT", "REPLY", "SKIP")
        client.send("FLUSHALL")
        self.assertEqual(client.call("PING"), "PONG")


if __name__ == "__main__":
    unittest.main()

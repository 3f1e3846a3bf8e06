"""CALLS over real connections: a record of what code under test sends, and waiting for what it does in the background."""

import json
import subprocess
import unittest

import clients
import harness


class Calls(harness.ServerTestCase):
    def setUp(self):
        self.tester = self.connect()
        self.tester.call("FLUSHALL")
        self.tester.call("CALLS", "RESET")
        self.tester.call("CALLS", "START")

    def tearDown(self):
        self.tester.call("CALLS", "STOP")

    def records(self, *selector):
        return [dict(zip(call[::2], call[1::2])) for call in self.tester.call("CALLS", "LIST", *selector)]

    def test_a_record_tells_what_a_client_has_sent(self):
        client = self.connect()
        client.call("CLIENT", "SETNAME", "shop")
        client.call("HSET", "cart:7", "apples", "3")
        client.error_of("INCR", "cart:7")
        client.call("MULTI")
        client.call("EXPIRE", "cart:7", "60")
        client.call("EXEC")
        records = self.records("CLIENT", "shop")
        self.assertEqual(
            [(call["args"], call["context"], call["reply"]) for call in records],
            [
                (["HSET", "cart:7", "apples", "3"], "plain", "(integer) 1"),
                (["INCR", "cart:7"], "plain",
                 "(error) WRONGTYPE Operation against a key holding the wrong kind of valu"),
                (["MULTI"], "plain", "OK"),
                (["EXEC"], "plain", "(array) 1"),
                (["EXPIRE", "cart:7", "60"], "multi", "(integer) 1"),
            ],
        )
        ids = [call["id"] for call in records]
        self.assertEqual(ids, sorted(set(ids)))
        self.assertEqual([call["args"][0] for call in self.records("KEY", "cart:*", "COUNT", "2")], ["INCR", "EXPIRE"])
        self.assertEqual(self.tester.call("CALLS", "COUNT", "COMMAND", "@write", "CLIENT", "shop"), 3)

    def test_one_client_waits_for_what_another_does_in_the_background(self):
        command = ["/usr/bin/python3", str(clients.HERE / "fault_scenes.py"), str(self.server.port), "works_in_the_background"]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as worker:
            # It is there, and waits for work.
            self.assertEqual(self.tester.call("CALLS", "WAIT", "1", "20000", "COMMAND", "blpop", "CLIENT", "worker"), 1)
            self.tester.call("RPUSH", "jobs", "a", "b", "c")
            self.assertEqual(self.tester.call("CALLS", "WAIT", "3", "20000", "COMMAND", "rpush", "KEY", "done"), 3)
            self.assertEqual(self.tester.call("LRANGE", "done", "0", "-1"), ["a", "b", "c"])
            self.assertEqual(json.loads(worker.stdout.read()), 3)

    def test_waiting_in_vain_ends_in_time(self):
        client = self.connect()
        client.call("SET", "a", "1")
        self.assertEqual(self.tester.call("CALLS", "WAIT", "2", "10", "COMMAND", "set"), 1)

    def test_what_was_wished_for_first_is_seen_when_it_comes(self):
        client, waiter = self.connect(), self.connect()
        waiter.send("CALLS", "WAIT", "2", "0", "KEY", "a")
        self.eventually(lambda: "cmd=calls|wait" in self.tester.call("CLIENT", "LIST") and
                        " flags=b " in self.tester.call("CLIENT", "LIST"))
        client.send_raw(harness.encode("SET", "a", "1") + harness.encode("SET", "b", "1") + harness.encode("GET", "a"))
        self.assertEqual(waiter.read(), 2)

    def test_memory_stays_bounded(self):
        self.tester.call("CALLS", "START", "MAX", "100")
        client = self.connect()
        client.send_raw(harness.encode("SET", "k" * 1000, "v" * 10_000) * 500)
        self.assertEqual({client.read() for _ in range(500)}, {"OK"})
        records = self.records()
        self.assertEqual(len(records), 100)
        self.assertEqual(records[-1]["args"][2], "v" * 128 + "... (9872 more bytes)")

    def test_redis_cli_prints_the_record(self):
        self.connect().call("SET", "a", "1")
        command = [clients.tool("redis-cli"), "-p", str(self.server.port), "-3", "CALLS", "LIST", "COMMAND", "set"]
        text = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=60).stdout
        self.assertIn("args SET\na\n1\n", text)
        self.assertIn("reply OK\n", text)


if __name__ == "__main__":
    unittest.main()

"""A cluster of one node, through bare connections, redis-cli and redis-py's cluster client."""

import json
import subprocess
import tempfile
import unittest

import clients
import harness


class ClusterOfOne(harness.ServerTestCase):
    options = {"cluster-enabled": "yes"}

    def setUp(self):
        self.client = self.connect()
        if "cluster_slots_assigned:16384" not in self.client.call("CLUSTER", "INFO"):
            self.client.call("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
        self.client.call("FLUSHALL")

    def cli(self, *words):
        return subprocess.run(
            [clients.tool("redis-cli"), "-p", str(self.server.port), *words], stdout=subprocess.PIPE, text=True, timeout=20, check=True
        ).stdout

    def test_the_server_says_what_it_is(self):
        self.assertIn("redis_mode:cluster", self.client.call("INFO", "server"))
        self.assertIn("cluster_enabled:1", self.client.call("INFO", "cluster"))
        self.assertIn("Running mode=cluster", self.server.log())
        self.assertEqual(self.client.call("CONFIG", "GET", "databases"), ["databases", "1"])

    def test_redis_cli_finds_its_way(self):
        self.assertEqual(self.cli("-c", "SET", "name", "anna"), "OK\n")
        self.assertEqual(self.cli("-c", "GET", "name"), "anna\n")

    def test_redis_cli_finds_the_cluster_in_order(self):
        text = self.cli("--cluster", "check", f"127.0.0.1:{self.server.port}")
        self.assertIn("[OK] All nodes agree about slots configuration.", text)
        self.assertIn("[OK] All 16384 slots covered.", text)

    def test_redis_py_works_on_the_cluster(self):
        command = ["/usr/bin/python3", str(clients.HERE / "cluster_user.py"), str(self.server.port)]
        read = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=60).stdout)
        self.assertEqual(read, {"name": "anna", "counted": [2, 3, 4], "keys": ["a", "b", "c", "name"], "slot": 5798})

    def test_keys_of_several_slots_are_refused(self):
        self.assertEqual(self.client.error_of("MGET", "a", "b"), "CROSSSLOT Keys in request don't hash to the same slot")
        self.assertEqual(self.client.call("MGET", "{a}1", "{a}2"), [None, None])


class Memory(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def serve(self, program=None, **options):
        server = harness.Server(program=program, dir=self.directory, cluster_enabled="yes", **options)
        self.addCleanup(server.stop)
        return server

    def test_a_node_keeps_its_name_its_slots_and_its_keys(self):
        first = self.serve(appendonly="yes")
        client = first.connect()
        client.call("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
        client.call("SET", "a", "1")
        number = client.call("CLUSTER", "MYID")
        first.stop()
        client = self.serve(appendonly="yes").connect()
        self.assertEqual(client.call("CLUSTER", "MYID"), number)
        self.assertEqual(client.call("GET", "a"), "1")
        self.assertEqual(client.call("CLUSTER", "COUNTKEYSINSLOT", "15495"), 1)

    def test_two_nodes_do_not_share_a_file(self):
        self.serve()
        with self.assertRaisesRegex(AssertionError, "is already used by a different Redis Cluster node"):
            self.serve()

    @harness.needs_reference
    def test_a_node_goes_over_from_the_reference_and_back(self):
        reference = harness.reference("redis-server")
        server = self.serve(reference)
        client = server.connect()
        client.call("CLUSTER", "ADDSLOTSRANGE", "5", "9")
        who = [client.call("CLUSTER", "MYID"), client.call("CLUSTER", "MYSHARDID")]
        for program in (None, reference):
            server.stop()
            server = self.serve(program)
            client = server.connect()
            self.assertEqual([client.call("CLUSTER", "MYID"), client.call("CLUSTER", "MYSHARDID")], who)
            self.assertIn(" connected 5-9", client.call("CLUSTER", "NODES"))


if __name__ == "__main__":
    unittest.main()

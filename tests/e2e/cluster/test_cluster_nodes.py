"""Clusters of several nodes: made by redis-cli, reshaped, broken, and mixed with nodes of the reference."""

import os
import signal
import subprocess
import time
import unittest

import clients
import harness

SLOTS = 16384
TIMEOUT_MS = 1000
PATIENCE_S = 30


class ClusterTestCase(unittest.TestCase):
    def start(self, programs, **options):
        """Servers of these programs; None is the one that is tested."""
        self.servers = []
        for program in programs:
            server = harness.Server(program=program, cluster_enabled="yes", cluster_node_timeout=TIMEOUT_MS, **options)
            self.addCleanup(server.stop)
            self.servers.append(server)
        return self.servers

    def connect(self, server):
        client = server.connect()
        self.addCleanup(client.close)
        return client

    def cli(self, *words, check=True):
        result = subprocess.run(
            [clients.tool("redis-cli"), *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120
        )
        if check:
            self.assertEqual(result.returncode, 0, result.stdout)
        return result.stdout

    def cluster(self, command, *words, check=True):
        return self.cli("--cluster-yes", "--cluster", command, *words, check=check)

    @staticmethod
    def place(server):
        return "127.0.0.1:%d" % server.port

    def create(self, servers, replicas=0):
        self.cluster("create", *map(self.place, servers), "--cluster-replicas", replicas)
        self.wait_until_up(servers)

    def eventually(self, condition, what="it"):
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            if time.monotonic() > deadline:
                self.fail("%s did not come to pass\n%s" % (what, "\n".join(server.log()[-2000:] for server in self.servers)))
            time.sleep(0.05)

    def state(self, server):
        with server.connect() as client:
            return dict(line.split(":") for line in client.call("CLUSTER", "INFO").split("\r\n") if line)

    def wait_until_up(self, servers):
        for server in servers:
            self.eventually(lambda server=server: self.state(server)["cluster_state"] == "ok", "the cluster's state")
        for server in servers:
            self.eventually(lambda server=server: self.state(server)["cluster_known_nodes"] == str(len(servers)), "knowing all")

    def nodes(self, server):
        """Flags by id, as a server shows them."""
        with server.connect() as client:
            lines = client.call("CLUSTER", "NODES").splitlines()
        return {line.split()[0]: line.split()[2].split(",") for line in lines}

    def identity(self, server):
        with server.connect() as client:
            return client.call("CLUSTER", "MYID")

    def role(self, server):
        with server.connect() as client:
            return client.call("ROLE")[0]

    def owner(self, slot, seen_by):
        with seen_by.connect() as client:
            for first, last, node, *_ in client.call("CLUSTER", "SLOTS"):
                if first <= slot <= last:
                    return node[2]
        return None

    def slots_of(self, server):
        name = self.identity(server)
        with server.connect() as client:
            return sum(last - first + 1 for first, last, node, *_ in client.call("CLUSTER", "SLOTS") if node[2] == name)

    def fill(self, server, count):
        for i in range(count):
            self.assertEqual(self.cli("-c", "-p", server.port, "SET", "key:%d" % i, i), "OK\n")

    def total_keys(self, servers):
        total = 0
        for server in servers:
            with server.connect() as client:
                total += client.call("DBSIZE")
        return total

    def link_is_up(self, replica):
        with replica.connect() as client:
            return "master_link_status:up" in client.call("INFO", "replication")


class Restarts(ClusterTestCase):
    def test_a_replica_goes_on_in_its_masters_stream(self):
        """Its file says where that was, as that of a replica without a cluster does; it is not taken for a master's."""
        servers = master, replica = self.start([None] * 2, cluster_require_full_coverage="no")
        with master.connect() as client:
            client.call("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
            client.call("CLUSTER", "MEET", "127.0.0.1", replica.port)
        self.wait_until_up(servers)
        with replica.connect() as client:
            client.call("CLUSTER", "REPLICATE", self.identity(master))
        self.eventually(lambda: self.link_is_up(replica), "the link")
        with master.connect() as client:
            client.call("SET", "before", "1")
            self.assertEqual(client.call("WAIT", "1", "5000"), 1)
            with replica.connect() as other:
                other.call("SAVE")
            replica.process.kill()
            replica.process.wait()
            client.call("SET", "meanwhile", "2")
            replica.start()
            self.eventually(lambda: self.link_is_up(replica), "the link")
            figures = client.call("INFO", "stats")
            self.assertIn("sync_full:1\r\n", figures)
            self.assertIn("sync_partial_ok:1\r\n", figures)
        with replica.connect() as other:
            self.eventually(lambda: sorted(other.call("KEYS", "*")) == ["before", "meanwhile"], "the keys")


    def test_a_replica_that_is_reset_puts_no_dataset_in_place(self):
        """Not even the one that it is loading beside the present one."""
        servers = master, replica = self.start([None] * 2, cluster_require_full_coverage="no", repl_diskless_load="swapdb",
                                               repl_diskless_sync_delay="0", loading_process_events_interval_bytes="1024")
        with master.connect() as client, replica.connect() as other:
            client.call("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
            client.call("CLUSTER", "MEET", "127.0.0.1", replica.port)
            self.wait_until_up(servers)
            other.call("CLUSTER", "REPLICATE", self.identity(master))
            self.eventually(lambda: self.link_is_up(replica), "the link")
            other.call("CONFIG", "SET", "key-load-delay", "20000")
            client.call("CONFIG", "SET", "repl-backlog-size", "16384")
            # So much while it does not look that it needs the whole dataset.
            replica.process.send_signal(signal.SIGSTOP)
            client.call("CLIENT", "KILL", "TYPE", "replica")
            for number in range(300):
                client.call("SET", "key:%d" % number, "x" * 1000)
            replica.process.send_signal(signal.SIGCONT)
            self.eventually(lambda: "async_loading:1" in other.call("INFO", "persistence"), "loading")
            self.assertEqual(other.call("CLUSTER", "RESET"), "OK")
            other.call("CONFIG", "SET", "key-load-delay", "0")
            self.eventually(lambda: self.role(replica) == "master", "the role")
            self.assertEqual(other.call("DBSIZE"), 0)


class Reshaping(ClusterTestCase):
    def test_a_cluster_is_made_resharded_and_rebalanced(self):
        servers = self.start([None] * 4)
        first = servers[0]
        self.create(servers[:3])
        self.assertIn("[OK] All 16384 slots covered.", self.cluster("check", self.place(first)))
        self.fill(first, 60)

        self.cluster("add-node", self.place(servers[3]), self.place(first))
        self.wait_until_up(servers)
        new = self.identity(servers[3])
        self.cluster("reshard", self.place(first), "--cluster-from", "all", "--cluster-to", new, "--cluster-slots", 90)
        # The shares of the three others are rounded.
        self.assertAlmostEqual(self.slots_of(servers[3]), 90, delta=2)
        # Some back, to the one that is to have more than the others.
        weights = ["--cluster-weight", *("%s=%d" % (self.identity(server), weight) for server, weight in zip(servers, (182, 181, 181, 1)))]
        self.cluster("rebalance", self.place(first), "--cluster-threshold", 1, *weights)
        self.assertAlmostEqual(self.slots_of(servers[3]), SLOTS // 545, delta=2)
        self.eventually(lambda: "[OK] All 16384 slots covered." in self.cluster("check", self.place(first), check=False), "agreement")
        self.assertEqual(self.total_keys(servers), 60)
        for i in range(60):
            self.assertEqual(self.cli("-c", "-p", servers[2].port, "GET", "key:%d" % i), "%d\n" % i)

    def test_a_node_is_removed_when_it_serves_nothing(self):
        servers = self.start([None] * 4)
        self.create(servers[:3])
        self.cluster("add-node", self.place(servers[3]), self.place(servers[0]))
        self.wait_until_up(servers)
        self.cluster("del-node", self.place(servers[0]), self.identity(servers[3]))
        for server in servers[:3]:
            self.eventually(lambda server=server: self.state(server)["cluster_known_nodes"] == "3", "forgetting")
        self.assertEqual(self.state(servers[3])["cluster_known_nodes"], "1")

    def test_the_benchmark_runs_on_all_masters(self):
        servers = self.start([None] * 3)
        self.create(servers)
        text = subprocess.run(
            [clients.tool("redis-benchmark"), "--cluster", "-p", str(servers[0].port), "-n", "3000", "-t", "set,get", "-r", "1000", "-q"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=True,
        ).stdout
        self.assertIn("Cluster has 3 master nodes", text)
        for server in servers:
            with server.connect() as client:
                self.assertGreater(client.call("DBSIZE"), 100)

    def test_a_node_that_starts_anew_knows_its_cluster(self):
        servers = self.start([None] * 3)
        self.create(servers)
        before = self.nodes(servers[1]).keys()
        process = servers[1].process
        process.send_signal(signal.SIGTERM)
        process.wait(10)
        servers[1].start()
        self.assertEqual(self.nodes(servers[1]).keys(), before)
        self.wait_until_up(servers)


class Failing(ClusterTestCase):
    def test_a_replica_takes_the_place_of_a_master_that_died(self):
        servers = self.start([None] * 6)
        self.create(servers, replicas=1)
        for server in servers:
            if self.role(server) == "slave":
                self.eventually(lambda server=server: self.link_is_up(server), "a link to the master")
        self.fill(servers[0], 30)
        victim = servers[0]
        name = self.identity(victim)
        replica = next(server for server in servers[3:] if self.follows(server, name))
        self.eventually(lambda: self.same_keys(victim, replica), "the replica's dataset")
        os.kill(victim.process.pid, signal.SIGSTOP)
        try:
            self.eventually(lambda: self.role(replica) == "master", "the election")
            others = [server for server in servers if server is not victim]
            for server in others:
                self.eventually(lambda server=server: self.state(server)["cluster_state"] == "ok", "the cluster's state")
                self.assertIn("fail", self.nodes(server)[name])
            for i in range(30):
                self.assertEqual(self.cli("-c", "-p", servers[1].port, "GET", "key:%d" % i), "%d\n" % i)
        finally:
            os.kill(victim.process.pid, signal.SIGCONT)
        self.eventually(lambda: self.role(victim) == "slave", "the former master's turning")
        self.eventually(lambda: self.link_is_up(victim), "its link")

    def follows(self, server, master):
        with server.connect() as client:
            line = next(line for line in client.call("CLUSTER", "NODES").splitlines() if "myself" in line)
        return line.split()[3] == master

    def same_keys(self, one, other):
        with one.connect() as a, other.connect() as b:
            return a.call("DBSIZE") == b.call("DBSIZE")

    def test_a_replica_takes_over_on_request_and_nothing_is_lost(self):
        servers = self.start([None] * 4)
        self.create(servers[:3])
        self.cluster("add-node", self.place(servers[3]), self.place(servers[0]), "--cluster-slave")
        self.wait_until_up(servers)
        replica = servers[3]
        self.eventually(lambda: self.link_is_up(replica), "the link")
        self.fill(servers[0], 30)
        self.connect(replica).call("CLUSTER", "FAILOVER")
        self.eventually(lambda: self.role(replica) == "master", "the handing over")
        self.wait_until_up(servers)
        for i in range(30):
            self.assertEqual(self.cli("-c", "-p", servers[1].port, "GET", "key:%d" % i), "%d\n" % i)


@harness.needs_reference
class Mixed(ClusterTestCase):
    """Nodes of this server and of the reference in one cluster, whose bus is the same."""

    def setUp(self):
        self.reference = harness.reference("redis-server")

    def test_they_agree_about_everything(self):
        servers = self.start([None, self.reference, None, self.reference])
        self.create(servers[:3])
        self.cluster("add-node", self.place(servers[3]), self.place(servers[0]))
        self.wait_until_up(servers)
        for server in servers:
            self.connect(server).call("CONFIG", "SET", "cluster-announce-hostname", "host-%d.com" % server.port)
        views = [lambda server=server: self.view(server) for server in servers]
        self.eventually(lambda: all(view() == views[0]() for view in views), "agreement")
        self.eventually(lambda: all(self.hostnames(server) == 3 for server in servers), "hostnames")
        self.assertIn("[OK] All 16384 slots covered.", self.cluster("check", self.place(servers[1])))
        self.fill(servers[1], 30)
        self.cluster(
            "reshard", self.place(servers[0]), "--cluster-from", "all", "--cluster-to", self.identity(servers[3]), "--cluster-slots", 90
        )
        self.eventually(lambda: all(view() == views[0]() for view in views), "agreement about the moved slots")
        for i in range(30):
            self.assertEqual(self.cli("-c", "-p", servers[0].port, "GET", "key:%d" % i), "%d\n" % i)

    def view(self, server):
        with server.connect() as client:
            return sorted((first, last, node[2]) for first, last, node, *_ in client.call("CLUSTER", "SLOTS"))

    def hostnames(self, server):
        with server.connect() as client:
            return sum("hostname" in node[3] for _, _, node, *_ in client.call("CLUSTER", "SLOTS"))

    def secrets(self):
        found = set()
        for server in self.servers:
            with server.connect() as client:
                found.add(client.call("DEBUG", "INTERNAL_SECRET"))
        return found

    def test_they_share_a_secret_and_messages(self):
        servers = self.start([None, self.reference, None], enable_debug_command="yes")
        self.create(servers)
        self.eventually(lambda: len(self.secrets()) == 1, "one secret")
        for publisher, subscriber in ((0, 1), (1, 2)):
            listener = self.connect(servers[subscriber])
            listener.call("SUBSCRIBE", "news")
            self.connect(servers[publisher]).call("PUBLISH", "news", "x" * 100_000)
            self.assertEqual(listener.read(), ["message", "news", "x" * 100_000])

    def test_they_find_each_other_dead(self):
        servers = self.start([None, None, self.reference, self.reference], cluster_require_full_coverage="no")
        self.create(servers[:3])
        self.cluster("add-node", self.place(servers[3]), self.place(servers[0]))
        self.wait_until_up(servers)
        for victim in (servers[3], servers[0]):
            name = self.identity(victim)
            os.kill(victim.process.pid, signal.SIGSTOP)
            try:
                others = [server for server in servers if server is not victim]
                for server in others:
                    self.eventually(lambda server=server, name=name: "fail" in self.nodes(server)[name], "the verdict")
            finally:
                os.kill(victim.process.pid, signal.SIGCONT)
            for server in others:
                self.eventually(lambda server=server, name=name: "fail" not in self.nodes(server)[name], "forgiveness")

    def test_they_replace_and_follow_each_other(self):
        for master, replica in ((None, self.reference), (self.reference, None)):
            with self.subTest(master=master):
                servers = self.start([None, self.reference, master, replica])
                self.create(servers[:3])
                name = self.identity(servers[2])
                self.cluster(
                    "add-node", self.place(servers[3]), self.place(servers[0]), "--cluster-slave", "--cluster-master-id", name
                )
                self.wait_until_up(servers)
                self.eventually(lambda servers=servers: self.link_is_up(servers[3]), "the link")
                self.fill(servers[0], 20)
                # On request, to and fro, and by election.
                self.connect(servers[3]).call("CLUSTER", "FAILOVER")
                self.eventually(lambda servers=servers: self.role(servers[3]) == "master", "the handing over")
                self.eventually(lambda servers=servers: self.role(servers[2]) == "slave" and self.link_is_up(servers[2]), "following")
                os.kill(servers[3].process.pid, signal.SIGSTOP)
                try:
                    self.eventually(lambda servers=servers: self.role(servers[2]) == "master", "the election")
                finally:
                    os.kill(servers[3].process.pid, signal.SIGCONT)
                self.eventually(lambda servers=servers: self.role(servers[3]) == "slave", "turning back")
                self.wait_until_up(servers)
                for i in range(20):
                    self.assertEqual(self.cli("-c", "-p", servers[0].port, "GET", "key:%d" % i), "%d\n" % i)


if __name__ == "__main__":
    unittest.main()

"""How Valkey 9 moves slots, between it and us both ways: CLUSTER MIGRATESLOTS, what is lost or late in the middle of it, and masters
that hand over when they are shut down. Skipped where scripts/reference --rival has not brought Valkey."""

import os
import signal
import socket
import unittest

import harness
from test_cluster_nodes import ClusterTestCase
from test_slot_migration import SlotMigrationTestCase
from test_valkey_cluster import PRODUCTS, VALKEY, ask, needs_valkey


def jobs(client):
    return [dict(zip(job[::2], job[1::2])) for job in client.call("CLUSTER", "GETSLOTMIGRATIONS")]


@needs_valkey
class MigrationsTestCase(SlotMigrationTestCase):
    def start(self, program, **own):
        """A node, and the port that other nodes know it by."""
        server = harness.Server(program, **own)
        return server, server.port

    def nodes_of(self, *products):
        """Masters of a half of the slots each."""
        self.servers = []
        for program, own in products:
            server, port = self.start(program, cluster_enabled="yes", cluster_node_timeout=1000, cluster_databases="4", enable_debug_command="yes",
                                      repl_diskless_sync_delay="0", **own)
            self.addCleanup(server.stop)
            self.servers.append(server)
        for server, (first, last) in zip(self.servers, ((0, 8191), (8192, 16383))):
            with server.connect() as client:
                client.call("CLUSTER", "ADDSLOTSRANGE", first, last)
        with self.servers[0].connect() as client:
            client.call("CLUSTER", "SET-CONFIG-EPOCH", "1")
            client.call("CLUSTER", "MEET", "127.0.0.1", port)
        self.wait_until_up(self.servers)
        return self.servers

    def ended(self, server, count=1):
        """The newest of so many jobs, when it has ended."""
        with server.connect() as client:
            self.eventually(lambda: len(jobs(client)) == count and jobs(client)[0]["state"] in ("success", "failed", "cancelled"), "the end of the job")
            return jobs(client)[0]

    def fill_databases(self, server):
        """Keys of every type, in two databases, in slots 0 and 1; what TYPE and DUMP tell of them."""
        with server.connect() as client:
            for database in (0, 3):
                client.call("SELECT", database)
                for tag in ("{06S}", "{Qi}"):
                    client.call("SET", tag + "string", "v" * (10 + database))
                    client.call("SET", tag + "volatile", "1", "EX", "10000")
                    client.call("RPUSH", tag + "list", *range(200))
                    client.call("SADD", tag + "set", *["member:%d" % i for i in range(300)])
                    client.call("ZADD", tag + "zset", *[word for i in range(200) for word in (i, "m%d" % i)])
                    client.call("HSET", tag + "hash", *[word for i in range(200) for word in ("f%d" % i, i)])
                    client.call("XADD", tag + "stream", "1-1", "f", "v")
        return self.contents(server)

    def contents(self, server):
        found = {}
        with server.connect() as client:
            for database in (0, 3):
                client.call("SELECT", database)
                for slot in (0, 1):
                    for key in client.call("CLUSTER", "GETKEYSINSLOT", slot, "1000"):
                        kind = client.call("TYPE", key)
                        read = {"string": ("GET", key), "list": ("LRANGE", key, "0", "-1"), "set": ("SMEMBERS", key), "hash": ("HGETALL", key),
                                "zset": ("ZRANGE", key, "0", "-1", "WITHSCORES"), "stream": ("XRANGE", key, "-", "+")}[kind]
                        value = client.call(*read)
                        found[database, key] = (kind, sorted(value) if kind in ("set", "hash") else value, client.call("TTL", key) > 0)
        return found

    def check(self, *products):
        source, target = self.nodes_of(*products)
        before = self.fill_databases(source)
        self.assertEqual(len(before), 28)
        writers = self.write_to([source, target], slots=(0, 1))
        with source.connect() as client:
            self.assertEqual(client.call("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", "0", "1", "101", "101", "NODE", self.identity(target)), "OK")
        for server, operation in ((source, "EXPORT"), (target, "IMPORT")):
            job = self.ended(server)
            self.assertEqual((job["operation"], job["slot_ranges"], job["state"], job["message"]), (operation, "0-1 101-101", "success", ""))
        self.eventually(lambda: self.owner(0, seen_by=source)[:2] and self.slots_of(source) == 8189, "the new owner")
        self.check_no_loss(writers, [source, target])
        after = self.contents(target)
        self.assertEqual({key: after[key] for key in before}, before)
        self.eventually(lambda: self.contents(source) == {}, "the deletion of what has gone")
        # And back, which the other one sends.
        with target.connect() as client:
            self.assertEqual(client.call("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", "0", "1", "NODE", self.identity(source)), "OK")
        self.assertEqual(self.ended(target, 2)["state"], "success")
        self.eventually(lambda: {key: self.contents(source).get(key) for key in before} == before, "the way back")

    def begin_slowly(self, *products):
        """A migration of slot 0, whose snapshot takes its time."""
        source, target = self.nodes_of(*products)
        with source.connect() as client:
            for i in range(20):
                client.call("SET", "{06S}%d" % i, "v")
            client.call("CONFIG", "SET", "rdb-key-save-delay", "200000")
            client.call("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", "0", "0", "NODE", self.identity(target))
            self.eventually(lambda: jobs(client)[0]["state"] == "snapshotting", "the snapshot")
        return source, target

    def kill(self, server):
        server.process.kill()
        server.process.wait()
        server.process = None

    def check_nothing_came(self, source, target):
        with target.connect() as client, source.connect() as other:
            self.eventually(lambda: client.call("CLUSTER", "COUNTKEYSINSLOT", "0") == 0 and client.call("DBSIZE") == 0, "the deletion")
            self.assertEqual(other.call("SET", "{06S}0", "w"), "OK")


class Migrations(MigrationsTestCase):
    """CLUSTER MIGRATESLOTS between nodes of both products."""

    def test_between_two_nodes(self):
        self.check(PRODUCTS[0], PRODUCTS[0])

    def test_without_emulation(self):
        self.check((None, {}), (None, {}))

    def test_addresses_for_clients(self):
        """A node of each product, which both tell each other and their clients."""
        for kinds in (PRODUCTS, (PRODUCTS[0], PRODUCTS[0]), ((None, {}), (None, {}))):
            nodes = [harness.Server(program, cluster_enabled="yes", bind=["127.0.0.1", "::1"], **own) for program, own in kinds]
            self.servers = nodes
            for node in nodes:
                self.addCleanup(node.stop)
            self.cluster("create", *map(self.place, nodes), "--cluster-replicas", 0, check=False)
            with nodes[0].connect() as client:
                client.call("CLUSTER", "MEET", "127.0.0.1", nodes[1].port)
            for number, node in enumerate(nodes):
                with node.connect() as client:
                    client.call("CLUSTER", "ADDSLOTSRANGE", *((0, 8191), (8192, 16383))[number])
            self.wait_until_up(nodes)
            for number, node in enumerate(nodes):
                with node.connect() as client:
                    for family, wrong in (("4", "::1"), ("6", "127.0.0.1")):
                        self.assertIn(f"Invalid IPv{family} address",
                                      client.error_of("CONFIG", "SET", "cluster-announce-client-ipv" + family, wrong))
                    client.call("CONFIG", "SET", "cluster-announce-client-ipv4", f"203.0.113.{number}")
                    client.call("CONFIG", "SET", "cluster-announce-client-ipv6", f"2001:db8::{number}")
            for host, prefix in (("127.0.0.1", "203.0.113."), ("::1", "2001:db8::")):
                for number, node in enumerate(nodes):
                    with node.connect(host) as client:
                        self.eventually(lambda c=client, p=prefix: c.call("CLUSTER", "NODES").count(p) == 2, "the addresses")
                        other = nodes[1 - number].port
                        # "foo" is in slot 12182, "bar" in slot 5061.
                        key, slot = (("foo", 12182), ("bar", 5061))[number]
                        self.assertEqual(client.error_of("GET", key), f"MOVED {slot} {prefix}{1 - number}:{other}")
                        shown = {entry[2][0] for entry in client.call("CLUSTER", "SLOTS")}
                        self.assertEqual(shown, {prefix + "0", prefix + "1"})
            for node in nodes:
                with node.connect() as client:
                    client.call("CONFIG", "SET", "cluster-announce-client-ipv4", "")
            with nodes[0].connect() as client:
                self.eventually(lambda c=client: c.call("CLUSTER", "NODES").count("127.0.0.1:") == 2, "the old addresses")

    def test_ports_and_zones_for_clients(self):
        """A node of each product, which both tell each other and their clients."""
        for kinds in (PRODUCTS, (PRODUCTS[0], PRODUCTS[0]), ((None, {}), (None, {}))):
            nodes = self.nodes_of(*kinds)
            for number, node in enumerate(nodes):
                with node.connect() as client:
                    client.call("CONFIG", "SET", "cluster-announce-client-port", str(6400 + number))
                    client.call("CONFIG", "SET", "availability-zone", f"zone-{number}")
            for number, node in enumerate(nodes):
                with node.connect() as client:
                    for request in ("SLOTS", "SHARDS"):
                        self.eventually(lambda c=client, r=request: all(
                            word in str(c.call("CLUSTER", r)) for word in ("6400", "6401", "zone-0", "zone-1")), "what is announced")
                    lines = sorted(line.split("@")[0].split(":")[1] for line in client.call("CLUSTER", "NODES").splitlines())
                    self.assertEqual(lines, ["6400", "6401"])
                    key, slot = (("foo", 12182), ("bar", 5061))[number]
                    self.assertEqual(client.error_of("GET", key), f"MOVED {slot} 127.0.0.1:{6401 - number}")
            for node in nodes:
                with node.connect() as client:
                    client.call("CONFIG", "SET", "cluster-announce-client-port", "0")
                    client.call("CONFIG", "SET", "availability-zone", "")
            with nodes[0].connect() as client:
                self.eventually(lambda c=client: "zone" not in str(c.call("CLUSTER", "SLOTS")), "no zone")

    def test_to_valkey_and_back(self):
        self.check(PRODUCTS[0], PRODUCTS[1])

    def test_from_valkey_and_back(self):
        self.check(PRODUCTS[1], PRODUCTS[0])

    def test_redis_form_moves_all_databases(self):
        source, target = self.nodes_of((None, {}), (None, {}))
        before = self.fill_databases(source)
        with target.connect() as client:
            client.call("CLUSTER", "MIGRATION", "IMPORT", "0", "1")
        self.eventually(lambda: {key: self.contents(target).get(key) for key in before} == before, "the keys")
        self.eventually(lambda: self.contents(source) == {}, "the deletion of what has gone")

    def test_a_replica_that_swaps_its_dataset_in_knows_the_keys_of_slots(self):
        source, _ = self.nodes_of((None, {}), (None, {}))
        with source.connect() as client:
            for i in range(20):
                client.call("SET", "{06S}%d" % i, "v")
        replica = self.add_replica(source, cluster_databases="4", repl_diskless_load="swapdb")
        with replica.connect() as reader:
            reader.call("READONLY")
            self.eventually(lambda: reader.call("DBSIZE") == 20, "the keys")
            self.assertEqual(reader.call("CLUSTER", "COUNTKEYSINSLOT", "0"), 20)

    def test_errors(self):
        replies = []
        for program, own in PRODUCTS:
            source, target = self.nodes_of((program, own), (program, own))
            mine, other = self.identity(source), self.identity(target)
            said = []
            with source.connect() as client:
                for line in ("", "SLOTSRANGE 0 1", "SLOTSRANGE 10 NODE OTHER", "SLOTSRANGE 10 11 NODE", "SLOTSRANGE NODE OTHER", "FOO 0 1 NODE x", "SLOTSRANGE 10 11 NODE x", "SLOTSRANGE 10 11 NODE " + "a" * 40,
                             "SLOTSRANGE 10 11 NODE MINE", "SLOTSRANGE 11 10 NODE OTHER", "SLOTSRANGE 10 99999 NODE OTHER",
                             "SLOTSRANGE x 10 NODE OTHER", "SLOTSRANGE 10 11 11 12 NODE OTHER", "SLOTSRANGE 16000 16000 NODE OTHER", "SLOTSRANGE 8191 8192 NODE OTHER",
                             "SLOTSRANGE 10 11 NODE OTHER SLOTSRANGE 11 11 NODE OTHER", "SLOTSRANGE 10 11 NODE OTHER FOO", "SLOTSRANGE 10 11 12 NODE OTHER", "SLOTSRANGE 99999 5 NODE OTHER", "SLOTSRANGE -1 5 NODE OTHER"):
                    said.append(ask(client, "CLUSTER MIGRATESLOTS " + line.replace("MINE", mine).replace("OTHER", other)).replace(mine, "MINE"))
                for line in ("CANCELSLOTMIGRATIONS", "GETSLOTMIGRATIONS", "GETSLOTMIGRATIONS x", "SYNCSLOTS FOO", "SYNCSLOTS", "SYNCSLOTS ACK",
                             "SYNCSLOTS ESTABLISH", "SYNCSLOTS ESTABLISH SOURCE x NAME y SLOTSRANGE 1 1", "SYNCSLOTS FINISH", "SYNCSLOTS PAUSED",
                             "SYNCSLOTS SNAPSHOT-EOF", "SYNCSLOTS ESTABLISH SOURCE OTHER NAME %s SLOTSRANGE 20 20" % ("b" * 40),
                             "SYNCSLOTS ESTABLISH SOURCE OTHER NAME %s SLOTSRANGE 9000 9000" % ("b" * 39),
                             "SYNCSLOTS ESTABLISH SOURCE OTHER NAME %s" % ("b" * 40),
                             "SYNCSLOTS ESTABLISH SOURCE OTHER NAME %s SLOTSRANGE 6000 5999" % ("b" * 40),
                             "SYNCSLOTS ESTABLISH SOURCE MINE NAME %s SLOTSRANGE 6000 6000" % ("b" * 40),
                             "SYNCSLOTS ESTABLISH SOURCE %s NAME %s SLOTSRANGE 6000 6000" % ("c" * 40, "b" * 40),
                             "SYNCSLOTS FINISH NAME %s STATE SUCCESS" % ("b" * 40), "SETSLOT 30 MIGRATING OTHER",
                             "MIGRATESLOTS SLOTSRANGE 10 11 NODE OTHER", "SETSLOT 30 STABLE"):
                    said.append(ask(client, "CLUSTER " + line.replace("MINE", mine).replace("OTHER", other)))
            replies.append(said)
        for mine, real in zip(*replies):
            self.assertEqual(mine, real)

    def test_a_cancelled_migration_leaves_nothing_behind(self):
        for products in ((PRODUCTS[0],) * 2, PRODUCTS, PRODUCTS[::-1]):
            source, target = self.begin_slowly(*products)
            with target.connect() as client:
                self.assertEqual(client.error_of("CLUSTER", "CANCELSLOTMIGRATIONS"), "ERR No migrations ongoing")
                self.assertEqual(client.error_of("CLUSTER", "SETSLOT", "0", "IMPORTING", self.identity(source)), "ERR Slot import in progress.")
            with source.connect() as client:
                self.assertEqual(client.error_of("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", "0", "0", "NODE", self.identity(target)),
                                 "ERR I am already migrating slot 0.")
                self.assertEqual(client.error_of("CLUSTER", "SETSLOT", "0", "MIGRATING", self.identity(target)), "ERR Slot export in progress.")
                self.assertEqual(client.call("CLUSTER", "CANCELSLOTMIGRATIONS"), "OK")
            self.assertEqual([self.ended(source)[field] for field in ("state", "message")], ["cancelled", ""])
            self.assertEqual([self.ended(target)[field] for field in ("state", "message")],
                             ["failed", "Connection lost to source. Check CLUSTER GETSLOTMIGRATIONS on the source node for more information."])
            self.check_nothing_came(source, target)

    def test_a_flush_ends_it(self):
        for flushed in (0, 1):
            pair = self.begin_slowly(PRODUCTS[0], PRODUCTS[0])
            with pair[flushed].connect() as client:
                client.call("FLUSHALL")
            self.assertEqual([self.ended(pair[flushed])[field] for field in ("state", "message")], ["failed", "Data was flushed"])
            self.assertEqual(self.ended(pair[1 - flushed])["state"], "failed")
            self.check_nothing_came(*pair)

    def test_what_debug_holds_back(self):
        """Writes go on while the pause is held back, and the source serves while the target may not take the slots."""
        source, target = self.nodes_of(PRODUCTS[0], PRODUCTS[0])
        with source.connect() as client, target.connect() as other:
            client.call("DEBUG", "SLOTMIGRATION", "PREVENT-PAUSE", "1")
            other.call("DEBUG", "SLOTMIGRATION", "PREVENT-FAILOVER", "1")
            client.call("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", "0", "0", "NODE", self.identity(target))
            self.eventually(lambda: [job["state"] for job in jobs(client)] == ["waiting-to-pause"], "the end of the snapshot")
            self.assertEqual(client.call("SET", "{06S}a", "1"), "OK")
            client.call("DEBUG", "SLOTMIGRATION", "PREVENT-PAUSE", "0")
            self.eventually(lambda: [job["state"] for job in jobs(other)] == ["failover-granted"], "the grant")
            self.assertEqual(client.call("GET", "{06S}a"), "1")
            other.call("DEBUG", "SLOTMIGRATION", "PREVENT-FAILOVER", "0")
            self.eventually(lambda: [job["state"] for job in jobs(client)] == ["success"], "the end")
            self.eventually(lambda: other.call("GET", "{06S}a") == "1", "the key")

    def begin_and_hold(self):
        """A migration of slot 0 whose writes are sent on as they come, until it is let go."""
        source, target = self.nodes_of(PRODUCTS[0], PRODUCTS[0])
        with source.connect() as client:
            client.call("DEBUG", "SLOTMIGRATION", "PREVENT-PAUSE", "1")
            client.call("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", "0", "0", "NODE", self.identity(target))
            self.eventually(lambda: jobs(client)[0]["state"] == "waiting-to-pause", "the end of the snapshot")
        return source, target

    def test_the_target_is_out_of_memory(self):
        """Whatever may be evicted later, as in Valkey: what is imported may not."""
        source, target = self.begin_and_hold()
        with source.connect() as client, target.connect() as other:
            other.call("CONFIG", "SET", "maxmemory-policy", "allkeys-lru", "maxmemory", "1")
            client.call("SET", "{06S}a", "1")
            self.assertIn("OOM", self.ended(target)["message"])
            self.assertIn("Connection lost to target", self.ended(source)["message"])
            other.call("CONFIG", "SET", "maxmemory", "0")
        self.check_nothing_came(source, target)

    def test_a_target_that_does_not_read(self):
        """What waits for it does not have keys evicted, and ends the migration where it is too much."""
        source, target = self.begin_and_hold()
        target.process.send_signal(signal.SIGSTOP)
        try:
            with source.connect() as client:
                for i in range(20):
                    client.call("SET", "{06S}a", "v" * 1_000_000)
                not_counted = dict(line.split(":", 1) for line in client.call("INFO", "memory").splitlines() if ":" in line)["mem_not_counted_for_evict"]
                self.assertGreater(int(not_counted), 10_000_000)
                client.call("CONFIG", "SET", "client-output-buffer-limit", "replica 1mb 0 0")
                self.assertIn("Connection lost to target", self.ended(source)["message"])
        finally:
            target.process.send_signal(signal.SIGCONT)
        self.assertEqual(self.ended(target)["state"], "failed")

    def test_a_target_that_is_reset_as_it_is_written_to(self):
        source, target = self.nodes_of(PRODUCTS[0], PRODUCTS[0])
        name = self.identity(target)
        with source.connect() as client:
            client.call("CONFIG", "SET", "cluster-node-timeout", "60000")
            client.call("SET", "{06S}k", "v")
        target.process.kill()
        target.process.wait()
        target.process = None
        with socket.create_server(("127.0.0.1", target.port)) as place:
            place.settimeout(30)
            for pauses in (False, True):
                with self.subTest(pauses=pauses), source.connect() as client, source.connect() as other:
                    self.assertEqual(client.call("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", "0", "0", "NODE", name), "OK")
                    connection, _ = place.accept()
                    connection.settimeout(30)
                    with connection:
                        said = connection.recv(65536)
                        connection.sendall(b"+OK\r\n" + harness.encode("CLUSTER", "SYNCSLOTS", "ACK"))
                        while b"SNAPSHOT-EOF" not in said:
                            said += connection.recv(65536)
                        # Stands still as the connection ends, and then writes to it.
                        for request in (["MULTI"], ["DEBUG", "SLEEP", "0.5"], *[["SET", "{06S}%d" % i, "w"] for i in range(20)], ["EXEC"]):
                            other.send(*request)
                        self.assertEqual([other.read() for _ in range(22)], ["OK"] + ["QUEUED"] * 21)
                        if pauses:
                            connection.sendall(harness.encode("CLUSTER", "SYNCSLOTS", "REQUEST-PAUSE"))
                        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                    self.assertEqual(other.read(), ["OK"] * 21)
                    self.eventually(lambda client=client: jobs(client)[0]["state"] == "failed", "the end of the job")
                    self.assertEqual(other.call("SET", "{06S}k", "x"), "OK")

    def test_the_target_restarts_with_what_it_had_saved(self):
        """Its file says what is imported, so that it is deleted, and not taken for a move by hand that was left over."""
        source, target = self.begin_and_hold()
        with source.connect() as client:
            for i in range(20):
                client.call("SET", "{06S}%d" % i, "v")
            with target.connect() as other:
                self.eventually(lambda: other.call("CLUSTER", "COUNTKEYSINSLOT", "0") == 20, "the keys")
                other.call("SET", "{4oi}own", "v")
                other.call("SAVE")
            target.process.kill()
            target.process.wait()
            target.start()
            self.assertEqual(self.ended(source)["state"], "failed")
            with target.connect() as other:
                self.eventually(lambda: other.call("CLUSTER", "COUNTKEYSINSLOT", "0") == 0, "the deletion of what came")
                self.assertEqual(other.call("DBSIZE"), 1)
                self.assertNotIn("[0-", other.call("CLUSTER", "NODES"))
                self.assertEqual([job["state"] for job in jobs(other)], ["failed"])
            self.assertEqual(client.call("CLUSTER", "COUNTKEYSINSLOT", "0"), 20)

    def flagged(self, server, letter):
        with server.connect() as client:
            listed = [dict(field.split("=", 1) for field in line.split()) for line in client.call("CLIENT", "LIST").splitlines()]
        return [each for each in listed if letter in each["flags"]]

    def test_clients_that_slots_move_by(self):
        """CLIENT LIST shows them at both ends, as Valkey does, and CLIENT KILL ends the migration."""
        for products in ((PRODUCTS[0],) * 2, PRODUCTS, PRODUCTS[::-1]):
            source, target = self.begin_slowly(*products)
            seen = [[len(self.flagged(server, letter)) for letter in "Ei"] for server in (source, target)]
            self.assertEqual(seen, [[1, 0], [0, 1]])
            with source.connect() as client:
                self.assertEqual(client.call("CLIENT", "KILL", "ID", self.flagged(source, "E")[0]["id"]), 1)
            for server, state in ((source, "failed"), (target, "failed")):
                self.assertEqual(self.ended(server)["state"], state)
            self.eventually(lambda: not self.flagged(source, "E") and not self.flagged(target, "i"), "the end of the clients")
            self.check_nothing_came(source, target)

    def test_the_target_is_killed(self):
        source, target = self.begin_slowly(PRODUCTS[0], PRODUCTS[0])
        self.kill(target)
        self.assertEqual([self.ended(source)[field] for field in ("state", "message")],
                         ["failed", "Connection lost to target. Check CLUSTER GETSLOTMIGRATIONS on the target node for more information."])

    def test_replicas_of_the_target(self):
        """They hide what is imported, have it when it is served, and drop what came in vain."""
        for own, emulation in (({"emulate": "valkey 9.1"}, "valkey"), ({}, "own")):
            source, target = self.nodes_of((None, own), (None, own))
            replica = self.add_replica(target, cluster_databases="4", **own)
            with source.connect() as client, replica.connect() as reader:
                reader.call("READONLY")
                for i in range(20):
                    client.call("SET", "{06S}%d" % i, "v")
                client.call("CONFIG", "SET", "rdb-key-save-delay", "100000")
                client.call("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", "0", "0", "NODE", self.identity(target))
                with target.connect() as other:
                    self.eventually(lambda: [job["state"] for job in jobs(other)] == ["receiving-snapshot"], "the snapshot")
                if emulation == "valkey":
                    self.eventually(lambda: [job["state"] for job in jobs(reader)] == ["occurring-on-primary"], "the replica's job")
                self.assertEqual((reader.call("DBSIZE"), reader.call("KEYS", "*")), (0, []))
                client.call("CLUSTER", "CANCELSLOTMIGRATIONS")
                self.ended(target)
                if emulation == "valkey":
                    self.eventually(lambda: jobs(reader)[0]["state"] == "failed", "the replica's job")
                client.call("CONFIG", "SET", "rdb-key-save-delay", "0")
                self.eventually(lambda: not client.call("INFO", "persistence").count("rdb_bgsave_in_progress:1"), "the child's end")
                client.call("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", "0", "0", "NODE", self.identity(target))
                self.assertEqual(self.ended(target, 2)["state"], "success")
                self.eventually(lambda: reader.call("DBSIZE") == 20, "the replica's keys")

    def test_a_replica_takes_the_targets_place(self):
        """The import has failed then, at both of them, and the former master follows with the keys that its successor has."""
        source, target = self.nodes_of(PRODUCTS[0], PRODUCTS[0])
        replica = self.add_replica(target, cluster_databases="4", emulate="valkey 9.1")
        with source.connect() as client, target.connect() as former, replica.connect() as successor:
            # A replica that does not understand its master ends.
            former.call("CONFIG", "SET", "propagation-error-behavior", "panic")
            for i in range(20):
                client.call("SET", "{06S}%d" % i, "v")
            client.call("DEBUG", "SLOTMIGRATION", "PREVENT-PAUSE", "1")
            client.call("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", "0", "0", "NODE", self.identity(target))
            self.eventually(lambda: [job["state"] for job in jobs(client)] == ["waiting-to-pause"], "the end of the snapshot")
            self.eventually(lambda: successor.call("CLUSTER", "COUNTKEYSINSLOT", "0") == 20, "the replica's keys")
            successor.call("CLUSTER", "FAILOVER")
            for server in (source, target, replica):
                self.assertEqual(self.ended(server)["state"], "failed")
            self.eventually(lambda: self.link_is_up(target), "the former master's link")
            self.eventually(lambda: [each.call("CLUSTER", "COUNTKEYSINSLOT", "0") for each in (client, former, successor)] == [20, 0, 0],
                            "the deletion of what came")
            self.assertEqual(former.call("INFO", "replication").count("role:slave"), 1)

    def test_replicas_of_the_source(self):
        """They are told in words of their release that the keys have gone, and so is the append-only file."""
        for own, program, replica_options in (({"emulate": "valkey 9.1"}, None, {"emulate": "valkey 9.1"}),
                                              ({"emulate": "valkey 9.1"}, VALKEY, {}), ({}, None, {})):
            source, target = self.nodes_of((None, {"appendonly": "yes", **own}), (None, own))
            # A replica that does not understand its master ends, rather than to go on with other data.
            replica = self.add_replica(source, program=program, cluster_databases="4", propagation_error_behavior="panic", **replica_options)
            with source.connect() as client, replica.connect() as reader:
                reader.call("READONLY")
                for i in range(20):
                    client.call("SET", "{06S}%d" % i, "v")
                client.call("SET", "{Qi}stays", "v")
                self.eventually(lambda: reader.call("DBSIZE") == 21, "the replica's keys")
                client.call("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", "0", "0", "NODE", self.identity(target))
                self.assertEqual(self.ended(source)["state"], "success")
                self.eventually(lambda: reader.call("DBSIZE") == 1 and client.call("DBSIZE") == 1, "the deletion of what has gone")
                self.eventually(lambda: reader.call("CLUSTER", "COUNTKEYSINSLOT", "0") == 0, "the same by slots")
                client.call("DEBUG", "LOADAOF")
                self.assertEqual((client.call("DBSIZE"), client.call("CLUSTER", "COUNTKEYSINSLOT", "0")), (1, 0))
                self.assertTrue(self.link_is_up(replica))

    def test_a_replica_that_comes_in_the_middle_knows_what_is_imported(self):
        """The dataset that it gets tells it, in Valkey's form: from each product to each."""
        for target_kind, (replica_program, replica_options) in ((PRODUCTS[0], PRODUCTS[0]), (PRODUCTS[0], PRODUCTS[1]), (PRODUCTS[1], PRODUCTS[0])):
            source, target = self.nodes_of(PRODUCTS[1], target_kind)
            with source.connect() as client, target.connect() as other:
                for i in range(20):
                    client.call("SET", "{06S}%d" % i, "v")
                other.call("DEBUG", "SLOTMIGRATION", "PREVENT-FAILOVER", "1")
                client.call("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", "0", "0", "NODE", self.identity(target))
                self.eventually(lambda: [job["state"] for job in jobs(other)] == ["failover-granted"], "the grant")
                replica = self.add_replica(target, program=replica_program, cluster_databases="4", **replica_options)
                with replica.connect() as reader:
                    reader.call("READONLY")
                    self.assertEqual([job["state"] for job in jobs(reader)], ["occurring-on-primary"])
                    self.assertEqual([job["name"] for job in jobs(reader)], [job["name"] for job in jobs(other)])
                    self.assertEqual(reader.call("KEYS", "*"), [])
                    other.call("DEBUG", "SLOTMIGRATION", "PREVENT-FAILOVER", "0")
                    self.eventually(lambda: jobs(reader)[0]["state"] == "success", "the replica's job")
                    self.eventually(lambda: len(reader.call("KEYS", "*")) == 20, "the replica's keys")

    def test_a_replica_of_valkey_follows_its_imports(self):
        source, target = self.nodes_of(PRODUCTS[1], PRODUCTS[1])
        replica = self.add_replica(target, cluster_databases="4", emulate="valkey 9.1")
        with source.connect() as client, replica.connect() as reader:
            reader.call("READONLY")
            for i in range(20):
                client.call("SET", "{06S}%d" % i, "v")
            client.call("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", "0", "0", "NODE", self.identity(target))
            self.assertEqual(self.ended(target)["state"], "success")
            self.eventually(lambda: reader.call("DBSIZE") == 20, "the replica's keys")
            self.assertEqual([job["state"] for job in jobs(reader)], ["success"])



@needs_valkey
class Leaving(ClusterTestCase):
    """A master that shuts down hands over to a replica first, its own or Valkey's, and one of Valkey's to ours."""

    def nodes_of(self, master, replica):
        programs = ((None, {"emulate": "valkey 9.1"}), (None, {"emulate": "valkey 9.1"}), master, replica)
        self.servers = []
        for program, own in programs:
            server = harness.Server(program, cluster_enabled="yes", cluster_node_timeout=30_000, repl_diskless_sync_delay=0, **own)
            self.addCleanup(server.stop)
            self.servers.append(server)
        self.create(self.servers[:3])
        self.cluster("add-node", self.place(self.servers[3]), self.place(self.servers[0]))
        # A master of Valkey's hands over to a replica whose node it knew when the link was made.
        self.wait_until_up(self.servers)
        with self.servers[3].connect() as client:
            client.call("CLUSTER", "REPLICATE", self.identity(self.servers[2]))
        self.eventually(lambda: self.link_is_up(self.servers[3]), "the link")
        return self.servers

    def check(self, master, replica, how):
        _, other, leaving, successor = self.nodes_of(master, replica)
        name = self.identity(successor)
        with leaving.connect() as client:
            client.call("SET", "foo", "bar")  # in slot 12182
            if how == "signal":
                client.call("CONFIG", "SET", "shutdown-on-sigterm", "failover")
                leaving.process.terminate()
            else:
                client.send("SHUTDOWN", "NOSAVE", "FAILOVER")
            leaving.process.wait(timeout=60)
        # Long before anybody could have missed the master.
        self.eventually(lambda: self.role(successor) == "master", "the handing over")
        with other.connect() as client:
            self.eventually(lambda: any(name in str(entry) for entry in client.call("CLUSTER", "SLOTS")), "the new owner")
        with successor.connect() as client:
            self.assertEqual(client.call("GET", "foo"), "bar")

    def test_by_request(self):
        self.check(PRODUCTS[0], PRODUCTS[0], "request")

    def test_by_signal(self):
        self.check(PRODUCTS[0], PRODUCTS[0], "signal")

    def test_to_valkey(self):
        self.check(PRODUCTS[0], PRODUCTS[1], "request")

    def test_from_valkey(self):
        self.check(PRODUCTS[1], PRODUCTS[0], "request")

    def test_nobody_is_there(self):
        *_, leaving, successor = self.nodes_of(PRODUCTS[0], PRODUCTS[0])
        os.kill(successor.process.pid, signal.SIGSTOP)
        try:
            with leaving.connect() as client:
                client.call("CONFIG", "SET", "shutdown-timeout", "0")
                client.call("SET", "foo", "bar")
                client.send("SHUTDOWN", "NOSAVE", "FAILOVER")
                leaving.process.wait(timeout=60)
        finally:
            os.kill(successor.process.pid, signal.SIGCONT)
        self.assertIn("Unable to find a replica to perform the auto failover on shutdown", leaving.log())


if __name__ == "__main__":
    unittest.main()

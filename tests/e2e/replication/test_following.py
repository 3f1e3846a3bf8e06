"""This server as a replica: of the reference, of its own kind, in chains, promoted and started again, under load."""

import os
import random
import signal
import socket
import threading
import time
import unittest

import harness
import test_replicas


class Network(harness.ServerTestCase):
    """Servers that follow one another. `self.server` is there because all tests have one; it takes no part."""

    def start(self, program=None, of=None, **options):
        options.setdefault("repl_diskless_sync_delay", "0")
        if of is not None:
            options["replicaof"] = ["127.0.0.1", of.port]
        server = harness.Server(program and harness.reference(program), enable_debug_command="yes", **options)
        self.addCleanup(server.stop)
        return server

    def figures(self, server, section="replication"):
        with server.connect() as client:
            client.send("INFO", section)
            text = client.read()
        return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)

    def call(self, server, *words):
        with server.connect() as client:
            return client.call(*words)

    def logs(self, *servers):
        return "\n".join(server.log() for server in servers)

    def is_up(self, server):
        return self.figures(server)["master_link_status"] == "up"

    def expect_up(self, *replicas):
        for replica in replicas:
            self.eventually(lambda: self.is_up(replica), 60)

    def expect_equal(self, master, *replicas):
        """Once nobody writes any more, and what was to expire has expired."""
        self.expect_up(*replicas)
        time.sleep(0.3)
        for replica in replicas:
            self.eventually(lambda: self.figures(replica)["master_repl_offset"] == self.figures(master)["master_repl_offset"], 60)
            try:
                # The reference takes its time to remove what has expired.
                self.eventually(lambda: self.call(replica, "DEBUG", "DIGEST") == self.call(master, "DEBUG", "DIGEST"))
            except AssertionError:
                with replica.connect() as ours, master.connect() as theirs:
                    self.fail("differ: " + ", ".join(test_replicas.FollowedServer.different(ours, theirs)))
        self.assertNotEqual(self.call(master, "DEBUG", "DIGEST"), "0" * 40)

    def end(self, server):
        """In good order; it may be started again."""
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(harness.START_TIMEOUT_S)

    def load(self, server, seed, requests=4000):
        with server.connect() as client:
            test_replicas.Load(seed).run(client, requests)

    def in_background(self, server, seed, requests=4000):
        thread = threading.Thread(target=self.load, args=(server, seed, requests))
        thread.start()
        self.addCleanup(thread.join)
        return thread

    def syncs(self, server):
        stats = self.figures(server, "stats")
        return int(stats["sync_full"]), int(stats["sync_partial_ok"])


class Following(Network):
    def check(self, program=None, master_options=None, **options):
        master = self.start(program, **(master_options or {}))
        self.load(master, 1, 2000)
        self.call(master, "DEBUG", "POPULATE", "20000", "filler", "100")
        threads = [self.in_background(master, 2), self.in_background(master, 3)]
        replica = self.start(of=master, **options)
        self.expect_up(replica)
        threads.append(self.in_background(master, 4))
        for thread in threads:
            thread.join()
        self.expect_equal(master, replica)
        return master, replica

    def test_a_dataset_that_comes_by_pipe_and_what_follows(self):
        self.check()

    def test_a_dataset_that_comes_by_the_link_itself_and_what_follows(self):
        master, replica = self.check(repl_rdb_channel="no")
        log = self.logs(master)
        self.assertNotIn("rdb-channel", log)
        self.assertLess(log.index("done reading from pipe, 1 replicas still up"),
                        log.index("Background RDB transfer terminated with success"))

    def test_the_stream_is_kept_while_the_dataset_is_loaded(self):
        master = self.start()
        self.call(master, "DEBUG", "POPULATE", "3000", "filler", "100")
        replica = self.start(of=master, key_load_delay="300", loading_process_events_interval_bytes="1024")
        self.eventually(lambda: self.figures(replica, "persistence")["loading"] == "1")
        self.load(master, 1, 1000)
        self.expect_equal(master, replica)
        self.assertGreater(int(self.figures(replica)["replica_full_sync_buffer_peak"]), 0)
        self.assertEqual(self.figures(replica)["replica_full_sync_buffer_size"], "0")

    def test_a_replica_that_is_to_end_does_not_load_to_the_end(self):
        master = self.start()
        self.call(master, "DEBUG", "POPULATE", "3000", "filler", "100")
        for way in ("disabled", "swapdb"):
            with self.subTest(repl_diskless_load=way):
                replica = self.start(of=master, key_load_delay="100000", loading_process_events_interval_bytes="1024",
                                     repl_diskless_load=way)
                self.eventually(lambda: self.figures(replica, "persistence")["loading"] == "1")
                self.end(replica)
                self.assertEqual(replica.process.returncode, 0)
                self.assertIn("Redis is now ready to exit", self.logs(replica))
                self.assertNotIn("Finished with success", self.logs(replica))

    def test_more_of_the_stream_than_may_be_kept_waits_with_the_master(self):
        master = self.start()
        self.call(master, "DEBUG", "POPULATE", "3000", "filler", "100")
        replica = self.start(of=master, key_load_delay="300", loading_process_events_interval_bytes="1024",
                             replica_full_sync_buffer_limit="4096")
        self.eventually(lambda: self.figures(replica, "persistence")["loading"] == "1")
        self.load(master, 1, 1000)
        self.expect_equal(master, replica)
        self.assertIn("Replication buffer limit has been reached", self.logs(replica))
        self.assertEqual(self.syncs(master), (1, 0))

    def test_a_dataset_that_comes_from_disk_and_what_follows(self):
        self.check(master_options={"repl_diskless_sync": "no"})

    def test_a_dataset_is_loaded_from_the_socket_beside_the_one_there_is(self):
        self.check(repl_diskless_load="swapdb")

    def test_a_dataset_is_loaded_from_the_socket_into_an_empty_server(self):
        self.check(repl_diskless_load="on-empty-db", master_options={"repl_diskless_sync": "no"})

    def check_break(self, **options):
        """A full synchronisation that breaks off is begun anew at once, not by the attempts of each second."""
        master = self.start(rdb_key_save_delay="200")
        self.call(master, "DEBUG", "POPULATE", "20000", "filler", "100")
        replica = self.start(of=master, **options)
        self.eventually(lambda: "receiving streamed RDB" in self.logs(replica))
        time.sleep(0.1)
        self.call(master, "CLIENT", "KILL", "TYPE", "replica")
        self.call(master, "CONFIG", "SET", "rdb-key-save-delay", "0")
        self.eventually(lambda: "Reconnecting to MASTER 127.0.0.1:%d after failure" % master.port in self.logs(replica))
        self.expect_equal(master, replica)
        self.assertEqual(self.logs(replica).count("Connecting to MASTER"), 1)

    def test_a_dataset_that_breaks_off_on_its_way_to_disk(self):
        self.check_break(repl_diskless_load="disabled")

    def test_a_dataset_that_breaks_off_while_it_is_loaded(self):
        self.check_break(repl_diskless_load="flushdb")

    def test_a_dataset_that_breaks_off_while_it_is_loaded_beside_the_former(self):
        self.check_break(repl_diskless_load="swapdb", repl_rdb_channel="no")

    def test_broken_links_are_taken_up_where_they_were(self):
        master, replica = self.check()
        for seed in range(3):
            self.eventually(lambda: self.figures(master)["connected_slaves"] == "1")
            thread = self.in_background(master, seed, 1000)
            self.call(replica if seed else master, "CLIENT", "KILL", "TYPE", "master" if seed else "replica")
            thread.join()
        self.expect_equal(master, replica)
        self.assertEqual(self.syncs(master), (1, 3))

    def test_the_append_only_file_of_a_replica_holds_what_came(self):
        master, replica = self.check(appendonly="yes")
        self.call(replica, "REPLICAOF", "NO", "ONE")
        digest = self.call(replica, "DEBUG", "DIGEST")
        self.end(replica)
        del replica.options["replicaof"]
        replica.start()
        # It tells its digest while it loads, too.
        self.eventually(lambda: self.figures(replica, "persistence")["loading"] == "0")
        self.assertEqual(self.call(replica, "DEBUG", "DIGEST"), digest)

    def test_a_replica_that_has_saved_goes_on_where_it_was_when_it_is_back(self):
        master, replica = self.check(save=["3600", "1"])
        self.end(replica)
        self.load(master, 5, 1000)
        replica.start()
        self.expect_equal(master, replica)
        self.assertEqual(self.syncs(master), (1, 1))

    def test_replicas_go_on_with_a_master_that_has_saved_and_is_back(self):
        master, replica = self.check(master_options={"save": ["3600", "1"]})
        self.end(master)
        master.start()
        self.load(master, 5, 1000)
        self.expect_equal(master, replica)
        self.assertEqual(self.syncs(master), (0, 1))


@harness.needs_reference
class Rates(Network):
    def test_both_sides_tell_how_much_replication_takes(self):
        master = self.start()
        replica = self.start(of=master)
        self.expect_up(replica)

        def rate(server, direction):
            return float(self.figures(server, "stats")["instantaneous_%s_repl_kbps" % direction])

        self.eventually(lambda: rate(master, "output") == 0 and rate(replica, "input") == 0)
        value = "x" * 100_000
        with master.connect() as client:
            def written(moves):
                client.call("SET", "key", value)
                return moves()
            self.eventually(lambda: written(lambda: rate(master, "output") > 10 and rate(replica, "input") > 10))
        self.assertEqual((rate(master, "input"), rate(replica, "output") < 10), (0, True))


class FollowingTheReference(Following):
    def check(self, program=None, master_options=None, **options):
        return super().check("redis-server", master_options, **options)


class Chains(Network):
    def chain(self, *programs):
        servers = []
        for program in programs:
            servers.append(self.start(program, of=servers[-1] if servers else None))
        self.expect_up(*servers[1:])
        return servers

    def check_promotion(self, *programs):
        """The second of the chain becomes the master; the first and the third follow it without a new dataset."""
        first, second, third = servers = self.chain(*programs)
        self.load(first, 1)
        self.expect_equal(first, second, third)
        thread = self.in_background(first, 2, 1000)
        thread.join()
        self.expect_equal(first, second, third)
        for server in servers:
            self.call(server, "CONFIG", "RESETSTAT")
        self.call(second, "REPLICAOF", "NO", "ONE")
        self.call(first, "REPLICAOF", "127.0.0.1", second.port)
        self.load(second, 3)
        self.expect_equal(second, first, third)
        self.assertEqual(self.syncs(second), (0, 2), self.logs(first, second))

    def test_a_chain_stays_equal_under_load(self):
        first, second, third = self.chain(None, None, None)
        threads = [self.in_background(first, seed) for seed in (1, 2)]
        for thread in threads:
            thread.join()
        self.expect_equal(first, second, third)

    def test_a_middle_that_loses_its_master_for_a_while_takes_the_others_along(self):
        first, second, third = self.chain(None, None, None)
        thread = self.in_background(first, 1)
        for _ in range(3):
            self.call(second, "CLIENT", "KILL", "TYPE", "master")
            self.expect_up(second)
        thread.join()
        self.expect_equal(first, second, third)
        self.assertEqual(self.syncs(second)[0], 1)

    def test_the_middle_of_a_chain_is_promoted(self):
        self.check_promotion(None, None, None)

    @harness.needs_reference
    def test_the_middle_of_a_mixed_chain_is_promoted(self):
        self.check_promotion("redis-server", None, "redis-server")
        self.check_promotion(None, "redis-server", None)


class Failover(Network):
    def check(self, *programs):
        """The first hands over to the second, and writes that were under way are not lost."""
        first = self.start(programs[0])
        others = [self.start(program, of=first) for program in programs[1:]]
        self.load(first, 1, 500)
        self.expect_equal(first, *others)
        for server in others:
            self.call(server, "CONFIG", "RESETSTAT")
        second, third = others
        self.call(first, "SET", "last", "write")
        self.assertEqual(self.call(first, "FAILOVER", "TO", "127.0.0.1", str(second.port)), "OK")
        self.eventually(lambda: self.figures(first)["master_failover_state"] == "no-failover")
        self.assertEqual(self.figures(first)["role"], "slave", self.logs(first))
        self.assertEqual(self.figures(second)["role"], "master", self.logs(second))
        self.assertEqual(self.call(second, "GET", "last"), "write")
        self.call(third, "REPLICAOF", "127.0.0.1", second.port)
        self.load(second, 3, 1000)
        self.expect_equal(second, first, third)
        self.assertEqual(self.syncs(second), (0, 2), self.logs(first, second))

    def test_a_master_hands_over_to_a_replica(self):
        self.check(None, None, None)

    @harness.needs_reference
    def test_mixed_servers_hand_over_to_one_another(self):
        self.check("redis-server", None, "redis-server")
        self.check(None, "redis-server", None)


class BadMasters(Network):
    """A server that follows what is no master, or a bad one, stays well."""

    def follow(self, answer, **options):
        """Has a server follow one that answers each connection by `answer(socket)`, until it is told to stop."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)

        def serve():
            while True:
                try:
                    peer, _ = listener.accept()
                except OSError:
                    return
                with peer:
                    peer.settimeout(5)
                    try:
                        answer(peer)
                    except OSError:
                        pass

        threading.Thread(target=serve, daemon=True).start()
        replica = self.start(**options)
        self.call(replica, "REPLICAOF", "127.0.0.1", listener.getsockname()[1])
        return replica

    @staticmethod
    def shake_hands(peer):
        peer.recv(1000)
        peer.sendall(b"+PONG\r\n")
        peer.recv(1000)
        peer.sendall(b"+OK\r\n+OK\r\n")
        peer.recv(1000)

    def expect_well(self, replica, seconds=2.5):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.assertEqual(self.call(replica, "ECHO", "well"), "well")
            time.sleep(0.1)
        self.call(replica, "REPLICAOF", "NO", "ONE")
        self.assertEqual(self.call(replica, "SET", "key", "value"), "OK")

    def test_one_that_sends_noise(self):
        chance = random.Random(1)
        self.expect_well(self.follow(lambda peer: peer.sendall(chance.randbytes(chance.choice((1, 100, 100_000))))))

    def test_one_that_hangs_up_in_the_middle_of_the_dataset(self):
        def answer(peer):
            self.shake_hands(peer)
            peer.sendall(b"+FULLRESYNC " + b"a" * 40 + b" 1\r\n$1000000\r\nREDIS0012")

        self.expect_well(self.follow(answer))

    def test_one_whose_dataset_is_noise(self):
        chance = random.Random(2)

        def answer(peer):
            self.shake_hands(peer)
            noise = b"REDIS0012" + chance.randbytes(5000)
            peer.sendall(b"+FULLRESYNC " + b"a" * 40 + b" 1\r\n$%d\r\n" % len(noise) + noise)
            peer.recv(1000)

        for load in ("disabled", "swapdb"):
            replica = self.follow(answer)
            self.call(replica, "CONFIG", "SET", "repl-diskless-load", load)
            # Until one is read there may be something of it.
            self.eventually(lambda: "Failed trying to load the MASTER synchronization DB" in replica.log(), 20)
            self.expect_well_after_loading(replica)

    def expect_well_after_loading(self, replica):
        def promoted():
            with replica.connect() as client:
                client.send("REPLICAOF", "NO", "ONE")
                return client.read() == "OK"

        self.eventually(promoted, 20)
        self.assertEqual(self.call(replica, "SET", "key", "value"), "OK")

    def test_one_that_sends_the_end_of_the_dataset_late(self):
        """The replica has read the dataset then, and waits for the mark alone."""
        mark = b"m" * 40
        # So that the replica looks after its clients once more while it reads the mark.
        source = self.start()
        self.call(source, "MSET", *(word for i in range(3000) for word in ("name:%d" % i, "value")))
        dataset = b""
        while len(dataset) % 1024 < 1000:
            self.call(source, "APPEND", "padding", os.urandom(8).hex())
            dataset = self.saved(source)

        def answer(peer):
            self.shake_hands(peer)
            peer.sendall(b"+FULLRESYNC " + b"a" * 40 + b" 1\r\n$EOF:" + mark + b"\r\n" + dataset)
            time.sleep(0.5)
            for i in range(len(mark)):
                peer.sendall(mark[i:i + 1])
                time.sleep(0.005)
            peer.recv(1000)

        for load in ("swapdb", "on-empty-db"):
            with self.subTest(load):
                replica = self.follow(answer, repl_diskless_load=load, loading_process_events_interval_bytes="1024")
                self.eventually(lambda: self.reply(replica, "DBSIZE") == 3001, 20)
                self.expect_well_after_loading(replica)

    def reply(self, server, *words):
        with server.connect() as client:
            client.send(*words)
            return client.read()

    def test_one_whose_stream_is_noise(self):
        chance = random.Random(3)
        dataset = self.dataset()

        def answer(peer):
            self.shake_hands(peer)
            peer.sendall(b"+FULLRESYNC " + b"a" * 40 + b" 1\r\n$%d\r\n" % len(dataset) + dataset)
            peer.sendall(harness.encode("SET", "a", "b") + b"*" + chance.randbytes(3000))
            peer.recv(1000)

        replica = self.follow(answer)
        self.eventually(lambda: "Connection with master lost" in replica.log(), 20)
        self.expect_well_after_loading(replica)

    def dataset(self):
        source = self.start()
        self.call(source, "SET", "name", "value")
        return self.saved(source)

    def saved(self, source):
        self.call(source, "SAVE")
        with open(source.directory + "/dump.rdb", "rb") as file:
            return file.read()


if __name__ == "__main__":
    unittest.main()

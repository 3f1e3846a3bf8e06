"""Valkey's dual channel replication: this server as replica and as master of Valkey 8.1, of 9.1, and of its own kind."""

import os
import re
import time
import unittest

import harness
import test_following
import test_replicas

REFERENCE = harness.reference("redis-server")


def valkey(version):
    return REFERENCE and os.path.join(os.path.dirname(REFERENCE), "valkey-server-" + version)


def has(*versions):
    there = REFERENCE and all(os.path.isfile(valkey(version)) for version in versions)
    return unittest.skipUnless(there, "scripts/reference has not brought Valkey")


class Load(test_replicas.Load):
    def hashes(self):
        """Without deadlines of fields, which are not written in the way of Valkey 9."""
        key = self.key("hash")
        return self.choose(("HSET", key, self.number(), self.value()), ("HDEL", key, self.number()), ("HINCRBY", key, "n", "3"))


class DualChannel(test_following.Network):
    def load(self, server, seed, requests=4000):
        with server.connect() as client:
            Load(seed).run(client, requests)

    def launch(self, program, of=None, **options):
        """`program`: "8.1" or "rival" of Valkey itself, "own" for this server, or what it is to emulate."""
        if of is not None:
            options["replicaof"] = ["127.0.0.1", of.port]
        options.setdefault("repl_diskless_sync_delay", "0")
        path = None
        if program in ("8.1", "rival"):
            path = valkey(program)
        elif program != "own":
            options["emulate"] = program.split()
        server = harness.Server(path, enable_debug_command="yes", dual_channel_replication_enabled="yes", **options)
        self.addCleanup(server.stop)
        return server

    def expect_dual(self, master, full=1, partial=1):
        self.assertEqual(self.syncs(master), (full, partial))
        # The channel goes when the replica has loaded what it brought.
        self.eventually(lambda: self.figures(master)["connected_slaves"] == "1")

    def check(self, of, by, **replica_options):
        master = self.launch(of)
        self.load(master, 1, 1000)
        self.call(master, "DEBUG", "POPULATE", "20000", "filler", "100")
        threads = [self.in_background(master, 2, 2000), self.in_background(master, 3, 2000)]
        replica = self.launch(by, of=master, **replica_options)
        self.expect_up(replica)
        threads.append(self.in_background(master, 4, 1000))
        for thread in threads:
            thread.join()
        self.expect_equal(master, replica)
        self.expect_dual(master)
        return master, replica

    def connections(self, master):
        """Those of replicas that are synchronising, by the command they came with."""
        listed = self.call(master, "CLIENT", "LIST")
        return {m[2]: m[1] for m in re.finditer(r"^id=(\d+) .* cmd=(psync|sync) ", listed, re.M)}

    def check_loss(self, of, by, command):
        """One of both connections is closed while the dataset is sent: all is begun anew."""
        master = self.launch(of)
        self.load(master, 1, 500)
        self.call(master, "DEBUG", "POPULATE", "3000", "filler", "100")
        self.call(master, "CONFIG", "SET", "rdb-key-save-delay", "10000")
        replica = self.launch(by, of=master)
        self.eventually(lambda: self.connections(master).keys() >= {"psync", "sync"} and self.syncs(master)[1] == 1)
        self.load(master, 2, 200)
        self.call(master, "CONFIG", "SET", "rdb-key-save-delay", "0")
        self.call(master, "CLIENT", "KILL", "ID", self.connections(master)[command])
        self.load(master, 3, 500)
        self.expect_equal(master, replica)
        self.expect_dual(master, 2, 2)


@has("8.1", "rival")
class BesideValkey(DualChannel):
    def test_valkey_81_follows(self):
        self.check("valkey 8.1", "8.1")

    def test_valkey_91_follows(self):
        self.check("valkey 9.1", "rival")

    def test_valkey_81_is_followed(self):
        self.check("8.1", "valkey 8.1")

    def test_valkey_91_is_followed(self):
        self.check("rival", "valkey 9.1")

    def test_valkey_is_followed_by_latchkey_as_it_is(self):
        self.check("8.1", "own")

    def test_a_dataset_that_is_loaded_from_the_socket(self):
        self.check("8.1", "valkey 8.1", repl_diskless_load="swapdb")
        self.check("valkey 8.1", "8.1", repl_diskless_load="swapdb")

    def test_the_stream_is_lost_midway(self):
        self.check_loss("valkey 8.1", "8.1", "psync")
        self.check_loss("8.1", "valkey 8.1", "psync")

    def test_the_dataset_is_lost_midway(self):
        self.check_loss("valkey 8.1", "8.1", "sync")
        self.check_loss("8.1", "valkey 8.1", "sync")

    def test_the_dataset_is_there_before_the_stream(self):
        """The master stops itself when its child has begun, which sends the dataset all the same."""
        for of, by in (("8.1", "valkey 8.1"), ("valkey 8.1", "8.1"), ("valkey 8.1", "valkey 8.1")):
            with self.subTest(master=of, replica=by):
                master = self.launch(of)
                self.load(master, 1, 500)
                self.call(master, "DEBUG", "PAUSE-AFTER-FORK", "1")
                replica = self.launch(by, of=master, loglevel="debug")
                self.eventually(lambda: "Done loading RDB" in self.logs(replica))
                os.kill(master.process.pid, 18)
                self.expect_equal(master, replica)
                self.assertIn("Psync established after rdb load", self.logs(replica))
                self.expect_dual(master)


class OwnKind(DualChannel):
    def test_two_that_emulate_valkey(self):
        self.check("valkey 8.1", "valkey 9.1")

    def test_two_that_emulate_nothing_use_the_other_form(self):
        master = self.launch("own")
        self.load(master, 1, 500)
        replica = self.launch("own", of=master)
        self.expect_equal(master, replica)
        self.assertEqual(self.syncs(master), (1, 0))
        self.assertIn("replicas sockets (rdb-channel)", self.logs(master))

    def test_the_stream_is_lost_midway(self):
        self.check_loss("valkey 8.1", "valkey 8.1", "psync")

    def test_the_dataset_is_lost_midway(self):
        self.check_loss("valkey 8.1", "valkey 8.1", "sync")

    def test_several_replicas_share_a_snapshot(self):
        master = self.launch("valkey 8.1", repl_diskless_sync_delay="2")
        self.load(master, 1, 500)
        replicas = [self.launch("valkey 8.1", of=master) for _ in range(3)]
        self.load(master, 2, 500)
        self.expect_equal(master, *replicas)
        self.assertEqual(self.figures(master, "stats")["total_forks"], "1")
        self.assertEqual(self.syncs(master), (3, 3))


class Replica:
    """Plays a replica by hand."""

    def __init__(self, test, master):
        self.test = test
        self.master = master
        self.main = self.connect()
        self.main.call("REPLCONF", "capa", "eof", "capa", "psync2", "capa", "dual-channel")

    def connect(self):
        client = self.master.connect()
        self.test.addCleanup(client.close)
        return client

    def begin(self):
        self.test.assertEqual(self.main.call("PSYNC", "?", "-1"), "DUALCHANNELSYNC")
        self.channel = self.connect()
        self.channel.call("REPLCONF", "capa", "eof", "rdb-only", "1", "rdb-channel", "1")
        self.channel.send("SYNC")
        line = self.channel._line().lstrip(b"\n").decode()
        offset, self.id, _, self.number = line.removeprefix("$ENDOFF:").split()
        self.offset = int(offset)

    def receive(self):
        line = self.channel._line()
        mark = line[len("$EOF:"):]
        self.test.assertTrue(line.startswith(b"$EOF:"), line)
        while not self.channel._buffer.endswith(mark):
            self.channel._fill()
        return self.channel._take(len(self.channel._buffer))[: -len(mark)]

    def join(self):
        self.main.call("REPLCONF", "set-rdb-client-id", self.number)
        return self.main.call("PSYNC", self.id, str(self.offset + 1))


class Hold(DualChannel):
    """What a master holds for a replica that has yet to ask for the stream."""

    def setUp(self):
        self.master = self.launch("valkey 8.1", repl_backlog_size="16384", hz="100")
        self.replica = Replica(self, self.master)
        self.call(self.master, "SET", "before", "1")

    def waiting(self):
        return self.figures(self.master)["replicas_waiting_psync"]

    def test_the_stream_is_held_beyond_the_backlog_and_the_end_of_the_channel(self):
        self.replica.begin()
        self.assertTrue(self.replica.receive().startswith(b"REDIS"))
        self.replica.channel.close()
        for i in range(200):
            self.call(self.master, "SET", "key", "x" * 1000 + str(i))
        self.assertEqual(self.waiting(), "1")
        self.assertEqual(self.replica.join(), "CONTINUE " + self.replica.id)
        words = [self.replica.main.read() for _ in range(201)]
        self.assertEqual(words[0], ["SELECT", "0"])
        self.assertEqual([word[2][1000:] for word in words[1:]], [str(i) for i in range(200)])
        self.assertEqual(self.waiting(), "0")

    def test_it_is_not_held_for_ever(self):
        self.call(self.master, "DEBUG", "DELAY-RDB-CLIENT-FREE-SECONDS", "1")
        self.replica.begin()
        self.replica.receive()
        self.replica.channel.close()
        self.eventually(lambda: self.waiting() == "0")
        self.assertIn("failed to establish PSYNC within the grace period", self.logs(self.master))
        self.assertEqual(self.replica.main.error_of("REPLCONF", "set-rdb-client-id", self.replica.number),
                         "ERR Unrecognized RDB client id " + self.replica.number)

    def test_it_is_held_up_to_the_limit_of_replicas(self):
        self.call(self.master, "CONFIG", "SET", "client-output-buffer-limit", "replica 200000 0 0")
        self.replica.begin()
        self.replica.receive()
        for i in range(300):
            self.call(self.master, "SET", "key", "x" * 1000)
        self.assertEqual(self.waiting(), "0")
        self.assertEqual(self.figures(self.master, "stats")["client_output_buffer_limit_disconnections"], "1")
        self.replica.main.send("REPLCONF", "set-rdb-client-id", self.replica.number)
        self.replica.main.read()
        # All is begun anew.
        self.assertEqual(self.replica.main.call("PSYNC", self.replica.id, str(self.replica.offset + 1)), "DUALCHANNELSYNC")

    def test_a_main_connection_that_waits_is_not_idle(self):
        self.call(self.master, "CONFIG", "SET", "timeout", "1")
        self.assertEqual(self.replica.main.call("PSYNC", "?", "-1"), "DUALCHANNELSYNC")
        time.sleep(2.5)
        self.assertTrue(self.replica.main.is_open())

    def test_who_may_join(self):
        self.replica.begin()
        stranger = self.replica.connect()
        for number in (self.replica.number, "0", "-1", "99999"):
            self.assertEqual(stranger.error_of("REPLCONF", "set-rdb-client-id", number), "ERR Unrecognized RDB client id " + number)
        self.assertEqual(stranger.error_of("REPLCONF", "set-rdb-client-id", "x"), "ERR value is not an integer or out of range")

    def test_only_those_that_know_it_offer_it(self):
        for emulated, answer in (("redis 8.6", b"+FULLRESYNC"), ("valkey 9.1", b"+DUALCHANNELSYNC"), ("no", b"+DUALCHANNELSYNC")):
            with self.subTest(emulated):
                options = {} if emulated.startswith("redis") else {"dual_channel_replication_enabled": "yes"}
                master = harness.Server(emulate=emulated.split(), repl_diskless_sync_delay="0", **options)
                self.addCleanup(master.stop)
                replica = Replica(self, master)
                replica.main.send("PSYNC", "?", "-1")
                self.assertEqual(replica.main._line().lstrip(b"\n").split()[0], answer)


if __name__ == "__main__":
    unittest.main()

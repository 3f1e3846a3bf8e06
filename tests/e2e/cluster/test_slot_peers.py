"""Nodes that move slots with a peer that lies: a source that sends what it may not, or ends too early, twice or never, and a
destination that asks for what it may not, acknowledges what it never got, and vanishes. The peer is this test, at the port that a
real node announces; both forms of migration are played, CLUSTER MIGRATION of Redis and CLUSTER MIGRATESLOTS of Valkey.

Whatever it does, the node it talks to goes on serving, the keys stay where they were, and nothing that came stays behind."""

import contextlib
import socket
import unittest

import harness
from test_slot_migration import TAGS, SlotMigrationTestCase, fields

KEY = TAGS[0] + "key"
GARBAGE = (b"\0" * 100, b"*1\r\n$-5\r\nx\r\n", b"*1\r\n$99999999999\r\n", b"*-1000000000000\r\n", b"+OK\r\n", b"SET key value\r\n", b"x" * 200_000)


class Peer:
    """A socket that listens where a node says that it can be reached."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(harness.REPLY_TIMEOUT_S)
        self.port = self.listener.getsockname()[1]

    def accept(self):
        raw = self.listener.accept()[0]
        raw.settimeout(harness.REPLY_TIMEOUT_S)
        return harness.Client(raw)

    def forget_waiting(self):
        """Closes the connections that nobody has accepted: those of an attempt that was repeated before it was cancelled."""
        self.listener.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                self.listener.accept()[0].close()
        self.listener.settimeout(harness.REPLY_TIMEOUT_S)

    def close(self):
        self.listener.close()


def syncslots(*words):
    return harness.encode("CLUSTER", "SYNCSLOTS", *words)


def say(client, data):
    """Sends bytes to a node that may close the connection because of them."""
    with contextlib.suppress(OSError):
        client.send_raw(data)


def stop_talking(client):
    """Ends what is sent to a node, which may have closed the connection by then."""
    with contextlib.suppress(OSError):
        client.socket.shutdown(socket.SHUT_WR)


class PeersTestCase(SlotMigrationTestCase):
    options = {"cluster_slot_migration_write_pause_timeout": "1000"}

    def setUp(self):
        self.first, self.second = self.pair([None, None], repl_timeout="3", **self.options)
        self.value(self.first, "SET", KEY, "value")
        self.peer = Peer()
        self.addCleanup(self.peer.close)

    def stand_in_for(self, server, seen_by):
        """From now on the other node reaches this test instead of that node."""
        self.set_option(server, "cluster-announce-port", self.peer.port)
        self.eventually(lambda: ":%d@" % self.peer.port in self.value(seen_by, "CLUSTER", "NODES"), "the port")

    def check_that_it_serves(self):
        """The source as before, and the destination without any of it."""
        self.assertEqual(self.value(self.second, "PING"), "PONG")
        self.assertEqual(self.value(self.first, "GET", KEY), "value")
        self.assertEqual(self.value(self.first, "SET", TAGS[0] + "written", "1"), "OK")
        self.eventually(lambda: "keys=" not in self.value(self.second, "INFO", "keyspace"), "the deletion")
        self.assertIn("MOVED 0 ", self.refusal(self.second, "GET", KEY))

    def refusal(self, server, *words):
        with server.connect() as client:
            return client.error_of(*words)


class SourcesOfRedis(PeersTestCase):
    """The peer is the source of a CLUSTER MIGRATION IMPORT."""

    def setUp(self):
        super().setUp()
        self.stand_in_for(self.first, seen_by=self.second)

    # What the source says to what the destination asks, by the number of requests that are answered.
    MAIN = (b"+OK\r\n", b"+OK\r\n", b"+RDBCHANNELSYNCSLOTS\r\n")
    SNAPSHOT = (b"+OK\r\n", b"+SLOTSSNAPSHOT\r\n")

    def answer(self, channel, replies):
        for reply in replies:
            channel.read()
            channel.send_raw(reply)
        return channel

    @contextlib.contextmanager
    def importing(self):
        """An import that goes on when its connections are made, and is over afterwards."""
        task = self.migrate(self.second, 0, 0)
        yield task
        self.wait_for_state(self.second, task, "failed")
        # It would be tried again.
        self.value(self.second, "CLUSTER", "MIGRATION", "CANCEL", "ALL")
        self.peer.forget_waiting()
        self.check_that_it_serves()

    @contextlib.contextmanager
    def channels(self):
        main = self.answer(self.peer.accept(), self.MAIN)
        snapshot = self.answer(self.peer.accept(), self.SNAPSHOT)
        with main, snapshot:
            yield main, snapshot

    def test_it_is_lost_at_each_step(self):
        for answers in range(len(self.MAIN) + 1):
            with self.subTest(main=answers), self.importing():
                self.answer(self.peer.accept(), self.MAIN[:answers]).close()
        for answers in range(len(self.SNAPSHOT) + 1):
            with self.subTest(snapshot=answers), self.importing():
                with self.answer(self.peer.accept(), self.MAIN):
                    self.answer(self.peer.accept(), self.SNAPSHOT[:answers]).close()

    def test_it_answers_nonsense_at_each_step(self):
        for data in (b"-ERR no\r\n", b"\r\n-ERR\r\n", b"$-1\r\n", b"x" * 100_000, b"+SLOTSSNAPSHOT\r\n", bytes(range(256)) * 300):
            for answers in range(len(self.MAIN)):
                with self.subTest(main=answers, data=data[:10]), self.importing():
                    with self.answer(self.peer.accept(), self.MAIN[:answers]) as channel:
                        say(channel, data)
                        channel.read_until_closed()
            with self.subTest(data=data[:10]), self.importing():
                with self.answer(self.peer.accept(), self.MAIN) as main, self.peer.accept() as snapshot:
                    say(snapshot, data if data != b"+SLOTSSNAPSHOT\r\n" else b"+RDBCHANNELSYNCSLOTS\r\n")
                    main.read_until_closed()

    def test_it_sends_what_it_may_not(self):
        other = TAGS[1] + "other"
        for words in (("SET", other, "1"), ("SET", "", "1"), ("MSET", KEY, "1", other, "1"), ("FLUSHALL",), ("FLUSHDB",), ("EVAL", "return 1", "0"),
                      ("CONFIG", "SET", "maxmemory", "1"), ("SHUTDOWN", "NOSAVE"), ("SELECT", "7"), ("SELECT", "x"), ("SWAPDB", "0", "1"), ("BLPOP", KEY, "0"),
                      ("SUBSCRIBE", "a"), ("PUBLISH", "a", "b"), ("REPLICAOF", "NO", "ONE"), ("CLUSTER", "FORGET", "a" * 40), ("MONITOR",), ("QUIT",),
                      ("ACL", "SETUSER", "default", "off"), ("RESTORE", KEY, "0", "nonsense"), ("FUNCTION", "FLUSH"), ("DEBUG", "SEGFAULT"),
                      ("MIGRATE", "127.0.0.1", "1", KEY, "0", "1"), ("FAULT", "ADD", "DO", "DROP"), ("CLOCK", "FREEZE"), ("SPACE", "ENTER", "x"), ("RPUSH", KEY), ("nosuch",)):
            for number in (0, 1):
                with self.subTest(" ".join(words), channel=number), self.importing(), self.channels() as channels:
                    if number == 0:
                        channels[1].send_raw(syncslots("SNAPSHOT-EOF"))
                    channels[number].send_raw(harness.encode("SET", KEY, "hostile") + harness.encode(*words))
                    channels[0].read_until_closed()
        self.assertEqual(self.value(self.second, "CONFIG", "GET", "maxmemory"), ["maxmemory", "0"])

    def test_it_ends_out_of_order(self):
        for number, data in ((0, syncslots("SNAPSHOT-EOF")), (1, syncslots("STREAM-EOF")), (1, syncslots("NOSUCH")), (1, syncslots("ACK", "x", "1")),
                             (0, syncslots("NOSUCH"))):
            with self.subTest(channel=number, data=data), self.importing(), self.channels() as channels:
                if number == 0:
                    channels[1].send_raw(syncslots("SNAPSHOT-EOF"))
                channels[number].send_raw(data)
                channels[0].read_until_closed()

    def test_it_goes_on_behind_the_ends(self):
        """What stands behind the end of the snapshot is not looked at; behind the end of the stream the slots are the destination's."""
        task = self.migrate(self.second, 0, 0)
        with self.channels() as (main, snapshot):
            snapshot.send_raw(harness.encode("SET", KEY, "hostile") + syncslots("SNAPSHOT-EOF") * 2 + harness.encode("SET", KEY, "late") + b"x" * 1000)
            main.read()
            main.send_raw(syncslots("STREAM-EOF") * 3 + harness.encode("SET", KEY, "later") + b"x" * 1000)
            main.read_until_closed()
        self.wait_for_state(self.second, task, "completed")
        self.assertEqual(self.value(self.second, "GET", KEY), "hostile")
        self.eventually(lambda: "MOVED 0 " in str(self.ask(self.first, "GET", KEY)), "the new owner")

    def ask(self, server, *words):
        with server.connect() as client:
            client.send(*words)
            return client.read()

    def test_it_sends_garbage(self):
        for data in GARBAGE:
            for number in (0, 1):
                with self.subTest(data=data[:20], channel=number), self.importing(), self.channels() as channels:
                    if number == 0:
                        channels[1].send_raw(syncslots("SNAPSHOT-EOF"))
                    say(channels[number], data)
                    # What may be the beginning of a request is waited for, with an end.
                    stop_talking(channels[number])
                    channels[0].read_until_closed()

    def test_it_never_ends(self):
        """It is given up when nothing more comes, and by request while more comes."""
        with self.subTest("silence"), self.importing(), self.channels() as channels:
            channels[1].send_raw(harness.encode("SET", KEY, "hostile"))
            channels[0].read_until_closed()
        with self.subTest("half a request"), self.importing(), self.channels() as channels:
            say(channels[1], b"*3\r\n$3\r\nSET\r\n$9\r\n" + KEY.encode() + b"\r\n$500000000\r\n" + b"x" * 5_000_000)
            channels[0].read_until_closed()
        with self.subTest("pings"):
            task = self.migrate(self.second, 0, 0)
            with self.channels() as (main, snapshot):
                for _ in range(200):
                    say(snapshot, harness.encode("PING") * 1000)
                self.assertEqual(self.value(self.second, "CLUSTER", "MIGRATION", "CANCEL", "ID", task), 1)
                main.read_until_closed()
        self.check_that_it_serves()


class DestinationsOfRedis(PeersTestCase):
    """The peer is the destination of a CLUSTER MIGRATION: it has the secret of the cluster's nodes."""

    def setUp(self):
        super().setUp()
        self.stand_in_for(self.first, seen_by=self.second)
        self.migrate(self.second, 0, 0)
        with self.peer.accept() as channel:
            self.secret = channel.read()[2]
        self.value(self.second, "CLUSTER", "MIGRATION", "CANCEL", "ALL")
        self.name = self.identity(self.second)
        self.tasks = 0

    def connect_as_node(self, name=None):
        client = self.connect(self.first)
        self.assertEqual(client.call("AUTH", "internal connection", self.secret), "OK")
        if name is not None:
            self.assertEqual(client.call("CLUSTER", "SYNCSLOTS", "CONF", "NODE-ID", name), "OK")
        return client

    def begin(self):
        """The main channel, and the task's id."""
        self.tasks += 1
        task = "%040d" % self.tasks
        main = self.connect_as_node(self.name)
        # A former task may have to end first.
        self.eventually(lambda: self.sync(main, task) == "RDBCHANNELSYNCSLOTS", "the task")
        return main, task

    def sync(self, main, task):
        main.send("CLUSTER", "SYNCSLOTS", "SYNC", task, "0", "0")
        return main.read()

    def begin_snapshot(self, task):
        snapshot = self.connect_as_node(self.name)
        self.assertEqual(snapshot.call("CLUSTER", "SYNCSLOTS", "RDBCHANNEL", task), "SLOTSSNAPSHOT")
        return snapshot

    def read_snapshot(self, snapshot):
        while snapshot.read()[-1] != "SNAPSHOT-EOF":
            pass

    def check_that_it_ends(self, task):
        self.wait_for_state(self.first, task, "failed", "canceled")
        self.eventually(lambda: self.state(self.first)["cluster_slot_migration_active_tasks"] == "0", "the end")
        self.check_that_it_serves()

    def test_it_asks_for_what_it_may_not(self):
        client = self.connect_as_node()
        task = "a" * 40
        for words, error in ((("SYNC", task, "0", "0"), "ERR The node that asks is no other master of the cluster"),
                             (("CONF", "NODE-ID", "b" * 40), "ERR Unknown node " + "b" * 40),
                             (("CONF", "NODE-ID", ""), "ERR Unknown node "),
                             (("CONF", "NODE-ID"), "ERR wrong number of arguments for 'cluster|syncslots' command"),
                             (("RDBCHANNEL", task), "ERR No such slot migration task waits for its snapshot"),
                             (("ACK", "x", "1"), "ERR syntax error"), (("STREAM-EOF",), "ERR syntax error")):
            self.assertEqual(client.error_of("CLUSTER", "SYNCSLOTS", *words), error)
        client.call("CLUSTER", "SYNCSLOTS", "CONF", "NODE-ID", self.identity(self.first))
        self.assertIn("no other master", client.error_of("CLUSTER", "SYNCSLOTS", "SYNC", task, "0", "0"))
        client.call("CLUSTER", "SYNCSLOTS", "CONF", "NODE-ID", self.name)
        for ranges, error in ((("8191", "8192"), "ERR This node is not the owner of the slots"), (("16383", "16383"), "ERR This node is not the owner of the slots"),
                              (("0", "16383"), "ERR This node is not the owner of the slots"), (("0", "16384"), "ERR Invalid or out of range slot"),
                              (("-1", "0"), "ERR Invalid or out of range slot"), (("5", "0"), "ERR start slot number 5 is greater than end slot number 0"),
                              (("0", "5", "5", "6"), "ERR Slot 5 specified multiple times"), (("0",), "ERR wrong number of arguments for 'cluster|syncslots' command")):
            self.assertEqual(client.error_of("CLUSTER", "SYNCSLOTS", "SYNC", task, *ranges), error)
        self.assertEqual(client.error_of("CLUSTER", "SYNCSLOTS", "SYNC", "a" * 39, "0", "0"), "ERR Invalid task id")
        self.check_that_it_serves()

    def test_it_vanishes_at_each_step(self):
        self.set_option(self.first, "rdb-key-save-delay", "200000")
        for step in ("main", "snapshot begins", "snapshot", "snapshot alone", "caught up", "paused", "ended"):
            with self.subTest(step):
                main, task = self.begin()
                snapshot = None
                if step != "main":
                    snapshot = self.begin_snapshot(task)
                if step not in ("main", "snapshot begins"):
                    self.wait_for_state(self.first, task, "send-bulk-and-stream")
                if step in ("caught up", "paused", "ended"):
                    self.read_snapshot(snapshot)
                    self.wait_for_state(self.first, task, "send-stream")
                if step in ("paused", "ended"):
                    main.send("CLUSTER", "SYNCSLOTS", "ACK", "wait-stream-eof", "0")
                if step == "ended":
                    self.assertEqual(main.read(), ["CLUSTER", "SYNCSLOTS", "STREAM-EOF"])
                if step != "snapshot alone":
                    main.close()
                if snapshot is not None:
                    snapshot.close()
                self.check_that_it_ends(task)
                main.close()

    def test_it_acknowledges_what_it_did_not_get(self):
        for offset in ("0", "1", "1000000", str(2**63 - 1)):
            with self.subTest(offset):
                main, task = self.begin()
                # Also before there is anything.
                main.send("CLUSTER", "SYNCSLOTS", "ACK", "wait-stream-eof", offset)
                main.send("CLUSTER", "SYNCSLOTS", "ACK", "x" * 10_000, offset)
                snapshot = self.begin_snapshot(task)
                self.read_snapshot(snapshot)
                main.send("CLUSTER", "SYNCSLOTS", "ACK", "wait-stream-eof", offset)
                self.assertEqual(main.read(), ["CLUSTER", "SYNCSLOTS", "STREAM-EOF"])
                # It takes nothing over, and the pause of writes is not for ever.
                self.check_that_it_ends(task)
                main.close()
                snapshot.close()
        for offset in ("-1", "x", "", str(2**63), "9" * 1000):
            with self.subTest(offset[:20]):
                main, task = self.begin()
                main.send("CLUSTER", "SYNCSLOTS", "ACK", "wait-stream-eof", offset)
                main.read_until_closed()
                self.check_that_it_ends(task)

    def test_it_says_what_does_not_belong_there(self):
        for words in (("SYNC", "b" * 40, "0", "0"), ("RDBCHANNEL", "b" * 40), ("STREAM-EOF",), ("SNAPSHOT-EOF",), ("ACK",), ("ACK", "x", "1", "2"), ("FAIL", "because"),
                      ("CONF", "NODE-ID", "b" * 40), ("nosuch",)):
            for number in (0, 1):
                with self.subTest(" ".join(words), channel=number):
                    main, task = self.begin()
                    self.set_option(self.first, "rdb-key-save-delay", "300000")
                    channels = (main, self.begin_snapshot(task))
                    self.set_option(self.first, "rdb-key-save-delay", "0")
                    say(channels[number], syncslots(*words))
                    main.close()
                    self.check_that_it_ends(task)
                    channels[1].close()

    def test_it_comes_twice(self):
        main, task = self.begin()
        second, other_task = self.begin()
        main.read_until_closed()
        self.wait_for_state(self.first, task, "canceled")
        snapshot = self.begin_snapshot(other_task)
        another = self.connect_as_node(self.name)
        self.assertIn("No such slot migration task", another.error_of("CLUSTER", "SYNCSLOTS", "RDBCHANNEL", other_task))
        second.close()
        snapshot.close()
        self.check_that_it_ends(other_task)

    def test_garbage_in_both_channels(self):
        for data in GARBAGE:
            for number in (0, 1):
                with self.subTest(data=data[:20], channel=number):
                    main, task = self.begin()
                    channels = (main, self.begin_snapshot(task))
                    say(channels[number], data)
                    main.close()
                    self.check_that_it_ends(task)
                    channels[1].close()

    def test_it_does_not_read_what_is_written_meanwhile(self):
        main, task = self.begin()
        snapshot = self.begin_snapshot(task)
        self.wait_for_state(self.first, task, "send-bulk-and-stream", "send-stream")
        self.set_option(self.first, "client-output-buffer-limit", "replica 10mb 10mb 0")
        with self.first.connect() as client:
            for i in range(30):
                client.call("SET", TAGS[0] + "large", "x" * 1_000_000)
        main.socket.settimeout(harness.REPLY_TIMEOUT_S)
        self.check_that_it_ends(task)
        self.assertGreater(len(main.read_until_closed()), 0)
        snapshot.close()


class OfValkeyTestCase(PeersTestCase):
    options = {"emulate": "valkey 9.1", "cluster_manual_failover_timeout": "500"}

    def jobs(self, server):
        return [fields(job) for job in self.value(server, "CLUSTER", "GETSLOTMIGRATIONS")]

    def newest_ends(self, server):
        self.eventually(lambda: self.jobs(server)[0]["state"] in ("success", "failed", "cancelled"), "the end of %s" % self.jobs(server)[0])
        return self.jobs(server)[0]


class SourcesOfValkey(OfValkeyTestCase):
    """The peer says that it is the node that has the slots: any client may."""

    def setUp(self):
        super().setUp()
        self.name = self.identity(self.first)
        self.count = 0

    def establish(self, name=None):
        self.count += 1
        client = self.connect(self.second)
        self.assertEqual(client.call("CLUSTER", "SYNCSLOTS", "ESTABLISH", "SOURCE", self.name, "NAME", name or "%040d" % self.count, "SLOTSRANGE", "0", "0"), "OK")
        return client

    def check_that_it_fails(self, client):
        client.read_until_closed()
        client.close()
        self.assertEqual(self.newest_ends(self.second)["state"], "failed")
        self.check_that_it_serves()

    # What a source says, in its order.
    STEPS = ("ACK", "SNAPSHOT-EOF", "PAUSED")

    def test_it_is_lost_at_each_step(self):
        for count in range(len(self.STEPS) + 1):
            with self.subTest(count):
                client = self.establish()
                for i, step in enumerate(self.STEPS[:count]):
                    client.send_raw((harness.encode("SET", KEY, "hostile") if i > 0 else b"") + syncslots(step))
                stop_talking(client)
                self.check_that_it_fails(client)

    def test_it_says_things_out_of_order(self):
        for count in range(len(self.STEPS) + 1):
            for what in ("SNAPSHOT-EOF", "PAUSED", "FAILOVER-GRANTED", "REQUEST-PAUSE", "REQUEST-FAILOVER", "nosuch"):
                if what == (self.STEPS + ("FAILOVER-GRANTED",))[count]:
                    continue
                with self.subTest(what, behind=count):
                    client = self.establish()
                    for step in self.STEPS[:count]:
                        client.send_raw(syncslots(step))
                    say(client, syncslots(what))
                    self.check_that_it_fails(client)

    def test_it_sends_what_it_may_not(self):
        other = TAGS[1] + "other"
        for words in (("SET", other, "1"), ("MSET", KEY, "1", other, "1"), ("FLUSHALL",), ("EVAL", "return 1", "0"), ("SHUTDOWN", "NOSAVE"), ("SELECT", "99"),
                      ("BLPOP", KEY, "0"), ("CONFIG", "SET", "maxmemory", "1"), ("SWAPDB", "0", "1"), ("RESTORE", KEY, "0", "nonsense"), ("FUNCTION", "FLUSH"), ("QUIT",),
                      ("MOVE", KEY, "0"), ("CLIENT", "KILL", "TYPE", "normal")):
            with self.subTest(" ".join(words)):
                client = self.establish()
                client.send_raw(syncslots("ACK") + harness.encode("SET", KEY, "hostile"))
                say(client, harness.encode(*words))
                self.check_that_it_fails(client)

    def test_it_sends_keys_before_it_was_acknowledged(self):
        client = self.establish()
        client.send("SET", KEY, "hostile")
        self.check_that_it_fails(client)

    def test_it_sends_garbage(self):
        for data in GARBAGE:
            with self.subTest(data[:20]):
                client = self.establish()
                client.send_raw(syncslots("ACK"))
                say(client, data)
                with contextlib.suppress(OSError):
                    stop_talking(client)
                self.check_that_it_fails(client)

    def test_it_never_ends(self):
        client = self.establish()
        say(client, syncslots("ACK") + b"*3\r\n$3\r\nSET\r\n$9\r\n" + KEY.encode() + b"\r\n$500000000\r\n" + b"x" * 5_000_000)
        self.check_that_it_fails(client)

    def test_one_name_for_two(self):
        client = self.establish(name="c" * 40)
        other = self.connect(self.second)
        for slots in (("0", "0"), ("1", "1")):
            other.error_of("CLUSTER", "SYNCSLOTS", "ESTABLISH", "SOURCE", self.name, "NAME", "c" * 40, "SLOTSRANGE", *slots)
        client.close()
        self.newest_ends(self.second)
        self.check_that_it_serves()


class TargetsOfValkey(OfValkeyTestCase):
    """The peer is the node that is to get the slots."""

    def setUp(self):
        super().setUp()
        self.stand_in_for(self.second, seen_by=self.first)

    def begin(self):
        self.value(self.first, "CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", "0", "0", "NODE", self.identity(self.second))
        channel = self.peer.accept()
        self.addCleanup(channel.close)
        self.assertEqual(channel.read()[:3], ["CLUSTER", "SYNCSLOTS", "ESTABLISH"])
        return channel

    def begin_snapshot(self):
        channel = self.begin()
        channel.send_raw(b"+OK\r\n" + syncslots("ACK"))
        return channel

    def read_until(self, channel, what):
        while channel.read()[-1] != what:
            pass

    def check_that_it_fails(self, channel):
        self.assertEqual(self.newest_ends(self.first)["state"], "failed")
        channel.close()
        self.check_that_it_serves()

    def test_it_answers_nonsense(self):
        for data in (b"-ERR no\r\n", b"$-1\r\n", b"x" * 100_000, bytes(range(256)) * 300, b"+NO\r\n"):
            with self.subTest(data[:10]):
                channel = self.begin()
                say(channel, data)
                self.check_that_it_fails(channel)

    def test_it_vanishes_at_each_step(self):
        for step in ("connected", "established", "snapshot", "paused", "granted"):
            with self.subTest(step):
                channel = self.begin() if step == "connected" else self.begin_snapshot()
                if step in ("snapshot", "paused", "granted"):
                    self.read_until(channel, "SNAPSHOT-EOF")
                if step in ("paused", "granted"):
                    channel.send_raw(syncslots("REQUEST-PAUSE"))
                    self.read_until(channel, "PAUSED")
                if step == "granted":
                    channel.send_raw(syncslots("REQUEST-FAILOVER"))
                    self.read_until(channel, "FAILOVER-GRANTED")
                channel.close()
                self.check_that_it_fails(channel)

    def test_it_stays_and_takes_nothing(self):
        """Also then writes are not paused for ever."""
        channel = self.begin_snapshot()
        self.read_until(channel, "SNAPSHOT-EOF")
        channel.send_raw(syncslots("REQUEST-PAUSE"))
        self.read_until(channel, "PAUSED")
        channel.send_raw(syncslots("REQUEST-FAILOVER"))
        self.read_until(channel, "FAILOVER-GRANTED")
        self.check_that_it_fails(channel)

    def test_it_says_things_out_of_order(self):
        for behind, what in (("established", "REQUEST-FAILOVER"), ("established", "PAUSED"), ("snapshot", "REQUEST-FAILOVER"), ("snapshot", "SNAPSHOT-EOF"),
                             ("paused", "REQUEST-PAUSE"), ("paused", "FAILOVER-GRANTED"), ("granted", "REQUEST-FAILOVER"), ("established", "ESTABLISH")):
            with self.subTest(what, behind=behind):
                channel = self.begin_snapshot()
                if behind != "established":
                    self.read_until(channel, "SNAPSHOT-EOF")
                if behind in ("paused", "granted"):
                    channel.send_raw(syncslots("REQUEST-PAUSE"))
                    self.read_until(channel, "PAUSED")
                if behind == "granted":
                    channel.send_raw(syncslots("REQUEST-FAILOVER"))
                    self.read_until(channel, "FAILOVER-GRANTED")
                say(channel, syncslots(what))
                self.check_that_it_fails(channel)

    def test_it_sends_garbage(self):
        for data in (*GARBAGE, b"*1000000\r\n" + b"$1000\r\n" + b"x" * 1000, b"*3\r\n$500000\r\n"):
            with self.subTest(data[:20]):
                channel = self.begin_snapshot()
                say(channel, data)
                with contextlib.suppress(OSError):
                    stop_talking(channel)
                self.check_that_it_fails(channel)

    def test_it_does_not_read_what_is_written_meanwhile(self):
        self.set_option(self.first, "client-output-buffer-limit", "replica 10mb 10mb 0")
        channel = self.begin_snapshot()
        self.read_until(channel, "SNAPSHOT-EOF")
        with self.first.connect() as client:
            for _ in range(30):
                client.call("SET", TAGS[0] + "large", "x" * 1_000_000)
        self.check_that_it_fails(channel)


class LargeValues(SlotMigrationTestCase):
    """A request may be larger than what a destination otherwise keeps."""

    def check(self, begin, **options):
        first, second = self.pair([None, None], **options)
        self.value(first, "SET", KEY, "x" * 20_000_000)
        self.value(first, "RPUSH", TAGS[0] + "list", "y" * 9_000_000, "z")
        begin(first, second)
        self.eventually(lambda: self.value(first, "CLUSTER", "COUNTKEYSINSLOT", "0") == 0, "the end")
        self.assertEqual(self.value(second, "STRLEN", KEY), 20_000_000)
        self.assertEqual(self.value(second, "LLEN", TAGS[0] + "list"), 2)

    def test_as_redis_does(self):
        self.check(lambda first, second: self.migrate(second, 0, 0))

    def test_as_valkey_does(self):
        self.check(lambda first, second: self.value(first, "CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", "0", "0", "NODE", self.identity(second)), emulate="valkey 9.1")


if __name__ == "__main__":
    unittest.main()

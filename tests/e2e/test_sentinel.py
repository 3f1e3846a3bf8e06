"""Sentinels: a group that watches a master and its replicas, alone and mixed with Sentinels of the reference, through kill -9,
SIGSTOP and real clients."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path

import clients
import harness
import test_tls

DOWN_AFTER_MS = 1500
CHECKOUT = Path(__file__).resolve().parents[2]


def newest_reference():
    """The reference's server that these Sentinels are compared with, or None."""
    directory = os.environ.get("LATCHKEY_REFERENCE_DIR") or CHECKOUT / "build" / "reference"
    path = Path(directory, "bin", "redis-server-8.6")
    return str(path) if path.is_file() else None


needs_reference = unittest.skipUnless(newest_reference(), "scripts/reference has not brought the reference")


class SentinelServer(harness.Server):
    """A Sentinel, started with a file of its own, which it rewrites."""

    def __init__(self, lines, program=None):
        self.lines = lines
        super().__init__(program=program)

    def start(self):
        path = Path(self.directory, "sentinel.conf")
        if not path.exists():
            path.write_text("\n".join(["port %d" % self.port, "dir " + self.directory, *self.lines]) + "\n")
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen([self.program, str(path), "--sentinel"], stdout=log, stderr=log,
                                            cwd=self.directory, env=self.environment)
        deadline = time.monotonic() + harness.START_TIMEOUT_S
        while True:
            try:
                with self.connect() as client:
                    client.send("PING")
                    client.read()
                    return
            except (OSError, harness.ConnectionClosed):
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise AssertionError("Sentinel did not start:\n" + self.log()) from None
                time.sleep(0.01)

    def file_text(self):
        return Path(self.directory, "sentinel.conf").read_text()

    def kill(self):
        self.process.kill()
        self.process.wait()


class GroupTestCase(unittest.TestCase):
    """Servers and Sentinels of one test."""

    def setUp(self):
        self.servers = []
        self.sentinels = []
        self.addCleanup(self.stop_all)

    def stop_all(self):
        for server in [*self.sentinels, *self.servers]:
            if server.process is not None and server.process.poll() is None:
                server.process.send_signal(signal.SIGCONT)
            elif server.process is not None:
                server.process = None
                continue
            server.stop()

    def add_servers(self, programs):
        for program in programs:
            options = {"replicaof": ["127.0.0.1", self.servers[0].port]} if self.servers else {}
            self.servers.append(harness.Server(program=program, repl_diskless_sync_delay=0, repl_timeout=10, **options))
        master = self.servers[0].connect()
        self.addCleanup(master.close)
        self.eventually(lambda: "connected_slaves:%d" % (len(programs) - 1) in master.call("INFO", "replication"))

    def add_sentinels(self, programs, quorum=2, more=()):
        for program in programs:
            self.sentinels.append(SentinelServer([
                "sentinel monitor mymaster 127.0.0.1 %d %d" % (self.servers[0].port, quorum),
                "sentinel down-after-milliseconds mymaster %d" % DOWN_AFTER_MS,
                "sentinel failover-timeout mymaster 6000", *more], program=program))

    def wait_until_known(self):
        others = str(len(self.sentinels) - 1)
        replicas = str(len(self.servers) - 1)
        for sentinel in self.sentinels:
            self.eventually(lambda s=sentinel: self.master(s)["num-other-sentinels"] == others)
            self.eventually(lambda s=sentinel: self.master(s)["num-slaves"] == replicas)
            self.eventually(lambda s=sentinel: all(self.as_dict(one)["slave-repl-offset"] != "0"
                                                   for one in self.ask(s, "SENTINEL", "REPLICAS", "mymaster")))

    def ask(self, server, *words):
        with server.connect() as client:
            return client.call(*words)

    def as_dict(self, pairs):
        return dict(zip(pairs[::2], pairs[1::2]))

    def master(self, sentinel):
        return self.as_dict(self.ask(sentinel, "SENTINEL", "MASTER", "mymaster"))

    def address(self, sentinel):
        host, port = self.ask(sentinel, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster")
        self.assertEqual(host, "127.0.0.1")
        return int(port)

    def new_master(self, but):
        """The port that all Sentinels that run agree on, once it is not that of `but`."""
        running = [one for one in self.sentinels if one.process.poll() is None]
        self.eventually(lambda: len({self.address(one) for one in running}) == 1 and
                        self.address(running[0]) != but.port)
        return self.address(running[0])

    def role(self, port):
        server = next(one for one in self.servers if one.port == port)
        return self.ask(server, "ROLE")[0]

    def follows(self, server, port):
        role = self.ask(server, "ROLE")
        return role[0] == "slave" and role[2] == port and role[3] == "connected"

    def eventually(self, condition, timeout_s=harness.REPLY_TIMEOUT_S):
        deadline = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > deadline:
                logs = "\n".join(one.log()[-2000:] for one in self.sentinels)
                self.fail("did not come to pass; Sentinels said:\n" + logs)
            time.sleep(0.05)


class OneSentinel(GroupTestCase):
    def test_it_needs_a_file(self):
        done = subprocess.run([os.environ["LATCHKEY_SERVER"], "--sentinel"], capture_output=True, text=True, timeout=20)
        self.assertEqual(done.returncode, 1)
        self.assertIn("Sentinel needs config file on disk to save state. Exiting...", done.stdout)

    def test_a_file_with_wrong_lines_is_refused(self):
        for line, reason in (("sentinel sing", "Unrecognized sentinel configuration statement."),
                             ("sentinel parallel-syncs nobody 1", "No such master with specified name."),
                             ("sentinel monitor m 127.0.0.1 1 1\nsentinel monitor m 127.0.0.1 2 1", "Duplicate master name."),
                             ("replicaof 127.0.0.1 1", "replicaof directive not allowed in sentinel mode")):
            with self.subTest(line), self.assertRaises(AssertionError) as refused:
                self.sentinels.append(SentinelServer([line]))
            self.assertIn(reason, str(refused.exception))

    def test_it_says_what_it_is(self):
        self.sentinels.append(SentinelServer(["sentinel monitor mymaster 127.0.0.1 1 1"]))
        with self.sentinels[0].connect() as client:
            self.assertEqual(client.call("ROLE"), ["sentinel", ["mymaster"]])
            info = client.call("INFO")
            self.assertIn("redis_mode:sentinel\r\n", info)
            self.assertIn("master0:name=mymaster,status=ok,address=127.0.0.1:1,slaves=0,sentinels=1\r\n", info)
            self.assertNotIn("# Keyspace", info)
            self.assertEqual(client.error_of("GET", "a"), "ERR unknown command 'GET', with args beginning with: 'a' ")
            self.assertEqual(client.error_of("PUBLISH", "a", "b"),
                             "ERR Only HELLO messages are accepted by Sentinel instances.")
            hello = client.call("HELLO", "3")
            self.assertEqual(hello["mode"], "sentinel")
            self.assertNotIn("role", hello)

    def test_its_file_remembers_what_was_set(self):
        self.sentinels.append(SentinelServer(["# a comment", "sentinel monitor mymaster 127.0.0.1 1 1"]))
        sentinel = self.sentinels[0]
        with sentinel.connect() as client:
            my_id = client.call("SENTINEL", "MYID")
            self.assertEqual(client.call("SENTINEL", "SET", "mymaster", "quorum", "3", "auth-pass", "a b"), "OK")
            self.assertEqual(client.call("SENTINEL", "MONITOR", "second", "127.0.0.1", "2", "2"), "OK")
            self.assertEqual(client.call("SENTINEL", "CONFIG", "SET", "announce-port", "77"), "OK")
        self.assertIn("# a comment\nsentinel monitor mymaster 127.0.0.1 1 3\n", sentinel.file_text())
        self.assertIn('sentinel auth-pass mymaster "a b"\n', sentinel.file_text())
        sentinel.kill()
        sentinel.start()
        with sentinel.connect() as client:
            self.assertEqual(client.call("SENTINEL", "MYID"), my_id)
            self.assertEqual(len(client.call("SENTINEL", "MASTERS")), 2)
            self.assertEqual(self.master(sentinel)["quorum"], "3")
            self.assertEqual(client.call("SENTINEL", "CONFIG", "GET", "announce-p*"), ["announce-port", "77"])
            self.assertEqual(client.call("SENTINEL", "REMOVE", "second"), "OK")
        self.assertNotIn("second", sentinel.file_text())

    def test_a_file_that_cannot_be_written_is_an_error(self):
        self.sentinels.append(SentinelServer(["sentinel monitor mymaster 127.0.0.1 1 1"]))
        sentinel = self.sentinels[0]
        path = Path(sentinel.directory, "sentinel.conf")
        with sentinel.connect() as client:
            text = path.read_text()
            path.unlink()
            path.mkdir()
            self.assertEqual(client.error_of("SENTINEL", "FLUSHCONFIG"),
                             "ERR Failed to save config file. Check server logs.")
            # A vote that cannot be written down is not given.
            self.assertEqual(client.call("SENTINEL", "IS-MASTER-DOWN-BY-ADDR", "127.0.0.1", "1", "5", "a" * 40),
                             [0, "*", 0])
            path.rmdir()
            path.write_text(text)
            self.assertEqual(client.call("SENTINEL", "IS-MASTER-DOWN-BY-ADDR", "127.0.0.1", "1", "5", "a" * 40),
                             [0, "a" * 40, 5])
            self.assertEqual(client.call("SENTINEL", "IS-MASTER-DOWN-BY-ADDR", "127.0.0.1", "1", "5", "b" * 40),
                             [0, "a" * 40, 5])
        self.assertIn("sentinel leader-epoch mymaster 5\n", path.read_text())

    def test_scripts_are_told_of_warnings(self):
        directory = Path(tempfile.mkdtemp(prefix="latchkey-e2e-"))
        self.addCleanup(shutil.rmtree, directory)
        script = directory / "notify"
        script.write_text('#!/bin/sh\necho "$1: $2" >> %s/told\n' % directory)
        script.chmod(0o755)
        self.sentinels.append(SentinelServer(["sentinel monitor mymaster 127.0.0.1 1 1",
                                              "sentinel down-after-milliseconds mymaster 200",
                                              "sentinel notification-script mymaster %s" % script]))
        told = directory / "told"
        self.eventually(lambda: told.exists() and "+sdown: master mymaster 127.0.0.1 1\n" in told.read_text())
        error = harness.Client.error_of
        with self.sentinels[0].connect() as client:
            self.assertTrue(error(client, "SENTINEL", "SET", "mymaster", "notification-script", "").startswith(
                "ERR Reconfiguration of scripts path is denied"))


class Group(GroupTestCase):
    def test_the_master_is_replaced_when_it_dies_and_comes_back_as_a_replica(self):
        self.add_servers([None, None, None])
        self.add_sentinels([None, None, None])
        self.wait_until_known()
        old = self.servers[0]
        events = self.sentinels[0].connect()
        self.addCleanup(events.close)
        events.call("PSUBSCRIBE", "*")
        old.process.kill()
        old.process.wait()
        port = self.new_master(old)
        self.assertEqual(self.role(port), "master")
        seen = []
        while not seen or seen[-1][0] != "+switch-master":
            seen.append(events.read()[2:])
        names = [name for name, _ in seen]
        self.assertLess(names.index("+sdown"), names.index("+switch-master"))
        self.assertEqual(seen[-1][1], "mymaster 127.0.0.1 %d 127.0.0.1 %d" % (old.port, port))
        old.start()
        self.eventually(lambda: self.follows(old, port))

    def test_a_master_that_stands_still_is_replaced_and_follows_when_it_wakes_up(self):
        self.add_servers([None, None])
        self.add_sentinels([None, None, None])
        self.wait_until_known()
        old = self.servers[0]
        old.process.send_signal(signal.SIGSTOP)
        port = self.new_master(old)
        old.process.send_signal(signal.SIGCONT)
        self.eventually(lambda: self.follows(old, port))

    def test_a_minority_does_not_fail_over(self):
        self.add_servers([None, None])
        self.add_sentinels([None, None, None], quorum=1)
        self.wait_until_known()
        for sentinel in self.sentinels[1:]:
            sentinel.process.send_signal(signal.SIGSTOP)
        old = self.servers[0]
        old.process.send_signal(signal.SIGSTOP)
        self.eventually(lambda: "o_down" in self.master(self.sentinels[0])["flags"])
        self.eventually(lambda: "-failover-abort-not-elected" in self.sentinels[0].log())
        self.assertEqual(self.address(self.sentinels[0]), old.port)
        self.assertEqual(self.role(self.servers[1].port), "slave")
        for server in [old, *self.sentinels[1:]]:
            server.process.send_signal(signal.SIGCONT)
        self.eventually(lambda: self.master(self.sentinels[0])["flags"] == "master")

    def test_a_failover_on_request(self):
        self.add_servers([None, None])
        self.add_sentinels([None, None, None])
        self.wait_until_known()
        self.eventually(lambda: self.started_failover(self.sentinels[0]))
        port = self.new_master(self.servers[0])
        self.assertEqual(port, self.servers[1].port)
        self.eventually(lambda: self.follows(self.servers[0], port))

    def started_failover(self, sentinel, *how):
        with sentinel.connect() as client:
            client.send("SENTINEL", "FAILOVER", "mymaster", *how)
            return client.read() == "OK"

    def test_a_coordinated_failover_loses_no_write(self):
        self.add_servers([None, None])
        self.add_sentinels([None, None, None])
        self.wait_until_known()
        written = []

        def write():
            with self.servers[0].connect() as client:
                with contextlib.suppress(harness.ConnectionClosed, OSError):
                    while True:
                        client.send("INCR", "count")
                        reply = client.read()
                        if not isinstance(reply, int):
                            return
                        written.append(reply)

        writer = threading.Thread(target=write)
        writer.start()
        self.eventually(lambda: written and self.started_failover(self.sentinels[0], "COORDINATED"))
        port = self.new_master(self.servers[0])
        self.eventually(lambda: self.follows(self.servers[0], port))
        writer.join()
        with self.servers[1].connect() as client:
            self.assertGreaterEqual(int(client.call("GET", "count")), written[-1])
            self.assertEqual(client.call("SET", "key", "writes go on"), "OK")
        # All know the same master, without anybody having found it down.
        for sentinel in self.sentinels:
            self.assertNotIn("+odown", sentinel.log())

    def test_passwords_for_masters_and_sentinels(self):
        self.servers.append(harness.Server(requirepass="one", masterauth="one"))
        self.add_sentinels([None, None], more=["sentinel auth-pass mymaster one", "requirepass two"])
        for sentinel in self.sentinels:
            def known(s=sentinel):
                with s.connect() as client:
                    client.call("AUTH", "two")
                    master = self.as_dict(client.call("SENTINEL", "MASTER", "mymaster"))
                    return master["num-other-sentinels"] == "1" and master["flags"] == "master" and \
                        "OK 2 usable" in self.quorum(client)
            self.eventually(known)

    def quorum(self, client):
        client.send("SENTINEL", "CKQUORUM", "mymaster")
        return str(client.read())


@needs_reference
class MixedGroup(GroupTestCase):
    """The reference's Sentinels and ours vote together, over masters and replicas of both kinds."""

    def check(self, servers, sentinels):
        self.add_servers(servers)
        self.add_sentinels(sentinels)
        self.wait_until_known()
        old = self.servers[0]
        old.process.kill()
        old.process.wait()
        port = self.new_master(old)
        self.eventually(lambda: self.role(port) == "master")
        for server in self.servers[1:]:
            if server.port != port:
                self.eventually(lambda s=server: self.follows(s, port))
        epochs = {self.master(one)["config-epoch"] for one in self.sentinels}
        self.assertEqual(len(epochs), 1)
        # A second one, with what was learned.
        old.start()
        self.eventually(lambda: self.follows(old, port))

    def test_one_of_ours_among_the_references(self):
        reference = newest_reference()
        self.check([reference, None, reference], [None, reference, reference])

    def test_one_of_the_references_among_ours(self):
        reference = newest_reference()
        self.check([None, reference, None], [None, None, reference])

    def test_whoever_asks_gets_the_others_votes(self):
        """Each of the two kinds leads: a failover on request needs no votes, and the others take over its result."""
        reference = newest_reference()
        self.add_servers([None, reference])
        self.add_sentinels([None, reference])
        self.wait_until_known()
        master = self.servers[0]
        for sentinel in self.sentinels:
            def asked(s=sentinel):
                with s.connect() as client:
                    client.send("SENTINEL", "FAILOVER", "mymaster")
                    return client.read() == "OK"
            self.eventually(asked)
            port = self.new_master(master)
            self.eventually(lambda m=master, p=port: self.follows(m, p))
            self.eventually(lambda: all(self.master(one)["flags"] == "master" for one in self.sentinels))
            master = next(one for one in self.servers if one.port == port)


class SecureGroup(GroupTestCase):
    """Everybody speaks TLS; the plain ports are for the test."""

    def test_a_failover_over_tls(self):
        self.addClassCleanup(test_tls.Certificates.forget)
        secure = test_tls.options(tls_replication="yes")
        master = test_tls.SecureServer(**secure)
        self.servers.append(master)
        replica = test_tls.SecureServer(replicaof=["127.0.0.1", master.tls_port], repl_diskless_sync_delay=0, **secure)
        self.servers.append(replica)
        self.eventually(lambda: "connected_slaves:1" in self.ask(master, "INFO", "replication"))
        for _ in range(3):
            self.sentinels.append(SentinelServer([
                "sentinel monitor mymaster 127.0.0.1 %d 2" % master.tls_port,
                "sentinel down-after-milliseconds mymaster %d" % DOWN_AFTER_MS, "tls-port %d" % harness.free_port(),
                *("%s %s" % (name.replace("_", "-"), value) for name, value in secure.items())]))
        self.wait_until_known()
        master.process.kill()
        master.process.wait()
        self.eventually(lambda: {self.address(one) for one in self.sentinels} == {replica.tls_port})
        self.assertEqual(self.ask(replica, "ROLE")[0], "master")


# Latchkey itself has the names of both.
VALKEYS_NAMES = ["sentinel|" + name for name in ("get-primary-addr-by-name", "is-primary-down-by-addr", "primaries", "primary")]


@needs_reference
class Comparison(GroupTestCase):
    """What the reference's Sentinel says to a client, and ours."""

    def setUp(self):
        super().setUp()
        lines = ["sentinel monitor mymaster 127.0.0.1 1 2"]
        self.sentinels = [SentinelServer(lines), SentinelServer(lines, program=newest_reference())]

    def both(self, *words):
        replies = []
        for sentinel in self.sentinels:
            with sentinel.connect() as client:
                client.send(*words)
                replies.append(client.read())
        return replies

    def test_the_commands_are_the_same(self):
        ours, theirs = self.both("COMMAND", "LIST")
        self.assertEqual(sorted(ours), sorted(theirs + VALKEYS_NAMES))
        for name in ("sentinel|set", "sentinel|config", "sentinel|simulate-failure", "sentinel|debug", "publish", "role"):
            for what in ("INFO", "DOCS"):
                ours, theirs = self.both("COMMAND", what, name)
                self.assertEqual(ours, theirs)

    def test_the_categories_are_the_same(self):
        ours, theirs = self.both("ACL", "CAT")
        self.assertEqual(sorted(ours), sorted(theirs))
        for category in ours:
            ours, theirs = self.both("ACL", "CAT", category)
            self.assertEqual(sorted(name for name in ours if name not in VALKEYS_NAMES), sorted(theirs))

    def test_errors_are_the_same(self):
        for words in (
                "foo", "master nope", "get-master-addr-by-name nope", "reset nope", "remove nope", "failover nope",
                "failover mymaster", "ckquorum mymaster", "is-master-down-by-addr 127.0.0.1 x 0 *",
                "is-master-down-by-addr 127.0.0.1 1 x *", "is-master-down-by-addr nohost 1 0 *", "monitor a b c d",
                "monitor a b 1 1", "monitor a 127.0.0.1 70000 1", "monitor a 127.0.0.1 6379 0", "monitor a 127.0.0.1 x 1",
                "monitor mymaster 127.0.0.1 6379 1", "set mymaster quorum 0", "set mymaster parallel-syncs x",
                "set mymaster foo bar", "set mymaster rename-command a", "set mymaster notification-script /bin/sh",
                "set mymaster master-reboot-down-after-period -1", "config get *", "config get", "config foo bar",
                "config set foo bar", "config set announce-port x", "config set announce-ip", "config set loglevel loud",
                "config set announce-port 5 announce-ip", "config set announce-ip a announce-ip b", "debug", "debug foo 1",
                "debug info-period 0", "debug info-period", "simulate-failure", "simulate-failure foo",
                "simulate-failure help", "info-cache", "info-cache nope", "pending-scripts", "flushconfig", "myid x", "reset"):
            with self.subTest(words):
                ours, theirs = self.both("SENTINEL", *words.split(" "))
                self.assertEqual(ours, theirs)


class Clients(GroupTestCase):
    """Client libraries find the new master, and nothing that WAIT has confirmed is lost."""

    def setUp(self):
        super().setUp()
        self.add_servers([None, None, None])
        self.add_sentinels([None, None, None])
        self.wait_until_known()

    def test_redis_py_under_load(self):
        try:
            from redis.sentinel import Sentinel
            from redis.exceptions import RedisError
        except ImportError:
            self.skipTest("redis-py is not installed")
        sentinel = Sentinel([("127.0.0.1", one.port) for one in self.sentinels], socket_timeout=2)
        client = sentinel.master_for("mymaster", socket_timeout=2)
        confirmed = []
        done = threading.Event()

        def write():
            number = 0
            while not done.is_set():
                number += 1
                try:
                    with client.pipeline(transaction=False) as pipe:
                        pipe.set("key:%d" % number, number).execute_command("WAIT", 2, 200)
                        _, replicas = pipe.execute()
                    # All replicas have it, whichever is promoted.
                    if replicas == 2:
                        confirmed.append(number)
                except RedisError:
                    time.sleep(0.05)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            self.eventually(lambda: len(confirmed) > 100)
            before = len(confirmed)
            old = self.servers[0]
            old.process.kill()
            old.process.wait()
            self.new_master(old)
            old.start()
            self.eventually(lambda: len(confirmed) > before + 100)
        finally:
            done.set()
            writer.join()
        lost = [number for number in confirmed if client.get("key:%d" % number) != str(number).encode()]
        self.assertEqual(lost, [])
        self.assertEqual(len(sentinel.discover_slaves("mymaster")), 2)

    def through_node(self, library):
        directory = self.enterContext(tempfile.TemporaryDirectory())
        script = clients.beside_node_modules(directory, clients.HERE / "sentinel_user.mjs")
        ports = [str(one.port) for one in self.sentinels]
        process = subprocess.Popen(["node", script, library, *ports], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "ready\n")
        old = self.servers[0]
        old.process.kill()
        old.process.wait()
        port = self.new_master(old)
        try:
            process.wait(harness.REPLY_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.fail("the client did not find the new master")
        self.assertEqual(process.returncode, 0, process.stdout.read())
        server = next(one for one in self.servers if one.port == port)
        self.assertIsNotNone(self.ask(server, "GET", "written"))

    @clients.needs_node_modules
    def test_ioredis(self):
        self.through_node("ioredis")

    @clients.needs_node_modules
    def test_node_redis(self):
        self.through_node("redis")


if __name__ == "__main__":
    unittest.main()

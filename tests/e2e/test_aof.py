"""The append-only file: what it promises when the server is killed or the disk is full, and that the reference's files and
ours are the same. LATCHKEY_AOF_ROUNDS sets how often the server is killed."""

import os
import random
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest

import harness

ROUNDS = int(os.environ.get("LATCHKEY_AOF_ROUNDS", "100"))


def info(client, name):
    for line in client.call("INFO", "persistence").splitlines():
        if line.startswith(name + ":"):
            return line.split(":", 1)[1]
    raise AssertionError("no " + name)


def wait_until_written(client):
    """With everysec, what was acknowledged while a sync is running is written up to two seconds later."""
    deadline = time.monotonic() + harness.REPLY_TIMEOUT_S
    while info(client, "aof_buffer_length") != "0":
        assert time.monotonic() < deadline
        time.sleep(0.01)


def connect_when_loaded(server):
    """A connection to a server that has its dataset."""
    client = server.connect()
    while True:
        try:
            client.call("DBSIZE")
            return client
        except harness.ReplyError:
            time.sleep(0.005)


class Restarted(harness.Server):
    """A server that is killed and started again over the same files."""

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def start_again(self):
        self.start()
        connect_when_loaded(self).close()


class Writer(threading.Thread):
    """Writes until the server is gone, and remembers what was acknowledged and what was asked for."""

    def __init__(self, server, number, acknowledged):
        super().__init__()
        self.client = server.connect()
        self.number = number
        self.acknowledged = self.asked = acknowledged
        self.pipeline = random.choice((1, 1, 3, 20))

    def requests(self, step):
        return b"".join((
            harness.encode("RPUSH", "list:%d" % self.number, step),
            harness.encode("MULTI"),
            harness.encode("SET", "left:%d" % self.number, step),
            harness.encode("INCR", "count:%d" % self.number),
            harness.encode("SET", "right:%d" % self.number, step),
            harness.encode("EXEC"),
        ))

    def run(self):
        try:
            while True:
                steps = range(self.asked + 1, self.asked + 1 + self.pipeline)
                self.asked = steps[-1]
                self.client.send_raw(b"".join(self.requests(step) for step in steps))
                for step in steps:
                    for _ in range(6):
                        reply = self.client.read()
                        assert not isinstance(reply, harness.ReplyError), reply
                    self.acknowledged = step
        except (OSError, harness.ConnectionClosed):
            pass
        finally:
            self.client.close()


class Killed(unittest.TestCase):
    WRITERS = 4

    def check(self, client, writer):
        """What is there: everything acknowledged, nothing torn, nothing that was not asked for."""
        steps = [int(step) for step in client.call("LRANGE", "list:%d" % writer.number, "0", "-1")]
        self.assertEqual(steps, list(range(1, len(steps) + 1)))
        values = client.call("MGET", *("%s:%d" % (name, writer.number) for name in ("left", "count", "right")))
        left, count, right = (int(value or 0) for value in values)
        self.assertEqual((left, count), (right, left))
        self.assertIn(len(steps) - left, (0, 1))
        for there in (len(steps), left):
            self.assertGreaterEqual(there, writer.acknowledged)
            self.assertLessEqual(there, writer.asked)
        return left, len(steps)

    def test_what_was_acknowledged_is_there_after_a_kill(self):
        server = Restarted(appendonly="yes", appendfsync="always", auto_aof_rewrite_percentage="30",
                           auto_aof_rewrite_min_size="64kb", aof_use_rdb_preamble=random.choice(("yes", "no")))
        self.addCleanup(server.stop)
        random.seed(int(os.environ.get("LATCHKEY_SEED", "1")))
        written = dict.fromkeys(range(self.WRITERS), 0)
        acknowledged = 0
        for _ in range(ROUNDS):
            writers = [Writer(server, number, steps) for number, steps in written.items()]
            for writer in writers:
                writer.start()
            time.sleep(random.uniform(0.002, 0.08))
            server.kill()
            for writer in writers:
                writer.join()
            server.start_again()
            with server.connect() as client:
                for writer in writers:
                    left, pushed = self.check(client, writer)
                    # A push whose transaction is gone is taken back, so that the next round counts on.
                    if pushed > left:
                        client.call("RPOP", "list:%d" % writer.number)
                    acknowledged += writer.acknowledged - written[writer.number]
                    written[writer.number] = left
        self.assertGreater(acknowledged, ROUNDS)

    def test_everysec_loses_no_more_than_the_last_seconds(self):
        server = Restarted(appendonly="yes", appendfsync="everysec")
        self.addCleanup(server.stop)
        with server.connect() as client:
            client.call("SET", "early", "1")
            wait_until_written(client)
        # The process dies, the system does not: what was written is there.
        server.kill()
        server.start_again()
        with server.connect() as client:
            self.assertEqual(client.call("GET", "early"), "1")


def has_ended(pid):
    """Whether a process is gone, or would be if somebody asked for it."""
    try:
        with open("/proc/%d/stat" % pid, encoding="utf-8") as stat:
            return stat.read().rpartition(") ")[2].startswith("Z")
    except (FileNotFoundError, ProcessLookupError):
        return True


class Leftovers(harness.ServerTestCase):
    """What a child writes before it is the file that is meant, when the child or its server is killed meanwhile."""

    @classmethod
    def setUpClass(cls):
        pass

    tearDownClass = setUpClass

    def setUp(self):
        self.server = Restarted(appendonly="yes", enable_debug_command="yes", rdb_key_save_delay="1000")
        self.addCleanup(self.server.stop)

    def temporary(self):
        return [name for name in os.listdir(self.server.directory) if name.startswith("temp-")]

    def begin(self, *request):
        """Begins to write, for a while; gives the id of the child that does."""
        with self.server.connect() as client:
            client.call("DEBUG", "POPULATE", 20000)
            client.call(*request)
        self.eventually(self.temporary)
        with open("/proc/%d/task/%d/children" % (self.server.process.pid, self.server.process.pid), encoding="ascii") as children:
            return int(children.read().split()[0])

    def check(self, *request):
        child = self.begin(*request)
        os.kill(child, signal.SIGKILL)
        self.eventually(lambda: not self.temporary())

        # Both, and nobody is left to remove anything.
        child = self.begin(*request)
        os.kill(self.server.process.pid, signal.SIGSTOP)
        os.kill(child, signal.SIGKILL)
        self.server.kill()
        self.eventually(lambda: has_ended(child))
        left, = self.temporary()
        others = ("temp-%d.rdb" % os.getpid(), "temp-mine.rdb")
        for name in others:
            with open(os.path.join(self.server.directory, name), "wb"):
                pass
        self.server.start_again()
        self.assertEqual(sorted(self.temporary()), sorted(others))
        self.assertIn("Removed the temporary file " + left, self.server.log())
        for name in others:
            os.unlink(os.path.join(self.server.directory, name))

        self.begin(*request)
        self.server.kill()
        self.eventually(lambda: not self.temporary())
        self.server.start_again()

    def test_a_snapshot_leaves_nothing_behind(self):
        self.check("BGSAVE")

    def test_a_rewrite_leaves_nothing_behind(self):
        self.check("BGREWRITEAOF")


class OfReplicas(unittest.TestCase):
    """The file that a replica has received is the base of its append-only file."""

    def sync(self, **options):
        master = harness.Server(repl_diskless_sync="no", **options)
        self.addCleanup(master.stop)
        replica = harness.Server(appendonly="yes", **options)
        self.addCleanup(replica.stop)
        with master.connect() as client:
            for i in range(100):
                client.call("SET", "key:%d" % i, "value")
        with replica.connect() as client:
            client.call("SET", "old", "value")
            client.call("REPLICAOF", "127.0.0.1", master.port)
            harness.ServerTestCase.eventually(self, lambda: "master_link_status:up" in client.call("INFO", "replication"))
        return master, replica

    def test_the_received_file_is_the_base(self):
        for options in ({}, {"emulate": "valkey 9.1"}):
            master, replica = self.sync(**options)
            with master.connect() as client, replica.connect() as reader:
                self.assertIn("as AOF base file", replica.log())
                self.assertEqual((info(reader, "aof_enabled"), info(reader, "aof_rewrites")), ("1", "0"))
                self.assertEqual(info(reader, "aof_base_size"), str(os.path.getsize(os.path.join(replica.directory, "dump.rdb"))))
                client.call("SET", "new", "value")
                harness.ServerTestCase.eventually(self, lambda: reader.call("GET", "new") == "value")
                reader.call("REPLICAOF", "NO", "ONE")
            replica.process.terminate()
            replica.process.wait(30)
            os.remove(os.path.join(replica.directory, "dump.rdb"))
            replica.start()
            with connect_when_loaded(replica) as reader:
                self.assertEqual((reader.call("DBSIZE"), reader.call("GET", "new"), reader.call("EXISTS", "old")), (101, "value", 0))

    def test_a_base_of_requests_is_written(self):
        _, replica = self.sync(aof_use_rdb_preamble="no")
        self.assertNotIn("as AOF base file", replica.log())
        with replica.connect() as reader:
            harness.ServerTestCase.eventually(self, lambda: (info(reader, "aof_rewrites"), info(reader, "aof_rewrite_in_progress")) == ("1", "0"))


class SmallDisk:
    """A file system of its own of some hundred kilobytes, or None where that is not allowed."""

    def __init__(self, kilobytes):
        self.path = tempfile.mkdtemp(prefix="latchkey-disk-")
        mounted = os.geteuid() == 0 and subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=%dk" % kilobytes, "tmpfs", self.path], capture_output=True).returncode == 0
        if not mounted:
            os.rmdir(self.path)
            raise unittest.SkipTest("a tmpfs cannot be mounted here")

    def fill(self):
        with open(self.path + "/filler", "wb", buffering=0) as filler:
            try:
                while True:
                    filler.write(b"x" * 512)
            except OSError:
                pass

    def make_room(self):
        os.unlink(self.path + "/filler")

    def remove(self):
        subprocess.run(["umount", "-l", self.path], check=False)
        shutil.rmtree(self.path, ignore_errors=True)


class FullDisk(unittest.TestCase):
    def start(self, **options):
        disk = SmallDisk(1024)
        self.addCleanup(disk.remove)
        server = Restarted(appendonly="yes", dir=disk.path, auto_aof_rewrite_percentage="0", **options)
        return disk, server

    def write_until_refused(self, client, value):
        """The number of writes that were acknowledged."""
        for number in range(100_000):
            try:
                client.call("SET", "key:%d" % number, value)
            except harness.ReplyError as error:
                self.assertEqual(str(error), "MISCONF Errors writing to the AOF file: No space left on device")
                return number
            except (OSError, harness.ConnectionClosed):
                return number
        self.fail("the disk does not fill up")

    def test_writes_are_refused_while_the_disk_is_full_and_go_on_when_it_is_not(self):
        disk, server = self.start(appendfsync="everysec", enable_debug_command="yes")
        self.addCleanup(server.stop)
        client = server.connect()
        client.call("SET", "before", "1")
        disk.fill()
        self.write_until_refused(client, "x" * 3000)
        self.assertEqual(info(client, "aof_last_write_status"), "err")
        self.assertEqual(client.error_of("PING"), "MISCONF Errors writing to the AOF file: No space left on device")
        self.assertEqual(client.call("GET", "before"), "1")
        disk.make_room()
        deadline = time.monotonic() + harness.REPLY_TIMEOUT_S
        while info(client, "aof_last_write_status") != "ok":
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        self.assertEqual(client.call("SET", "after", "1"), "OK")
        digest = client.call("DEBUG", "DIGEST")
        wait_until_written(client)
        client.close()
        server.kill()
        server.start_again()
        with server.connect() as again:
            self.assertEqual(again.call("DEBUG", "DIGEST"), digest)
        self.assertIn("AOF write error looks solved, Redis can write again.", server.log())

    def test_with_always_the_server_ends_and_what_it_acknowledged_is_there(self):
        disk, server = self.start(appendfsync="always")
        self.addCleanup(lambda: shutil.rmtree(server.directory, ignore_errors=True))
        client = server.connect()
        disk.fill()
        acknowledged = self.write_until_refused(client, "x" * 3000)
        client.close()
        self.assertEqual(server.process.wait(harness.REPLY_TIMEOUT_S), 1)
        self.assertIn("Can't recover from AOF write error when the AOF fsync policy is 'always'. Exiting...", server.log())
        disk.make_room()
        server.start_again()
        self.addCleanup(server.stop)
        with server.connect() as again:
            self.assertIn(again.call("DBSIZE") - acknowledged, (0, 1))
            for number in range(acknowledged):
                self.assertEqual(again.call("STRLEN", "key:%d" % number), 3000)

    def test_a_rewrite_makes_room_for_what_the_file_does_not_take(self):
        _, server = self.start(appendfsync="everysec", enable_debug_command="yes")
        self.addCleanup(server.stop)
        client = server.connect()
        for _ in range(100_000):
            try:
                client.call("SET", "key", "x" * 30_000)
            except harness.ReplyError as error:
                self.assertEqual(str(error), "MISCONF Errors writing to the AOF file: No space left on device")
                break
        client.send("BGREWRITEAOF")
        self.assertEqual(client.read(), "Background append only file rewriting started")
        deadline = time.monotonic() + harness.REPLY_TIMEOUT_S
        while info(client, "aof_last_write_status") != "ok":
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        self.assertEqual(client.call("SET", "after", "1"), "OK")
        self.assertEqual(client.call("WAITAOF", 1, 0, harness.REPLY_TIMEOUT_S * 1000), [1, 0])
        digest = client.call("DEBUG", "DIGEST")
        client.close()
        server.kill()
        server.start_again()
        with server.connect() as again:
            self.assertEqual(again.call("DEBUG", "DIGEST"), digest)

    def test_a_rewrite_that_finds_no_room_leaves_everything_as_it_was(self):
        disk, server = self.start(appendfsync="everysec", enable_debug_command="yes")
        self.addCleanup(server.stop)
        client = server.connect()
        for number in range(100):
            client.call("SET", "key:%d" % number, os.urandom(2000))
        digest = client.call("DEBUG", "DIGEST")
        wait_until_written(client)
        disk.fill()
        client.send("BGREWRITEAOF")
        client.read()
        deadline = time.monotonic() + harness.REPLY_TIMEOUT_S
        while info(client, "aof_rewrite_in_progress") != "0" or info(client, "aof_last_bgrewrite_status") != "err":
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        client.close()
        disk.make_room()
        server.kill()
        server.start_again()
        with server.connect() as again:
            self.assertEqual(again.call("DEBUG", "DIGEST"), digest)


@harness.needs_reference
class Interchanged(unittest.TestCase):
    """A directory of append-only files is read by either server, whoever wrote it."""

    REQUESTS = """
        SET string hello|SET number 12345|SET fading x PXAT 9999999999999|APPEND number 6
        RPUSH list a b 1 2|LPOP list|SADD set a b c|SADD numbers 1 2 3|SPOP numbers
        ZADD zset 1 a 2.5 b inf c -inf d 3.14159265358979 e 1e20 f 0.1 g|ZPOPMIN zset
        HSET hash a 1 b 2 c 3|HPEXPIREAT hash 9999999999999 FIELDS 1 a|HSET hash d 4|HDEL hash c
        XADD stream 1-1 a b c d|XADD stream 2-1 a b|XADD stream 3-1 a b|XADD stream * z y|XDEL stream 2-1
        XGROUP CREATE stream group 0|XGROUP CREATE stream other 3-1 ENTRIESREAD 2
        XREADGROUP GROUP group alice COUNT 2 STREAMS stream >|XREADGROUP GROUP group bob COUNT 1 STREAMS stream >
        XACK stream group 1-1|XADD gone 5-5 a b|XDEL gone 5-5|XGROUP CREATE empty group $ MKSTREAM
        PFADD hll a b c|SETBIT bits 100 1|EVAL redis.call('set',KEYS[1],'byscript')redis.call('incr','scripted') 1 made
        SELECT 3|SET three x|MULTI|SET four x|EXPIREAT four 9999999999|EXEC|MOVE three 4|SELECT 0|GETDEL string|SET last 1
    """

    def write(self, client):
        for line in self.REQUESTS.strip().splitlines():
            for request in line.strip().split("|"):
                client.call(*(word.replace(")redis", ") redis") for word in request.split()))
        for number in range(300):
            client.call("RPUSH", "long", number)
            client.call("HSET", "wide", number, number * 7)
            client.call("SADD", "many", "member:%d" % number)
            client.call("ZADD", "ranked", number / 7, "member:%d" % number)

    def interchange(self, writer, reader, preamble, rewrite):
        options = {"appendonly": "yes", "enable_debug_command": "yes", "aof_use_rdb_preamble": preamble}
        first = harness.Server(program=writer, **options)
        try:
            with connect_when_loaded(first) as client:
                self.write(client)
                if rewrite:
                    client.call("BGREWRITEAOF")
                    while info(client, "aof_rewrite_in_progress") != "0":
                        time.sleep(0.02)
                    client.call("SET", "behind", "1")
                digest = client.call("DEBUG", "DIGEST")
                size = client.call("DBSIZE")
                client.send("SHUTDOWN")
                client.read_until_closed()
            first.process.wait()
            second = harness.Server(program=reader, dir=first.directory, **options)
            try:
                with connect_when_loaded(second) as client:
                    self.assertEqual(client.call("DBSIZE"), size)
                    self.assertEqual(client.call("DEBUG", "DIGEST"), digest)
                    client.call("SET", "more", "1")
                    digest = client.call("DEBUG", "DIGEST")
                    client.send("SHUTDOWN")
                    client.read_until_closed()
                second.process.wait()
                # And back again.
                third = harness.Server(program=writer, dir=first.directory, **options)
                try:
                    with connect_when_loaded(third) as client:
                        self.assertEqual(client.call("DEBUG", "DIGEST"), digest)
                finally:
                    third.stop()
            finally:
                second.stop()
        finally:
            first.stop()

    def test_theirs_is_read_here(self):
        for preamble in ("yes", "no"):
            for rewrite in (False, True):
                with self.subTest(preamble=preamble, rewrite=rewrite):
                    self.interchange(harness.reference("redis-server"), os.environ["LATCHKEY_SERVER"], preamble, rewrite)

    def test_ours_is_read_there(self):
        for preamble in ("yes", "no"):
            for rewrite in (False, True):
                with self.subTest(preamble=preamble, rewrite=rewrite):
                    self.interchange(os.environ["LATCHKEY_SERVER"], harness.reference("redis-server"), preamble, rewrite)


if __name__ == "__main__":
    unittest.main()

"""Snapshots: what is saved comes back, in this server and in the reference; what goes wrong costs nothing that was on disk."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import harness


class SnapshotTestCase(unittest.TestCase):
    """Servers of each test's own."""

    def server(self, **options):
        server = harness.Server(**{"enable_debug_command": "yes", "enable_protected_configs": "yes", **options})
        self.addCleanup(self.discard, server)
        return server

    @staticmethod
    def discard(server):
        if server.process is not None and server.process.poll() is None:
            server.process.kill()
            server.process.wait()
        shutil.rmtree(server.directory, ignore_errors=True)

    def connect(self, server):
        client = server.connect()
        self.addCleanup(client.close)
        return client

    def end(self, server, how=signal.SIGTERM):
        """Ends the process and returns its exit status; its directory stays."""
        server.process.send_signal(how)
        return server.process.wait(harness.START_TIMEOUT_S)

    def restart(self, server):
        self.end(server)
        server.start()
        client = self.connect(server)
        self.eventually(lambda: self.info(client, "loading") == "0")
        return client

    def info(self, client, field, section="everything"):
        for line in client.call("INFO", section).splitlines():
            if line.startswith(field + ":"):
                return line.split(":", 1)[1]
        return None

    def eventually(self, condition, timeout_s=harness.REPLY_TIMEOUT_S):
        deadline = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > deadline:
                self.fail("did not come to pass")
            time.sleep(0.01)

    def wait_for_child(self, client):
        self.eventually(lambda: self.info(client, "rdb_bgsave_in_progress") == "0")

    @staticmethod
    def child_of(server):
        """The one process that the server has forked."""
        path = "/proc/%d/task/%d/children" % (server.process.pid, server.process.pid)
        with open(path, encoding="ascii") as children:
            return int(children.read().split()[0])


def fill(client):
    """Keys of every type and encoding, some with deadlines, in two databases."""
    client.call("SET", "number", "12345")
    client.call("SET", "text", "hello")
    client.call("SET", "long", "x" * 20_000)
    client.call("SET", b"binary\x00\xff", os.urandom(300))
    client.call("SET", "volatile", "later", "PX", 3_600_000)
    client.call("SETRANGE", "raw", 30, "end")
    client.call("RPUSH", "list", *range(20))
    client.call("RPUSH", "long-list", *["element %d" % i for i in range(5000)])
    client.call("RPUSH", "plain-list", "a" * 70_000, "b")
    client.call("SADD", "numbers", *range(100))
    client.call("SADD", "large-numbers", *range(1 << 40, (1 << 40) + 1000))
    client.call("SADD", "words", "anna", "berta", "carla")
    client.call("SADD", "many-words", *["word %d" % i for i in range(1000)])
    client.call("HSET", "hash", "name", "anna", "age", "42")
    client.call("HSET", "large-hash", *[word for i in range(1000) for word in ("field %d" % i, i)])
    client.call("HSET", "volatile-hash", "a", "1", "b", "2")
    client.call("HPEXPIRE", "volatile-hash", 3_600_000, "FIELDS", 1, "a")
    client.call("HSET", "volatile-large-hash", *[word for i in range(1000) for word in ("field %d" % i, i)])
    client.call("HPEXPIRE", "volatile-large-hash", 3_600_000, "FIELDS", 2, "field 1", "field 7")
    client.call("ZADD", "scores", "1", "one", "2.5", "two", "-inf", "least", "inf", "most")
    client.call("ZADD", "many-scores", *[word for i in range(1000) for word in (i * 0.1, "member %d" % i)])
    for i in range(300):
        client.call("XADD", "stream", "%d-1" % (i + 1), "field", i, "other", "value")
    client.call("XGROUP", "CREATE", "stream", "group", "0")
    client.call("XREADGROUP", "GROUP", "group", "anna", "COUNT", 10, "STREAMS", "stream", ">")
    client.call("XACK", "stream", "group", "3-1")
    client.call("XDEL", "stream", "5-1")
    client.call("PFADD", "visitors", *range(1000))
    client.call("SELECT", "9")
    client.call("SET", "elsewhere", "1")
    client.call("SELECT", "0")


class Saved(SnapshotTestCase):
    def test_everything_is_back_after_a_restart(self):
        server = self.server(save=["3600", "1"])
        client = self.connect(server)
        fill(client)
        digest = client.call("DEBUG", "DIGEST")
        client = self.restart(server)
        self.assertEqual(client.call("DEBUG", "DIGEST"), digest)
        self.assertEqual(client.call("CONFIG", "GET", "save"), ["save", "3600 1"])
        self.assertEqual(self.info(client, "rdb_changes_since_last_save"), "0")
        self.assertIn("DB loaded from disk: ", server.log())

    def test_a_reload_changes_nothing(self):
        client = self.connect(self.server())
        fill(client)
        digest = client.call("DEBUG", "DIGEST")
        for compression in ("yes", "no"):
            client.call("CONFIG", "SET", "rdbcompression", compression)
            self.assertEqual(client.call("DEBUG", "RELOAD"), "OK")
            self.assertEqual(client.call("DEBUG", "DIGEST"), digest)

    def test_without_a_checksum_it_loads_as_well(self):
        server = self.server(rdbchecksum="no")
        client = self.connect(server)
        client.call("SET", "name", "anna")
        client.call("SAVE")
        client = self.restart(server)
        self.assertEqual(client.call("GET", "name"), "anna")

    @harness.needs_reference
    def test_files_go_to_the_reference_and_come_back(self):
        ours = self.server()
        client = self.connect(ours)
        fill(client)
        digest = client.call("DEBUG", "DIGEST")
        client.call("SAVE")
        theirs = self.server(program=harness.reference("redis-server"))
        self.end(theirs)
        shutil.copy(os.path.join(ours.directory, "dump.rdb"), theirs.directory)
        theirs.start()
        reference = self.connect(theirs)
        self.eventually(lambda: self.info(reference, "loading") == "0")
        self.assertEqual(reference.call("DEBUG", "DIGEST"), digest)
        reference.call("SAVE")
        client.call("FLUSHALL")
        shutil.copy(os.path.join(theirs.directory, "dump.rdb"), ours.directory)
        client = self.restart(ours)
        self.assertEqual(client.call("DEBUG", "DIGEST"), digest)


class InTheBackground(SnapshotTestCase):
    def test_a_save_point_is_met(self):
        server = self.server(save=["1", "1"])
        client = self.connect(server)
        client.call("SET", "name", "anna")
        self.eventually(lambda: "1 changes in 1 seconds. Saving..." in server.log())
        self.wait_for_child(client)
        self.assertTrue(os.path.exists(os.path.join(server.directory, "dump.rdb")))
        self.assertIn("Background saving terminated with success", server.log())

    def test_the_child_tells_how_far_it_has_come(self):
        client = self.connect(self.server())
        client.call("DEBUG", "POPULATE", "100000", "key", "200")
        client.call("CONFIG", "SET", "rdb-key-save-delay", "30")
        client.call("BGSAVE")
        self.eventually(lambda: int(self.info(client, "current_save_keys_processed")) > 0)
        self.assertEqual(self.info(client, "current_save_keys_total"), "100000")
        self.assertGreater(int(self.info(client, "current_cow_size")), 0)
        self.assertGreater(float(self.info(client, "current_fork_perc")), 0)
        client.call("FLUSHALL")
        self.wait_for_child(client)
        self.assertEqual(self.info(client, "current_save_keys_total"), "0")

    def test_the_child_is_known_by_its_title_and_holds_no_socket(self):
        server = self.server()
        client = self.connect(server)
        client.call("SET", "name", "anna")
        client.call("CONFIG", "SET", "rdb-key-save-delay", "60000000")
        client.call("BGSAVE")
        child = self.child_of(server)

        def title():
            with open("/proc/%d/cmdline" % child, "rb") as line:
                return line.read().split(b"\0")[0].decode()

        self.eventually(lambda: title().startswith("redis-rdb-bgsave "))
        self.eventually(lambda: not any(target.startswith("socket:") for target in self.descriptors(child)))
        client.call("FLUSHALL")
        self.wait_for_child(client)

    def test_the_child_has_processors_and_a_score_of_its_own(self):
        server = self.server(bgsave_cpulist="0", oom_score_adj="relative", oom_score_adj_values=["1", "2", "300"])
        client = self.connect(server)
        client.call("SET", "name", "anna")
        client.call("CONFIG", "SET", "rdb-key-save-delay", "60000000")
        client.call("BGSAVE")
        child = self.child_of(server)

        def read(pid, name):
            with open("/proc/%d/%s" % (pid, name), encoding="ascii") as file:
                return file.read()

        own = int(read(server.process.pid, "oom_score_adj"))
        self.eventually(lambda: int(read(child, "oom_score_adj")) == own + 299)
        self.assertIn("Cpus_allowed_list:\t0\n", read(child, "status"))
        client.call("FLUSHALL")
        self.wait_for_child(client)

    @staticmethod
    def descriptors(pid):
        directory = "/proc/%d/fd" % pid
        return [os.readlink(os.path.join(directory, number)) for number in os.listdir(directory)]

    def test_a_child_that_is_killed_costs_nothing_that_was_saved(self):
        server = self.server(save=["3600", "1"])
        client = self.connect(server)
        client.call("SET", "name", "anna")
        client.call("SAVE")
        client.call("SET", "name", "berta")
        client.call("CONFIG", "SET", "rdb-key-save-delay", "60000000")
        client.call("BGSAVE")
        os.kill(self.child_of(server), signal.SIGKILL)
        self.wait_for_child(client)
        self.assertEqual(self.info(client, "rdb_last_bgsave_status"), "err")
        self.assertTrue(client.error_of("SET", "name", "carla").startswith("MISCONF "))
        self.assertTrue(client.error_of("EVAL", "return redis.call('SET', KEYS[1], '1')", "1", "name").startswith("MISCONF "))
        self.assertEqual(client.call("EVAL", "return redis.call('GET', KEYS[1])", "1", "name"), "berta")
        self.assertEqual(sorted(os.listdir(server.directory)), ["dump.rdb", "log"])
        self.end(server, signal.SIGKILL)
        server.start()
        self.assertEqual(self.connect(server).call("GET", "name"), "anna")


class WhenTheDiskFails(SnapshotTestCase):
    def test_a_directory_that_is_gone(self):
        server = self.server(save=["3600", "1"])
        client = self.connect(server)
        place = os.path.join(server.directory, "place")
        os.mkdir(place)
        client.call("CONFIG", "SET", "dir", place)
        client.call("SET", "name", "anna")
        os.rmdir(place)
        self.assertEqual(client.error_of("SAVE"), "ERR")
        client.call("BGSAVE")
        self.wait_for_child(client)
        self.assertTrue(client.error_of("SET", "name", "berta").startswith("MISCONF "))
        self.assertEqual(client.error_of("SHUTDOWN"), "ERR Errors trying to SHUTDOWN. Check logs.")
        server.process.send_signal(signal.SIGTERM)
        self.eventually(lambda: server.log().count("Error trying to save the DB, can't exit.") == 2)
        self.assertIn("(in server root dir unknown) for saving: No such file or directory", server.log())
        client.call("CONFIG", "SET", "dir", server.directory)
        client.call("SAVE")
        self.assertEqual(client.call("SET", "name", "berta"), "OK")
        self.assertEqual(self.end(server), 0)

    def test_a_disk_that_is_full(self):
        place = tempfile.mkdtemp(prefix="latchkey-small-")
        self.addCleanup(os.rmdir, place)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", place], capture_output=True,
                          check=False).returncode != 0:
            self.skipTest("may not mount a small file system")
        self.addCleanup(subprocess.run, ["umount", "-l", place], check=True)
        server = self.server(save=["3600", "1"])
        client = self.connect(server)
        client.call("CONFIG", "SET", "dir", place)
        client.call("SET", "name", "anna")
        client.call("SAVE")
        with open(os.path.join(place, "dump.rdb"), "rb") as file:
            saved = file.read()
        client.call("SET", "large", os.urandom(1 << 20))
        self.assertEqual(client.error_of("SAVE"), "ERR")
        client.call("BGSAVE")
        self.wait_for_child(client)
        self.assertEqual(self.info(client, "rdb_last_bgsave_status"), "err")
        self.assertIn("Write error while saving DB to the disk(rdbSaveRio): No space left on device", server.log())
        self.assertEqual(os.listdir(place), ["dump.rdb"])
        with open(os.path.join(place, "dump.rdb"), "rb") as file:
            self.assertEqual(file.read(), saved)
        self.assertEqual(client.error_of("SHUTDOWN"), "ERR Errors trying to SHUTDOWN. Check logs.")
        self.end(server, signal.SIGKILL)


class Loading(SnapshotTestCase):
    def slowly_loading(self):
        server = self.server(key_load_delay="50", loading_process_events_interval_bytes="1024")
        client = self.connect(server)
        client.call("DEBUG", "POPULATE", "100000", "key", "1000")
        client.call("CONFIG", "SET", "rdbcompression", "no")
        client.call("SAVE")
        self.end(server)
        server.start()
        return server

    def test_clients_are_told_to_wait(self):
        server = self.slowly_loading()
        client = self.connect(server)
        self.assertEqual(client.error_of("GET", "key:1"), "LOADING Redis is loading the dataset in memory")
        self.assertEqual(client.error_of("DEBUG", "RELOAD"), "LOADING Redis is loading the dataset in memory")
        self.assertEqual(self.info(client, "loading"), "1")
        self.eventually(lambda: int(self.info(client, "loading_loaded_bytes") or "0") > 0)
        self.assertGreater(int(self.info(client, "loading_total_bytes")), 100_000_000)
        self.assertGreater(int(self.info(client, "rdb_last_load_keys_loaded")), 0)
        for _ in range(5):
            with server.connect() as other:
                other.call("CLIENT", "ID")
        self.eventually(lambda: self.info(client, "connected_clients") == "1")
        self.assertEqual(self.info(client, "loading"), "1")
        self.assertEqual(self.end(server), 0)
        self.assertIn("Received shutdown signal during loading, scheduling shutdown.", server.log())

    def test_a_file_that_is_damaged_is_refused(self):
        server = self.server()
        client = self.connect(server)
        client.call("SET", "name", "anna")
        client.call("SAVE")
        self.end(server)
        path = os.path.join(server.directory, "dump.rdb")
        with open(path, "rb") as file:
            whole = file.read()
        explained = "Terminating server after rdb file reading failure."
        for damaged, reason, end in ((whole[:-10], "Internal error in RDB reading offset", explained),
                                     (whole[:-8] + b"foobar00", "RDB CRC error", explained),
                                     (b"", "Short read", explained),
                                     (b"x" * 100, "Wrong signature", "Fatal error loading the DB, check server logs. Exiting.")):
            with open(path, "wb") as file:
                file.write(damaged)
            with self.subTest(reason):
                process = subprocess.run([server.program, "--port", str(server.port), "--dir", server.directory],
                                         capture_output=True, text=True, timeout=harness.START_TIMEOUT_S, check=False)
                self.assertEqual(process.returncode, 1)
                self.assertIn(reason, process.stdout)
                self.assertIn(end, process.stdout.splitlines()[-1])


class Ending(SnapshotTestCase):
    def test_a_second_interrupt_leaves_no_temporary_file(self):
        server = self.server(save=["900", "1"])
        client = self.connect(server)
        client.call("MSET", *[word for i in range(20) for word in ("key %d" % i, "value")])
        client.call("CONFIG", "SET", "rdb-key-save-delay", "500000")
        temporary = os.path.join(server.directory, "temp-%d.rdb" % server.process.pid)
        server.process.send_signal(signal.SIGINT)
        self.eventually(lambda: os.path.exists(temporary))
        self.assertEqual(self.end(server, signal.SIGINT), 1)
        self.assertFalse(os.path.exists(temporary))

    def test_a_signal_can_be_taken_back_while_it_waits(self):
        server = self.server(save=["900", "1"])
        client = self.connect(server)
        client.call("DEBUG", "PAUSE-CRON", "1")
        server.process.send_signal(signal.SIGTERM)
        self.eventually(lambda: "Received SIGTERM scheduling shutdown..." in server.log())
        self.assertEqual(client.call("SHUTDOWN", "ABORT"), "OK")
        self.assertIn("Shutdown manually aborted.", server.log())
        client.call("DEBUG", "PAUSE-CRON", "0")
        self.assertEqual(client.call("PING"), "PONG")


if __name__ == "__main__":
    unittest.main()

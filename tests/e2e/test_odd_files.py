"""Files that are none, or far too much: pipes that nobody writes to, devices that never end, includes that multiply, and lists as
long as nobody writes them. A server that is told to read one says what is wrong with it, and never waits for ever."""

import os
import subprocess
import tempfile
import threading
import unittest

import harness

END_TIMEOUT_S = 60


class OddFiles(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="latchkey-e2e-")
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def path(self, *names):
        return os.path.join(self.directory, *names)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def pipe(self, *names):
        os.mkfifo(self.path(*names))
        return self.path(*names)

    def run_to_its_end(self, *arguments):
        """What the program says that must not start, or only checks its configuration."""
        command = [os.environ["LATCHKEY_SERVER"], *arguments, "--dir", self.directory]
        return subprocess.run(command, capture_output=True, text=True, timeout=END_TIMEOUT_S, check=False)

    def fails_with(self, text, *arguments):
        result = self.run_to_its_end(*arguments, "--port", "0", "--unixsocket", self.path("socket"))
        self.assertIn(text, result.stdout + result.stderr)
        self.assertEqual(result.returncode, 1)

    def start(self, **more):
        server = harness.Server(**more)
        self.addCleanup(server.stop)
        return server


class Configurations(OddFiles):
    def test_files_that_include_each_other_twice_are_given_up(self):
        # Each includes the next one twice, which are 2^30 files.
        for i in range(30):
            self.write(f"{i}.conf", f"include {self.path(str(i + 1))}.conf\n" * 2)
        self.write("30.conf", "hz 20\n")
        self.fails_with("more than 10000 files are included", self.path("0.conf"))
        checked = self.run_to_its_end("--check-config", self.path("0.conf"))
        self.assertEqual(checked.returncode, 1)
        self.assertIn("more than 10000 files are included", checked.stdout)

    def test_many_files_may_be_included(self):
        os.mkdir(self.path("parts"))
        for i in range(500):
            self.write(f"parts/{i}.conf", f"user u{i} on nopass ~{i}:* +get\n")
        server = self.start(file=self.write("main.conf", f"include {self.path('parts')}/*.conf\n"))
        with server.connect() as client:
            self.assertEqual(len(client.call("ACL", "USERS")), 501)

    def test_twenty_thousand_users(self):
        users = "".join(f"user u{i} on nopass ~{i}:* +get\n" for i in range(20_000))
        server = self.start(file=self.write("users.conf", users))
        with server.connect() as client:
            self.assertEqual(len(client.call("ACL", "USERS")), 20_001)

    def test_a_user_is_named_once(self):
        self.fails_with("Duplicate user found", self.write("twice.conf", "user a on\nuser b on\nuser a off\n"))

    def test_a_pipe_is_read_while_somebody_writes_to_it(self):
        path = self.pipe("main.conf")

        def write():
            with open(path, "w", encoding="utf-8") as file:
                file.write("hz 37\n")

        writer = threading.Thread(target=write)
        writer.start()
        self.addCleanup(writer.join)
        server = self.start(file=path)
        with server.connect() as client:
            self.assertEqual(client.call("CONFIG", "GET", "hz"), ["hz", "37"])
            # It is not waited for again, and not replaced.
            self.assertEqual(client.error_of("CONFIG", "REWRITE"), "ERR Rewriting config file: It is a pipe or a device")

    def test_a_pipe_that_nobody_writes_to_is_given_up(self):
        self.fails_with("It is a pipe, and nobody writes to it", self.pipe("main.conf"))


class Users(OddFiles):
    def test_a_device_is_no_list_of_users(self):
        self.fails_with("opening file '/dev/zero': File too large", "--aclfile", "/dev/zero")

    def test_a_pipe_is_read_at_the_start_alone(self):
        path = self.pipe("users")

        def write():
            with open(path, "w", encoding="utf-8") as file:
                file.write("user eve on nopass ~* +@all\n")

        writer = threading.Thread(target=write)
        writer.start()
        self.addCleanup(writer.join)
        server = self.start(aclfile=path)
        with server.connect() as client:
            self.assertEqual(client.call("ACL", "USERS"), ["default", "eve"])
            self.assertIn("It is a pipe or a device", client.error_of("ACL", "LOAD"))
            self.assertEqual(client.call("ACL", "USERS"), ["default", "eve"])


class Datasets(OddFiles):
    def test_a_pipe_is_no_snapshot(self):
        self.pipe("dump.rdb")
        self.fails_with("can't open the RDB file dump.rdb for reading: It is a pipe or a device")

    def test_a_pipe_is_no_append_only_file(self):
        server = self.start(appendonly="yes")
        names = os.listdir(os.path.join(server.directory, "appendonlydir"))
        os.mkdir(self.path("appendonlydir"))
        for name in names:
            with open(os.path.join(server.directory, "appendonlydir", name), "rb") as file:
                content = file.read()
            with open(self.path("appendonlydir", name), "wb") as file:
                file.write(content)
        manifest = next(name for name in names if name.endswith(".manifest"))
        for name in sorted(names, key=lambda name: name == manifest):
            os.remove(self.path("appendonlydir", name))
            self.pipe("appendonlydir", name)
            with self.subTest(name):
                self.fails_with("It is a pipe or a device", "--appendonly", "yes")
            os.remove(self.path("appendonlydir", name))
            with open(os.path.join(server.directory, "appendonlydir", name), "rb") as source:
                with open(self.path("appendonlydir", name), "wb") as file:
                    file.write(source.read())

    def test_a_pipe_and_a_device_are_no_list_of_nodes(self):
        self.pipe("nodes.conf")
        self.fails_with("It is a pipe or a device", "--cluster-enabled", "yes")
        os.remove(self.path("nodes.conf"))
        os.symlink("/dev/zero", self.path("nodes.conf"))
        self.fails_with("It is a pipe or a device", "--cluster-enabled", "yes")


if __name__ == "__main__":
    unittest.main()

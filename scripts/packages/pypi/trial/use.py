"""The package as a program uses it, with redis-py: python use.py. Each test of it fails alone."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import latchkey
import redis


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def until(condition):
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "it did not come in 30 s"
        time.sleep(0.02)


def connected(url):
    return redis.Redis.from_url(url, decode_responses=True)


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = latchkey.start()
        cls.addClassCleanup(cls.server.stop)
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="latchkey-try-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)

    def says(self, pattern):
        return self.assertRaisesRegex(latchkey.LatchkeyError, pattern)

    def program(self, content, mode=0o755):
        path = self.folder / self._testMethodName
        path.write_bytes(content)
        path.chmod(mode)
        return path

    def test_set_and_get(self):
        with connected(self.server.url) as client:
            self.assertTrue(client.set("key", "value"))
            self.assertEqual(client.get("key"), "value")
            self.assertEqual(client.info("server")["server_name"], "latchkey")

    def test_the_program_is_the_wheels(self):
        self.assertTrue(latchkey.binary_path().startswith(sys.prefix), latchkey.binary_path())

    def test_spaces(self):
        with connected(self.server.space("one")) as one, connected(self.server.space("other")) as other, \
                connected(self.server.space("one")) as again:
            one.set("key", "of one")
            self.assertIsNone(other.get("key"))
            other.flushall()
            self.assertEqual(again.get("key"), "of one")
        self.assertNotEqual(self.server.space(), self.server.space())
        with connected(self.server.space("a/b:c@d%e")) as client:
            self.assertTrue(client.ping())
            self.assertIn("a/b:c@d%e", str(client.execute_command("SPACE", "LIST")))

    def test_names_of_spaces(self):
        for name in ("", "main", "MAIN", "two words", "grün", "x" * 129, 7):
            with self.says("1 to 128 printable ASCII characters"):
                self.server.space(name)
        with self.says("needs a host and a port"):
            latchkey.space("unix:///tmp/x.sock", "one")

    def test_directives_and_password(self):
        directives = {"maxmemory": "50mb", "emulate": ["redis", "7.0"], "requirepass": "se cret", "lazyfree-lazy-expire": True}
        with latchkey.start(directives=directives) as server, connected(server.url) as client, connected(server.space("a")) as inside:
            self.assertEqual(client.config_get("maxmemory", "lazyfree-lazy-expire"),
                             {"maxmemory": "52428800", "lazyfree-lazy-expire": "yes"})
            self.assertTrue(inside.ping())

    def test_a_password_that_is_a_number_or_a_list(self):
        for password in (1234, ["secret"]):
            with latchkey.start(directives={"requirepass": password}) as server, connected(server.url) as client:
                self.assertTrue(client.ping())

    def test_a_directive_that_is_repeated(self):
        users = [("user", ["alice", "on"]), ("user", ["bob", "on"])]
        with latchkey.start(directives=[*users, ("maxmemory", "50mb")]) as server, connected(server.url) as client:
            self.assertEqual(client.acl_users(), ["alice", "bob", "default"])
            self.assertEqual(client.config_get("maxmemory"), {"maxmemory": "52428800"})

    def test_configuration_file(self):
        (self.folder / "server.conf").write_text('databases 3\nsave ""\n')
        with latchkey.start(config=self.folder / "server.conf") as server, connected(server.url) as client:
            self.assertEqual(client.config_get("databases"), {"databases": "3"})
        # The server says this on standard output, where the URL would be.
        with self.says("(?s)ended with status 1.*open config file '/nonexistent/server.conf'"):
            latchkey.start(config="/nonexistent/server.conf")

    def test_stop(self):
        server = latchkey.start()
        folder = server._directory
        self.assertTrue(os.path.isdir(folder))
        server.stop()
        server.stop()
        self.assertFalse(alive(server.pid))
        self.assertFalse(os.path.exists(folder))

    def test_a_forked_process_leaves_the_server_alone(self):
        with latchkey.start() as server, connected(server.url) as client:
            child = os.fork()
            if child == 0:
                server.stop()
                os._exit(0)
            os.waitpid(child, 0)
            self.assertTrue(os.path.isdir(server._directory))
            self.assertTrue(client.ping())

    def test_port_in_use(self):
        with self.says(f"^Port {self.server.port} is in use. Leave port out to get a free one"):
            latchkey.start(port=self.server.port)
        with self.says("1 to 65535"):
            latchkey.start(port=70000)

    def test_unknown_directive(self):
        with self.says("(?s)ended with status 1.*nonsense"):
            latchkey.start(directives={"nonsense": 1})

    def test_programs_that_cannot_be_run(self):
        with self.says("is not there"):
            latchkey.start(binary="/nonexistent/latchkey-server")
        with self.says(r"not for this kind of machine"):
            latchkey.start(binary=self.program(b"\x7fELF\2\1\1" + b"\xff" * 200))
        with self.says(r"may not be executed. Run chmod \+x"):
            latchkey.start(binary=self.program(b"#!/bin/sh\n", mode=0o644))

    def test_no_room_for_temporary_files(self):
        self.addCleanup(setattr, tempfile, "tempdir", tempfile.tempdir)
        tempfile.tempdir = "/proc/self"
        with self.says("No folder can be made for temporary files .*/proc/self.*Free some space"):
            latchkey.start()

    def test_slow_server(self):
        slow = self.program(b"#!/bin/sh\necho still loading >&2\nexec sleep 60\n")
        with self.says("(?s)not ready after 0.2 s.*still loading"):
            latchkey.start(binary=slow, timeout=0.2)

    def test_another_platform(self):
        program = ("import sys; sys.platform = 'darwin'; import latchkey\n"
                   "try: latchkey.start()\nexcept latchkey.LatchkeyError as error: print(error)")
        said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout
        self.assertRegex(said, "no program for darwin .*Linux on x86_64 and aarch64.*LATCHKEY_SERVER_BINARY")

    def test_it_ends_with_its_parent(self):
        for end in ("os.kill(os.getpid(), 9)", "pass"):
            program = f"import os, latchkey; print(latchkey.start().pid, flush=True); {end}"
            parent = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
            until(lambda: not alive(int(parent.stdout)))

    def test_python_m_latchkey_is_the_server(self):
        port = int(os.environ["TRIAL_PORT"])
        for command in ([sys.executable, "-m", "latchkey"], [os.path.join(sys.prefix, "bin", "latchkey-server")]):
            process = subprocess.Popen([*command, "--port", str(port), "--save", ""], stdout=subprocess.DEVNULL, cwd=self.folder)
            client = connected(f"redis://127.0.0.1:{port}")

            def answers():
                try:
                    return client.ping()
                except redis.ConnectionError:
                    return False

            until(answers)
            self.assertEqual(client.info("server")["process_id"], process.pid)
            client.close()
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(30), 0)

    def test_as_pytest_redis_runs_it(self):
        # pytest-redis is not in Debian 12. What it does with `redis_exec`: it asks for the version, and starts the program like this.
        program = os.path.join(sys.prefix, "bin", "latchkey-server")
        with os.popen(f"{program} --version") as output:
            self.assertRegex(output.read(), r"\d+(\.\d+)+")
        port = int(os.environ["TRIAL_PORT"]) + 1
        folder = str(self.folder)
        process = subprocess.Popen(
            [program, "--daemonize", "no", "--rdbcompression", "yes", "--rdbchecksum", "no", "--appendonly", "no", "--databases", "8",
             "--timeout", "30", "--pidfile", f"{folder}/pid", "--unixsocket", f"{folder}/socket", "--dbfilename", f"dump.{port}.rdb",
             "--logfile", f"{folder}/log", "--loglevel", "notice", "--syslog-enabled", "no", "--bind", "127.0.0.1",
             "--port", str(port), "--dir", folder, "--save 60 1"])
        until(lambda: os.path.exists(f"{folder}/socket"))
        with connected(f"redis://127.0.0.1:{port}/7") as client:
            self.assertTrue(client.set("key", "value"))
            self.assertEqual(client.get("key"), "value")
        process.terminate()
        self.assertEqual(process.wait(30), 0)


if __name__ == "__main__":
    unittest.main()

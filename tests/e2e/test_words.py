"""What the server says to people: on its command line, in its log, and on a terminal."""

import os
import pty
import re
import select
import shutil
import socket
import stat
import subprocess
import tempfile
import time
import unittest

import harness

END_TIMEOUT_S = 60


def run(*arguments, standard_input=None, **how):
    """The program with these arguments, to its end."""
    return subprocess.run([os.environ["LATCHKEY_SERVER"], *arguments], capture_output=True, text=True, input=standard_input,
                          timeout=END_TIMEOUT_S, check=False, **how)


NOBODY = 65534


class DirectoryTestCase(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="latchkey-e2e-")
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def as_nobody(self, *arguments):
        """The command line of a copy of the program that a user without rights reaches; the directory is left readable."""
        os.chmod(self.directory, 0o755)
        place = tempfile.TemporaryDirectory(prefix="latchkey-e2e-")
        self.addCleanup(place.cleanup)
        os.chmod(place.name, 0o755)
        return [shutil.copy(os.environ["LATCHKEY_SERVER"], os.path.join(place.name, "latchkey-server")), *arguments]

    def write(self, name, text):
        path = os.path.join(self.directory, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path


class CheckingAConfiguration(DirectoryTestCase):
    def test_all_that_is_wrong_is_told_at_once(self):
        path = self.write("bad.conf", "prot 6379\nport 70000\nuser bob on +nosuchcmd\nuser eve on +@none\nrename-command nosuch x\n"
                                      "tls-port 6380\nmaxmemory 10xb\n")
        result = run("--check-config", path, "--loglevel", "loud")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr, "")
        for words in (f"{path}:1: prot 6379\n  There is no such directive\n  Did you mean 'port'?",
                      f"{path}:2: port 70000\n  argument must be between 0 and 65535 inclusive",
                      f"{path}:3: user bob on +nosuchcmd\n  Error loading ACL rule '+nosuchcmd' for the user named 'bob'",
                      f"{path}:4: user eve on +@none\n  Error loading ACL rule '+@none' for the user named 'eve'",
                      f"{path}:5: rename-command nosuch x\n  No such command in rename-command",
                      f"{path}:7: maxmemory 10xb\n  argument must be a memory value",
                      "command line: loglevel \"loud\"\n  argument(s) must be one of the following",
                      "TLS cannot be set up\n  No tls-cert-file configured!"):
            self.assertIn(words, result.stdout)
        self.assertTrue(result.stdout.endswith("\n8 problems\n"), result.stdout)

    def test_the_own_configuration_is_fine(self):
        conf = os.path.join(os.path.dirname(__file__), "..", "..", "conf", "latchkey.conf")
        result = run(conf, "--check-config", cwd=self.directory)
        self.assertEqual((result.returncode, result.stdout), (0, "No problems found\n"))
        self.assertEqual(os.listdir(self.directory), [])

    def test_a_sentinels_configuration_is_fine_and_stays_as_it_is(self):
        text = "port 0\nsentinel monitor main 127.0.0.1 6379 2\n"
        path = self.write("sentinel.conf", text)
        result = run(path, "--sentinel", "--check-config")
        self.assertEqual((result.returncode, result.stdout), (0, "No problems found\n"))
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), text)
        path = self.write("sentinel.conf", "port 0\nsentinel monitor main 127.0.0.1 6379 none\n")
        self.assertIn(f"{path}:2: sentinel monitor main", run(path, "--sentinel", "--check-config").stdout)

    def test_a_device_is_no_configuration(self):
        result = run("--check-config", "/dev/zero")
        self.assertEqual((result.returncode, result.stdout),
                         (1, "Fatal error, can't open config file '/dev/zero': File too large\n1 problem\n"))

    def test_standard_input_is_checked_too(self):
        result = run("--check-config", "-", "--dir", self.directory, standard_input="hz many\n")
        self.assertEqual(result.returncode, 1)
        self.assertIn("standard input:1: hz many\n", result.stdout)
        self.assertTrue(result.stdout.endswith("\n1 problem\n"))

    def test_each_line_is_told_with_its_place(self):
        self.write("bad.conf", "dir /\nbogus 1")
        result = run("--check-config", "bad.conf", "--nosuch", "1", "-", standard_input="\nhz many\n", cwd=self.directory)
        self.assertIn("bad.conf:2: bogus 1\n", result.stdout)
        self.assertIn("standard input:2: hz many\n", result.stdout)
        self.assertIn('command line: nosuch "1"\n', result.stdout)

    def test_a_file_that_is_not_there(self):
        result = run("--check-config", os.path.join(self.directory, "none.conf"))
        self.assertEqual(result.returncode, 1)
        self.assertIn("can't open config file", result.stdout)

    @unittest.skipIf(os.geteuid() != 0, "becoming another user takes root")
    def test_a_directory_that_cannot_be_written_to(self):
        def check(save):
            command = self.as_nobody("--check-config", "--dir", self.directory, "--save", save)
            return subprocess.run(command, capture_output=True, text=True, check=False, user=NOBODY, cwd="/")

        result = check("60 1")
        self.assertEqual(result.returncode, 1)
        self.assertIn(f"Data cannot be written to {self.directory}: Permission denied\n", result.stdout)
        self.assertRegex(result.stdout, r"belongs to user root, and this process runs as \w+: chown")
        # Where nothing is saved nothing has to be written.
        self.assertEqual(check("").returncode, 0)


class Explaining(unittest.TestCase):
    def test_a_directive(self):
        result = run("--explain", "maxmemory")
        self.assertEqual(result.returncode, 0)
        self.assertIn("How much memory data may take", result.stdout)
        self.assertIn("default   maxmemory 0", result.stdout)

    def test_all_of_them_are_a_configuration(self):
        text = run("--explain").stdout
        self.assertEqual(run("--check-config", "-", standard_input=text).stdout, "No problems found\n")

    def test_one_that_there_is_not(self):
        result = run("--explain", "maxmemroy")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertEqual(result.stderr, "There is no directive 'maxmemroy'. Did you mean 'maxmemory'?\n")


class CheckingTheSystem(unittest.TestCase):
    def test_each_check_says_what_it_found(self):
        lines = run("--check-system").stdout.splitlines()
        for name in ("slow-clocksource", "overcommit", "THP", "backlog", "open-files"):
            self.assertTrue(any(re.fullmatch(rf"\[{name}\]\.\.\.(OK|WARNING:)", line) for line in lines), (name, lines))

    def test_a_limit_of_open_files_is_told_with_its_figure(self):
        result = subprocess.run(["sh", "-c", 'ulimit -n 500; exec "$0" --check-system', os.environ["LATCHKEY_SERVER"]],
                                capture_output=True, text=True, check=True)
        self.assertIn("The process may open 500 files, and maxclients 10000 needs 10032.", result.stdout)


class StartingWithMistakes(DirectoryTestCase):
    def test_the_nearest_directive_is_named(self):
        self.assertIn("Did you mean 'port'?", run("--prot", "1", "--dir", self.directory).stdout)
        wrong = run("--port", "99999")
        self.assertIn("argument must be between 0 and 65535 inclusive\nWhat it takes: latchkey-server --explain port\n", wrong.stderr)

    def test_whoever_has_the_port_is_named(self):
        server = harness.Server()
        self.addCleanup(server.stop)
        result = run("--port", str(server.port), "--dir", self.directory, "--save", "")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stdout, rf"Port {server.port} is used by process {server.process.pid} \(.*\)\.")

    def test_a_snapshot_that_cannot_be_read(self):
        self.write("dump.rdb", "REDIS0011 and then nothing of the kind")
        result = run("--port", "auto", "--dir", self.directory)
        self.assertEqual(result.returncode, 1)
        path = os.path.join(os.path.realpath(self.directory), "dump.rdb")
        self.assertIn(f"The dataset could not be read from {path}. Look into it with: redis-check-rdb {path}\n", result.stdout)

    def test_an_append_only_file_that_cannot_be_read(self):
        os.mkdir(os.path.join(self.directory, "appendonlydir"))
        self.write("appendonlydir/appendonly.aof.manifest", "file appendonly.aof.1.incr.aof seq 1 type i\n")
        self.write("appendonlydir/appendonly.aof.1.incr.aof", "*1\r\nnonsense\r\n*1\r\n$4\r\nPING\r\n")
        result = run("--port", "auto", "--dir", self.directory, "--appendonly", "yes")
        self.assertEqual(result.returncode, 1)
        path = os.path.join(os.path.realpath(self.directory), "appendonlydir", "appendonly.aof.manifest")
        self.assertIn(f"The dataset could not be read from {path}. Look into it with: redis-check-aof {path}\n", result.stdout)


class Pinging(DirectoryTestCase):
    def ping(self, *options):
        return run(*options, "--ping")

    def test_a_server_at_a_port_and_at_a_socket(self):
        server = harness.Server(unixsocket=os.path.join(self.directory, "socket"))
        self.addCleanup(server.stop)
        for options in (["--port", str(server.port)],
                        ["--port", str(server.port), "--bind", "127.0.0.1"],
                        ["--port", "0", "--unixsocket", os.path.join(self.directory, "socket")],
                        [self.write("its.conf", f"port {server.port}\n")]):
            result = self.ping(*options)
            self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "PONG\n", ""), options)

    def test_it_makes_no_log_file_and_needs_none(self):
        server = harness.Server()
        self.addCleanup(server.stop)
        log = os.path.join(self.directory, "its.log")
        self.assertEqual(self.ping("--port", str(server.port), "--logfile", log).stdout, "PONG\n")
        self.assertEqual(os.listdir(self.directory), [])
        # A directory that this user may not write to, or that is not there, is the server's concern.
        away = os.path.join(self.directory, "away", "its.log")
        self.assertEqual(self.ping("--port", str(server.port), "--logfile", away).stdout, "PONG\n")
        wrong = self.ping("--port", "seven")
        self.assertEqual((wrong.returncode, wrong.stdout), (1, ""))
        self.assertIn("'port \"seven\"'\n", wrong.stderr)

    def test_a_server_that_wants_a_password_serves(self):
        server = harness.Server(requirepass="secret")
        self.addCleanup(server.stop)
        result = self.ping("--port", str(server.port))
        self.assertEqual(result.returncode, 0)
        self.assertIn("NOAUTH", result.stdout)

    def test_nobody_there(self):
        result = self.ping("--port", str(harness.free_port()))
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertRegex(result.stderr, r"no server at 127\.0\.0\.1:\d+: Connection refused\n")
        result = self.ping("--port", "0", "--unixsocket", os.path.join(self.directory, "none"))
        self.assertIn("No such file or directory", result.stderr)
        self.assertIn("File name too long", self.ping("--port", "0", "--unixsocket", "/" + "x" * 200).stderr)
        self.assertIn("neither a port", self.ping("--port", "0").stderr)

    def test_whoever_answers_something_else(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            for answer, words in ((b"", "closed without a reply"), (b"HTTP/1.0 400 Bad Request\r\n", "TTP/1.0"),
                                  (b"-LOADING loading\r\n", "LOADING"), (b"\r\n", "\n")):
                process = subprocess.Popen([os.environ["LATCHKEY_SERVER"], "--port", str(port), "--ping"],
                                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                peer, _ = listener.accept()
                with peer:
                    peer.recv(100)
                    peer.sendall(answer)
                _, errors = process.communicate(timeout=END_TIMEOUT_S)
                self.assertEqual(process.returncode, 1, answer)
                self.assertIn(words, errors)

    def test_whoever_says_nothing(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            result = self.ping("--port", str(listener.getsockname()[1]))
            self.assertEqual((result.returncode, result.stderr), (1, "no reply came within two seconds\n"))


class TheLog(harness.ServerTestCase):
    options = {"loglevel": "verbose", "enable-debug-command": "yes"}

    def test_an_unknown_command_is_told_with_what_was_meant(self):
        client = self.connect()
        number = client.call("CLIENT", "ID")
        self.assertIn("unknown command 'gte'", client.error_of("gte", "k"))
        self.assertIn(f"Client id={number} sent an unknown command 'gte'. Did it mean get?", self.server.log())
        client.error_of("nothinglikeit")
        self.assertIn("sent an unknown command 'nothinglikeit'\n", self.server.log())
        client.call("CONFIG", "SET", "hide-user-data-from-log", "yes")
        client.error_of("sercet", "k")
        client.call("CONFIG", "SET", "hide-user-data-from-log", "no")
        self.assertNotIn("sercet", self.server.log())

    def test_a_rewrite_tells_of_its_progress(self):
        client = self.connect()
        client.call("DEBUG", "POPULATE", "300")
        client.call("CONFIG", "SET", "rdb-key-save-delay", "20000")
        client.call("BGREWRITEAOF")
        self.eventually(lambda: re.search(r"Rewriting the append-only file: \d+ %, \d+ keys of 300 keys, .* s left", self.server.log()))
        client.call("CONFIG", "SET", "rdb-key-save-delay", "0")
        self.eventually(lambda: "aof_rewrite_in_progress:0" in client.call("INFO", "persistence"))


class Room(DirectoryTestCase):
    @unittest.skipIf(os.geteuid() != 0, "mounting a file system takes root")
    def test_a_full_disk(self):
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", self.directory], check=False,
                          stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("file systems cannot be mounted here")
        self.addCleanup(subprocess.run, ["umount", "-l", self.directory], check=False)
        server = harness.Server(dir=self.directory, enable_debug_command="yes")
        self.addCleanup(server.stop)
        with server.connect() as client:
            client.call("DEBUG", "POPULATE", "1000", "key", "1000")
            client.call("CONFIG", "SET", "rdbcompression", "no")
            client.error_of("SAVE")
        self.assertRegex(server.log(), rf"The file system of {re.escape(os.path.realpath(self.directory))} has \S+ left of "
                                       r"256\.00K for user root: make room there, or move the data with CONFIG SET dir\.")

    @unittest.skipIf(os.geteuid() != 0, "becoming another user takes root")
    def test_a_directory_of_somebody_else(self):
        process = subprocess.Popen(self.as_nobody("--port", "auto", "--print-url", "--dir", self.directory, "--save", ""),
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, user=NOBODY, cwd="/")
        self.addCleanup(process.wait)
        self.addCleanup(process.stderr.close)
        port = int(process.stdout.readline().rsplit(":", 1)[1])
        process.stdout.close()
        with harness.Client(socket.create_connection(("127.0.0.1", port), harness.REPLY_TIMEOUT_S)) as client:
            client.error_of("SAVE")
            client.send("SHUTDOWN", "NOSAVE")
        self.assertIn(f"The directory {os.path.realpath(self.directory)} belongs to user root", process.stderr.read())


class Loading(DirectoryTestCase):
    """A start that takes long, because each key is loaded slowly."""

    def setUp(self):
        super().setUp()
        server = harness.Server(dir=self.directory, enable_debug_command="yes", dbfilename="slow.rdb")
        with server.connect() as client:
            client.call("DEBUG", "POPULATE", "3000", "key", "1000")
            client.call("CONFIG", "SET", "rdbcompression", "no")
            client.call("SAVE")
        server.stop()

    def command(self):
        return [os.environ["LATCHKEY_SERVER"], "--port", "auto", "--dir", self.directory, "--dbfilename", "slow.rdb", "--save", "",
                "--key-load-delay", "1000", "--loading-process-events-interval-bytes", "4096"]

    def test_the_log_tells_how_far_it_has_come(self):
        process = subprocess.Popen(self.command(), stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        self.addCleanup(process.stdout.close)
        for line in process.stdout:
            if "Loading the dataset: " in line:
                break
            self.assertNotIn("Ready to accept", line)
        self.assertRegex(line, r"Loading the dataset: \d+ %, \S+ of \S+, \S+/s, \d+ s left")

    def test_a_terminal_has_a_bar(self):
        terminal, end = pty.openpty()
        self.addCleanup(os.close, terminal)
        process = subprocess.Popen(self.command(), stdout=end, stderr=end)
        os.close(end)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        seen = b""
        deadline = time.monotonic() + END_TIMEOUT_S
        while not re.search(rb"Loading the dataset \[#* *\] \d+ %  \S+/s  \d+ s left", seen):
            self.assertLess(time.monotonic(), deadline, seen)
            if select.select([terminal], [], [], 1)[0]:
                seen += os.read(terminal, 1 << 16)
        # There the line would be repeated.
        self.assertNotIn(b"Loading the dataset: ", seen)


class CheckTools(DirectoryTestCase):
    def test_what_is_quick_shows_no_progress(self):
        server = harness.Server(dir=self.directory)
        with server.connect() as client:
            client.call("SET", "k", "v")
            client.call("SAVE")
        server.stop()
        tool = os.path.join(self.directory, "redis-check-rdb")
        os.symlink(os.environ["LATCHKEY_SERVER"], tool)
        result = subprocess.run([tool, os.path.join(self.directory, "dump.rdb")], capture_output=True, text=True, check=False)
        self.assertEqual((result.returncode, result.stderr), (0, ""))


class MadeFromTheConfiguration(DirectoryTestCase):
    """The manual page and the completions of shells."""

    def make(self, kind):
        here = os.path.dirname(os.path.abspath(__file__))
        checkout = os.path.join(here, "..", "..")
        path = os.path.join(self.directory, kind)
        subprocess.run([os.path.join(checkout, "scripts/lib/directive_docs.py"), kind, os.path.join(checkout, "conf/latchkey.conf"),
                        path], check=True)
        return path

    def test_the_manual_page(self):
        with open(self.make("man"), encoding="utf-8") as page:
            text = page.read()
        self.assertIn("\n\\fBmaxmemory\\fR 0\n", text)
        self.assertIn("\n\\fBunixsocket\\fR /run/latchkey.sock (example)\n", text)

    def test_bash_completes(self):
        script = self.make("bash")
        self.assertTrue(os.stat(script).st_mode & stat.S_IRUSR)

        def complete(*words):
            shell = f'. {script}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _latchkey_server; printf "%s\\n" "${{COMPREPLY[@]}}"'
            return subprocess.run(["bash", "-c", shell, "bash", *words], capture_output=True, text=True, check=True).stdout.split()

        self.assertEqual(complete("latchkey-server", "--appendo"), ["--appendonly"])
        self.assertEqual(complete("latchkey-server", "--appendonly", ""), ["yes", "no"])
        self.assertEqual(complete("latchkey-server", "--explain", "maxmemory-p"), ["maxmemory-policy"])
        self.assertIn("--check-config", complete("latchkey-server", "--check-"))


if __name__ == "__main__":
    unittest.main()

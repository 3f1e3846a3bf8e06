"""What starts and ends a server for a test: a port that the system chooses, the ways to learn of it, and the ends that come by
themselves."""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import unittest

import harness

END_TIMEOUT_S = 20


class StartTestCase(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory(prefix="latchkey-e2e-")
        self.addCleanup(self.directory.cleanup)
        self.port_file = self.path("ports")

    def path(self, name):
        return os.path.join(self.directory.name, name)

    def command(self, *options):
        return [os.environ["LATCHKEY_SERVER"], "--dir", self.directory.name, "--save", "", *options]

    def start(self, *options, **how):
        """A server that ends with the test. It is not yet known to take requests."""
        with open(self.path("log"), "ab") as log:
            how = {"stdout": log, "stderr": log, **how}
            process = subprocess.Popen(self.command(*options), **how)
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(END_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise AssertionError("server did not stop:\n" + self.log()) from None
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()

    def log(self):
        with open(self.path("log"), encoding="utf-8") as log:
            return log.read()

    def started(self, *options, **how):
        """A server with a port of the system's choice, which takes requests: the process and the port."""
        process = self.start("--port", "auto", "--port-file", self.port_file, *options, **how)
        return process, int(self.when_ready(process)["port"])

    def when_ready(self, process):
        """What the port-file says, when it is there."""
        harness.ServerTestCase.eventually(self, lambda: os.path.exists(self.port_file) or process.poll() is not None)
        if process.poll() is not None:
            self.fail("server did not start:\n" + self.log())
        with open(self.port_file, encoding="utf-8") as file:
            return dict(line.rstrip("\n").split("=", 1) for line in file)

    def connect(self, port, host="127.0.0.1"):
        client = harness.Client(socket.create_connection((host, port), harness.REPLY_TIMEOUT_S))
        self.addCleanup(client.close)
        return client

    def refused_start(self, *options, **how):
        """What a server says that does not start with these options."""
        run = subprocess.run(self.command(*options), capture_output=True, text=True, timeout=END_TIMEOUT_S, **how)
        self.assertEqual(run.returncode, 1, run)
        return run.stdout + run.stderr


class AsAProcess(StartTestCase):
    def test_standard_streams_may_be_closed(self):
        """Libraries that fork count on other files having greater numbers."""
        closed = ["sh", "-c", 'exec "$0" "$@" <&- >&- 2>&-']
        self.command, plain = (lambda *options: closed + plain(*options)), self.command
        _, port = self.started("--logfile", self.path("log"))
        client = self.connect(port)
        client.call("BGSAVE")
        harness.ServerTestCase.eventually(self, lambda: "rdb_bgsave_in_progress:0" in client.call("INFO", "persistence"))
        self.assertIn("rdb_last_bgsave_status:ok", client.call("INFO", "persistence"))

    def test_the_signal_that_asks_for_traces_ends_nothing(self):
        process, port = self.started()
        process.send_signal(signal.SIGUSR2)
        self.assertEqual(self.connect(port).call("PING"), "PONG")


def field(info, name):
    return re.search(r"^%s:(.*?)\r?$" % name, info, re.MULTILINE).group(1)


class AutomaticPort(StartTestCase):
    def test_everything_that_shows_the_port_shows_the_one_the_system_gave(self):
        process, port = self.started()
        client = self.connect(port)
        self.assertEqual(client.call("CONFIG", "GET", "port"), ["port", str(port)])
        info = client.call("INFO", "server")
        self.assertEqual(field(info, "tcp_port"), str(port))
        self.assertIn("port=%d" % port, field(info, "listener0"))
        self.assertIn("Running mode=standalone, port=%d." % port, self.log())
        with open("/proc/%d/cmdline" % process.pid, "rb") as title:
            self.assertIn(b":%d" % port, title.read())

    def test_many_servers_at_once_have_a_port_each(self):
        processes = []
        for i in range(8):
            self.port_file = self.path("ports%d" % i)
            processes.append((self.start("--port", "auto", "--port-file", self.port_file), self.port_file))
        ports = set()
        for process, self.port_file in processes:
            port = int(self.when_ready(process)["port"])
            ports.add(port)
            self.assertEqual(field(self.connect(port).call("INFO", "server"), "process_id"), str(process.pid))
        self.assertEqual(len(ports), 8)

    def test_several_addresses_share_it(self):
        _, port = self.started("--bind", "127.0.0.1", "127.0.0.2", "-10.255.255.254")
        for host in ("127.0.0.1", "127.0.0.2"):
            self.assertEqual(self.connect(port, host).call("PING"), "PONG")

    def test_it_may_be_chosen_while_the_server_runs(self):
        process, port = self.started()
        client = self.connect(port)
        self.assertEqual(client.call("CONFIG", "SET", "port", "auto"), "OK")
        self.assertEqual(client.call("CONFIG", "GET", "port"), ["port", str(port)])

        other = harness.free_port()
        self.assertEqual(client.call("CONFIG", "SET", "port", other), "OK")
        self.assertEqual(self.when_ready(process), {"port": str(other), "url": "redis://127.0.0.1:%d" % other})
        self.assertEqual(self.connect(other).call("PING"), "PONG")

        self.assertEqual(client.call("CONFIG", "SET", "port", "auto"), "OK")
        chosen = int(client.call("CONFIG", "GET", "port")[1])
        self.assertEqual(self.when_ready(process)["port"], str(chosen))
        self.assertEqual(self.connect(chosen).call("PING"), "PONG")
        with self.assertRaises(ConnectionRefusedError):
            self.connect(other)

    def test_a_failed_change_leaves_it_where_it_was(self):
        process, port = self.started()
        client = self.connect(port)
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            said = client.error_of("CONFIG", "SET", "port", taken.getsockname()[1])
        self.assertIn("Unable to listen on this port", said)
        self.assertEqual(client.call("CONFIG", "GET", "port"), ["port", str(port)])
        self.assertEqual(self.connect(port).call("PING"), "PONG")
        self.assertEqual(self.when_ready(process)["port"], str(port))

    def test_a_rewritten_file_asks_for_one_again(self):
        with open(self.path("conf"), "w", encoding="utf-8") as file:
            file.write('port auto\nport-file %s\nsave ""\ndir %s\n' % (self.port_file, self.directory.name))
        with open(self.path("log"), "ab") as log:
            process = subprocess.Popen([os.environ["LATCHKEY_SERVER"], self.path("conf")], stdout=log, stderr=log)
        self.addCleanup(self.end, process)
        client = self.connect(int(self.when_ready(process)["port"]))
        self.assertEqual(client.call("CONFIG", "REWRITE"), "OK")
        with open(self.path("conf"), encoding="utf-8") as file:
            self.assertIn("port auto\n", file.read())

    def test_a_node_of_a_cluster_has_its_bus_beside_it(self):
        _, port = self.started("--cluster-enabled", "yes")
        client = self.connect(port)
        self.assertIn(" :%d@%d" % (port, port + 10000), client.call("CLUSTER", "NODES"))
        self.assertLessEqual(port + 10000, 65535)
        self.connect(port + 10000)

    def test_port_0_is_none(self):
        socket_path = self.path("socket")
        process = self.start("--port", "0", "--unixsocket", socket_path, "--port-file", self.port_file)
        self.assertEqual(self.when_ready(process), {"port": "0", "url": "unix://" + socket_path})
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(harness.REPLY_TIMEOUT_S)
            connection.connect(socket_path)
            client = harness.Client(connection)
            self.assertEqual(field(client.call("INFO", "server"), "tcp_port"), "0")
            self.assertEqual(client.call("CONFIG", "GET", "port"), ["port", "0"])

    def test_anything_else_is_refused(self):
        self.assertIn("argument couldn't be parsed into an integer", self.refused_start("--port", "automatic"))


class Readiness(StartTestCase):
    def test_the_port_file_is_there_from_the_end_of_loading_to_the_end_of_the_server(self):
        process, port = self.started("--appendonly", "yes")
        client = self.connect(port)
        for i in range(2000):
            client.send("SET", "key%d" % i, "value")
        for _ in range(2000):
            client.read()
        self.end(process)
        self.assertFalse(os.path.exists(self.port_file))

        port = harness.free_port()
        process = self.start("--port", str(port), "--port-file", self.port_file, "--appendonly", "yes",
                             "--key-load-delay", "500", "--loading-process-events-interval-bytes", "1024")
        refusals = 0
        while True:
            was_there = os.path.exists(self.port_file)
            try:
                self.connect(port).call("GET", "key1")
            except ConnectionRefusedError:
                continue
            except harness.ReplyError as error:
                self.assertIn("LOADING", str(error))
                self.assertFalse(was_there)
                refusals += 1
                continue
            break
        self.assertGreater(refusals, 0)
        self.assertEqual(self.when_ready(process), {"port": str(port), "url": "redis://127.0.0.1:%d" % port})
        self.end(process)
        self.assertEqual(process.returncode, 0)
        self.assertFalse(os.path.exists(self.port_file))

    def test_a_shell_reads_the_port_file_as_it_is(self):
        _, port = self.started("--bind", "127.0.0.1")
        said = subprocess.run(["sh", "-c", '. "$0"; echo "$port $url"', self.port_file], capture_output=True, text=True, check=True)
        self.assertEqual(said.stdout, "%d redis://127.0.0.1:%d\n" % (port, port))

    def test_what_an_earlier_server_left_is_gone_at_once(self):
        process, _ = self.started()
        process.kill()
        process.wait()
        self.assertTrue(os.path.exists(self.port_file))
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            self.assertIn("Failed listening", self.refused_start("--port-file", self.port_file, "--port", str(taken.getsockname()[1])))
        self.assertFalse(os.path.exists(self.port_file))

    def test_a_port_file_that_cannot_be_written_ends_the_server(self):
        self.assertIn("cannot be written: No such file or directory",
                      self.refused_start("--port", "auto", "--port-file", self.path("missing/ports")))

    def test_ready_fd_gets_the_url_and_its_end(self):
        reading, writing = os.pipe()
        self.start("--port", "auto", "--ready-fd", str(writing), pass_fds=[writing])
        os.close(writing)
        with os.fdopen(reading, encoding="utf-8") as file:
            said = file.read()  # up to the end, with the server running
        match = re.fullmatch(r"redis://127\.0\.0\.1:(\d+)\n", said)
        self.assertTrue(match, said)
        self.assertEqual(self.connect(int(match.group(1))).call("PING"), "PONG")

    def test_ready_fd_must_be_open(self):
        self.assertIn("ready-fd 77 is not open for writing", self.refused_start("--port", "auto", "--ready-fd", "77"))
        self.assertIn("ready-fd must be above 2", self.refused_start("--port", "auto", "--ready-fd", "1"))
        with open("/dev/null", "rb") as null:
            self.assertIn("is not open for writing",
                          self.refused_start("--port", "auto", "--ready-fd", str(null.fileno()), pass_fds=[null.fileno()]))

    def test_a_reader_that_has_gone_does_not_matter(self):
        reading, writing = os.pipe()
        os.close(reading)
        _, port = self.started("--ready-fd", str(writing), pass_fds=[writing])
        os.close(writing)
        self.assertEqual(self.connect(port).call("PING"), "PONG")
        self.assertIn("ready-fd: the URL cannot be written: Broken pipe", self.log())

    def test_print_url_is_all_there_is_on_standard_output(self):
        process = self.start("--port", "auto", "--print-url", stdout=subprocess.PIPE, text=True)
        said = process.stdout.read()  # up to the end, with the server running
        match = re.fullmatch(r"redis://127\.0\.0\.1:(\d+)\n", said)
        self.assertTrue(match, said)
        self.assertEqual(self.connect(int(match.group(1))).call("PING"), "PONG")
        self.assertIn("Ready to accept connections", self.log())

    def test_a_shell_takes_the_url_of_a_server_in_the_background(self):
        script = 'url=$("$0" --port auto --print-url --exit-when-idle 60 --save "" --dir "$1" --pidfile "$1/pid" 2>"$1/log" &)\necho "$url"'
        run = subprocess.run(["sh", "-c", script, os.environ["LATCHKEY_SERVER"], self.directory.name], capture_output=True, text=True,
                             timeout=END_TIMEOUT_S, check=True)
        client = self.connect(int(run.stdout.rsplit(":", 1)[1]))
        self.assertEqual(client.call("PING"), "PONG")
        client.send("SHUTDOWN", "NOW")
        self.assertEqual(client.read_until_closed(), b"")

    def test_a_daemon_has_no_output_for_it(self):
        self.assertIn("print-url cannot be yes with daemonize", self.refused_start("--daemonize", "yes", "--print-url"))


class Restarts(StartTestCase):
    def test_debug_restart_finds_its_file_where_it_was_started(self):
        """The path of the configuration file is relative, and `dir` is another directory."""
        port = harness.free_port()
        os.mkdir(self.path("data"))
        with open(self.path("server.conf"), "w", encoding="utf-8") as file:
            file.write('port %d\ndir data\nsave ""\nappendonly yes\nenable-debug-command yes\n' % port)
        with open(self.path("log"), "ab") as log:
            process = subprocess.Popen([os.environ["LATCHKEY_SERVER"], "./server.conf"], cwd=self.directory.name, stdout=log, stderr=log)
        self.addCleanup(self.end, process)
        harness.ServerTestCase.eventually(self, lambda: "Ready to accept connections" in self.log())
        client = self.connect(port)
        client.call("SET", "key", "value")
        with self.assertRaises((harness.ConnectionClosed, ConnectionError)):
            client.call("DEBUG", "RESTART")
        harness.ServerTestCase.eventually(self, lambda: self.log().count("Ready to accept connections") == 2 or process.poll() is not None)
        again = self.connect(port)
        self.assertEqual(again.call("GET", "key"), "value")
        self.assertEqual(field(again.call("INFO", "server"), "process_id"), str(process.pid))


class Ends(StartTestCase):
    # Starts the server that its arguments name, from a thread that ends at once, and waits to be killed.
    PARENT = textwrap.dedent("""
        import subprocess, sys, threading
        thread = threading.Thread(target=subprocess.Popen, args=[sys.argv[1:]])
        thread.start()
        thread.join()
        sys.stdin.read()
        """)

    def test_exit_with_parent_ends_it_when_its_parent_was_killed(self):
        with open(self.path("log"), "ab") as log:
            parent = subprocess.Popen(
                [sys.executable, "-c", self.PARENT,
                 *self.command("--port", "auto", "--port-file", self.port_file, "--exit-with-parent", "--save", "3600 1")],
                stdin=subprocess.PIPE, stdout=log, stderr=log)
        self.addCleanup(parent.wait)
        self.addCleanup(parent.kill)
        self.addCleanup(parent.stdin.close)
        client = self.connect(int(self.when_ready(parent)["port"]))
        # It stays while the parent is there, though the thread that started it has ended, for longer than some ticks.
        self.assertIsNone(client.call("BLPOP", "nothing", "0.5"))
        self.assertEqual(client.call("SET", "key", "value"), "OK")
        parent.send_signal(signal.SIGKILL)
        self.assertEqual(client.read_until_closed(), b"")
        harness.ServerTestCase.eventually(self, lambda: "bye bye" in self.log())
        self.assertIn("The process that started this server has gone.", self.log())
        self.assertTrue(os.path.exists(self.path("dump.rdb")))
        self.assertFalse(os.path.exists(self.port_file))

    def test_a_daemon_has_no_parent_to_go_with(self):
        self.assertIn("exit-with-parent cannot be yes with daemonize",
                      self.refused_start("--daemonize", "yes", "--exit-with-parent", "yes"))

    def test_exit_when_idle_ends_a_server_that_nobody_used(self):
        process, _ = self.started("--exit-when-idle", "1")
        self.assertEqual(process.wait(END_TIMEOUT_S), 0)
        self.assertIn("There has been no client for as long as exit-when-idle says.", self.log())
        self.assertFalse(os.path.exists(self.port_file))

    def test_exit_when_idle_waits_for_the_last_client(self):
        process, port = self.started("--exit-when-idle", "1")
        client = self.connect(port)
        self.assertIsNone(client.call("BLPOP", "nothing", "1.5"))
        self.assertIsNone(process.poll())
        client.close()
        self.assertEqual(process.wait(END_TIMEOUT_S), 0)

    def test_a_client_of_a_space_is_one_of_the_process(self):
        process, port = self.started("--exit-when-idle", "1")
        client = self.connect(port)
        self.assertEqual(client.call("AUTH", "space-one", "x"), "OK")
        self.assertIsNone(client.call("BLPOP", "nothing", "1.5"))
        self.assertIsNone(process.poll())
        self.assertEqual(client.call("CONFIG", "GET", "exit-when-idle"), ["exit-when-idle", "0"])
        self.assertIn("a space has none of its own", client.error_of("CONFIG", "SET", "exit-when-idle", "5"))
        client.close()
        self.assertEqual(process.wait(END_TIMEOUT_S), 0)

    def test_exit_when_idle_may_be_set_later(self):
        process, port = self.started()
        with self.connect(port) as client:
            self.assertEqual(client.call("CONFIG", "SET", "exit-when-idle", "1"), "OK")
        self.assertEqual(process.wait(END_TIMEOUT_S), 0)

    def test_the_link_to_a_master_is_no_client(self):
        _, master_port = self.started()
        self.port_file = self.path("replica-ports")
        os.mkdir(self.path("replica"))
        process, port = self.started("--dir", self.path("replica"), "--replicaof", "127.0.0.1", str(master_port),
                                     "--exit-when-idle", "3")
        client = self.connect(port)
        harness.ServerTestCase.eventually(
            self, lambda: field(client.call("INFO", "replication"), "master_link_status") == "up")
        client.close()
        self.assertEqual(process.wait(END_TIMEOUT_S), 0)


class Threads(StartTestCase):
    def test_those_of_the_background_keep_to_the_processors_that_are_theirs(self):
        cpu = str(min(os.sched_getaffinity(0)))
        process, port = self.started("--bio-cpulist", cpu, "--appendonly", "yes")
        with self.connect(port) as client:
            client.call("RPUSH", "list", *("%d" % i + "x" * 1000 for i in range(10_000)))
            client.call("UNLINK", "list")

        def threads():
            """The processors that each thread may use, by its name."""
            found = {}
            for thread in os.listdir("/proc/%d/task" % process.pid):
                with open("/proc/%d/task/%s/status" % (process.pid, thread), encoding="utf-8") as status:
                    told = dict(line.rstrip("\n").split(":\t", 1) for line in status if ":\t" in line)
                found[told["Name"]] = told["Cpus_allowed_list"]
            return found

        harness.ServerTestCase.eventually(
            self, lambda: threads().get("bio_lazy_free") == threads().get("bio_aof") == cpu)

"""Starts a server on a free port in a directory of its own, and talks to it.

    class Names(harness.ServerTestCase):
        options = {"maxclients": "100"}

        def test_a_name_is_remembered(self):
            client = self.connect()
            self.assertEqual(client.call("CLIENT", "SETNAME", "anna"), "OK")

The program comes from the environment variable LATCHKEY_SERVER, and directives that all its servers get, unless a test sets
them itself, from LATCHKEY_OPTIONS ("io-threads 2 hz 20"). Everything here is the standard library, so that tests run
wherever python3 does.
"""

import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

START_TIMEOUT_S = 10
# Long enough for a machine that is busy with other things: waiting costs only where a test fails.
REPLY_TIMEOUT_S = 60


def reference(program, version="8.0"):
    """The path of one of the reference's programs, such as "redis-server", or None: what scripts/reference has brought, here or
    in LATCHKEY_REFERENCE_DIR. Version 8.6-modules, a program that starts 8.6 with the modules of the image redis:8, is only where
    somebody has put it."""
    directory = os.environ.get("LATCHKEY_REFERENCE_DIR") or Path(__file__).resolve().parents[2] / "build" / "reference"
    path = Path(directory, "bin", program + "-" + version)
    return str(path) if path.is_file() else None


needs_reference = unittest.skipUnless(reference("redis-server"), "scripts/reference has not brought the reference")


class ReplyError(Exception):
    """An error reply, with its text behind the dash."""

    def __eq__(self, other):
        return isinstance(other, ReplyError) and str(self) == str(other)

    __hash__ = Exception.__hash__


class ConnectionClosed(Exception):
    """The server has closed the connection."""


def encode(*words):
    """A request as an array of bulk strings."""
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        if not isinstance(word, (bytes, bytearray)):
            word = str(word).encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(word), word))
    return b"".join(parts)


class Client:
    """A connection. Replies become Python values: statuses and bulk strings str (bytes where they are no UTF-8 or `binary` is
    set), integers int, nulls None, arrays and pushes list, maps dict, sets list, doubles float, booleans bool, errors
    ReplyError (raised by call(), returned by read())."""

    def __init__(self, sock, binary=False):
        self.socket = sock
        self.binary = binary
        self._buffer = bytearray()

    def send_raw(self, data):
        self.socket.sendall(data)

    def send(self, *words):
        self.socket.sendall(encode(*words))

    def call(self, *words):
        self.send(*words)
        reply = self.read()
        if isinstance(reply, ReplyError):
            raise reply
        return reply

    def error_of(self, *words):
        """The text of the error that the request is answered with."""
        self.send(*words)
        reply = self.read()
        if not isinstance(reply, ReplyError):
            raise AssertionError("no error but %r" % (reply,))
        return str(reply)

    def read(self):
        line = self._line()
        kind, rest = line[:1], line[1:]
        if kind == b"+":
            return self._text(rest)
        if kind == b"-":
            return ReplyError(rest.decode("utf-8", "replace"))
        if kind in b":(":
            return int(rest)
        if kind in b"$=":
            if rest == b"-1":
                return None
            data = self._take(int(rest) + 2)[:-2]
            return self._text(data[4:] if kind == b"=" else data)
        if kind in b"*>~":
            return None if rest == b"-1" else [self.read() for _ in range(int(rest))]
        if kind == b"%":
            return {self.read(): self.read() for _ in range(int(rest))}
        if kind == b"_":
            return None
        if kind == b"#":
            return rest == b"t"
        if kind == b",":
            return float(rest)
        raise AssertionError("not RESP: %r" % line)

    def read_until_closed(self):
        """All bytes up to the end of the stream."""
        data = bytearray(self._buffer)
        self._buffer.clear()
        while True:
            try:
                piece = self.socket.recv(1 << 16)
            except ConnectionResetError:
                return bytes(data)
            if not piece:
                return bytes(data)
            data += piece

    def is_open(self):
        """Whether the server still holds the connection; for clients that await no reply."""
        self.socket.setblocking(False)
        try:
            return self.socket.recv(1, socket.MSG_PEEK) != b""
        except BlockingIOError:
            return True
        except ConnectionError:
            return False
        finally:
            self.socket.settimeout(REPLY_TIMEOUT_S)

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _text(self, data):
        data = bytes(data)
        if self.binary:
            return data
        try:
            return data.decode()
        except UnicodeDecodeError:
            return data

    def _fill(self):
        piece = self.socket.recv(1 << 16)
        if not piece:
            raise ConnectionClosed()
        self._buffer += piece

    def _line(self):
        start = 0
        while True:
            end = self._buffer.find(b"\r\n", start)
            if end >= 0:
                line = bytes(self._buffer[:end])
                del self._buffer[: end + 2]
                return line
            start = max(len(self._buffer) - 1, 0)
            self._fill()

    def _take(self, size):
        while len(self._buffer) < size:
            self._fill()
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data


_ports_given = set()


def free_port():
    """A port that nobody uses, and that no outgoing connection is given by chance before the server listens there. No port is
    given twice. The environment variable LATCHKEY_PORTS, such as 10000-19999, is where to look."""
    first, last = map(int, os.environ.get("LATCHKEY_PORTS", "10000-19999").split("-"))
    while True:
        port = random.SystemRandom().randrange(first, last + 1)
        if port in _ports_given and len(_ports_given) <= last - first:
            continue
        _ports_given.add(port)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


class Server:
    """A running server. `options` are directives of the configuration file; values with several words are lists. `environment`
    is added to that of this process. `file` is a configuration file that the server also reads."""

    def __init__(self, program=None, port=None, environment=None, file=None, **options):
        self.environment = {**os.environ, **(environment or {})}
        self.program = program or os.environ["LATCHKEY_SERVER"]
        self.directory = tempfile.mkdtemp(prefix="latchkey-e2e-")
        self.port = free_port() if port is None else port
        self.log_path = os.path.join(self.directory, "log")
        self.unix_path = os.path.join(self.directory, "socket")
        self.options = {"dir": self.directory, "save": "", **{k.replace("_", "-"): v for k, v in options.items()}}
        if self.program == os.environ.get("LATCHKEY_SERVER"):
            words = os.environ.get("LATCHKEY_OPTIONS", "").split()
            self.options = {**dict(zip(words[::2], words[1::2])), **self.options}
        self.process = None
        self.file = file
        self.start()

    def start(self):
        command = [self.program] + ([self.file] if self.file else []) + ["--port", str(self.port)]
        for name, value in self.options.items():
            command.append("--" + name)
            command += [str(word) for word in value] if isinstance(value, (list, tuple)) else [str(value)]
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.directory, env=self.environment)
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                with self.connect() as client:
                    client.send("PING")
                    client.read()
                    return
            except (OSError, ConnectionClosed):
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise AssertionError("server did not start:\n" + self.log()) from None
                time.sleep(0.01)

    def connect(self, host="127.0.0.1", binary=False):
        return Client(socket.create_connection((host, self.port), REPLY_TIMEOUT_S), binary)

    def connect_unix(self):
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(REPLY_TIMEOUT_S)
        sock.connect(self.unix_path)
        return Client(sock)

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as log:
            return log.read()

    def stop(self):
        """Ends the server as an operator would; fails if it does not go, or if it had crashed."""
        if self.process is None:
            return
        crashed = self.process.poll()
        if crashed is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(START_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise AssertionError("server did not stop:\n" + self.log()) from None
        self.process = None
        log = self.log()
        shutil.rmtree(self.directory, ignore_errors=True)
        if crashed not in (None, 0):
            raise AssertionError("server ended with %d:\n%s" % (crashed, log))


class PatientTestCase(unittest.TestCase):
    """Waits for what servers do on their own."""

    def eventually(self, condition, timeout_s=REPLY_TIMEOUT_S):
        """Waits until condition() holds."""
        deadline = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > deadline:
                self.fail("did not come to pass")
            time.sleep(0.01)


class ServerTestCase(PatientTestCase):
    """One server for all tests of the class; connections made with connect() are closed after each test."""

    options = {}

    @classmethod
    def setUpClass(cls):
        cls.server = Server(**cls.options)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def connect(self, **how):
        client = self.server.connect(**how)
        self.addCleanup(client.close)
        return client


class ServersTestCase(PatientTestCase):
    """Servers that a test starts itself, also of other programs; they are stopped after it, and must not have crashed."""

    options = {"enable_debug_command": "yes"}

    def server(self, program=None, **options):
        """A server and a client of it."""
        server = Server(program, **{**self.options, **options})
        self.addCleanup(server.stop)
        client = server.connect()
        self.addCleanup(client.close)
        return server, client

    def follow(self, client, master):
        """Makes a client's server a replica of `master`, and waits until it has the dataset."""
        client.call("REPLICAOF", "127.0.0.1", str(master.port))
        self.eventually(lambda: "master_link_status:up" in client.call("INFO", "replication"))

    def rewrite_append_only_file(self, client):
        client.call("BGREWRITEAOF")
        self.eventually(lambda: "aof_rewrite_in_progress:0" in client.call("INFO", "persistence"))

"""TLS with everything cut short, in the wrong order, or replaced by garbage: handshakes and records that end at each byte, closes in
the middle of a pipeline, certificates that become something else while the server runs, and links that are cut while a dataset
is on its way."""

import contextlib
import os
import random
import shutil
import socket
import ssl
import threading
import unittest

import harness
import test_tls
from test_tls import Certificates, context, options

RESET = b"\1\0\0\0\0\0\0\0"


def tearDownModule():
    Certificates.forget()


class Wire:
    """A client whose encrypted bytes this test holds in its hands."""

    def __init__(self, server, version=None):
        how = context()
        if version is not None:
            how.minimum_version = how.maximum_version = version
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.session = how.wrap_bio(self.incoming, self.outgoing)
        self.raw = server.connect_raw()

    def flights(self):
        """Yields what the client would send next in the handshake, which the caller may send or not."""
        while True:
            try:
                self.session.do_handshake()
                break
            except ssl.SSLWantReadError:
                data = self.outgoing.read()
                if data:
                    yield data
                self.receive()
        yield self.outgoing.read()

    def receive(self):
        data = self.raw.recv(1 << 16)
        if data:
            self.incoming.write(data)
        else:
            self.incoming.write_eof()
        return data

    def shake_hands(self):
        for flight in self.flights():
            self.raw.sendall(flight)
        return self

    def encrypt(self, data):
        self.session.write(data)
        return self.outgoing.read()

    def read_to_the_end(self):
        """What comes until the server says that it has ended, or the connection has."""
        received = b""
        while True:
            try:
                data = self.session.read(1 << 16)
                if not data:
                    return received
                received += data
            except ssl.SSLWantReadError:
                if not self.receive():
                    return received
            except (ssl.SSLError, OSError):
                return received

    def end(self, how):
        with contextlib.suppress(OSError):
            if how == "reset":
                self.raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            self.raw.close()


class Cut(test_tls.TlsTestCase):
    def setUp(self):
        self.plain = self.connect()

    def await_nobody(self):
        self.eventually(lambda: "connected_clients:1\r\n" in self.plain.call("INFO", "clients"))

    def test_a_handshake_at_each_byte(self):
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            whole = [len(flight) for flight in self.play(version)]
            self.assertGreater(sum(whole), 500)
            for flight, size in enumerate(whole):
                # The first bytes one by one, and then some.
                for cut in sorted({*range(0, min(size, 12)), *range(12, size, 97), size - 1}):
                    wire = Wire(self.server, version)
                    for i, data in enumerate(wire.flights()):
                        if i == flight:
                            wire.raw.sendall(data[:cut])
                            break
                        wire.raw.sendall(data)
                    wire.end("reset" if cut % 2 else "end")
        self.await_nobody()
        self.assert_serves()

    def play(self, version):
        wire = Wire(self.server, version)
        flights = []
        for flight in wire.flights():
            flights.append(flight)
            wire.raw.sendall(flight)
        wire.end("end")
        return flights

    def test_a_record_at_each_byte(self):
        """What was encrypted before is served, and nothing of the record that is cut."""
        size = len(Wire(self.server).shake_hands().encrypt(b"INCR cut\r\n"))
        for cut in range(size):
            wire = Wire(self.server).shake_hands()
            wire.raw.sendall(wire.encrypt(b"INCR whole\r\n") + wire.encrypt(b"INCR cut\r\n")[:cut])
            wire.raw.shutdown(socket.SHUT_WR)
            wire.read_to_the_end()
            wire.end("end")
        self.await_nobody()
        self.assertIsNone(self.plain.call("GET", "cut"))
        self.assertEqual(self.plain.call("GET", "whole"), str(size))

    def test_a_record_that_is_changed(self):
        """A byte of it is another, it comes twice, or two change places: the connection ends, and nothing of it is served."""
        for place in range(0, 30, 3):
            wire = Wire(self.server).shake_hands()
            record = bytearray(wire.encrypt(b"INCR changed\r\n"))
            record[place] ^= 0x41
            wire.raw.sendall(record)
            with contextlib.suppress(OSError):
                wire.raw.shutdown(socket.SHUT_WR)
            wire.read_to_the_end()
            wire.end("end")
        wire = Wire(self.server).shake_hands()
        record = wire.encrypt(b"INCR twice\r\n")
        wire.raw.sendall(record * 2)
        wire.read_to_the_end()
        wire.end("end")
        wire = Wire(self.server).shake_hands()
        first, second = wire.encrypt(b"INCR changed\r\n"), wire.encrypt(b"INCR changed\r\n")
        wire.raw.sendall(second + first)
        wire.read_to_the_end()
        wire.end("end")
        self.await_nobody()
        self.assertEqual(self.plain.call("MGET", "changed", "twice"), [None, "1"])
        self.assert_serves()

    def test_a_close_in_the_middle_of_a_pipeline(self):
        """What came before it is served and answered; what comes behind it is not looked at."""
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            with self.subTest(version):
                self.plain.call("DEL", "before", "behind")
                wire = Wire(self.server, version).shake_hands()
                requests = b"INCR before\r\n" * 1000
                data = wire.encrypt(requests + b"INCR half")
                with contextlib.suppress(ssl.SSLError):
                    wire.session.unwrap()
                close = wire.outgoing.read()
                self.assertGreater(len(close), 0)
                wire.raw.sendall(data + close + b"INCR behind\r\n" * 10 + os.urandom(100))
                # It is answered, in records that nobody decrypts here, and closed.
                received = harness.Client(wire.raw).read_until_closed()
                self.assertGreater(len(received), 1000 * len(b":1000\r\n") // 2)
                wire.end("end")
                self.await_nobody()
                self.assertEqual(self.plain.call("MGET", "before", "behind", "half"), ["1000", None, None])

    def test_a_client_that_closes_while_it_waits(self):
        for how in ("close", "end", "reset"):
            wire = Wire(self.server).shake_hands()
            wire.raw.sendall(wire.encrypt(b"BLPOP nothing 0\r\nINCR later\r\n"))
            self.eventually(lambda: "blocked_clients:1\r\n" in self.plain.call("INFO", "clients"))
            if how == "close":
                with contextlib.suppress(ssl.SSLError):
                    wire.session.unwrap()
                wire.raw.sendall(wire.outgoing.read())
            else:
                wire.end(how)
            self.await_nobody()
            wire.end("end")
        self.assertIsNone(self.plain.call("GET", "later"))

    def test_a_client_that_does_not_read(self):
        """What waits for it is limited as for a plain one, and so are its answers to what it closes with."""
        self.plain.call("SET", "big", "x" * 1_000_000)
        self.plain.call("CONFIG", "SET", "client-output-buffer-limit", "normal 20mb 0 0")
        self.addCleanup(self.plain.call, "CONFIG", "SET", "client-output-buffer-limit", "normal 0 0 0")
        wire = Wire(self.server).shake_hands()
        with contextlib.suppress(OSError):
            for _ in range(100):
                wire.raw.sendall(wire.encrypt(b"GET big\r\n" * 10))
        self.await_nobody()
        wire.end("end")
        self.assert_serves()


class Replaced(test_tls.InstalledTestCase):
    """What the files of a running server become: nothing of it ends the old context, whoever asks for the new one."""

    more = {"tls_auto_reload_interval": "1"}

    def setUp(self):
        super().setUp()
        self.set_files()

    def refused(self, kind):
        self.assertIn("Unable to update TLS configuration", self.plain.error_of("CONFIG", "SET", "tls-cert-file", self.files["crt"], "tls-key-file", self.files["key"]), kind)
        self.assertEqual(self.server_name(), "Generic-cert")

    def replace(self, path, kind):
        os.remove(path)
        if kind == "nothing":
            return
        if kind == "directory":
            return os.mkdir(path)
        if kind == "pipe":
            return os.mkfifo(path)
        if kind == "device":
            return os.symlink("/dev/zero", path)
        if kind == "itself":
            return os.symlink(path, path)
        if kind == "endless":
            with open(path, "wb") as file:
                file.truncate(1 << 40)
            return None
        with open(path, "wb") as file:
            file.write({"empty": b"", "noise": random.Random(1).randbytes(100_000), "begin": b"-----BEGIN CERTIFICATE-----\n" * 10_000,
                        "one line": b"-----BEGIN CERTIFICATE-----\n" + b"A" * 5_000_000, "zeros": b"\0" * 1_000_000}[kind])
        return None

    def test_files_become_what_they_should_not(self):
        for which in ("crt", "key"):
            for kind in ("nothing", "directory", "pipe", "device", "itself", "endless", "empty", "noise", "begin", "one line", "zeros"):
                with self.subTest(kind, file=which):
                    failures = self.server.log().count("# Background TLS reload failed\n")
                    self.replace(self.files[which], kind)
                    self.refused(kind)
                    self.eventually(lambda failures=failures: self.server.log().count("# Background TLS reload failed\n") > failures)
                    self.assertEqual(self.server_name(), "Generic-cert")
                    path = self.files[which]
                    if os.path.isdir(path) and not os.path.islink(path):
                        os.rmdir(path)
                    elif os.path.lexists(path):
                        os.remove(path)
                    self.install("redis")
                    self.set_files()

    def test_authorities_become_what_they_should_not(self):
        authority = os.path.join(self.directory, "ca.crt")
        shutil.copy(Certificates.path("ca.crt"), authority)
        self.addCleanup(self.plain.call, "CONFIG", "SET", "tls-ca-cert-file", Certificates.path("ca.crt"))
        self.plain.call("CONFIG", "SET", "tls-ca-cert-file", authority)
        for kind in ("nothing", "directory", "pipe", "device", "endless", "empty", "noise", "zeros"):
            with self.subTest(kind):
                self.replace(authority, kind)
                self.assertIn("Unable to update TLS configuration", self.plain.error_of("CONFIG", "SET", "tls-ca-cert-file", authority))
                self.assert_serves()
                if kind == "directory":
                    os.rmdir(authority)
                elif kind != "nothing":
                    os.remove(authority)
                shutil.copy(Certificates.path("ca.crt"), authority)

    def test_a_certificate_cut_at_each_line(self):
        with open(Certificates.path("redis.crt"), "rb") as file:
            lines = file.read().splitlines(keepends=True)
        for count in range(len(lines) - 1):
            with open(self.files["crt"], "wb") as file:
                file.writelines(lines[:count])
            self.refused("%d lines" % count)
        self.install("redis")
        self.set_files()

    def test_it_changes_again_and_again_under_load(self):
        """Connections that begin meanwhile are served with the one or the other."""
        over = threading.Event()
        failures = []

        def come_and_go():
            while not over.is_set():
                try:
                    client = self.server.connect_secure()
                    if client.call("PING") != "PONG":
                        failures.append("no PONG")
                    client.close()
                except (OSError, harness.ConnectionClosed) as error:
                    failures.append(repr(error))

        threads = [threading.Thread(target=come_and_go) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            for i in range(60):
                self.install(("server", "redis")[i % 2])
                self.set_files()
        finally:
            over.set()
            for thread in threads:
                thread.join()
        self.assertEqual(failures, [])


class Cutter:
    """Forwards connections to a port and cuts each one after so many bytes in the direction from there."""

    def __init__(self, port, sizes):
        self.port, self.sizes = port, list(sizes)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.here = self.listener.getsockname()[1]
        self.open = []
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                near = self.listener.accept()[0]
                far = socket.create_connection(("127.0.0.1", self.port))
            except OSError:
                return
            size = self.sizes.pop(0) if self.sizes else None
            self.open += [near, far]
            for source, to, most in ((near, far, None), (far, near, size)):
                threading.Thread(target=self.forward, args=(source, to, most), daemon=True).start()

    @staticmethod
    def forward(source, to, most):
        passed = 0
        try:
            while True:
                data = source.recv(1 << 16)
                if most is not None and passed + len(data) >= most:
                    to.sendall(data[: most - passed])
                    break
                if not data:
                    break
                to.sendall(data)
                passed += len(data)
        except OSError:
            pass
        for each in (source, to):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.listener.close()
        for each in self.open:
            each.close()


class Links(unittest.TestCase):
    start, eventually, link_is_up = (getattr(test_tls.BetweenServers, name) for name in ("start", "eventually", "link_is_up"))

    def test_a_full_synchronisation_is_cut_in_the_middle(self):
        value = random.Random(1).randbytes(5000).hex()
        for channel, diskless in (("no", "yes"), ("no", "no"), ("yes", "yes")):
            with self.subTest(rdb_channel=channel, diskless=diskless):
                more = {"tls_replication": "yes", "repl_rdb_channel": channel, "repl_diskless_sync_delay": "0", "repl_diskless_sync": diskless,
                        "repl_diskless_load": "swapdb" if diskless == "yes" else "disabled", "enable_debug_command": "yes"}
                master, replica = self.start(**more), self.start(**more)
                with master.connect() as client:
                    for i in range(200):
                        client.call("SET", "key:%d" % i, value)
                # Within the handshakes, what is said before the dataset, and the dataset of two megabytes.
                cutter = Cutter(master.tls_port, (1, 700, 2000, 3500, 5000, 6000, 20_000, 20_000, 100_000, 500_000, 1_500_000))
                self.addCleanup(cutter.close)
                with replica.connect() as client:
                    client.call("SET", "own", "1")
                    client.call("REPLICAOF", "127.0.0.1", cutter.here)
                self.eventually(lambda: self.link_is_up(replica) and not cutter.sizes)
                with master.connect() as client:
                    client.call("SET", "later", "value")
                with replica.connect() as client, master.connect() as other:
                    self.eventually(lambda: client.call("DEBUG", "DIGEST") == other.call("DEBUG", "DIGEST"))
                    self.assertEqual(client.call("DBSIZE"), 201)
                master.stop()
                replica.stop()


if __name__ == "__main__":
    unittest.main()

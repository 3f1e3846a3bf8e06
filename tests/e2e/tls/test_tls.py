"""TLS as clients, operators and attackers meet it: certificates that are replaced, refused, expired and forged, handshakes that
stall, and bytes that are no TLS. Clients are Python's ssl and openssl s_client."""

import contextlib
import os
import shutil
import socket
import ssl
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import harness

MAKER = Path(__file__).resolve().parents[2] / "tls" / "make-certificates"


class Certificates:
    """Those of tests/tls/make-certificates, in a directory of their own; made once."""

    directory = None

    @classmethod
    def path(cls, name):
        if cls.directory is None:
            cls.directory = tempfile.mkdtemp(prefix="latchkey-certificates-")
            subprocess.run([MAKER, cls.directory], check=True)
        return os.path.join(cls.directory, name)

    @classmethod
    def forget(cls):
        if cls.directory is not None:
            shutil.rmtree(cls.directory, ignore_errors=True)
            cls.directory = None


def tearDownModule():
    Certificates.forget()


def options(name="redis", **more):
    return {"tls_cert_file": Certificates.path(name + ".crt"), "tls_key_file": Certificates.path(name + ".key"),
            "tls_ca_cert_file": Certificates.path("ca.crt"), **more}


def context(name="client", authority="ca"):
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = False
    made.load_verify_locations(Certificates.path(authority + ".crt"))
    if name is not None:
        made.load_cert_chain(Certificates.path(name + ".crt"), Certificates.path(name + ".key"))
    return made


class SecureServer(harness.Server):
    """A server with a port for TLS beside its other one."""

    def __init__(self, **more):
        self.tls_port = harness.free_port()
        super().__init__(tls_port=self.tls_port, **more)

    def connect_raw(self):
        return socket.create_connection(("127.0.0.1", self.tls_port), harness.REPLY_TIMEOUT_S)

    def connect_secure(self, how=None, **more):
        raw = self.connect_raw()
        try:
            return harness.Client((how or context()).wrap_socket(raw, **more))
        except BaseException:
            raw.close()
            raise


class TlsTestCase(harness.ServerTestCase):
    more = {}

    @classmethod
    def setUpClass(cls):
        cls.server = SecureServer(**options(**cls.more))

    def secure(self, *how, **more):
        client = self.server.connect_secure(*how, **more)
        self.addCleanup(client.close)
        return client

    def logs(self, text):
        self.eventually(lambda: text in self.server.log())

    def assert_serves(self):
        """Whatever has happened, others are served and nobody is left over."""
        client = self.secure()
        self.assertEqual(client.call("PING"), "PONG")
        client.close()

    def assert_refused(self, how):
        with self.assertRaises((ssl.SSLError, harness.ConnectionClosed, ConnectionError)):
            # With TLS 1.3 a client hears of the refusal when it reads.
            client = self.secure(how)
            client.call("PING")


class Clients(TlsTestCase):
    def test_a_client_is_served(self):
        client = self.secure()
        self.assertEqual(client.call("SET", "key", "value"), "OK")
        self.assertEqual(client.call("GET", "key"), "value")
        self.assertIn("listener2:name=tls,bind=*,bind=-::*,port=%d\r\n" % self.server.tls_port, client.call("INFO", "server"))

    def test_pipelines_and_large_values(self):
        client = self.secure()
        value = os.urandom(3_000_000).hex()
        client.send("SET", "large", value)
        for i in range(1000):
            client.send("SET", "key:%d" % i, "x" * i)
        client.send("GET", "large")
        for _ in range(1001):
            self.assertEqual(client.read(), "OK")
        self.assertEqual(client.read(), value)
        client.send("MGET", *("key:%d" % i for i in range(1000)))
        self.assertEqual(client.read(), ["x" * i for i in range(1000)])

    def test_a_client_that_reads_late_gets_everything(self):
        client = self.secure()
        client.call("SET", "big", "b" * 1_000_000)
        for _ in range(40):
            client.send("GET", "big")
        with self.server.connect() as other:
            self.assertEqual(other.call("PING"), "PONG")
        for _ in range(40):
            self.assertEqual(len(client.read()), 1_000_000)

    def test_plain_clients_and_the_unix_socket_stay(self):
        server = SecureServer(**options(unixsocket="socket"))
        self.addCleanup(server.stop)
        for client in (server.connect(), server.connect_unix(), server.connect_secure()):
            self.assertEqual(client.call("INCR", "count") > 0, True)
            client.close()

    def test_subscribers_and_blocked_clients_are_reached(self):
        subscriber, waiter, other = self.secure(), self.secure(), self.secure()
        subscriber.call("SUBSCRIBE", "news")
        waiter.send("BLPOP", "list", "0")
        self.eventually(lambda: "blocked_clients:1" in other.call("INFO", "clients"))
        other.call("PUBLISH", "news", "hello")
        other.call("RPUSH", "list", "value")
        self.assertEqual(subscriber.read(), ["message", "news", "hello"])
        self.assertEqual(waiter.read(), ["list", "value"])

    def test_the_end_is_announced(self):
        client = self.secure()
        self.assertEqual(client.call("QUIT"), "OK")
        client.socket.suppress_ragged_eofs = False
        self.assertEqual(client.socket.recv(1), b"")

    def test_traffic_is_counted_as_it_was_meant(self):
        client = self.secure()
        before = client.call("CLIENT", "INFO")
        client.call("SET", "key", "x" * 1000)
        after = client.call("CLIENT", "INFO")
        received = [int(text.split(" tot-net-in=")[1].split(" ")[0]) for text in (before, after)]
        request = len(harness.encode("SET", "key", "x" * 1000)) + len(harness.encode("CLIENT", "INFO"))
        self.assertEqual(received[1] - received[0], request)

    def test_the_servers_name_may_be_asked_for(self):
        self.assertEqual(self.secure(server_hostname="some.where.example").call("PING"), "PONG")

    def test_scripts_are_debugged(self):
        for kind in ("YES", "SYNC"):
            with self.subTest(kind):
                client = self.secure()
                self.assertEqual(client.call("SCRIPT", "DEBUG", kind), "OK")
                client.send("EVAL", "local large = string.rep('x', 40000)\nreturn redis.call('SET', KEYS[1], large)", "1", kind)
                self.assertIn("* Stopped at 1, stop reason = step over", client.read())
                self.assertIn("-> 2   return redis.call('SET', KEYS[1], large)", client.call("step"))
                client.call("maxlen", "0")
                self.assertIn("<value> \"%s\"" % ("x" * 40000), client.call("print", "large"))
                client.send("continue")
                self.assertEqual(client.read(), ["<endsession>"])
                self.assertEqual(client.read(), "OK")
                client.read_until_closed()
                # What a child has written is gone with it.
                self.assertEqual(self.secure().call("EXISTS", kind), 1 if kind == "SYNC" else 0)
        self.assert_serves()

    def test_a_debugger_whose_user_goes(self):
        client = self.secure()
        client.call("SCRIPT", "DEBUG", "SYNC")
        client.send("EVAL", "return redis.call('INCR', 'gone')", "0")
        self.assertIn("* Stopped at 1, stop reason = step over", client.read())
        client.close()
        self.assert_serves()

    def test_renegotiation_is_refused(self):
        process = self.s_client("-tls1_2", input=b"PING\r\nR\n")
        self.assertIn(b"+PONG", process)
        self.assertIn(b"no renegotiation", process)
        self.assert_serves()

    def test_keys_may_be_changed(self):
        process = self.s_client("-tls1_3", input=b"K\nPING\r\n")
        self.assertIn(b"+PONG", process)
        self.assertIn(b"KEYUPDATE", process)

    def test_the_certificates_up_to_the_authority_are_sent_and_one_ticket(self):
        # The file has the server's alone.
        said = self.s_client("-tls1_3", "-showcerts", input=b"PING\r\n")
        self.assertIn(b"Verify return code: 0 (ok)", said)
        self.assertEqual(said.count(b"-----BEGIN CERTIFICATE-----"), 2)
        self.assertEqual(said.count(b"Post-Handshake New Session Ticket arrived"), 1)

    def s_client(self, *words, input):
        """What openssl s_client says, which is given its input line by line."""
        command = ["openssl", "s_client", "-connect", "127.0.0.1:%d" % self.server.tls_port, "-CAfile",
                   Certificates.path("ca.crt"), "-cert", Certificates.path("client.crt"), "-key",
                   Certificates.path("client.key"), *words]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            for line in input.splitlines(keepends=True):
                process.stdin.write(line)
                process.stdin.flush()
                time.sleep(0.3)  # s_client looks at its commands only at the start of what it reads
            return process.communicate(b"Q\n", timeout=harness.REPLY_TIMEOUT_S)[0]
        finally:
            process.kill()
            process.wait()


class Sessions(TlsTestCase):
    def resumed(self, how, first):
        """Whether another session takes up where the first one was."""
        session = first.socket.session
        second = self.secure(how, session=session)
        second.call("PING")
        return second.socket.session_reused

    def test_sessions_are_resumed_unless_that_is_switched_off(self):
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            for caching in ("yes", "no"):
                with self.subTest(version=version, caching=caching):
                    with self.server.connect() as client:
                        client.call("CONFIG", "SET", "tls-session-caching", caching)
                    how = context()
                    how.minimum_version = how.maximum_version = version
                    first = self.secure(how)
                    first.call("PING")
                    self.assertEqual(self.resumed(how, first), caching == "yes")


class ClientCertificates(TlsTestCase):
    def setUp(self):
        self.plain = self.connect()
        self.addCleanup(self.plain.call, "CONFIG", "SET", "tls-auth-clients", "yes")

    def test_certificates_are_asked_for(self):
        self.assert_refused(context(None))
        self.logs("# Error accepting a client connection: error:0A0000C7:SSL routines::peer did not return a certificate (addr=127.")

    def test_certificates_may_be_left_to_clients(self):
        for value, bad_one_is_refused in (("optional", True), ("no", False)):
            self.plain.call("CONFIG", "SET", "tls-auth-clients", value)
            self.assertEqual(self.secure(context(None)).call("PING"), "PONG")
            self.assertEqual(self.secure().call("PING"), "PONG")
            if bad_one_is_refused:
                self.assert_refused(context("expired"))
            else:
                self.assertEqual(self.secure(context("expired")).call("PING"), "PONG")

    def test_certificates_must_be_valid(self):
        for name in ("expired", "early", "stranger", "server"):
            with self.subTest(name):
                self.assert_refused(context(name))
        self.logs("certificate verify failed (addr=127.")
        self.assert_serves()

    def test_clients_look_at_the_servers_certificate(self):
        def refused():
            return self.server.log().count("Error accepting a client connection: ")
        before = refused()
        with self.assertRaises(ssl.SSLCertVerificationError):
            self.secure(context(authority="other-ca"))
        # The client hangs up with bytes unread, which may overtake its alert: the reason is not always "alert unknown ca".
        self.eventually(lambda: refused() > before)

    def refused_names(self):
        return int(self.plain.call("INFO", "stats").split("acl_access_denied_tls_cert:")[1].split("\r\n")[0])

    def test_the_name_in_a_certificate_is_a_users(self):
        self.plain.call("CONFIG", "SET", "tls-auth-clients-user", "CN")
        self.addCleanup(self.plain.call, "CONFIG", "SET", "tls-auth-clients-user", "off")
        self.plain.call("ACL", "LOG", "RESET")
        refused = self.refused_names()
        self.assertEqual(self.secure().call("ACL", "WHOAMI"), "default")
        entry = self.plain.call("ACL", "LOG")[0]
        entry = dict(zip(entry[::2], entry[1::2]))
        self.assertEqual([entry[name] for name in ("reason", "context", "object", "username")],
                         ["tls-cert", "toplevel", "", "Client-only"])
        self.assertEqual(self.refused_names(), refused + 1)

        self.plain.call("ACL", "SETUSER", "Client-only", "on", ">secret", "~allowed", "+get", "+acl|whoami")
        client = self.secure()
        self.assertEqual(client.call("ACL", "WHOAMI"), "Client-only")
        self.assertIsNone(client.call("GET", "allowed"))
        self.assertIn("NOPERM", client.error_of("GET", "other"))

        self.plain.call("ACL", "SETUSER", "Client-only", "off")
        self.assertEqual(self.secure().call("ACL", "WHOAMI"), "default")
        self.plain.call("ACL", "DELUSER", "Client-only")

    def test_a_name_does_not_end_at_a_zero(self):
        self.plain.call("CONFIG", "SET", "tls-auth-clients-user", "CN")
        self.addCleanup(self.plain.call, "CONFIG", "SET", "tls-auth-clients-user", "off")
        self.plain.call("ACL", "SETUSER", "Client-only", "on", "nopass", "+@all")
        self.addCleanup(self.plain.call, "ACL", "DELUSER", "Client-only")
        self.plain.call("ACL", "LOG", "RESET")
        self.assertEqual(self.secure(context("client-nul-cn")).call("ACL", "WHOAMI"), "default")
        entry = self.plain.call("ACL", "LOG")[0]
        self.assertEqual(entry[entry.index("username") + 1], "Client-only\0attacker")

    def test_a_stranger_has_no_name(self):
        self.plain.call("CONFIG", "SET", "tls-auth-clients", "no", "tls-auth-clients-user", "CN")
        self.addCleanup(self.plain.call, "CONFIG", "SET", "tls-auth-clients-user", "off")
        self.plain.call("ACL", "SETUSER", "Client-only", "on", "nopass", "+@all")
        # A certificate that nobody has verified names nobody.
        self.assertEqual(self.secure(context("stranger")).call("ACL", "WHOAMI"), "default")
        self.plain.call("ACL", "DELUSER", "Client-only")


class InstalledTestCase(TlsTestCase):
    """A server whose certificate and key are files that a test replaces."""

    def setUp(self):
        self.plain = self.connect()
        self.directory = tempfile.mkdtemp(prefix="latchkey-e2e-")
        self.addCleanup(shutil.rmtree, self.directory)
        self.addCleanup(self.plain.call, "CONFIG", "SET", "tls-cert-file", Certificates.path("redis.crt"), "tls-key-file",
                        Certificates.path("redis.key"))
        self.files = {}
        for kind in ("crt", "key"):
            self.files[kind] = os.path.join(self.directory, "server." + kind)
        self.install("redis")

    def install(self, name):
        for kind, path in self.files.items():
            shutil.copy(Certificates.path(name + "." + kind), path)

    def set_files(self):
        return self.plain.call("CONFIG", "SET", "tls-cert-file", self.files["crt"], "tls-key-file", self.files["key"])

    def server_name(self):
        client = self.secure()
        subject = dict(field[0] for field in client.socket.getpeercert()["subject"])
        return subject["commonName"]


class Changes(InstalledTestCase):
    def test_a_certificate_is_replaced_under_its_name(self):
        self.set_files()
        before = self.secure()
        self.assertEqual(self.server_name(), "Generic-cert")
        self.install("server")
        self.assertEqual(self.server_name(), "Generic-cert")
        self.set_files()
        self.assertEqual(self.server_name(), "Server-only")
        self.assertEqual(before.call("PING"), "PONG")

    def test_a_bad_one_is_refused_and_the_old_one_kept(self):
        self.set_files()
        with open(self.files["crt"], "w") as file:
            file.write("no certificate\n")
        failed = "ERR CONFIG SET failed (possibly related to argument '%s') - Unable to update TLS configuration. Check server logs."
        self.assertEqual(self.plain.error_of("CONFIG", "SET", "tls-cert-file", self.files["crt"]), failed % "tls-cert-file")
        self.logs("# Failed to load certificate: %s: error:" % self.files["crt"])
        self.assertEqual(self.server_name(), "Generic-cert")
        self.assertEqual(self.plain.error_of("CONFIG", "SET", "tls-key-file", Certificates.path("client.key")),
                         failed % "tls-key-file")
        self.assertEqual(self.plain.call("CONFIG", "GET", "tls-key-file"), ["tls-key-file", self.files["key"]])
        for name, value in (("tls-ciphers", "none"), ("tls-protocols", "SSLv2"), ("tls-ca-cert-dir", "/nowhere"),
                            ("tls-ca-cert-file", ""), ("tls-dh-params-file", self.files["key"]), ("tls-ciphersuites", "none")):
            with self.subTest(name):
                self.assertEqual(self.plain.error_of("CONFIG", "SET", name, value), failed % name)
                self.assertEqual(self.server_name(), "Generic-cert")

    def test_the_port_moves_and_goes_and_comes(self):
        client = self.secure()
        old, new = self.server.tls_port, harness.free_port()
        self.addCleanup(self.plain.call, "CONFIG", "SET", "tls-port", old)
        self.plain.call("CONFIG", "SET", "tls-port", new)
        with self.assertRaises(ConnectionRefusedError):
            self.secure()
        self.server.tls_port = new
        self.assertEqual(self.secure().call("PING"), "PONG")
        self.plain.call("CONFIG", "SET", "tls-port", "0")
        with self.assertRaises(ConnectionRefusedError):
            self.secure()
        # Who is there stays, with the context gone.
        self.assertEqual(client.call("PING"), "PONG")
        self.server.tls_port = old
        self.plain.call("CONFIG", "SET", "tls-port", old)
        self.assertEqual(self.secure().call("PING"), "PONG")

    def test_a_port_that_is_taken_is_refused(self):
        self.assertEqual(self.plain.error_of("CONFIG", "SET", "tls-port", self.server.port),
                         "ERR CONFIG SET failed (possibly related to argument 'tls-port') - Unable to listen on this port. Check "
                         "server logs.")
        self.assertEqual(self.secure().call("PING"), "PONG")

    def test_ports_change_hands(self):
        plain, secure = self.server.port, self.server.tls_port
        self.plain.call("CONFIG", "SET", "port", secure, "tls-port", plain)
        self.server.port, self.server.tls_port = secure, plain
        self.assertEqual(self.secure().call("PING"), "PONG")
        self.assertEqual(self.connect().call("PING"), "PONG")
        self.plain.call("CONFIG", "SET", "port", plain, "tls-port", secure)
        self.server.port, self.server.tls_port = plain, secure

    def test_files_are_looked_at_only_for_tls(self):
        server = harness.Server()
        self.addCleanup(server.stop)
        with server.connect() as client:
            self.assertEqual(client.call("CONFIG", "SET", "tls-cert-file", "/nowhere"), "OK")
            self.assertIn("Unable to update TLS configuration",
                          client.error_of("CONFIG", "SET", "tls-port", harness.free_port()))


class Starts(unittest.TestCase):
    def log_of_failure(self, **more):
        with self.assertRaises(AssertionError) as failure:
            server = harness.Server(**more)
            server.stop()
        return str(failure.exception)

    def test_what_cannot_be_is_said_at_the_start(self):
        port = harness.free_port()
        for more, reason in (
                ({}, "No tls-cert-file configured!"),
                ({"tls_cert_file": Certificates.path("redis.crt")}, "No tls-key-file configured!"),
                (options(tls_ca_cert_file=""), "Either tls-ca-cert-file or tls-ca-cert-dir must be specified"),
                (options(tls_key_file=Certificates.path("client.key")), "key values mismatch"),
                (options(tls_protocols="SSLv3"), "Invalid tls-protocols specified."),
                (options(tls_ciphers="none"), "Failed to configure ciphers: none")):
            with self.subTest(reason):
                log = self.log_of_failure(tls_port=port, **more)
                self.assertIn("# " + reason if not reason.startswith("key") else reason, log)
                self.assertIn("# Failed to configure TLS. Check logs for more info.\n", log)

    def test_replication_and_the_cluster_need_it_too(self):
        for name in ("tls_replication", "tls_cluster"):
            self.assertIn("# No tls-cert-file configured!\n", self.log_of_failure(**{name: "yes"}))

    def test_unknown_directives_are_refused(self):
        self.assertIn(">>> 'tls-no-such x'", self.log_of_failure(tls_no_such="x"))
        self.assertIn("argument(s) must be one of the following: CN, URI, off", self.log_of_failure(tls_auth_clients_user="SAN"))

    def test_a_server_without_any_other_port(self):
        port = harness.free_port()
        directory = tempfile.mkdtemp(prefix="latchkey-e2e-")
        self.addCleanup(shutil.rmtree, directory)
        command = [os.environ["LATCHKEY_SERVER"], "--port", "0", "--tls-port", str(port), "--save", "", "--dir", directory,
                   "--port-file", "port"]
        for name, value in options().items():
            command += ["--" + name.replace("_", "-"), value]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + harness.START_TIMEOUT_S
            while not os.path.exists(os.path.join(directory, "port")) and time.monotonic() < deadline:
                time.sleep(0.01)
            with open(os.path.join(directory, "port")) as file:
                self.assertEqual(file.read(), "port=%d\nurl=rediss://127.0.0.1:%d\n" % (port, port))
            with harness.Client(context().wrap_socket(socket.create_connection(("127.0.0.1", port)))) as client:
                self.assertIn("tcp_port:%d\r\n" % port, client.call("INFO", "server"))
        finally:
            server.terminate()
            server.wait()


class Faults(TlsTestCase):
    """What is no handshake, or half of one."""

    more = {"maxclients": "20"}

    def await_nobody(self):
        client = self.connect()
        self.eventually(lambda: "connected_clients:1\r\n" in client.call("INFO", "clients"))

    def test_plain_text_on_the_tls_port(self):
        raw = self.server.connect_raw()
        self.addCleanup(raw.close)
        raw.sendall(b"PING\r\n" * 3)
        reply = harness.Client(raw).read_until_closed()
        self.assertNotIn(b"PONG", reply)
        self.logs("# Error accepting a client connection: error:0A00010B:SSL routines::wrong version number (addr=127.")
        self.assert_serves()

    def test_tls_on_the_plain_port(self):
        raw = socket.create_connection(("127.0.0.1", self.server.port), 1)
        self.addCleanup(raw.close)
        # The server waits for the end of a line, as it does for anybody, or refuses what it has seen.
        with self.assertRaises((ssl.SSLError, TimeoutError, OSError)):
            context().wrap_socket(raw)
        self.assert_serves()

    def test_garbage(self):
        for data in (b"\0" * 1000, b"\xff" * 1000, b"\x16\x03\x01\xff\xff" + b"x" * 70000, os.urandom(5000), b"\x80\x2e\x01\0\2"):
            raw = self.server.connect_raw()
            self.addCleanup(raw.close)
            # The server may have closed the connection by then.
            with contextlib.suppress(OSError):
                raw.sendall(data)
                raw.shutdown(socket.SHUT_WR)
            harness.Client(raw).read_until_closed()
        self.assert_serves()

    def hello(self):
        """The first message of a real client."""
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        with self.assertRaises(ssl.SSLWantReadError):
            context().wrap_bio(incoming, outgoing).do_handshake()
        return outgoing.read()

    def test_clients_that_vanish_in_the_handshake(self):
        hello = self.hello()
        for size in (0, 1, 5, len(hello) // 2, len(hello)):
            for reset in (False, True):
                raw = self.server.connect_raw()
                raw.sendall(hello[:size])
                if reset:
                    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                raw.close()
        self.await_nobody()
        self.assert_serves()

    def test_a_message_that_comes_byte_by_byte(self):
        raw = self.server.connect_raw()
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.addCleanup(raw.close)
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        session = context().wrap_bio(incoming, outgoing)

        def step(action):
            while True:
                try:
                    result = action()
                except ssl.SSLWantReadError:
                    result = None
                for byte in outgoing.read():
                    raw.sendall(bytes([byte]))
                if result is not None:
                    return result
                incoming.write(raw.recv(1 << 16))

        def is_open():
            session.do_handshake()
            return True

        self.assertTrue(step(is_open))
        session.write(b"PING\r\n")
        self.assertEqual(step(lambda: session.read(100)), b"+PONG\r\n")

    def test_a_record_that_is_cut_off(self):
        for how in ("end", "reset"):
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            session = context().wrap_bio(incoming, outgoing)
            raw = self.server.connect_raw()
            while True:
                try:
                    session.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    raw.sendall(outgoing.read())
                    incoming.write(raw.recv(1 << 16))
            raw.sendall(outgoing.read())
            session.write(b"SET cut off\r\n")
            raw.sendall(outgoing.read()[:-1])
            if how == "reset":
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            raw.close()
        self.await_nobody()
        self.assertIsNone(self.connect().call("GET", "cut"))

    def test_stalled_handshakes_count_and_end(self):
        plain = self.connect()
        plain.call("CONFIG", "SET", "timeout", "2")
        self.addCleanup(lambda: self.connect().call("CONFIG", "SET", "timeout", "0"))
        hello = self.hello()
        stalled = []
        for i in range(19):
            raw = self.server.connect_raw()
            self.addCleanup(raw.close)
            raw.sendall(hello[:i * 10])
            stalled.append(raw)
        self.eventually(lambda: "connected_clients:20\r\n" in plain.call("INFO", "clients"))
        # There is room for nobody else, and a TLS client cannot be told why.
        with self.assertRaises((ssl.SSLError, ConnectionError)):
            self.secure()
        self.eventually(lambda: "connected_clients:1\r\n" in plain.call("INFO", "clients"))
        for raw in stalled:
            harness.Client(raw).read_until_closed()
        self.logs("# Error accepting a client connection: the TLS handshake takes too long (addr=127.")

    def test_stalled_handshakes_end_without_a_timeout(self):
        raw = self.server.connect_raw()
        self.addCleanup(raw.close)
        self.assertEqual(harness.Client(raw).read_until_closed(), b"")
        self.assert_serves()


class BetweenServers(unittest.TestCase):
    def start(self, **more):
        server = SecureServer(**options(**more))
        self.addCleanup(server.stop)
        return server

    def eventually(self, condition):
        deadline = time.monotonic() + harness.REPLY_TIMEOUT_S
        while not condition():
            self.assertLess(time.monotonic(), deadline, "did not come to pass")
            time.sleep(0.02)

    def link_is_up(self, replica):
        with replica.connect() as client:
            return "master_link_status:up" in client.call("INFO", "replication")

    def test_replicas_follow_by_tls(self):
        for channel in ("no", "yes"):
            with self.subTest(rdb_channel=channel):
                more = {"tls_replication": "yes", "repl_rdb_channel": channel, "repl_diskless_sync_delay": "0"}
                master, replica = self.start(**more), self.start(**more)
                with master.connect() as client:
                    for i in range(200):
                        client.call("SET", "key:%d" % i, "x" * 5000)
                with replica.connect() as client:
                    client.call("REPLICAOF", "127.0.0.1", master.tls_port)
                self.eventually(lambda: self.link_is_up(replica))
                with master.connect() as client:
                    client.call("SET", "later", "value")
                    self.assertEqual(client.call("WAIT", "1", "10000"), 1)
                    self.assertIn("port=%d" % replica.tls_port, client.call("INFO", "replication"))
                with replica.connect() as client:
                    self.assertEqual(client.call("GET", "later"), "value")
                    self.assertEqual(client.call("DBSIZE"), 201)

    def test_a_replica_does_not_follow_a_stranger(self):
        master = SecureServer(tls_cert_file=Certificates.path("stranger.crt"), tls_key_file=Certificates.path("stranger.key"),
                              tls_ca_cert_file=Certificates.path("ca.crt"))
        self.addCleanup(master.stop)
        replica = self.start(tls_replication="yes", replicaof=["127.0.0.1", str(master.tls_port)])
        self.eventually(lambda: "Error condition on socket for SYNC: error:0A000086:SSL routines::certificate verify failed"
                        in replica.log())
        self.assertFalse(self.link_is_up(replica))

    def test_a_master_that_says_nothing_is_given_up(self):
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen()
            replica = self.start(tls_replication="yes", repl_timeout="2",
                                 replicaof=["127.0.0.1", str(silent.getsockname()[1])])
            self.eventually(lambda: replica.log().count("Connecting to MASTER") > 1)
            with replica.connect() as client:
                self.assertEqual(client.call("PING"), "PONG")

    def test_a_master_is_told_the_name_it_was_found_by(self):
        how = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        how.load_cert_chain(Certificates.path("redis.crt"), Certificates.path("redis.key"))
        told = []
        how.sni_callback = lambda _, name, __: told.append(name)
        with socket.socket() as master:
            master.bind(("127.0.0.1", 0))
            master.listen()
            master.settimeout(harness.REPLY_TIMEOUT_S)
            # An address is no name.
            for host, name in (("localhost", "localhost"), ("127.0.0.1", None)):
                replica = self.start(tls_replication="yes", replicaof=[host, str(master.getsockname()[1])])
                raw = master.accept()[0]
                raw.settimeout(harness.REPLY_TIMEOUT_S)
                with how.wrap_socket(raw, server_side=True) as link:
                    self.assertEqual(link.recv(100), b"*1\r\n$4\r\nPING\r\n")
                self.assertEqual(told, [name])
                told.clear()
                replica.stop()

    def test_a_master_whose_time_is_over_is_not_followed(self):
        # It is for both uses, and the authority's; only its time differs from that of others.
        for name in ("expired-server", "early-server"):
            with self.subTest(name):
                master = SecureServer(tls_cert_file=Certificates.path(name + ".crt"), tls_key_file=Certificates.path(name + ".key"),
                                      tls_ca_cert_file=Certificates.path("ca.crt"))
                self.addCleanup(master.stop)
                replica = self.start(tls_replication="yes", replicaof=["127.0.0.1", str(master.tls_port)])
                self.eventually(lambda: "Error condition on socket for SYNC: error:0A000086:SSL routines::certificate verify failed"
                                in replica.log())
                self.assertFalse(self.link_is_up(replica))
                with replica.connect() as client:
                    client.call("REPLICAOF", "NO", "ONE")

    def test_the_clients_certificate_is_shown(self):
        master = self.start()
        replica = self.start(tls_replication="yes", tls_client_cert_file=Certificates.path("server.crt"),
                             tls_client_key_file=Certificates.path("server.key"))
        with replica.connect() as client:
            client.call("REPLICAOF", "127.0.0.1", master.tls_port)
        # It is for servers alone.
        self.eventually(lambda: "certificate verify failed (addr=" in master.log())
        with replica.connect() as client:
            client.call("CONFIG", "SET", "tls-client-cert-file", Certificates.path("client.crt"), "tls-client-key-file",
                        Certificates.path("client.key"))
        self.eventually(lambda: self.link_is_up(replica))

    def test_keys_migrate_by_tls(self):
        source, target = self.start(tls_cluster="yes"), self.start()
        with source.connect() as client, target.connect() as other:
            client.call("SET", "key", "v" * 300_000)
            self.assertEqual(client.call("MIGRATE", "127.0.0.1", target.tls_port, "key", "0", "5000"), "OK")
            self.assertEqual(other.call("GET", "key"), "v" * 300_000)
            client.call("SET", "key", "second")
            self.assertEqual(client.call("MIGRATE", "127.0.0.1", target.tls_port, "key", "0", "5000", "REPLACE"), "OK")
            self.assertEqual(other.call("GET", "key"), "second")
            client.call("SET", "key", "third")
            # The plain port answers no handshake.
            self.assertIn("IOERR", client.error_of("MIGRATE", "127.0.0.1", target.port, "key", "0", "500"))
            self.assertEqual(client.call("GET", "key"), "third")

    def test_a_cluster_by_tls(self):
        more = {"cluster_enabled": "yes", "tls_cluster": "yes", "tls_replication": "yes", "cluster_node_timeout": "5000"}
        nodes = [self.start(**more) for _ in range(3)]
        clients = [node.connect() for node in nodes]
        silent = socket.create_connection(("127.0.0.1", nodes[0].tls_port + 10000), harness.REPLY_TIMEOUT_S)
        self.addCleanup(silent.close)
        for client in clients:
            self.addCleanup(client.close)
        for node in nodes[1:]:
            clients[0].call("CLUSTER", "MEET", "127.0.0.1", node.tls_port)
        clients[0].call("CLUSTER", "ADDSLOTSRANGE", "0", "8191")
        clients[1].call("CLUSTER", "ADDSLOTSRANGE", "8192", "16383")
        for client in clients:
            self.eventually(lambda: "cluster_state:ok" in client.call("CLUSTER", "INFO") and
                            "cluster_known_nodes:3" in client.call("CLUSTER", "INFO"))
        clients[2].call("CLUSTER", "REPLICATE", clients[0].call("CLUSTER", "MYID"))
        self.eventually(lambda: self.link_is_up(nodes[2]))
        # Everybody is told of the port that serves such clients.
        secure = nodes[0].connect_secure()
        self.addCleanup(secure.close)
        self.assertEqual(clients[0].error_of("GET", "foo"), "MOVED 12182 127.0.0.1:%d" % nodes[1].port)
        self.assertEqual(secure.error_of("GET", "foo"), "MOVED 12182 127.0.0.1:%d" % nodes[1].tls_port)
        self.assertIn("127.0.0.1:%d@%d" % (nodes[1].tls_port, nodes[1].tls_port + 10000), secure.call("CLUSTER", "NODES"))
        self.assertIn("127.0.0.1:%d@%d" % (nodes[1].port, nodes[1].tls_port + 10000), clients[0].call("CLUSTER", "NODES"))
        # Whole slots move by it.
        clients[0].call("SET", "{06S}key", "v" * 300_000)
        clients[0].call("RPUSH", "{06S}list", *range(2000))
        task = clients[1].call("CLUSTER", "MIGRATION", "IMPORT", "0", "0")
        self.eventually(lambda: "completed" in clients[1].call("CLUSTER", "MIGRATION", "STATUS", "ID", task)[0])
        self.assertEqual(clients[1].call("GET", "{06S}key"), "v" * 300_000)
        self.assertEqual(clients[1].call("LLEN", "{06S}list"), 2000)
        # A node that speaks without TLS is none.
        stranger = harness.Server(cluster_enabled="yes")
        self.addCleanup(stranger.stop)
        with stranger.connect() as client:
            client.call("CLUSTER", "MEET", "127.0.0.1", nodes[0].port, nodes[0].tls_port + 10000)
            time.sleep(0.5)
            self.assertIn("cluster_known_nodes:3", clients[0].call("CLUSTER", "INFO"))
        # A node needs a certificate, whatever is asked of clients.
        self.assertNotIn("cluster bus port is not authenticated", nodes[0].log())
        for value in ("optional", "no"):
            clients[0].call("CONFIG", "SET", "tls-auth-clients", value)
            for name in (None, "expired", "stranger"):
                raw = socket.create_connection(("127.0.0.1", nodes[0].tls_port + 10000), harness.REPLY_TIMEOUT_S)
                self.addCleanup(raw.close)
                with self.assertRaises((ssl.SSLError, ConnectionError)):
                    # With TLS 1.3 the refusal comes when something is read.
                    secured = context(name).wrap_socket(raw)
                    if not secured.recv(1):
                        raise ConnectionError("closed")
            # Nor is a client's session, which had none, good enough.
            how = context(None)
            how.maximum_version = ssl.TLSVersion.TLSv1_2
            client = nodes[0].connect_secure(how)
            session = client.socket.session
            client.close()
            raw = socket.create_connection(("127.0.0.1", nodes[0].tls_port + 10000), harness.REPLY_TIMEOUT_S)
            self.addCleanup(raw.close)
            with self.assertRaises((ssl.SSLError, ConnectionError)):
                how.wrap_socket(raw, session=session)
        clients[0].call("CONFIG", "SET", "tls-auth-clients", "yes")
        # Whoever comes to the bus and says nothing is sent away.
        self.assertEqual(harness.Client(silent).read_until_closed(), b"")


if __name__ == "__main__":
    unittest.main()

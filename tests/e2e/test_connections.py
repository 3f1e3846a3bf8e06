"""Many connections, refused connections, those that are closed for what they take, and where the server listens."""

import os
import resource
import socket
import time
import unittest

import harness


def address_of_this_machine():
    """An IPv4 address that is not a loopback one, or None. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return None
        address = probe.getsockname()[0]
    return None if address.startswith("127.") else address


def has_ipv6():
    with socket.socket(socket.AF_INET6) as probe:
        try:
            probe.bind(("::1", 0))
        except OSError:
            return False
    return True


class Crowd(harness.ServerTestCase):
    options = {"maxclients": 10_050, "tcp-backlog": 4096}

    def test_ten_thousand_connections_are_served_at_once(self):
        count = 10_000
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        if most != resource.RLIM_INFINITY and most < count + 100:
            self.skipTest("the system allows %d open files" % most)
        resource.setrlimit(resource.RLIMIT_NOFILE, (count + 100, most))
        crowd = []
        try:
            for number in range(count):
                # Addresses of 127/8, so that the ports of one do not run out.
                sock = socket.socket()
                sock.bind(("127.0.0.%d" % (1 + number % 4), 0))
                sock.connect(("127.0.0.1", self.server.port))
                crowd.append(sock)
            for turn in range(2):
                for number, sock in enumerate(crowd):
                    sock.sendall(harness.encode("ECHO", number))
                for number, sock in enumerate(crowd):
                    text = str(number)
                    expected = b"$%d\r\n%s\r\n" % (len(text), text.encode())
                    sock.settimeout(harness.REPLY_TIMEOUT_S)
                    self.assertEqual(sock.recv(64), expected)
            admin = self.connect()
            self.assertEqual(len(admin.call("CLIENT", "LIST").splitlines()), count + 1)
            self.assertEqual(admin.call("CLIENT", "KILL", "TYPE", "normal"), count)
            for sock in crowd:
                self.assertEqual(sock.recv(1), b"")
        finally:
            for sock in crowd:
                sock.close()


class NoDescriptors(harness.ServerTestCase):
    def test_who_is_connected_is_served_and_others_wait(self):
        here = self.connect()
        here.call("SET", "key", "value")
        pid = self.server.process.pid
        limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        most = max(int(name) for name in os.listdir("/proc/%d/fd" % pid)) + 1
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (most, limits[1]))
        problem = "Accepting client connection: accept: Too many open files"
        while problem not in self.server.log():
            waiting = self.connect()
            waiting.send("GET", "key")
            time.sleep(0.02)
        for _ in range(100):
            self.assertEqual(here.call("GET", "key"), "value")
        # Nor does a snapshot's child need one to report.
        self.assertEqual(here.call("BGSAVE"), "Background saving started")
        self.eventually(lambda: "rdb_bgsave_in_progress:0" in here.call("INFO", "persistence"))
        self.assertIn("rdb_last_bgsave_status:ok", here.call("INFO", "persistence"))
        self.assertEqual(self.server.log().count(problem), 1)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
        self.assertEqual(waiting.read(), "value")


class Refusals(harness.ServerTestCase):
    options = {"maxclients": 3, "bind": "*", "unixsocket": "socket"}

    def test_one_too_many_is_told_so(self):
        held = [self.connect() for _ in range(3)]
        for client in held:
            self.assertEqual(client.call("PING"), "PONG")
        refused = self.connect()
        self.assertEqual(refused.read_until_closed(), b"-ERR max number of clients reached\r\n")
        held[0].close()

        def admitted():
            with self.server.connect() as again:
                try:
                    again.send("PING")
                    return again.read() == "PONG"
                except (harness.ConnectionClosed, ConnectionError):
                    return False

        self.eventually(admitted)

    def test_strangers_are_not_let_in_without_a_password(self):
        address = address_of_this_machine()
        if address is None:
            self.skipTest("this machine has a loopback address only")
        admin = self.connect()
        self.assertRegex(self.connect(host=address).read_until_closed(), rb"^-DENIED Redis is running in protected mode")
        admin.call("CONFIG", "SET", "requirepass", "secret")
        try:
            stranger = self.connect(host=address)
            self.assertEqual(stranger.error_of("PING"), "NOAUTH Authentication required.")
            stranger.close()
            admin.call("CONFIG", "SET", "requirepass", "")
            admin.call("CONFIG", "SET", "protected-mode", "no")
            self.assertEqual(self.connect(host=address).call("PING"), "PONG")
        finally:
            admin.call("CONFIG", "SET", "requirepass", "", "protected-mode", "yes")

    def test_a_unix_socket_tells_its_path(self):
        client = self.server.connect_unix()
        self.addCleanup(client.close)
        info = dict(field.split("=", 1) for field in client.call("CLIENT", "INFO").split())
        self.assertEqual((info["addr"], info["laddr"], info["flags"]), ("socket:0", "socket:0", "U"))


class Addresses(harness.ServerTestCase):
    def connects(self, port, host="127.0.0.1"):
        try:
            with socket.create_connection((host, port), 5) as sock:
                client = harness.Client(sock)
                return client.call("PING") == "PONG"
        except OSError:
            return False

    def test_the_port_can_be_changed_while_clients_stay(self):
        admin = self.connect()
        old, new = self.server.port, harness.free_port()
        self.assertEqual(admin.call("CONFIG", "SET", "port", new), "OK")
        self.assertEqual((self.connects(old), self.connects(new)), (False, True))
        self.assertEqual(admin.call("CONFIG", "SET", "port", old), "OK")
        self.assertEqual((self.connects(old), self.connects(new)), (True, False))

    def test_a_port_in_use_is_refused_and_the_old_one_kept(self):
        admin = self.connect()
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            taken = other.getsockname()[1]
            self.assertEqual(
                admin.error_of("CONFIG", "SET", "port", taken),
                "ERR CONFIG SET failed (possibly related to argument 'port') - "
                "Unable to listen on this port. Check server logs.",
            )
        self.assertEqual(admin.call("CONFIG", "GET", "port"), ["port", str(self.server.port)])
        self.assertTrue(self.connects(self.server.port))

    def test_addresses_can_be_changed(self):
        admin = self.connect()
        port = self.server.port
        self.assertEqual(admin.call("CONFIG", "SET", "bind", "127.0.0.2"), "OK")
        self.assertEqual((self.connects(port), self.connects(port, "127.0.0.2")), (False, True))
        self.assertEqual(
            admin.error_of("CONFIG", "SET", "bind", "999.999.999.999"),
            "ERR CONFIG SET failed (possibly related to argument 'bind') - Failed to bind to specified addresses.",
        )
        self.assertTrue(self.connects(port, "127.0.0.2"))
        self.assertEqual(admin.call("CONFIG", "SET", "bind", ""), "OK")
        self.assertFalse(self.connects(port, "127.0.0.2"))
        self.assertEqual(admin.call("CONFIG", "SET", "bind", "localhost -::1 -192.0.2.1"), "OK")
        self.assertTrue(self.connects(port))
        if has_ipv6():
            self.assertTrue(self.connects(port, "::1"))
        self.assertEqual(admin.call("CONFIG", "SET", "bind", "* -::*"), "OK")
        self.assertTrue(self.connects(port))


class Floods(harness.ServerTestCase):
    """Who sends without end or never reads takes nothing from the others."""

    BIG = 200_000
    NEVER_READ = 600

    def figure(self, client, name):
        fields = dict(line.split(":", 1) for line in client.call("INFO", "stats").splitlines() if ":" in line)
        return int(fields[name])

    def test_others_are_served_while_one_sends_without_end(self):
        flooding = self.connect()
        flooding.socket.setblocking(False)
        polite = self.connect()
        requests = harness.encode("PING") * 10_000
        sent = 0
        for turn in range(200):
            try:
                # From where the last call ended, as the socket may take a part of a request.
                sent += flooding.socket.send(requests[sent % len(requests):])
            except BlockingIOError:
                pass
            self.assertEqual(polite.call("INCR", "turns"), turn + 1)
        self.assertGreater(sent, len(requests))

    def test_who_never_reads_is_let_go_at_the_hard_limit(self):
        client = self.connect()
        client.call("CONFIG", "RESETSTAT")
        client.call("SET", "big", "x" * self.BIG)
        client.call("CONFIG", "SET", "client-output-buffer-limit", "normal 20mb 0 0")
        deaf = self.connect()
        number = deaf.call("CLIENT", "ID")
        deaf.send_raw(harness.encode("GET", "big") * self.NEVER_READ)
        self.eventually(lambda: self.figure(client, "client_output_buffer_limit_disconnections") == 1)
        self.assertEqual(client.call("CLIENT", "LIST", "ID", str(number)), "")
        client.call("CONFIG", "SET", "client-output-buffer-limit", "normal 0 0 0")

    def test_a_reply_beyond_the_limit_is_not_begun(self):
        client = self.connect()
        client.call("SET", "big", "x" * self.BIG)
        client.call("CONFIG", "SET", "client-output-buffer-limit", "normal 10 0 0")
        greedy = self.connect()
        self.assertEqual(greedy.call("PING"), "PONG")
        greedy.send("GET", "big")
        self.assertEqual(greedy.read_until_closed(), b"")
        client.call("CONFIG", "SET", "client-output-buffer-limit", "normal 0 0 0")

    def test_without_a_limit_all_replies_wait_for_who_reads_late(self):
        client = self.connect()
        client.call("SET", "big", "x" * self.BIG)
        late = self.connect()
        late.send_raw(harness.encode("GET", "big") * 100)
        self.eventually(lambda: "cmd=get" in client.call("CLIENT", "LIST"))
        for _ in range(100):
            self.assertEqual(len(late.read()), self.BIG)


class Idleness(harness.ServerTestCase):
    options = {"timeout": 1}

    def test_an_idle_connection_is_closed_and_a_waiting_one_is_not(self):
        idle, waiting = self.connect(), self.connect()
        self.assertEqual(idle.call("PING"), "PONG")
        waiting.send("WAIT", "1", "0")
        self.assertEqual(idle.read_until_closed(), b"")
        self.assertTrue(waiting.is_open())


class SlowReading(harness.ServerTestCase):
    options = {"timeout": 2}

    def test_who_takes_a_large_reply_slowly_is_not_idle(self):
        size = 64_000_000
        slow = self.connect()
        self.assertEqual(slow.call("SETRANGE", "big", str(size - 1), "x"), size)
        slow.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 400_000)
        slow.send("GET", "big")
        wanted = len("$%d\r\n" % size) + size + len("\r\n")
        # For longer than an idle client may stay; fast enough for the system, which keeps megabytes, to ask for more each second.
        for _ in range(50):
            time.sleep(0.1)
            wanted -= len(slow.socket.recv(400_000))
        self.assertGreater(wanted, size // 2)
        while wanted > 0:
            part = slow.socket.recv(1_000_000)
            self.assertTrue(part, "closed with %d bytes to come" % wanted)
            wanted -= len(part)
        self.assertEqual(wanted, 0)


if __name__ == "__main__":
    unittest.main()

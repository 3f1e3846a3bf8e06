"""SPACE: whole servers of their own within one process, entered by user name."""

import os
import pathlib
import random
import socket
import threading
import unittest

import harness

try:
    import redis
except ImportError:
    redis = None


def ask(client, *words):
    """The reply, whether it is an error or not."""
    client.send(*words)
    return client.read()


class SpaceTestCase(harness.ServerTestCase):
    def enter(self, name, *password):
        client = self.connect()
        self.assertEqual(client.call("AUTH", "space-" + name, *(password or ("x",))), "OK")
        return client

    def names(self, client=None):
        return [space[1] for space in (client or self.connect()).call("SPACE", "LIST")]


class Entered(SpaceTestCase):
    options = {"space-linger-ms": "0", "enable-debug-command": "yes"}

    def setUp(self):
        self.connect().call("FLUSHALL")

    def test_what_happens_in_one_is_not_seen_in_another(self):
        one, two, main = self.enter("one"), self.enter("two"), self.connect()
        for client, value in ((one, "1"), (two, "2"), (main, "main")):
            client.call("SET", "k", value)
        self.assertEqual([c.call("GET", "k") for c in (one, two, main)], ["1", "2", "main"])
        one.call("FLUSHALL")
        one.call("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
        one.call("SCRIPT", "FLUSH")
        one.call("ACL", "SETUSER", "anna", "on", "nopass", "+@all")
        self.assertEqual([c.call("GET", "k") for c in (one, two, main)], [None, "2", "main"])
        self.assertEqual(two.call("CONFIG", "GET", "maxmemory-policy")[1], "noeviction")
        self.assertEqual(main.call("ACL", "USERS"), ["default"])
        self.assertEqual(one.call("ACL", "USERS"), ["anna", "default"])

    def test_messages_clients_and_monitors_stay_within(self):
        one, other, two = self.enter("one"), self.enter("one"), self.enter("two")
        one.call("SUBSCRIBE", "news")
        self.assertEqual(two.call("PUBLISH", "news", "x"), 0)
        self.assertEqual(other.call("PUBLISH", "news", "y"), 1)
        self.assertEqual(one.read(), ["message", "news", "y"])
        self.assertEqual(len(other.call("CLIENT", "LIST").splitlines()), 2)
        self.assertEqual(len(two.call("CLIENT", "LIST").splitlines()), 1)
        monitor = self.enter("two")
        monitor.call("MONITOR")
        other.call("PING")
        two.call("ECHO", "seen")
        self.assertIn("seen", monitor.read())
        two.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        self.assertTrue(other.is_open())

    def test_releases_live_side_by_side(self):
        versions = {"redis-6.2": "6.2.16", "redis-7.0": "7.0.15", "redis-8.6": "8.6.3", "valkey-9.1": "9.1.2"}
        clients = {release: self.enter("side~" + release) for release in versions}
        for release, client in clients.items():
            product = release.split("-")[0]
            self.assertIn(f"{product}_version:{versions[release]}\r\n", client.call("INFO", "server"))
            client.call("SET", "release", release)
        self.assertEqual([client.call("GET", "release") for client in clients.values()], list(versions))
        knows = {release: not str(ask(client, "VCARD", "none")).startswith("ERR unknown command") for release, client in clients.items()}
        self.assertEqual(knows, {"redis-6.2": False, "redis-7.0": False, "redis-8.6": True, "valkey-9.1": False})
        # Loading a copy of itself by DEBUG RELOAD goes by the release's own format.
        for client in clients.values():
            client.call("HSET", "h", "f", "v")
            client.call("DEBUG", "RELOAD")
            self.assertEqual(client.call("HGET", "h", "f"), "v")
        # By another way into the same space.
        port = self.connect().call("SPACE", "LISTEN", "side~redis-6.2")
        with socket.create_connection(("127.0.0.1", port)) as link:
            link.sendall(b"GET release\r\n")
            self.assertEqual(link.recv(100), b"$9\r\nredis-6.2\r\n")

    def test_a_release_that_is_not_known_is_refused(self):
        client = self.connect()
        self.assertIn("must be latchkey or a release", str(ask(client, "SPACE", "ENTER", "a~redis-4.0")))
        self.assertIn("WRONGPASS", str(ask(client, "AUTH", "space-a~redis-4.0", "x")))

    def test_requests_behind_the_one_that_enters_are_run_there(self):
        client = self.connect()
        client.send_raw(harness.encode("SET", "where", "main") + harness.encode("AUTH", "space-pipelined", "x")
                        + harness.encode("SET", "where", "space") + harness.encode("GET", "where"))
        self.assertEqual([client.read() for _ in range(4)], ["OK", "OK", "OK", "space"])
        self.assertEqual(self.connect().call("GET", "where"), "main")

    def test_hello_enters_as_well_and_keeps_its_options(self):
        client = self.connect()
        greeting = client.call("HELLO", "3", "AUTH", "space-h", "x", "SETNAME", "worker")
        self.assertEqual(greeting["proto"], 3)
        self.assertEqual(client.call("CLIENT", "GETNAME"), "worker")
        self.assertIn("h", self.names())

    def test_a_client_can_go_on_to_another_and_back(self):
        client = self.connect()
        client.call("SET", "k", "main")
        self.assertEqual(client.call("SPACE", "ENTER", "a"), "OK")
        client.call("SET", "k", "a")
        self.assertEqual(client.call("AUTH", "space-b", "x"), "OK")
        self.assertEqual(client.call("GET", "k"), None)
        self.assertEqual(client.call("SPACE", "INFO")[1], "b")
        self.assertEqual(client.call("SPACE", "ENTER", "main"), "OK")
        self.assertEqual(client.call("GET", "k"), "main")
        self.assertEqual(client.error_of("SPACE", "INFO"), "ERR This client is in no space")

    def test_a_space_goes_with_its_last_client(self):
        client = self.enter("short")
        client.call("SET", "k", "v")
        self.assertIn("short", self.names())
        client.close()
        self.eventually(lambda: "short" not in self.names())
        self.assertEqual(self.enter("short").call("GET", "k"), None)

    def test_a_space_that_is_kept_waits_for_its_clients(self):
        main = self.connect()
        self.assertEqual(main.call("SPACE", "CREATE", "kept", "KEEP"), "kept")
        client = self.enter("kept")
        client.call("SET", "k", "v", "PX", "1")
        client.call("SET", "l", "v")
        client.close()
        self.eventually(lambda: main.call("SPACE", "INFO", "kept")[3] == 0)
        self.assertEqual(self.enter("kept").call("GET", "l"), "v")
        self.assertEqual(main.call("SPACE", "DROP", "kept"), "OK")
        self.eventually(lambda: "kept" not in self.names())

    def test_dropping_a_space_closes_its_clients_and_no_others(self):
        one, waiter, two = self.enter("doomed"), self.enter("doomed"), self.enter("other")
        waiter.send("BLPOP", "queue", "0")
        self.eventually(lambda: "blocked_clients:1" in one.call("INFO", "clients"))
        self.assertEqual(one.call("SPACE", "DROP", "doomed"), "OK")
        self.eventually(lambda: not one.is_open() and not waiter.is_open())
        self.assertEqual(two.call("PING"), "PONG")
        self.assertEqual(self.enter("doomed").call("DBSIZE"), 0)

    def test_shutdown_ends_the_space_alone(self):
        one, two = self.enter("ending"), self.enter("staying")
        one.send("SHUTDOWN", "NOSAVE")
        self.eventually(lambda: not one.is_open())
        self.assertEqual(two.call("PING"), "PONG")
        self.eventually(lambda: "ending" not in self.names())

    def test_each_has_a_clock_of_its_own(self):
        one, two = self.enter("early"), self.enter("late")
        one.call("CLOCK", "FREEZE")
        one.call("CLOCK", "SET", "2024-01-01T00:00:00Z")
        self.assertEqual(one.call("TIME"), ["1704067200", "0"])
        self.assertEqual(two.call("CLOCK")[1], "wall")

    def test_what_a_space_does_not_have_is_refused(self):
        client = self.enter("lean")
        for request in (("SAVE",), ("BGSAVE",), ("BGREWRITEAOF",), ("REPLICAOF", "NO", "ONE"), ("FAILOVER",)):
            self.assertEqual(client.error_of(*request),
                             f"ERR {request[0]} is not available in a space, which has no persistence, no replication "
                             "and no cluster")
        self.assertIn("a space has none of its own", client.error_of("CONFIG", "SET", "appendonly", "yes"))
        self.assertNotIn("appendonlydir", os.listdir(self.server.directory))
        self.assertIn("a space has none of its own", client.error_of("CONFIG", "SET", "port", "7777"))
        # It would be the process that opens another port for TLS, or whose memory is given back by another thread.
        for name, value in (("tls-port", "7777"), ("tls-replication", "yes"), ("tls-cluster", "yes"), ("jemalloc-bg-thread", "no")):
            self.assertIn("a space has none of its own", client.error_of("CONFIG", "SET", name, value))
            self.assertEqual(client.call("CONFIG", "SET", *client.call("CONFIG", "GET", name)), "OK")
        self.assertEqual(client.call("CONFIG", "SET", "save", ""), "OK")
        self.assertEqual(client.call("CONFIG", "GET", "appendonly"), ["appendonly", "no"])

    def test_a_port_of_its_own_for_code_that_knows_no_users(self):
        main = self.connect()
        port = main.call("SPACE", "LISTEN", "ported")
        self.assertEqual(main.call("SPACE", "LISTEN", "ported"), port)
        with harness.Client(socket.create_connection(("127.0.0.1", port), harness.REPLY_TIMEOUT_S)) as client:
            client.call("SET", "k", "v")
            self.assertEqual(client.call("SPACE", "INFO")[1], "ported")
            self.assertIn(f"tcp_port:{port}", client.call("INFO", "server"))
        self.assertEqual(main.call("GET", "k"), None)
        self.assertEqual(self.enter("ported").call("GET", "k"), "v")
        self.assertEqual(main.error_of("SPACE", "LISTEN", "ported", "1"),
                         f"ERR The space listens on port {port} already")
        self.assertEqual(main.error_of("SPACE", "LISTEN", "other", str(port)),
                         "ERR The space cannot listen on this port; the log says why")
        self.assertEqual(main.error_of("SPACE", "LISTEN", "other", "70000"), "ERR Invalid port")
        main.call("SPACE", "DROP", "ported")
        with self.assertRaises(OSError):
            for _ in range(100):
                socket.create_connection(("127.0.0.1", port), harness.REPLY_TIMEOUT_S).close()

    def test_a_unix_socket_of_its_own_beside_the_port(self):
        main = self.connect()
        path = os.path.join(self.server.directory, "space.sock")
        port = main.call("SPACE", "LISTEN", "socketed")
        self.assertEqual(main.call("SPACE", "LISTEN", "socketed", path), path)
        self.assertEqual(main.call("SPACE", "LISTEN", "socketed", path), path)
        self.assertEqual(main.call("SPACE", "LISTEN", "socketed"), port)
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(harness.REPLY_TIMEOUT_S)
        connection.connect(path)
        with harness.Client(connection) as client:
            client.call("SET", "k", "v")
            self.assertEqual(client.call("CONFIG", "GET", "unixsocket"), ["unixsocket", path])
            self.assertIn(f"tcp_port:{port}", client.call("INFO", "server"))
        with harness.Client(socket.create_connection(("127.0.0.1", port), harness.REPLY_TIMEOUT_S)) as client:
            self.assertEqual(client.call("GET", "k"), "v")
        self.assertEqual(main.error_of("SPACE", "LISTEN", "socketed", "/x"), f"ERR The space listens at {path} already")
        file = pathlib.Path(self.server.directory, "file")
        file.write_text("kept")
        self.assertEqual(main.error_of("SPACE", "LISTEN", "other", str(file)),
                         "ERR There is something else than a socket at this path")
        self.assertEqual(main.error_of("SPACE", "LISTEN", "other", "/nowhere/at/all"),
                         "ERR The space cannot listen at this path; the log says why")
        main.call("SPACE", "DROP", "socketed")
        self.eventually(lambda: "socketed" not in self.names())
        self.assertEqual(file.read_text(), "kept")

    def test_the_socket_of_another_server_is_not_taken_away(self):
        main = self.connect()
        path = os.path.join(self.server.directory, "others.sock")
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(path)
            other.listen()
            self.assertEqual(main.error_of("SPACE", "LISTEN", "greedy", path), "ERR A server listens at this path already")
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(path)
        # What is left of a server that has ended is replaced.
        self.assertEqual(main.call("SPACE", "LISTEN", "greedy", path), path)
        main.call("SPACE", "DROP", "greedy")

    def test_a_copy_of_another_or_of_the_first(self):
        main = self.connect()
        main.call("SET", "k", "main", "EX", "1000")
        main.call("SELECT", "3")
        for i in range(600):
            main.call("HSET", "wide", f"field{i}", "v" * 30)
        main.call("FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function('one', function() return 1 end)")
        self.assertEqual(main.call("SPACE", "CREATE", "fixture", "FROM", "main", "KEEP"), "fixture")
        fixture = self.enter("fixture")
        self.assertEqual(fixture.call("GET", "k"), "main")
        self.assertIn(fixture.call("TTL", "k"), range(900, 1001))
        fixture.call("SELECT", "3")
        self.assertEqual(fixture.call("OBJECT", "ENCODING", "wide"), "hashtable")
        self.assertEqual(fixture.call("FCALL", "one", "0"), 1)
        self.assertEqual(fixture.call("DEBUG", "DIGEST"), main.call("DEBUG", "DIGEST"))
        fixture.call("CLOCK", "FREEZE")
        fixture.call("CLOCK", "SET", "2024-01-01T00:00:00Z")
        fixture.call("SET", "l", "v", "PX", "500")
        name = main.call("SPACE", "CREATE", "KEEP", "FROM", "fixture")
        copy = self.enter(name)
        copy.call("SELECT", "3")
        self.assertEqual(copy.call("TIME"), ["1704067200", "0"])
        self.assertEqual(copy.call("PTTL", "l"), 500)
        copy.call("FLUSHALL")
        self.assertEqual(fixture.call("GET", "l"), "v")
        self.assertEqual(main.call("HLEN", "wide"), 600)
        self.assertEqual(main.error_of("SPACE", "CREATE", "a", "FROM", "nobody"), "ERR No such space")
        self.assertEqual(main.error_of("SPACE", "CREATE", "a", "FROM"), "ERR syntax error")
        self.assertEqual(main.error_of("SPACE", "CREATE", "a", "FROM", "main", "FROM", "main"), "ERR syntax error")
        # What can be read as options alone has no name.
        self.assertNotEqual(main.call("SPACE", "CREATE", "KEEP"), "KEEP")
        self.assertEqual(main.call("SPACE", "CREATE", "KEEP", "KEEP"), "KEEP")
        main.call("FLUSHALL")
        main.call("FUNCTION", "FLUSH")
        for space in self.names():
            main.call("SPACE", "DROP", space)
        self.eventually(lambda: not self.names())

    def test_a_space_is_reloaded_from_memory(self):
        client = self.enter("reloaded")
        client.call("SET", "k", "v", "PX", "100000")
        client.call("ZADD", "z", "1", "a", "2", "b")
        before = client.call("DEBUG", "DIGEST")
        self.assertEqual(client.call("DEBUG", "RELOAD"), "OK")
        self.assertEqual(client.call("DEBUG", "DIGEST"), before)
        self.assertEqual(client.error_of("DEBUG", "RELOAD", "NOSAVE"),
                         "ERR NOSAVE is not available in a space, which has no file to load")
        self.assertFalse(os.path.exists(os.path.join(self.server.directory, "dump.rdb")))

    def test_a_script_in_the_middle_is_not_copied(self):
        busy, main = self.enter("busy"), self.connect()
        busy.call("CONFIG", "SET", "busy-reply-threshold", "1")
        busy.send("EVAL", "redis.call('SET','k','half') while true do end", "0")
        other = self.enter("busy")
        self.eventually(lambda: ask(other, "PING") != "PONG")
        self.assertEqual(main.error_of("SPACE", "CREATE", "whole", "FROM", "busy"),
                         "ERR The server to copy from is in the middle of something")
        self.assertEqual(main.call("SPACE", "DROP", "busy"), "OK")
        self.eventually(lambda: "busy" not in self.names())

    def test_wrong_names_and_requests(self):
        client = self.connect()
        self.assertEqual(client.error_of("SPACE", "CREATE", "x" * 129),
                         "ERR The name of a space must not be longer than 128 bytes")
        self.assertEqual(client.error_of("SPACE", "ENTER", ""), "ERR The name of a space must not be empty")
        self.assertEqual(client.error_of("SPACE", "CREATE", "a b"),
                         "ERR The name of a space must be printable, without spaces")
        self.assertEqual(client.error_of("SPACE", "CREATE", "Main"), "ERR The first server is called main")
        self.assertEqual(client.error_of("SPACE", "CREATE", "a", "SOON"), "ERR syntax error")
        self.assertEqual(client.error_of("SPACE", "DROP", "nobody"), "ERR No such space")
        self.assertTrue(client.error_of("AUTH", "space-a b", "x").startswith("WRONGPASS"))
        client.call("MULTI")
        self.assertEqual(client.error_of("SPACE", "ENTER", "a"), "ERR Command not allowed inside a transaction")
        client.call("DISCARD")
        client.call("SPACE", "CREATE", "twice", "KEEP")
        self.assertEqual(client.error_of("SPACE", "CREATE", "twice"), "ERR A space of that name exists already")
        client.call("SPACE", "DROP", "twice")

    @unittest.skipIf(redis is None, "python3-redis is not installed")
    def test_by_url_in_threads(self):
        def work(name, failures):
            client = redis.Redis.from_url(f"redis://space-{name}:x@127.0.0.1:{self.server.port}/3", decode_responses=True)
            for i in range(50):
                client.flushall()
                client.set("k", f"{name}:{i}")
                client.config_set("lfu-log-factor", str(i))
                if client.get("k") != f"{name}:{i}" or client.config_get("lfu-log-factor") != {"lfu-log-factor": str(i)}:
                    failures.append(name)
            client.close()

        failures = []
        threads = [threading.Thread(target=work, args=(f"w{n}", failures)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])


class Guarded(SpaceTestCase):
    options = {"requirepass": "secret", "max-spaces": "2"}

    def setUp(self):
        main = self.connect()
        main.call("AUTH", "secret")
        for space in main.call("SPACE", "LIST"):
            main.call("SPACE", "DROP", space[1])
        self.eventually(lambda: not main.call("SPACE", "LIST"))

    def test_the_password_is_asked_for(self):
        client = self.connect()
        self.assertTrue(client.error_of("AUTH", "space-a", "wrong").startswith("WRONGPASS"))
        self.assertTrue(client.error_of("SPACE", "ENTER", "a").startswith("NOAUTH"))
        self.assertEqual(client.call("AUTH", "space-a", "secret"), "OK")
        self.assertEqual(client.call("SET", "k", "v"), "OK")

    def test_who_comes_by_a_port_is_asked_for_it_as_well(self):
        main = self.connect()
        main.call("AUTH", "secret")
        port = main.call("SPACE", "LISTEN", "ported")
        with harness.Client(socket.create_connection(("127.0.0.1", port), harness.REPLY_TIMEOUT_S)) as client:
            self.assertTrue(client.error_of("AUTH", "space-sly", "wrong").startswith("WRONGPASS"))
        self.assertEqual([space[1] for space in main.call("SPACE", "LIST") if space[1] == "sly"], [])
        main.call("SPACE", "DROP", "ported")

    def test_there_are_no_more_than_max_spaces(self):
        main = self.connect()
        main.call("AUTH", "secret")
        main.call("SPACE", "CREATE", "one", "KEEP")
        main.call("SPACE", "CREATE", "two", "KEEP")
        full = "ERR There are as many spaces as max-spaces allows"
        self.assertEqual(main.error_of("SPACE", "CREATE", "three"), full)
        self.assertEqual(self.connect().error_of("AUTH", "space-three", "secret"), full)


class DefaultUsers(SpaceTestCase):
    """Who comes into a space by name, or through its port, has no more of the first server than its default user."""

    def setUp(self):
        self.main = self.connect()
        self.main.call("ACL", "SETUSER", "admin", "on", ">admin", "~*", "&*", "+@all")
        self.main.call("AUTH", "admin", "admin")
        self.main.call("SET", "secret", "42")

    def tearDown(self):
        self.main.call("ACL", "SETUSER", "default", "on", "nopass", "~*", "&*", "+@all")
        for space in self.main.call("SPACE", "LIST"):
            self.main.call("SPACE", "DROP", space[1])
        self.eventually(lambda: not self.main.call("SPACE", "LIST"))

    def restrict(self, *rules):
        self.main.call("ACL", "SETUSER", "default", "reset", "on", *rules)

    def test_a_user_who_may_not_enter_a_space_does_not_by_its_name(self):
        self.restrict("nopass", "~public:*", "+get")
        for words in (("AUTH", "space-sly", "x"), ("HELLO", "3", "AUTH", "space-sly", "x")):
            self.assertTrue(self.connect().error_of(*words).startswith("WRONGPASS"), words)
        self.assertEqual(self.names(self.main), [])
        self.restrict("nopass", "+space|enter")
        client = self.enter("sly")
        self.assertEqual(client.call("SET", "k", "v"), "OK")

    def test_a_space_gives_no_copy_of_the_first_server_to_who_may_not_make_one(self):
        inside = self.enter("inside")
        self.assertEqual(inside.call("SPACE", "CREATE", "first", "FROM", "MAIN"), "first")
        self.restrict("nopass", "~public:*", "+get", "+space|enter")
        refusal = "NOPERM Clients of spaces may run SPACE CREATE only where the default user of the first server may"
        self.assertEqual(inside.error_of("SPACE", "CREATE", "second", "FROM", "MAIN"), refusal)
        self.main.call("ACL", "SETUSER", "default", "off")
        self.assertEqual(inside.error_of("SPACE", "CREATE", "second", "FROM", "MAIN"), refusal)
        self.assertEqual(self.main.call("SPACE", "CREATE", "second", "FROM", "MAIN"), "second")

    def test_modes_of_replies_go_along(self):
        for mode, left_out in (("OFF", 3), ("SKIP", 1)):
            client = self.connect()
            client.send_raw(b"".join(harness.encode(*words) for words in (
                ("CLIENT", "REPLY", mode), ("SPACE", "ENTER", "silent"), ("SET", "k", mode), ("GET", "k"), ("CLIENT", "REPLY", "ON"))))
            self.assertEqual([client.read() for _ in range(4 - left_out)], ["OK", mode, "OK"][left_out - 1:])
        client = self.connect()
        client.call("CLIENT", "NO-TOUCH", "ON")
        client.call("CLIENT", "NO-EVICT", "ON")
        client.call("SPACE", "ENTER", "silent")
        self.assertIn(" flags=eT ", client.call("CLIENT", "INFO"))

    def test_passwords_of_the_default_user_hold_in_spaces(self):
        early = self.enter("early")
        self.restrict(">secret", "~*", "&*", "+@all")
        # It is in a space that asked for none.
        self.assertTrue(early.error_of("SPACE", "CREATE", "copy", "FROM", "MAIN").startswith("NOPERM"))
        port = self.main.call("SPACE", "LISTEN", "ported")
        with harness.Client(socket.create_connection(("127.0.0.1", port), harness.REPLY_TIMEOUT_S)) as client:
            self.assertTrue(client.error_of("SPACE", "CREATE", "copy", "FROM", "MAIN").startswith("NOAUTH"))
            client.call("AUTH", "secret")
            self.assertEqual(client.call("SPACE", "CREATE", "copy", "FROM", "MAIN"), "copy")
        self.assertTrue(self.connect().error_of("AUTH", "space-late", "x").startswith("WRONGPASS"))
        late = self.enter("late", "secret")
        self.assertEqual(late.call("SPACE", "CREATE", "other", "FROM", "MAIN"), "other")


class Many(SpaceTestCase):
    options = {"maxclients": "3000", "max-spaces": "3000", "space-linger-ms": "0"}

    def test_each_of_many_is_served(self):
        clients = [self.server.connect() for _ in range(2000)]
        for i, client in enumerate(clients):
            client.send_raw(harness.encode("AUTH", f"space-s{i}", "x") + harness.encode("SET", "k", str(i))
                            + harness.encode("SET", "soon", "v", "PX", "20"))
        for client in clients:
            self.assertEqual([client.read() for _ in range(3)], ["OK"] * 3)
        # Messages within a space leave at the end of the turn in which they were sent.
        listeners = [self.server.connect() for _ in range(20)]
        for i, listener in enumerate(listeners):
            listener.call("AUTH", f"space-s{i * 100}", "x")
            listener.call("SUBSCRIBE", "news")
        for i, listener in enumerate(listeners):
            self.assertEqual(clients[i * 100].call("PUBLISH", "news", str(i)), 1)
            self.assertEqual(listener.read(), ["message", "news", str(i)])
        for i in random.Random(1).sample(range(2000), 200):
            self.assertEqual(clients[i].call("GET", "k"), str(i))
            self.eventually(lambda i=i: clients[i].call("DBSIZE") == 1)
        for client in clients + listeners:
            client.close()
        self.eventually(lambda: not self.names())


class Forbidden(SpaceTestCase):
    options = {"enable-test-commands": "no"}

    def test_nobody_gets_into_a_space(self):
        client = self.connect()
        self.assertTrue(client.error_of("AUTH", "space-a", "x").startswith("WRONGPASS"))
        self.assertTrue(client.error_of("SPACE", "CREATE", "a").startswith("ERR SPACE command not allowed."))


class UnderLoad(SpaceTestCase):
    options = {"space-linger-ms": "0"}

    def test_spaces_that_come_and_go_touch_nobody_else(self):
        chance = random.Random(1)
        steady = self.enter("steady")
        steady.call("SET", "k", "v")
        clients = []
        for _ in range(20_000):
            name = f"s{chance.randrange(4000)}"
            what = chance.randrange(6)
            if what < 3:
                client = self.server.connect()
                client.send_raw(harness.encode("AUTH", "space-" + name, "x") + harness.encode("INCR", "n")
                                + harness.encode("BLPOP", "q", "0" if what == 0 else "0.001"))
                clients.append(client)
            elif what == 3:
                steady.send("SPACE", "DROP", name)
                reply = steady.read()
                self.assertIn(str(reply), ("OK", "ERR No such space"))
            else:
                # More than come, so that there are some hundreds at a time.
                for _ in range(min(2, len(clients))):
                    clients.pop(chance.randrange(len(clients))).close()
            self.assertEqual(steady.call("GET", "k"), "v")
        for client in clients:
            client.close()
        self.eventually(lambda: self.names() == ["steady"])


if __name__ == "__main__":
    unittest.main()

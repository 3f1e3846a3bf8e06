"""SPACE: whole servers of their own within one process, entered by user name."""

import random
import socket
import threading
import unittest

import harness

try:
    import redis
except ImportError:
    redis = None


class SpaceTestCase(harness.ServerTestCase):
    def enter(self, name, *password):
        client = self.connect()
        self.assertEqual(client.call("AUTH", "space-" + name, *(password or ("x",))), "OK")
        return client

    def names(self):
        return [space[1] for space in self.connect().call("SPACE", "LIST")]


class Entered(SpaceTestCase):
    options = {"space-linger-ms": "0"}

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
        self.assertIn("a space has none of its own", client.error_of("CONFIG", "SET", "port", "7777"))
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
                         "ERR The space cannot listen on this port")
        self.assertEqual(main.error_of("SPACE", "LISTEN", "other", "70000"), "ERR Invalid port")
        main.call("SPACE", "DROP", "ported")
        with self.assertRaises(OSError):
            for _ in range(100):
                socket.create_connection(("127.0.0.1", port), harness.REPLY_TIMEOUT_S).close()

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
        for step in range(1000):
            name = f"s{chance.randrange(40)}"
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
            elif clients:
                clients.pop(chance.randrange(len(clients))).close()
            self.assertEqual(steady.call("GET", "k"), "v")
        for client in clients:
            client.close()
        self.eventually(lambda: self.names() == ["steady"])


if __name__ == "__main__":
    unittest.main()

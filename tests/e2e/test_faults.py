"""Faults that had one client read another's reply, or ended the server: what each of them needs, end to end."""

import socket
import threading
import unittest

import harness
import scenes

SECRET = "the-secret-of-another"
THRESHOLD_MS = 5
INTERVAL_BYTES = 1024
LONG_DELAY_US = 20_000

LIBRARY = """#!lua name=library
redis.register_function('answer', function() return 42 end)
redis.register_function('spin', function() while true do end end)
"""


class RepliesOfClientsThatHaveGone(scenes.FaultTestCase):
    """Who goes away while his request takes long has no reply any more, and nobody else gets it."""

    def setUp(self):
        self.server = self.start(busy_reply_threshold=THRESHOLD_MS, loading_process_events_interval_bytes=INTERVAL_BYTES,
                                 client_output_buffer_limit="normal 0 1mb 1")
        self.admin = self.connect(self.server)
        self.admin.call("SET", "large", "x" * 5_000_000)
        self.admin.call("SET", "secret", SECRET)
        self.admin.call("DEBUG", "POPULATE", "200", "key", "1000")
        self.admin.call("ACL", "SETUSER", "admin", "on", "nopass", "~*", "&*", "+@all")
        self.admin.call("AUTH", "admin", "")
        self.admin.call("ACL", "SETUSER", "default", "reset", "on", "nopass", "+ping")

    def attack(self, *requests):
        """Asks for much that is never read, then for what takes long."""
        client = scenes.connect_narrow(self.server)
        self.addCleanup(client.close)
        words = [("AUTH", "admin", "")] + [("GET", "large")] * 20 + list(requests)
        client.send_raw(b"".join(harness.encode(*request) for request in words))
        self.wait_until_busy(self.server)
        return client

    def strangers(self):
        """Clients that come one after the other, and ask, as long as the server is busy."""
        clients = []
        while len(clients) < 50 and (len(clients) < 10 or self.is_still_busy()):
            clients.append(self.connect(self.server))
            clients[-1].send("PING")
        return clients

    def expect_own_replies(self, clients):
        """Each client has asked once, and now asks once more; it reads two replies that are answers to what it asked."""
        self.eventually(lambda: scenes.ask(self.server, "PING") == "PONG", self.server, what="an answer")
        for number, client in enumerate(clients):
            token = "token-%d" % number
            client.send("PING", token)
            replies = [client.read(), client.read()]
            self.assertTrue(replies[0] == "PONG" or scenes.is_error(replies[0], *scenes.BUSY), replies)
            self.assertEqual(replies[1], token)
            self.assertTrue(client.is_open())
            client.close()
        self.admin.call("ACL", "SETUSER", "default", "+@all", "~*")
        self.expect_rest(self.server, clients=2)

    def is_over_limit(self):
        return "overcoming of output buffer limits" in self.server.log()

    def is_still_busy(self):
        return scenes.is_error(scenes.ask(self.server, "PING"), *scenes.BUSY)

    def test_a_script_whose_client_is_reset(self):
        attacker = self.attack(("EVAL", scenes.slow_script(1, "'%s'" % SECRET), "0"))
        scenes.reset(attacker)
        self.expect_own_replies(self.strangers())

    def test_a_script_whose_client_is_over_the_soft_limit(self):
        self.attack(("EVAL", scenes.slow_script(3, "'%s'" % SECRET), "0"))
        self.eventually(self.is_over_limit, self.server)
        self.expect_own_replies(self.strangers())

    def check_reload(self, *requests):
        self.admin.call("CONFIG", "SET", "key-load-delay", LONG_DELAY_US)
        attacker = self.attack(*requests)
        self.wait_until_loading_as_admin()
        scenes.reset(attacker)
        strangers = self.strangers()
        self.assertEqual(self.admin.call("CONFIG", "SET", "key-load-delay", "0"), "OK")
        self.expect_own_replies(strangers)

    def wait_until_loading_as_admin(self):
        self.eventually(lambda: "loading:1" in self.admin.call("INFO", "persistence"), self.server)

    def test_a_reload_whose_client_is_reset(self):
        self.check_reload(("DEBUG", "RELOAD"))

    def test_a_reload_in_a_transaction_whose_client_is_reset(self):
        self.check_reload(("MULTI",), ("GET", "secret"), ("DEBUG", "RELOAD"), ("EXEC",))

    def test_a_reload_whose_client_is_over_the_soft_limit(self):
        self.admin.call("CONFIG", "SET", "key-load-delay", LONG_DELAY_US)
        self.attack(("DEBUG", "RELOAD"))
        self.wait_until_loading_as_admin()
        self.eventually(self.is_over_limit, self.server)
        strangers = self.strangers()
        self.admin.call("CONFIG", "SET", "key-load-delay", "0")
        self.expect_own_replies(strangers)


class DatasetsThatComeWhileTheServerIsBusy(scenes.FaultTestCase):
    def check(self, way, kill, *request):
        """The dataset comes a second after it was asked for; by then the request keeps the replica busy."""
        master = self.start(repl_diskless_sync_delay="1")
        replica = self.start(busy_reply_threshold=THRESHOLD_MS, repl_diskless_load=way, replica_read_only="no")
        for server in (master, replica):
            with server.connect() as client:
                client.call("FUNCTION", "LOAD", LIBRARY)
                client.call("DEBUG", "POPULATE", "100", "key", "100")
        self.assertEqual(scenes.ask(replica, "REPLICAOF", "127.0.0.1", master.port), "OK")
        self.eventually(lambda: "Delay next BGSAVE" in master.log(), master, replica, what="being asked")
        runner = self.connect(replica)
        runner.send(*request)
        self.wait_until_busy(replica)
        self.eventually(lambda: "Background RDB transfer terminated" in master.log(), master, replica, what="the transfer")
        # Time for the replica to meet what has come.
        for _ in range(200):
            self.assertTrue(scenes.is_error(scenes.ask(replica, "PING"), *scenes.BUSY), replica.log())
        self.eventually(lambda: scenes.ask(replica, kill, "KILL") == "OK", replica, what=kill + " KILL")
        self.assertIn("Script killed by user", str(runner.read()))
        runner.close()
        self.expect_equal(master, replica)
        self.expect_rest(replica, clients=2)

    def test_a_script_is_busy_when_it_comes_as_a_file(self):
        self.check("disabled", "SCRIPT", "EVAL", "while true do end", "0")

    def test_a_script_is_busy_when_it_comes_from_the_socket(self):
        self.check("swapdb", "SCRIPT", "EVAL", "while true do end", "0")

    def test_a_function_is_busy_when_it_comes_as_a_file(self):
        self.check("disabled", "FUNCTION", "FCALL", "spin", "0")

    def test_a_function_is_busy_when_it_comes_from_the_socket(self):
        self.check("swapdb", "FUNCTION", "FCALL", "spin", "0")


class MastersThatDieWhileTheDatasetIsLoaded(scenes.FaultTestCase):
    def check(self, **options):
        master = self.start()
        with master.connect() as client:
            client.call("DEBUG", "POPULATE", "300", "key", "1000")
            client.call("SAVE")
        replica = self.start(replicaof=["127.0.0.1", master.port], key_load_delay=LONG_DELAY_US,
                             loading_process_events_interval_bytes=INTERVAL_BYTES, **options)
        self.wait_until_loading(replica)
        master.kill()
        # Six seconds long the replica reads, tells its master of it each second, and finds nobody.
        self.eventually(lambda: figure(replica, "loading") == "0", replica, what="the end of loading")
        self.eventually(lambda: figure(replica, "master_link_status") == "down", replica)
        self.assertEqual(scenes.ask(replica, "CONFIG", "SET", "key-load-delay", "0"), "OK")
        master.start()
        self.expect_equal(master, replica)
        self.expect_rest(replica, clients=2)

    def test_the_dataset_is_in_a_file(self):
        self.check()

    def test_the_dataset_is_in_a_file_and_came_by_a_channel_of_its_own(self):
        self.check(repl_rdb_channel="yes")

    def test_the_dataset_comes_from_the_socket(self):
        self.check(repl_diskless_load="swapdb")


def figure(server, name):
    return scenes.figures(server, "persistence", "replication").get(name)


DEEP_BODIES = {
    "gsub": "local function f() string.gsub('a', 'a', f) return 'x' end f()",
    "coroutine.wrap": "local function f() return coroutine.wrap(f)() end return f()",
    "coroutine.resume": "local function f() return coroutine.resume(coroutine.create(f)) end return f()",
    "pcall": "local function f() return pcall(f) end return f()",
    "xpcall": "local function f() return xpcall(f, f) end return f()",
    "table.sort": "local function f() table.sort({3, 2, 1}, f) return true end f()",
    "load": "local function f() load(f) return nil end f()",
    "tostring": "local t = {} setmetatable(t, {__tostring = function(t) return tostring(t) end}) return tostring(t)",
    "__index": "local t = {} setmetatable(t, {__index = function(t, k) return t[k] end}) return t.x",
    "__concat": "local t = {} setmetatable(t, {__concat = function(a, b) return a .. b end}) return t .. t",
    "__lt": "local t = {} local m = {} m.__lt = function(a, b) return a < b end local u = setmetatable({}, m) "
            "setmetatable(t, m) return t < u",
    "gsub and sort": "local f local function g() table.sort({2, 1}, f) end function f() string.gsub('a', 'a', g) end f()",
}


@scenes.each(DEEP_BODIES)
class ScriptsThatExhaustTheStack(scenes.FaultTestCase):
    def check(self, body):
        server = self.start(busy_reply_threshold=THRESHOLD_MS)
        client = self.connect(server)
        client.send("EVAL", body, "0")
        # It may end with an error, or with what the last function within reach returned.
        client.read()
        client.close()
        self.expect_rest(server)


ENDLESS_BODIES = {
    "load": "load(function() while true do end end)",
    "load in pcall, for ever": "while true do pcall(load, function() while true do end end) end",
    "gsub": "string.gsub('a', 'a', function() while true do end end)",
    "sort": "table.sort({2, 1}, function() while true do end end)",
    "coroutine.wrap": "coroutine.wrap(function() while true do end end)()",
    "a metamethod": "local t = setmetatable({}, {__index = function() while true do end end}) return t.x",
    "the handler of xpcall": "xpcall(error, function() while true do end end)",
}


@scenes.each(ENDLESS_BODIES)
class ScriptsThatAreKilledInsideOfACallback(scenes.FaultTestCase):
    """The next endless script can be killed too."""

    def setUp(self):
        self.server = self.start(busy_reply_threshold=THRESHOLD_MS)

    def run_and_kill(self, body):
        client = self.connect(self.server)
        client.send("EVAL", body, "0")
        self.wait_until_busy(self.server)
        self.assertEqual(scenes.ask(self.server, "SCRIPT", "KILL"), "OK")
        self.assertIn("Script killed by user with SCRIPT KILL", str(client.read()))
        client.close()

    def check(self, body):
        self.run_and_kill(body)
        self.run_and_kill("while true do end")
        self.expect_rest(self.server)


class HostileMaster:
    """A listener that answers each request of a replica by `answer(words)`, which returns bytes or None to hang up."""

    def __init__(self, answer):
        self.answer = answer
        self.connections = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        # Wakes the thread that accepts.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def _accept(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(harness.Client(peer),), daemon=True).start()

    def _serve(self, peer):
        peer.socket.settimeout(10)
        with peer:
            try:
                while True:
                    words = peer.read()
                    answer = self.answer(words)
                    if answer is None:
                        return
                    peer.send_raw(answer)
            except (OSError, harness.ConnectionClosed, AssertionError):
                pass


def polite(words):
    """What a master says before PSYNC."""
    return b"+PONG\r\n" if words[0].upper() == "PING" else b"+OK\r\n"


class HostileMasters(scenes.FaultTestCase):
    def follow(self, answer):
        master = HostileMaster(answer)
        self.addCleanup(master.close)
        replica = self.start(repl_rdb_channel="yes")
        self.assertEqual(scenes.ask(replica, "REPLICAOF", "127.0.0.1", master.port), "OK")
        return master, replica

    def test_one_that_offers_a_channel_on_the_channel(self):
        def answer(words):
            return b"+RDBCHANNELSYNC 1\r\n" if words[0] == "PSYNC" else polite(words)

        master, replica = self.follow(answer)
        # The replica asks for the channel, is offered one again, and gives up; several times over.
        self.eventually(lambda: master.connections >= 6, replica, what="six connections")
        self.assertEqual(scenes.ask(replica, "REPLICAOF", "NO", "ONE"), "OK")
        self.expect_rest(replica)

    def test_one_whose_offset_is_as_large_as_can_be(self):
        dataset = self.dataset()

        def answer(words):
            if words[0] != "PSYNC":
                return polite(words) if words[0] != "REPLCONF" or words[1] != "ACK" else b""
            return (b"+FULLRESYNC " + b"a" * 40 + b" 9223372036854775807\r\n$%d\r\n" % len(dataset) + dataset +
                    harness.encode("SELECT", "0") + harness.encode("SET", "key", "value") * 3)

        master, replica = self.follow(answer)
        self.eventually(lambda: master.connections >= 2 or scenes.ask(replica, "GET", "key") == "value", replica)
        for _ in range(3):
            told = scenes.figures(replica, "replication")
            self.assertGreaterEqual(int(told["master_repl_offset"]), 0)
            self.assertGreaterEqual(int(told.get("slave_repl_offset", 0)), 0)
        self.assertEqual(scenes.ask(replica, "REPLICAOF", "NO", "ONE"), "OK")
        self.expect_rest(replica)

    def dataset(self):
        source = self.start()
        with source.connect() as client:
            client.call("SET", "name", "value")
            client.call("SAVE")
        with open(source.directory + "/dump.rdb", "rb") as file:
            return file.read()


if __name__ == "__main__":
    unittest.main()

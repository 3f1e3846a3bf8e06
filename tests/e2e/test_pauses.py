"""Pauses (CLIENT PAUSE) beside what goes on meanwhile: waits for keys, scripts, loading, replicas, roles."""

import signal
import unittest

import harness


class HeldWaits(harness.ServersTestCase):
    """A client waits for a key that comes together with a pause, so that it is held until the pause ends."""

    def held(self, server, client, for_ms):
        """A client that BLPOP keeps waiting, whose list has come in the transaction that paused."""
        waiter = server.connect()
        self.addCleanup(waiter.close)
        waiter.send("BLPOP", "list", "0")
        self.eventually(lambda: "blocked_clients:1" in client.call("INFO", "clients"))
        client.call("MULTI")
        client.call("RPUSH", "list", "a", "b")
        client.call("CLIENT", "PAUSE", for_ms, "WRITE")
        client.call("EXEC")
        return waiter

    def test_a_server_that_is_a_replica_by_then_refuses_the_write(self):
        server, client = self.server()
        waiter = self.held(server, client, 300)
        client.call("REPLICAOF", "127.0.0.1", str(harness.free_port()))
        self.assertEqual(waiter.read(), harness.ReplyError("READONLY You can't write against a read only replica."))
        self.assertEqual(client.call("LRANGE", "list", "0", "-1"), ["a", "b"])

    def test_it_ends_while_the_dataset_is_loaded_anew(self):
        server, client = self.server(key_load_delay=50_000, loading_process_events_interval_bytes=1024)
        for number in range(10):
            client.call("SET", "key:%d" % number, "x" * 2000)
        waiter = self.held(server, client, 200)
        self.assertEqual(client.call("DEBUG", "RELOAD"), "OK")
        self.assertEqual(waiter.read(), ["list", "a"])
        self.assertEqual(client.call("LRANGE", "list", "0", "-1"), ["b"])

    def test_it_ends_while_a_script_has_done_a_part(self):
        server, client = self.server(busy_reply_threshold=10)
        waiter = self.held(server, client, 200)
        script = "local before = redis.call('LLEN', KEYS[1]) local start = os.clock() while os.clock() - start < 1 do end " \
                 "return {before, redis.call('LLEN', KEYS[1])}"
        self.assertEqual(client.call("EVAL_RO", script, "1", "list"), [2, 2])
        self.assertEqual(waiter.read(), ["list", "a"])


class WaitsThatLookAgain(harness.ServersTestCase):
    def test_a_claim_does_not_see_what_a_script_has_half_done(self):
        server, client = self.server(busy_reply_threshold=10)
        client.call("XGROUP", "CREATE", "stream", "group", "0", "MKSTREAM")
        reader = server.connect()
        self.addCleanup(reader.close)
        reader.send("XREADGROUP", "GROUP", "group", "anna", "BLOCK", "0", "CLAIM", "100", "STREAMS", "stream", ">")
        self.eventually(lambda: "blocked_clients:1" in client.call("INFO", "clients"))
        script = "redis.call('XADD', KEYS[1], '1-1', 'a', '1') local start = os.clock() " \
                 "while os.clock() - start < 1 do end return redis.call('XPENDING', KEYS[1], 'group')[1]"
        self.assertEqual(client.call("EVAL", script, "1", "stream"), 0)
        self.assertEqual([entry[0] for entry in reader.read()[0][1]], ["1-1"])
        self.assertEqual(client.call("XPENDING", "stream", "group")[0], 1)


class Replicas(harness.ServersTestCase):
    """A pause of all clients holds up no replica: neither what it acknowledges nor its link."""

    def test_what_a_replica_acknowledges_is_heard_in_a_pause(self):
        master, client = self.server()
        replica, follower = self.server()
        self.follow(follower, master)
        replica.process.send_signal(signal.SIGSTOP)
        waiter = master.connect()
        self.addCleanup(waiter.close)
        waiter.call("SET", "a", "1")
        waiter.send("WAIT", "1", "0")
        self.eventually(lambda: "blocked_clients:1" in client.call("INFO", "clients"))
        # Longer than a client of these tests waits; the end of the server is not held up by it.
        client.call("CLIENT", "PAUSE", "600000", "ALL")
        replica.process.send_signal(signal.SIGCONT)
        self.assertEqual(waiter.read(), 1)

    def test_a_pause_of_a_replica_ends_though_its_master_has_stopped_the_clock(self):
        master, client = self.server()
        _, follower = self.server()
        self.follow(follower, master)
        client.call("CLOCK", "FREEZE")
        self.eventually(lambda: follower.call("CLOCK")[1] == "frozen")
        follower.call("CLIENT", "PAUSE", "200", "ALL")
        client.call("SET", "a", "1")
        client.call("CLOCK", "RESUME")
        self.eventually(lambda: follower.call("GET", "a") == "1")
        self.eventually(lambda: follower.call("CLOCK")[1] != "frozen")


if __name__ == "__main__":
    unittest.main()

"""Scenes: what may happen to a replica, its master and their clients while a dataset is loaded, in every way in which one is
received. After each scene whoever lives is at rest, replica and master hold the same, and nothing acknowledged is lost.

Ways that are the same by construction are left out: a master that dumps to disk offers no channel, and `on-empty-db` is
`disabled` for a replica that holds something."""

import threading
import time
import unittest

import harness
import scenes

# A loaded key takes this long; the dataset takes longer than any scene unless the scene lets go.
DELAY_US = 20_000
INTERVAL_BYTES = 1024
SMALL = (250, 2_000)
# More than the buffers of two sockets hold, so that a master can be lost in the middle of a transfer.
LARGE = (160, 100_000)

LIBRARY = "#!lua name=library\nredis.register_function('answer', function() return 42 end)"

CARRIERS = {
    "disk": {"repl_diskless_sync": "no", "repl_rdb_channel": "no"},
    "pipe": {"repl_diskless_sync": "yes", "repl_rdb_channel": "no"},
    "channel": {"repl_diskless_sync": "yes", "repl_rdb_channel": "yes"},
}


class Load:
    """How a replica loads: its setting, whether it has something already, and whether it followed this master before."""

    def __init__(self, setting, has_keys, has_followed):
        self.setting = setting
        self.has_keys = has_keys
        self.has_followed = has_followed
        self.from_socket = setting != "disabled"
        # It goes on showing what it has, for that is of the same history.
        self.serves_old = setting == "swapdb" and has_followed


LOADS = {
    "into a file": Load("disabled", has_keys=True, has_followed=False),
    "into an empty server": Load("on-empty-db", has_keys=False, has_followed=False),
    "beside keys of its own": Load("swapdb", has_keys=True, has_followed=False),
    "beside what it had from its master": Load("swapdb", has_keys=True, has_followed=True),
}


class Writer:
    """Counts in a server as fast as is polite, until told to stop or cut off; knows what was acknowledged."""

    def __init__(self, server):
        self.acknowledged = 0
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._write, args=(server.connect(),), daemon=True)
        self.thread.start()

    def stop(self):
        self.stopping.set()
        self.thread.join()

    def _write(self, client):
        with client:
            try:
                while not self.stopping.wait(0.005):
                    client.send("INCR", "acknowledged")
                    reply = client.read()
                    if isinstance(reply, int):
                        self.acknowledged = reply
            except (OSError, harness.ConnectionClosed):
                pass


class ReceivingScene(scenes.FaultTestCase):
    """A master, and a replica that is loading what comes from it."""

    size = SMALL
    master_options = {}
    replica_options = {}

    def check(self, carrier, load, act):
        self.load = load
        self.raise_curtain(carrier)
        act(self)

    def raise_curtain(self, carrier):
        load = self.load
        self.master = self.start(rdbcompression="no", **carrier, **self.master_options)
        self.replica = self.start(repl_diskless_load=load.setting, repl_rdb_channel=carrier["repl_rdb_channel"],
                                  loading_process_events_interval_bytes=INTERVAL_BYTES, **self.replica_options)
        if load.has_followed:
            self.follow()
            self.eventually(self.link_is_up, self.master, self.replica, what="the first link")
        with self.replica.connect() as client:
            if load.has_keys and not load.has_followed:
                client.call("MSET", "own", "1", "acknowledged", "-1")
            client.call("CONFIG", "SET", "key-load-delay", DELAY_US)
        self.fill(cuts_link=load.has_followed)
        self.digests = (scenes.ask(self.replica, "DEBUG", "DIGEST"), scenes.ask(self.master, "DEBUG", "DIGEST"))
        if not load.has_followed:
            self.follow()
        self.wait_until_loading(self.replica)
        self.assertEqual(scenes.figures(self.replica, "persistence")["async_loading"], "1" if load.serves_old else "0")

    def follow(self):
        # One that was started again may have a file to load.
        self.eventually(lambda: not self.is_loading(), self.replica, what="the start")
        self.assertEqual(scenes.ask(self.replica, "REPLICAOF", "127.0.0.1", self.master.port), "OK")

    def fill(self, cuts_link):
        """All at once; if the replica is to need everything again, in one go with cutting it off."""
        count, size = self.size
        requests = [("FUNCTION", "LOAD", LIBRARY), ("RPUSH", "list", "a", "b"), ("HSET", "hash", "field", "value"),
                    ("ZADD", "zset", "1", "one"), ("XADD", "stream", "1-1", "field", "value"), ("SADD", "set", "1", "two")]
        requests += [("SET", "key:%d" % i, "x" * size) for i in range(count)]
        if cuts_link:
            # A few bytes are kept for replicas that come back; this is more.
            requests = [("CLIENT", "KILL", "TYPE", "replica")] + requests
        requests = [("CONFIG", "SET", "repl-backlog-size", "16384"), ("MULTI",)] + requests + [("EXEC",)]
        with self.master.connect() as client:
            client.send_raw(b"".join(harness.encode(*request) for request in requests))
            for request in requests:
                reply = client.read()
                self.assertNotIsInstance(reply, harness.ReplyError, request)

    def figure(self, name):
        return scenes.figures(self.replica, "replication", "persistence").get(name)

    def link_is_up(self):
        return self.figure("master_link_status") == "up"

    def is_loading(self):
        told = scenes.figures(self.replica, "persistence")
        return told.get("loading") != "0" or told.get("async_loading") != "0"

    def let_go(self):
        self.assertEqual(scenes.ask(self.replica, "CONFIG", "SET", "key-load-delay", "0"), "OK")

    def wait_until_link_is_lost(self):
        self.eventually(lambda: not self.is_loading() and self.figure("master_link_status") == "down", self.replica, what="losing the link")

    def expect_equal_in_the_end(self):
        self.let_go()
        self.expect_equal(self.master, self.replica)
        self.expect_rest(self.replica, clients=2)
        self.expect_rest(self.master)


# --- What happens to the master ------------------------------------------------------------------


def master_is_killed(scene):
    """The replica goes on loading what it has for some seconds, and tells a master of it who is not there."""
    scene.master.kill()
    scene.wait_until_link_is_lost()
    scene.let_go()
    had, was_to_get = scene.digests
    if not scene.load.from_socket:
        # All of it was there already.
        expected = was_to_get
    elif scene.load.setting == "swapdb":
        expected = had
    else:
        expected = "0" * 40
    scene.assertEqual(scenes.ask(scene.replica, "DEBUG", "DIGEST"), expected)
    scene.assertEqual(scenes.ask(scene.replica, "REPLICAOF", "NO", "ONE"), "OK")
    scene.assertEqual(scenes.ask(scene.replica, "SET", "new", "value"), "OK")
    scene.expect_rest(scene.replica)


def master_is_stopped(scene):
    scene.assertEqual(scenes.ask(scene.replica, "CONFIG", "SET", "repl-timeout", "2"), "OK")
    scene.master.suspend()
    scene.let_go()
    scene.wait_until_link_is_lost()
    scene.master.resume()
    scene.expect_equal_in_the_end()


def master_is_restarted(scene):
    writer = Writer(scene.master)
    scene.eventually(lambda: writer.acknowledged > 5, scene.master)
    scene.master.kill()
    writer.stop()
    scene.master.start()
    scene.expect_equal_in_the_end()
    with scene.replica.connect() as client:
        scene.assertGreaterEqual(int(client.call("GET", "acknowledged")), writer.acknowledged)


def combine(carriers, loads, acts):
    return {
        "%s by %s %s" % (act, carrier, load): (carriers[carrier], loads[load], acts[act])
        for act in acts for carrier in carriers for load in loads
    }


@scenes.side_by_side(combine(CARRIERS, LOADS, {
    "killed": master_is_killed,
    "restarted": master_is_restarted,
    "stopped": master_is_stopped,
}))
class MasterWhileTheReplicaLoads(ReceivingScene):
    size = LARGE
    master_options = {"appendonly": "yes", "appendfsync": "always"}


# --- What happens to the replica -----------------------------------------------------------------


def is_asked(*words, error="LOADING"):
    """A request that is refused, whether the replica shows what it has meanwhile or nothing."""

    def act(scene):
        writer = Writer(scene.master)
        reply = scenes.ask(scene.replica, *words)
        scene.assertTrue(scenes.is_error(reply, error), reply)
        scene.assertTrue(scene.is_loading())
        writer.stop()
        scene.expect_equal_in_the_end()
        scene.assertEqual(int(scenes.ask(scene.replica, "GET", "acknowledged") or 0), writer.acknowledged)

    return act


def is_asked_to_follow_another(scene):
    is_asked("REPLICAOF", "127.0.0.1", str(scene.replica.port + 1))(scene)


def ends(*words):
    """It ends at once and well, and when it is back it gets everything."""

    def act(scene):
        with scene.replica.connect() as client:
            client.send(*words)
            scene.replica.wait_for_end()
        scene.replica.start()
        scene.follow()
        scene.expect_equal_in_the_end()

    return act


def is_terminated(scene):
    scene.replica.process.terminate()
    scene.replica.wait_for_end()
    scene.replica.start()
    scene.follow()
    scene.expect_equal_in_the_end()


def is_configured(scene):
    settings = {"maxmemory": "1gb", "repl-timeout": "30", "hz": "100", "loading-process-events-interval-bytes": "2048",
                "client-output-buffer-limit": "replica 100mb 0 0", "busy-reply-threshold": "7", "maxmemory-policy": "allkeys-lru"}
    words = [word for pair in settings.items() for word in pair]
    with scene.replica.connect() as client:
        scene.assertEqual(client.call("CONFIG", "SET", *words), "OK")
        scene.assertTrue(client.error_of("CONFIG", "SET", "maxmemory", "much").startswith("ERR CONFIG SET failed"))
        if not scene.load.serves_old:
            scene.assertTrue(client.error_of("CONFIG", "SET", "hz", "50", "repl-diskless-load", "disabled").startswith("LOADING"))
        scene.assertTrue(scene.is_loading())
        scene.assertEqual(client.call("CONFIG", "GET", "hz"), ["hz", "100"])
        scene.assertEqual(client.call("CONFIG", "GET", "maxmemory"), ["maxmemory", str(1 << 30)])
    scene.expect_equal_in_the_end()


def gets_an_append_only_file(scene):
    """Whatever it answers, what it writes from then on is what it holds."""
    scenes.ask(scene.replica, "CONFIG", "SET", "appendonly", "yes")
    scene.let_go()
    scene.expect_equal(scene.master, scene.replica)
    scene.assertEqual(scenes.ask(scene.replica, "CONFIG", "SET", "appendonly", "yes"), "OK")
    scene.eventually(lambda: scenes.figures(scene.replica, "persistence").get("aof_rewrite_in_progress") == "0" and
                     scenes.figures(scene.replica, "persistence").get("aof_rewrite_scheduled") == "0", scene.replica)
    digest = scenes.ask(scene.replica, "DEBUG", "DIGEST")
    scene.assertEqual(scenes.ask(scene.replica, "REPLICAOF", "NO", "ONE"), "OK")
    scenes.ask(scene.replica, "SHUTDOWN")
    scene.replica.wait_for_end()
    scene.replica.options["appendonly"] = "yes"
    scene.replica.start()
    scene.eventually(lambda: not scene.is_loading(), scene.replica)
    scene.assertEqual(scenes.ask(scene.replica, "DEBUG", "DIGEST"), digest)
    scene.expect_rest(scene.replica)


def kills_its_master(scene):
    """There is no such client yet, or it is made anew."""
    scene.assertIsInstance(scenes.ask(scene.replica, "CLIENT", "KILL", "TYPE", "master"), int)
    scene.expect_equal_in_the_end()


def is_asked_to_reload(scene):
    """Two datasets are not loaded at once."""
    client = scene.connect(scene.replica)
    client.send("DEBUG", "RELOAD")
    scene.let_go()
    client.read()
    client.close()
    scene.expect_equal_in_the_end()


def runs_a_script(scene):
    """Only what goes on serving runs it; then it may be slow, too."""
    client = scene.connect(scene.replica)
    client.send("EVAL", scenes.slow_script(0.3), "0")
    reply = client.read()
    if scene.load.serves_old:
        scene.assertEqual(reply, "slow")
    else:
        scene.assertTrue(scenes.is_error(reply, "LOADING"), reply)
    client.close()
    scene.expect_equal_in_the_end()


def has_a_script_killed(scene):
    if not scene.load.serves_old:
        return scene.expect_equal_in_the_end()
    client = scene.connect(scene.replica)
    client.send("EVAL", "while true do end", "0")
    scene.eventually(lambda: scenes.ask(scene.replica, "SCRIPT", "KILL") == "OK", scene.replica)
    scene.assertIn("Script killed by user", str(client.read()))
    client.close()
    scene.expect_equal_in_the_end()


def sees_clients_come_and_go(scene):
    for i in range(50):
        client = scene.replica.connect()
        client.send_raw(harness.encode("PING") * (i + 1) + b"*2\r\n$3\r\nGET\r\n$1")
        scenes.reset(client) if i % 2 else client.close()
    scene.assertTrue(scene.is_loading())
    scene.expect_equal_in_the_end()


@scenes.side_by_side(combine(CARRIERS, LOADS, {
    "a client asks it to lead": is_asked("REPLICAOF", "NO", "ONE"),
    "a client asks it to follow another": is_asked_to_follow_another,
    "a client saves it": is_asked("BGSAVE"),
    "a client rewrites its append only file": is_asked("BGREWRITEAOF"),
    "a client flushes it": is_asked("FLUSHALL", error="READONLY"),
    "a client reloads it": is_asked_to_reload,
    "a client kills its master": kills_its_master,
    "a client configures it": is_configured,
    "a client wants an append only file": gets_an_append_only_file,
    "a client runs a script": runs_a_script,
    "a client runs a script that is killed": has_a_script_killed,
    "clients come and go": sees_clients_come_and_go,
    "it is shut down": ends("SHUTDOWN"),
    "it is shut down without saving": ends("SHUTDOWN", "NOSAVE"),
    "it is terminated": is_terminated,
}))
class ReplicaWhileItLoads(ReceivingScene):
    pass


if __name__ == "__main__":
    unittest.main()

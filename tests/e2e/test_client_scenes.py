"""Scenes: clients whose request takes long (a script, a function, a transaction with a script, DEBUG RELOAD), and what may happen to
them, to their users and to the server meanwhile. Whatever it is, others get their own replies and nothing else, what was asked for
is done or is ended in order, and in the end the server is at rest."""

import signal
import time
import unittest

import harness
import scenes

THRESHOLD_MS = 5
DELAY_US = 20_000
WORKER = "worker"

FOR_A_WHILE = "local last = os.clock() + 0.3 while os.clock() < last do end return redis.call('INCR', KEYS[1])"
FOR_EVER = "while true do end"
LIBRARY = """#!lua name=library
redis.register_function('for_a_while', function(KEYS) %s end)
redis.register_function('for_ever', function() %s end)
""" % (FOR_A_WHILE, FOR_EVER)


class Work:
    """Requests that take long: until killed by `kill` KILL if they are `endless`, until the scene lets go if they load. `reply` is
    the last reply, unless they were killed."""

    def __init__(self, brief, endless, kill, reply):
        self.brief = brief
        self.endless = endless
        self.kill = kill
        self.reply = reply
        self.loads = kill is None


EVAL = ("EVAL", FOR_A_WHILE, "1", "ran")
EVAL_FOR_EVER = ("EVAL", FOR_EVER, "1", "ran")
FCALL = ("FCALL", "for_a_while", "1", "ran")
FCALL_FOR_EVER = ("FCALL", "for_ever", "1", "ran")
RELOAD = ("DEBUG", "RELOAD")
COUNT = ("INCR", "ran")


def in_transaction(*requests):
    return [("MULTI",), *requests, ("EXEC",)]


WORKS = {
    "a script": Work([EVAL], [EVAL_FOR_EVER], "SCRIPT", 1),
    "a function": Work([FCALL], [FCALL_FOR_EVER], "FUNCTION", 1),
    "a transaction with a script": Work(in_transaction(COUNT, EVAL), in_transaction(COUNT, EVAL_FOR_EVER), "SCRIPT", [1, 2]),
    "a transaction with a function": Work(in_transaction(COUNT, FCALL), in_transaction(COUNT, FCALL_FOR_EVER), "FUNCTION", [1, 2]),
    "a reload": Work([RELOAD], [RELOAD], None, "OK"),
    "a transaction with a reload": Work(in_transaction(COUNT, RELOAD), in_transaction(COUNT, RELOAD), None, [1, "OK"]),
}


class ClientScene(scenes.FaultTestCase):
    """A server in which a client is at work, and strangers who have asked for something meanwhile."""

    def check(self, options, work, act):
        self.work = work
        if "cluster_enabled" in options:
            options = {**options, "cluster_port": harness.free_port()}
        self.server = self.start(busy_reply_threshold=THRESHOLD_MS, loading_process_events_interval_bytes=1024, **options)
        self.admin = self.connect(self.server)
        if "cluster_enabled" in options:
            self.admin.call("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
            self.eventually(lambda: "cluster_state:ok" in self.admin.call("CLUSTER", "INFO"), self.server, what="the cluster")
        self.admin.call("FUNCTION", "LOAD", LIBRARY)
        self.admin.call("SET", "large", "x" * 1_000_000)
        for i in range(200):
            self.admin.send("SET", "key:%d" % i, "x" * 1000)
        for i in range(200):
            self.admin.read()
        self.admin.call("ACL", "SETUSER", WORKER, "on", "nopass", "~*", "&*", "+@all")
        act(self)

    def set_off(self, endless=False, before=(), behind=(), narrow=False):
        """The client, once it is at work."""
        if self.work.loads:
            self.admin.call("CONFIG", "SET", "key-load-delay", DELAY_US)
        client = scenes.connect_narrow(self.server) if narrow else self.server.connect()
        self.addCleanup(client.close)
        self.client_id = client.call("CLIENT", "ID")
        self.assertEqual(client.call("AUTH", WORKER, ""), "OK")
        requests = [*before, *(self.work.endless if endless else self.work.brief), *behind]
        client.send_raw(b"".join(harness.encode(*request) for request in requests))
        self.wait_until_busy(self.server)
        self.strangers = [self.connect(self.server) for _ in range(3)]
        for stranger in self.strangers:
            stranger.send("PING")
        return client

    def take_turns(self):
        """Whatever there was to notice for the server is noticed."""
        for _ in range(20):
            scenes.ask(self.server, "PING")

    def let_go(self):
        if self.work.loads:
            self.assertEqual(self.admin.call("CONFIG", "SET", "key-load-delay", "0"), "OK")

    def end_work(self):
        if self.work.loads:
            self.let_go()
        else:
            self.assertEqual(scenes.ask(self.server, self.work.kill, "KILL"), "OK")

    def is_over_limit(self):
        return "overcoming of output buffer limits" in self.server.log()

    def last_reply(self, client):
        """Of the work, behind those that queue it."""
        for _ in self.work.brief[:-1]:
            self.assertIn(client.read(), ("OK", "QUEUED"))
        return client.read()

    def expect_own_replies(self):
        self.eventually(lambda: scenes.ask(self.server, "PING") == "PONG", self.server, what="an answer")
        for number, stranger in enumerate(self.strangers):
            stranger.send("ECHO", "stranger-%d" % number)
            first, second = stranger.read(), stranger.read()
            self.assertTrue(first == "PONG" or scenes.is_error(first, *scenes.BUSY), first)
            self.assertEqual(second, "stranger-%d" % number)
            stranger.close()

    def expect_done(self, ran, clients=2):
        """`clients` are the administrator, whoever asks, and who has stayed."""
        self.expect_own_replies()
        self.expect_rest(self.server, clients=clients)
        self.assertEqual(self.admin.call("GET", "ran"), str(ran) if ran else None)

    def expect_done_by_itself(self, clients=2):
        counts = [1, 1, 2, 2, 0, 1]
        self.expect_done(dict(zip(WORKS.values(), counts))[self.work], clients)

    def expect_ended(self, clients=2):
        counts = [0, 0, 1, 1, 0, 1]
        self.expect_done(dict(zip(WORKS.values(), counts))[self.work], clients)


# --- What the client does ------------------------------------------------------------------------


def stays(scene):
    client = scene.set_off()
    scene.let_go()
    scene.assertEqual(scene.last_reply(client), scene.work.reply)
    scene.expect_done_by_itself(clients=3)


def goes_on_asking(scene):
    """What it has sent is answered in order, and so is what it sends meanwhile."""
    client = scene.set_off(before=[("ECHO", "before")], behind=[("ECHO", "behind-%d" % i) for i in range(100)])
    client.send("ECHO", "last")
    scene.take_turns()
    scene.let_go()
    scene.assertEqual(client.read(), "before")
    scene.assertEqual(scene.last_reply(client), scene.work.reply)
    scene.assertEqual([client.read() for _ in range(100)], ["behind-%d" % i for i in range(100)])
    scene.assertEqual(client.read(), "last")
    scene.expect_done_by_itself(clients=3)


def is_reset(scene):
    client = scene.set_off(before=[("GET", "large")] * 20, narrow=True)
    scenes.reset(client)
    scene.take_turns()
    scene.let_go()
    scene.expect_done_by_itself()


def is_closed(scene):
    client = scene.set_off()
    client.close()
    scene.take_turns()
    scene.let_go()
    scene.expect_done_by_itself()


def quits_behind_it(scene):
    client = scene.set_off(behind=[("QUIT",), ("INCR", "ran")])
    scene.let_go()
    scene.assertEqual(scene.last_reply(client), scene.work.reply)
    scene.assertEqual(client.read(), "OK")
    scene.assertEqual(client.read_until_closed(), b"")
    scene.expect_done_by_itself()


def is_over_the_soft_limit(scene):
    """Clients may be looked after while the work goes on, or only afterwards."""
    scene.admin.call("CONFIG", "SET", "client-output-buffer-limit", "normal 0 1mb 1")
    scene.set_off(endless=True, before=[("GET", "large")] * 20, narrow=True)
    last = time.monotonic() + 2
    scene.eventually(lambda: scene.is_over_limit() or time.monotonic() > last, scene.server)
    scene.take_turns()
    scene.end_work()
    scene.expect_ended()
    scene.assertTrue(scene.is_over_limit())


def is_over_the_hard_limit(scene):
    """Before its work begins; whether it then begins is the server's choice."""
    scene.admin.call("CONFIG", "SET", "client-output-buffer-limit", "normal 4mb 0 0")
    client = scenes.connect_narrow(scene.server)
    scene.addCleanup(client.close)
    client.send_raw(b"".join(harness.encode(*request) for request in [("GET", "large")] * 20 + scene.work.brief))
    scene.eventually(scene.is_over_limit, scene.server, what="the limit")
    scene.expect_rest(scene.server, clients=2)


def is_sent_too_much(scene):
    """Messages go over the hard limit while its work goes on; only who loads lets others publish."""
    if not scene.work.loads:
        return
    scene.admin.call("CONFIG", "SET", "client-output-buffer-limit", "normal 1mb 0 0 pubsub 1mb 0 0")
    scene.set_off(before=[("HELLO", "3"), ("SUBSCRIBE", "channel")], narrow=True)
    # More than the buffers of the system take at once.
    for _ in range(200):
        scene.admin.call("PUBLISH", "channel", "x" * 100_000)
    scene.take_turns()
    scene.let_go()
    scene.expect_done_by_itself()
    scene.assertTrue(scene.is_over_limit())


def is_killed(scene):
    client = scene.set_off()
    reply = scenes.ask(scene.server, "CLIENT", "KILL", "ID", str(scene.client_id))
    scene.take_turns()
    scene.let_go()
    if scene.work.loads:
        scene.assertEqual(reply, 1)
        client.read_until_closed()
        scene.expect_done_by_itself()
    else:
        scene.assertTrue(scenes.is_error(reply, "BUSY"), reply)
        scene.assertEqual(scene.last_reply(client), scene.work.reply)
        scene.expect_done_by_itself(clients=3)


def loses_its_user(scene):
    client = scene.set_off()
    reply = scenes.ask(scene.server, "ACL", "DELUSER", WORKER)
    scene.take_turns()
    scene.let_go()
    if scene.work.loads:
        scene.assertEqual(reply, 1)
        client.read_until_closed()
        scene.expect_done_by_itself()
    else:
        scene.assertTrue(scenes.is_error(reply, "BUSY"), reply)
        scene.assertEqual(scene.last_reply(client), scene.work.reply)
        scene.expect_done_by_itself(clients=3)


def deletes_its_own_user(scene):
    """Ahead of its work, in one transaction with it or before."""
    requests = [("ACL", "DELUSER", WORKER), *scene.work.brief]
    if requests[1] == ("MULTI",):
        requests[:2] = reversed(requests[:2])
    client = scene.connect(scene.server)
    client.call("AUTH", WORKER, "")
    client.send_raw(b"".join(harness.encode(*request) for request in requests))
    client.read_until_closed()
    scene.expect_rest(scene.server, clients=2)


def meets_clients_that_come_and_go(scene):
    client = scene.set_off()
    for i in range(60):
        other = scene.server.connect()
        other.send_raw(harness.encode("PING") * (i % 5 + 1) + b"*1\r\n$4\r\nPI")
        scenes.reset(other) if i % 2 else other.close()
    scene.let_go()
    scene.assertEqual(scene.last_reply(client), scene.work.reply)
    scene.expect_done_by_itself(clients=3)


# --- What ends the work --------------------------------------------------------------------------


def has_its_work_killed(scene):
    client = scene.set_off(endless=True)
    scene.end_work()
    reply = scene.last_reply(client)
    if not scene.work.loads:
        text = str(reply[-1] if isinstance(reply, list) else reply)
        scene.assertIn("Script killed by user", text)
    scene.expect_ended(clients=3)


def is_reset_and_has_its_work_killed(scene):
    client = scene.set_off(endless=True, before=[("GET", "large")] * 20, narrow=True)
    scenes.reset(client)
    scene.take_turns()
    scene.end_work()
    scene.expect_ended()


def sees_the_server_shut_down(scene):
    client = scene.set_off(endless=True)
    with scene.server.connect() as other:
        other.send("SHUTDOWN", "NOSAVE")
        scene.server.wait_for_end()
    try:
        client.read_until_closed()
    except OSError:
        pass


def is_reset_and_the_server_shut_down(scene):
    client = scene.set_off(endless=True, before=[("GET", "large")] * 20, narrow=True)
    scenes.reset(client)
    with scene.server.connect() as other:
        other.send("SHUTDOWN", "NOSAVE")
        scene.server.wait_for_end()


def sees_the_server_terminated(scene):
    """A script may be waited for; then it can still be killed."""
    scene.set_off(endless=True)
    scene.server.process.send_signal(signal.SIGTERM)
    scene.eventually(lambda: "Received SIGTERM" in scene.server.log() or not scene.server.is_alive())
    if not scene.work.loads:
        scene.eventually(lambda: scenes.ask(scene.server, scene.work.kill, "KILL") in ("OK", None))
    scene.server.wait_for_end()


# --- Replicas ------------------------------------------------------------------------------------


def has_a_replica_attached(scene):
    client = scene.set_off()
    replica = scene.start(replicaof=["127.0.0.1", scene.server.port])
    scene.eventually(lambda: "MASTER <-> REPLICA sync started" in replica.log(), replica)
    scene.let_go()
    scene.assertEqual(scene.last_reply(client), scene.work.reply)
    scene.admin.call("SET", "after", "it")
    scene.expect_equal(scene.server, replica)
    scene.expect_done_by_itself(clients=3)
    replica.stop()


def is_reset_while_a_replica_attaches(scene):
    """The dataset is on its way when the work begins, and the client goes."""
    scene.admin.call("CONFIG", "SET", "repl-diskless-sync-delay", "1")
    replica = scene.start(replicaof=["127.0.0.1", scene.server.port])
    scene.eventually(lambda: "Delay next BGSAVE" in scene.server.log(), scene.server)
    client = scene.set_off(before=[("GET", "large")] * 20, narrow=True)
    scenes.reset(client)
    scene.take_turns()
    scene.let_go()
    scene.eventually(lambda: scenes.ask(scene.server, "PING") == "PONG", scene.server)
    scene.admin.call("SET", "after", "it")
    scene.expect_equal(scene.server, replica)
    scene.expect_done_by_itself()
    replica.stop()


CLIENT_ACTS = {
    "stays": stays,
    "goes on asking": goes_on_asking,
    "is reset": is_reset,
    "is closed": is_closed,
    "quits behind it": quits_behind_it,
    "is over the soft limit": is_over_the_soft_limit,
    "is over the hard limit": is_over_the_hard_limit,
    "is sent too much": is_sent_too_much,
    "is killed": is_killed,
    "loses its user": loses_its_user,
    "deletes its own user": deletes_its_own_user,
    "meets clients that come and go": meets_clients_that_come_and_go,
    "has its work killed": has_its_work_killed,
    "is reset and has its work killed": is_reset_and_has_its_work_killed,
    "sees the server shut down": sees_the_server_shut_down,
    "is reset and the server shut down": is_reset_and_the_server_shut_down,
    "sees the server terminated": sees_the_server_terminated,
    "has a replica attached": has_a_replica_attached,
    "is reset while a replica attaches": is_reset_while_a_replica_attaches,
}


def combine(options, acts, works=tuple(WORKS)):
    return {"%s %s" % (work, act): (options, WORKS[work], CLIENT_ACTS[act]) for work in works for act in acts}


# A node meets its clients in another gate, and looks after its cluster meanwhile; the rest is the same.
ACTS_IN_A_NODE = ("stays", "is reset", "is killed", "loses its user", "has its work killed", "is reset and has its work killed",
                  "sees the server shut down", "sees the server terminated", "has a replica attached")
DIFFERENT_WORKS = ("a script", "a function", "a transaction with a script", "a reload")


@scenes.side_by_side(combine({}, CLIENT_ACTS))
class ClientAtWork(ClientScene):
    pass


@scenes.side_by_side(combine({"cluster_enabled": "yes"}, ACTS_IN_A_NODE, DIFFERENT_WORKS))
class ClientAtWorkInAClusterNode(ClientScene):
    pass


# --- A replica that gets its dataset while a client is at work -----------------------------------


class SynchronizedScene(ClientScene):
    """The server follows a master whose dataset arrives while the client is at work."""

    def set_off(self, **how):
        self.master = self.start(repl_diskless_sync_delay="1")
        with self.master.connect() as client:
            client.call("FUNCTION", "LOAD", "#!lua name=other\nredis.register_function('other', function() return 1 end)")
            client.call("DEBUG", "POPULATE", "100", "other", "1000")
        self.assertEqual(self.admin.call("REPLICAOF", "127.0.0.1", self.master.port), "OK")
        self.eventually(lambda: "Delay next BGSAVE" in self.master.log(), self.master, self.server, what="being asked")
        client = super().set_off(**how)
        self.eventually(lambda: "Background RDB transfer terminated" in self.master.log(), self.master, self.server, what="the transfer")
        self.take_turns()
        return client

    def expect_done(self, ran, clients=2):
        self.expect_own_replies()
        self.expect_equal(self.master, self.server)
        self.expect_rest(self.server, clients=clients + 1)


def loads(setting):
    return {"repl_diskless_load": setting, "replica_read_only": "no"}


# Acts for which the work must still be going on when the dataset has arrived; a brief script is not.
ACTS_ON_ENDLESS_WORK = ("is over the soft limit", "has its work killed", "is reset and has its work killed", "sees the server shut down",
                        "is reset and the server shut down", "sees the server terminated")
ACTS_ON_LOADING = ("is reset", "is closed", "is killed", "loses its user")


def synchronized(options):
    return {**combine(options, ACTS_ON_ENDLESS_WORK, DIFFERENT_WORKS), **combine(options, ACTS_ON_LOADING, ("a reload",))}


@scenes.side_by_side(synchronized(loads("disabled")))
class ClientAtWorkWhileAFileArrives(SynchronizedScene):
    pass


@scenes.side_by_side(synchronized(loads("swapdb")))
class ClientAtWorkWhileADatasetArrives(SynchronizedScene):
    pass


if __name__ == "__main__":
    unittest.main()

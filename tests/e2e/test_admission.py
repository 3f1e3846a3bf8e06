"""Which requests a server admits, by who sends them and what state it is in, and which refusal comes first: beside the reference."""

import itertools
import os
import re
import time

import harness

DEAD_PORT = 1
SCRIPTS = {
    "reads": "return redis.call('get', KEYS[1])",
    "writes": "return redis.call('set', KEYS[1], 'v')",
    "frees": "return redis.call('del', KEYS[1])",
    "catches": "local r = redis.pcall('set', KEYS[1], 'v') return r.err or 'none'",
    "goes on": "redis.call('del', KEYS[1]) return redis.call('set', KEYS[1], 'v')",
    "publishes": "return redis.call('publish', 'c', 'm')",
    "does nothing": "return 1",
    "is forbidden": "return redis.call('subscribe', 'c')",
    "knows not": "return redis.call('nosuch')",
    "miscounts": "return redis.call('get')",
    "wants another key": "return redis.call('get', 'denied:k')",
    "wants another command": "return redis.call('getdel', KEYS[1])",
}
SHEBANGS = ("", "#!lua\n", "#!lua flags=no-writes\n", "#!lua flags=allow-oom\n", "#!lua flags=allow-stale\n",
            "#!lua flags=allow-oom,allow-stale,no-writes\n")
LIBRARY = """#!lua name=gate
redis.register_function('reads', function(keys) return redis.call('get', keys[1]) end)
redis.register_function{function_name='stale_reads', callback=function(keys) return redis.call('get', keys[1]) end,
                        flags={'no-writes', 'allow-stale'}}
redis.register_function('writes', function(keys) return redis.call('set', keys[1], 'v') end)
redis.register_function{function_name='pure', callback=function(keys) return redis.call('set', keys[1], 'v') end, flags={'no-writes'}}
"""

PLAIN = [
    ["GET", "ok:k"], ["SET", "ok:k", "v"], ["DEL", "ok:k"], ["PING"], ["PUBLISH", "c", "m"], ["PFCOUNT", "ok:h"], ["GET", "denied:k"],
    ["SET", "denied:k", "v"], ["GETDEL", "ok:k"], ["LPUSH", "ok:l", "v"], ["BLPOP", "ok:l", "0.01"], ["NOSUCH", "x"], ["GET"], ["SORT_RO", "ok:l"],
    ["EXISTS", "ok:k"], ["CONFIG", "GET", "maxmemory-samples"], ["CLIENT", "GETNAME"], ["COMMAND", "GETKEYS", "get", "k"], ["SELECT", "0"],
    ["SCRIPT", "EXISTS", "x"], ["ECHO", "a"], ["LATENCY", "RESET"], ["OBJECT", "ENCODING", "ok:none"], ["XADD", "ok:s", "1-1"],
    ["EVALSHA", "0" * 40, "0"], ["DEBUG", "JMAP"], ["MODULE", "UNLOAD", "none"], ["WAIT", "0", "0"], ["SUBSTR", "ok:k", "0", "1"], ["EXEC"],
    ["DISCARD"], ["WATCH", "ok:k"], ["RESTORE", "ok:r", "0", "bad"], ["SPUBLISH", "c", "m"], ["FLUSHDB"],
]
SCRIPTED = [["EVAL", shebang + body, "1", "ok:k"] for shebang in SHEBANGS for body in SCRIPTS.values()] + \
    [["EVAL_RO", shebang + SCRIPTS[name], "1", "ok:k"] for shebang in ("", "#!lua\n", "#!lua flags=no-writes\n")
     for name in ("reads", "writes", "catches")] + \
    [[word, name, "1", "ok:k"] for word in ("FCALL", "FCALL_RO") for name in ("reads", "stale_reads", "writes", "pure", "nosuch")]

CONDITIONS = {
    "out of memory": ["CONFIG", "SET", "maxmemory", "1"],
    "too few replicas": ["CONFIG", "SET", "min-replicas-to-write", "1"],
    "disk error": ["CONFIG", "SET", "stop-writes-on-bgsave-error", "yes"],
    "replica": ["REPLICAOF", "127.0.0.1", str(DEAD_PORT)],
    "no stale data": ["CONFIG", "SET", "replica-serve-stale-data", "no"],
}
RESET = [["CONFIG", "SET", "maxmemory", "0"], ["CONFIG", "SET", "min-replicas-to-write", "0"],
         ["CONFIG", "SET", "stop-writes-on-bgsave-error", "no"], ["REPLICAOF", "NO", "ONE"],
         ["CONFIG", "SET", "replica-serve-stale-data", "yes"], ["SET", "ok:k", "v"]]


class Side:
    """A server in the state that all tests begin with."""

    def __init__(self, program, **options):
        options = {"save": ["3600", "1000000"], "enable_debug_command": "no", "repl_timeout": "3600", **options}
        self.server = harness.Server(program, **options)
        self.control = self.server.connect()
        self.control.call("FUNCTION", "LOAD", LIBRARY)
        self.control.call("ACL", "SETUSER", "limited", "on", "nopass", "~ok:*", "&*", "+@all", "-getdel", "-debug")
        self.default = self.server.connect()
        self.limited = self.server.connect()
        self.limited.call("AUTH", "limited", "x")
        # A snapshot cannot take the place of a directory.
        os.mkdir(os.path.join(self.server.directory, "dump.rdb"))
        open(os.path.join(self.server.directory, "dump.rdb", "x"), "w", encoding="utf-8").close()
        self.control.call("CONFIG", "SET", "stop-writes-on-bgsave-error", "no")
        self.control.call("BGSAVE")
        while "rdb_last_bgsave_status:err" not in self.control.call("INFO", "persistence"):
            time.sleep(0.01)

    def stop(self):
        # It would not go without a snapshot.
        self.control.call("CONFIG", "SET", "save", "")
        self.server.stop()

    def set(self, conditions):
        self.replies(self.control, RESET + [CONDITIONS[name] for name in conditions])

    @staticmethod
    def replies(client, requests):
        """The replies to requests that are sent as one pipeline."""
        client.send_raw(b"".join(harness.encode(*words) for words in requests))
        return [repr(client.read()) for _ in requests]


def subsets(most):
    names = list(CONDITIONS)
    return itertools.chain.from_iterable(itertools.combinations(names, size) for size in range(most + 1))


@harness.needs_reference
class BothServers(harness.unittest.TestCase):
    """Both servers are asked the same in the same state."""

    options = {}

    @classmethod
    def setUpClass(cls):
        cls.sides = []
        for program in (None, harness.reference("redis-server")):
            cls.sides.append(Side(program, **cls.options))

    @classmethod
    def tearDownClass(cls):
        for side in cls.sides:
            side.stop()

    def tearDown(self):
        for side in self.sides:
            side.set(())

    def compare(self, where, requests, ask):
        """`ask`, of a side, gives one reply for each request."""
        ours, theirs = (ask(side) for side in self.sides)
        wrong = [f"{where}: {' '.join(words)!r}\n  ours   {mine}\n  theirs {reference}"
                 for words, mine, reference in zip(requests, ours, theirs) if mine != reference]
        self.differences += wrong

    def setUp(self):
        self.differences = []

    def check(self):
        self.assertFalse(self.differences, f"{len(self.differences)} differ:\n" + "\n".join(self.differences[:40]))


class Admission(BothServers):
    """By conditions that last."""

    def in_each_state(self, most, requests, ask):
        for conditions in subsets(most):
            for side in self.sides:
                side.set(conditions)
            for user in ("default", "limited"):
                where = ", ".join((user, *conditions))
                self.compare(where, requests, lambda side, user=user: ask(side, getattr(side, user)))
        self.check()

    def test_of_clients_and_scripts(self):
        requests = PLAIN + SCRIPTED
        self.in_each_state(2, requests, lambda side, client: side.replies(client, requests))

    def test_within_transactions(self):
        requests = [words for words in PLAIN + SCRIPTED if words[0] not in ("EXEC", "DISCARD", "WATCH")]

        def ask(side, client):
            replies = side.replies(client, [each for words in requests for each in (["MULTI"], words, ["EXEC"])])
            return [" ".join(replies[i:i + 3]) for i in range(0, len(replies), 3)]

        self.in_each_state(2, requests, ask)

    def test_of_transactions_that_were_queued_before(self):
        requests = [words for words in PLAIN + SCRIPTED if words[0] not in ("EXEC", "DISCARD", "WATCH")]
        for conditions in subsets(2):
            for user in ("default", "limited"):
                def ask(side, user=user):
                    clients = [side.server.connect() for _ in requests]
                    side.set(())
                    for client, words in zip(clients, requests):
                        if user == "limited":
                            client.call("AUTH", "limited", "x")
                        side.replies(client, [["MULTI"], words])
                    side.set(conditions)
                    replies = [side.replies(client, [["EXEC"]])[0] for client in clients]
                    for client in clients:
                        client.close()
                    return replies
                self.compare(", ".join((user, *conditions)), requests, ask)
        self.check()


    def test_without_authentication(self):
        for side in self.sides:
            side.control.call("CONFIG", "SET", "requirepass", "secret")
        requests = [words for words in PLAIN if words[0] not in ("EXEC", "DISCARD")] + [["HELLO"], ["HELLO", "3"], ["AUTH", "x"], ["RESET"]]

        def ask(side):
            replies = []
            for words in requests:
                with side.server.connect() as client:
                    replies += side.replies(client, [words])
            return replies

        for conditions in subsets(1):
            for side in self.sides:
                side.set(conditions)
            self.compare(", ".join(conditions), requests, ask)
        for side in self.sides:
            side.control.call("CONFIG", "SET", "requirepass", "")
        self.check()

    def test_of_subscribers(self):
        requests = [words for words in PLAIN + SCRIPTED[:3] if words[0] != "PUBLISH"]

        def ask(side):
            with side.server.connect() as client:
                client.call("SUBSCRIBE", "elsewhere")
                return side.replies(client, requests)

        for conditions in subsets(2):
            # Subscribing needs memory here, as in Redis 8.6.
            if "out of memory" in conditions:
                continue
            for side in self.sides:
                side.set(conditions)
            self.compare(", ".join(conditions), requests, ask)
        self.check()

    def test_of_monitors(self):
        requests = [words for words in PLAIN + SCRIPTED[:3] if words[0] not in ("BLPOP", "WAIT")]

        def ask(side):
            with side.server.connect() as client:
                client.call("MONITOR")
                replies = []
                for words in requests:
                    client.send(*words)
                    reply = client.read()
                    while isinstance(reply, str) and re.match(r"\d+\.\d+ \[", reply):
                        reply = client.read()
                    replies.append(repr(reply))
                return replies

        for conditions in subsets(1):
            for side in self.sides:
                side.set(conditions)
            self.compare(", ".join(conditions), requests, ask)
        self.check()

    def test_beside_a_busy_script(self):
        requests = PLAIN + SCRIPTED[:3] + [["SCRIPT", "HELP"], ["SHUTDOWN"], ["SHUTDOWN", "SAVE"], ["FUNCTION", "STATS"][:1], ["MULTI"]]

        def ask(side, client):
            with side.server.connect() as busy:
                side.control.call("CONFIG", "SET", "busy-reply-threshold", "1")
                busy.send("EVAL", "#!lua flags=no-writes,allow-stale,allow-oom\nwhile true do end", "0")
                while not str(side.replies(side.control, [["SCRIPT", "EXISTS", "x"]])[0]).startswith("ReplyError('BUSY"):
                    pass
                replies = side.replies(client, requests)
                side.control.call("SCRIPT", "KILL")
                busy.read()
            side.replies(client, [["DISCARD"]])
            return replies

        for conditions in subsets(1):
            if "no stale data" in conditions:
                continue
            for side in self.sides:
                side.set(conditions)
            for user in ("default", "limited"):
                self.compare(", ".join((user, *conditions)), requests, lambda side, user=user: ask(side, getattr(side, user)))
        self.check()

    def test_while_paused(self):
        """What would be refused is, and what would not waits."""
        refused = [["SET", "denied:k", "v"], ["GETDEL", "ok:k"], ["NOSUCH", "x"], ["GET"], ["EXEC"]]
        held = [["PING"], ["SET", "ok:k", "v"], ["GET", "ok:k"], ["PUBLISH", "c", "m"], ["PFCOUNT", "ok:h"], *SCRIPTED[:3],
                ["EVAL", "#!lua flags=no-writes\nreturn 1", "0"], ["EVAL_RO", "return 1", "0"], ["FCALL", "pure", "1", "ok:k"], ["FCALL", "writes", "1", "ok:k"]]
        wait_s = 0.25
        pause_ms = 1500

        def ask(side):
            clients = [side.server.connect() for _ in refused + held]
            for client in clients:
                client.call("AUTH", "limited", "x")
            side.control.call("CLIENT", "PAUSE", "100000" if side.kind == "WRITE" else str(pause_ms), side.kind)
            for client, words in zip(clients, refused + held):
                client.send(*words)
            time.sleep(wait_s)
            replies = []
            for client, words in zip(clients, refused + held):
                client.socket.settimeout(0.01 if words in held else harness.REPLY_TIMEOUT_S)
                try:
                    replies.append(repr(client.read()))
                except TimeoutError:
                    replies.append("waits")
            side.control.call("CLIENT", "UNPAUSE")
            for client in clients:
                client.close()
            return replies

        for kind in ("WRITE", "ALL"):
            # When all are paused the condition that lasts can only be taken away when the pause is over.
            for conditions in subsets(1 if kind == "WRITE" else 0):
                for side in self.sides:
                    side.kind = kind
                    side.set(conditions)
                self.compare(", ".join((kind, *conditions)), refused + held, ask)
        self.check()


@harness.needs_reference
class AdmissionInACluster(Admission):
    """The same of a node that serves half of the slots."""

    options = {"cluster_enabled": "yes", "cluster_require_full_coverage": "no"}


if __name__ == "__main__":
    harness.unittest.main()

"""What servers admit of others than clients, beside the reference: while a dataset is loaded, from a master, from the append-only file,
and when a request that has waited is run again."""

import os
import shutil
import socket
import threading
import time

import harness
import test_admission as admission

KEYS = 20_000
EMPTY_DATASET = b"REDIS0011\xff" + bytes(8)
# What changes the dataset in each way a request can come, and what is refused. Each names its key.
STREAM = [
    ["SELECT", "0"], ["SET", "ok:set", "v"], ["SET", "denied:set", "v"], ["APPEND", "ok:set", "w"], ["LPUSH", "ok:list", "a", "b"],
    ["GETDEL", "denied:set"], ["PUBLISH", "c", "m"], ["PFADD", "ok:h", "a"], ["MULTI"], ["SET", "ok:multi", "v"], ["INCR", "ok:n"], ["EXEC"],
    ["EVAL", "return redis.call('set', KEYS[1], 'v')", "1", "ok:script"],
    ["EVAL", "#!lua\nreturn redis.call('set', KEYS[1], 'v')", "1", "ok:shebang"],
    ["EVAL", "#!lua flags=no-writes\nreturn redis.call('set', KEYS[1], 'v')", "1", "ok:pure"],
    ["FCALL", "writes", "1", "ok:function"], ["SET", "ok:last", "v"],
]


def keys_of(side, client):
    """All keys with what they hold."""
    keys = sorted(client.call("KEYS", "*"))
    return [(key, side.replies(client, [["DUMP", key], ["OBJECT", "ENCODING", key]])[1],
             side.replies(client, [["GET", key], ["LRANGE", key, "0", "-1"]])) for key in keys]


@harness.needs_reference
class WhileLoading(admission.BothServers):
    options = {"enable_debug_command": "yes", "loading_process_events_interval_bytes": "1024"}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for side in cls.sides:
            # DEBUG RELOAD saves, so nothing may be in the way.
            shutil.rmtree(os.path.join(side.server.directory, "dump.rdb"))
            side.control.call("DEBUG", "POPULATE", str(KEYS))

    def ask(self, side, user, requests):
        with side.server.connect() as loader, side.server.connect() as client:
            if user == "limited":
                client.call("AUTH", "limited", "x")
            side.control.call("CONFIG", "SET", "key-load-delay", "300")
            loader.send("DEBUG", "RELOAD")
            while "\r\nloading:1" not in side.control.call("INFO", "persistence"):
                pass
            replies = side.replies(client, requests)
            loading = "\r\nloading:1" in side.control.call("INFO", "persistence")
            side.control.call("CONFIG", "SET", "key-load-delay", "0")
            self.assertEqual(loader.read(), "OK")
        self.assertTrue(loading, "the dataset was loaded before all had been asked")
        return replies

    def test_of_clients_scripts_and_transactions(self):
        requests = [words for words in admission.PLAIN if words[0] not in ("DEBUG", "FLUSHDB")] + admission.SCRIPTED[:12] + [
            ["MULTI"], ["GET", "ok:k"], ["EXEC"], ["MULTI"], ["PING"], ["EXEC"], ["MULTI"], ["DISCARD"], ["SHUTDOWN", "ABORT"],
            ["REPLICAOF", "NO", "ONE"], ["CLIENT", "ID", "x"], ["SUBSCRIBE"], ["BGSAVE"]]
        for user in ("default", "limited"):
            self.compare(user, requests, lambda side, user=user: self.ask(side, user, requests))
        self.check()


class PlayedMaster:
    """Gives one replica an empty dataset, and the stream that it is told to."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.replica = None
        self.ready = threading.Event()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        peer, _ = self.listener.accept()
        self.replica = harness.Client(peer)
        peer.settimeout(harness.REPLY_TIMEOUT_S)
        try:
            while True:
                words = self.replica.read()
                if words[0].upper() == "PING":
                    peer.sendall(b"+PONG\r\n")
                elif words[0].upper() == "PSYNC":
                    peer.sendall(b"+FULLRESYNC " + b"a" * 40 + b" 0\r\n$%d\r\n" % len(EMPTY_DATASET) + EMPTY_DATASET)
                    self.ready.set()
                elif words[:2] != ["REPLCONF", "ACK"]:
                    peer.sendall(b"+OK\r\n")
        except (OSError, harness.ConnectionClosed):
            pass

    def send(self, requests):
        self.ready.wait(harness.REPLY_TIMEOUT_S)
        self.replica.send_raw(b"".join(harness.encode(*words) for words in requests))

    def close(self):
        if self.replica is not None:
            self.replica.close()
        self.listener.close()


@harness.needs_reference
class FromTheMaster(admission.BothServers):
    """A master's requests are run whatever the state is, scripts among them. (The reference drops what scripts write where the disk
    fails, and differs from its master from there on.)"""

    # A snapshot cannot be kept where the disk fails, and a replica would end there.
    options = {"repl_diskless_load": "swapdb", "repl_rdb_channel": "no", "replica_ignore_disk_write_errors": "yes"}

    def follow(self, side, conditions):
        side.set([name for name in conditions if name != "replica"])
        master = PlayedMaster()
        try:
            side.control.call("REPLICAOF", "127.0.0.1", str(master.port))
            stream = STREAM[:1] + [["FUNCTION", "LOAD", admission.LIBRARY]] + STREAM[1:]
            size = sum(len(harness.encode(*words)) for words in stream)
            master.send(stream)
            deadline = time.monotonic() + harness.REPLY_TIMEOUT_S
            while f"slave_repl_offset:{size}\r\n" not in side.control.call("INFO", "replication"):
                if time.monotonic() > deadline:
                    self.fail(f"the stream of {size} bytes was not applied:\n" + side.server.log()[-1500:])
            found = [repr(entry) for entry in keys_of(side, side.control)]
            self.assertIn("master_link_status:up", side.control.call("INFO", "replication"))
        finally:
            side.set(())
            master.close()
            side.control.call("FLUSHALL")
            side.control.call("FUNCTION", "LOAD", "REPLACE", admission.LIBRARY)
        return found

    def test_in_each_state(self):
        ours, reference = self.sides
        whole = self.follow(reference, ())
        self.assertTrue(any("ok:last" in entry for entry in whole))
        for conditions in admission.subsets(2):
            self.assertEqual(self.follow(ours, conditions), whole, conditions)
            if "disk error" not in conditions and "too few replicas" not in conditions:
                self.assertEqual(self.follow(reference, conditions), whole, conditions)


@harness.needs_reference
class FromTheAppendOnlyFile(harness.unittest.TestCase):
    """What the file holds is run whatever the configuration is, scripts among it. (The reference drops what scripts wrote where
    replicas are too few, and what scripts and transactions wrote which the default user may not: that is data lost.)"""

    DIFFERENT = ("too few replicas", "a replica without stale data", "with a user who may nothing")

    STATES = {
        "plain": {},
        "out of memory": {"maxmemory": "1"},
        "too few replicas": {"min_replicas_to_write": "1"},
        "a replica": {"replicaof": ["127.0.0.1", str(admission.DEAD_PORT)]},
        "a replica without stale data": {"replicaof": ["127.0.0.1", str(admission.DEAD_PORT)], "replica_serve_stale_data": "no"},
        "with a password": {"requirepass": "secret"},
        "with a user who may nothing": {"user": ["default", "on", "nopass", "resetkeys", "-@all", "+ping", "+keys", "+get", "+lrange",
                                                 "+object", "+dump", "+config", "+shutdown", "%R~*"]},
    }

    def load(self, program, options):
        directory = harness.tempfile.mkdtemp(prefix="latchkey-e2e-")
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        files = os.path.join(directory, "appendonlydir")
        os.mkdir(files)
        with open(os.path.join(files, "appendonly.aof.manifest"), "w", encoding="utf-8") as manifest:
            manifest.write("file appendonly.aof.1.incr.aof seq 1 type i\n")
        requests = STREAM[:1] + [["FUNCTION", "LOAD", admission.LIBRARY]] + STREAM[1:]
        with open(os.path.join(files, "appendonly.aof.1.incr.aof"), "wb") as commands:
            commands.write(b"".join(harness.encode(*words) for words in requests))
        server = harness.Server(program, appendonly="yes", dir=directory, **options)
        try:
            with server.connect() as client:
                if "requirepass" in options:
                    client.call("AUTH", "secret")
                client.call("CONFIG", "SET", "replica-serve-stale-data", "yes")
                return [repr(entry) for entry in keys_of(admission.Side, client)]
        finally:
            server.stop()

    def test_in_each_state(self):
        whole = self.load(harness.reference("redis-server"), self.STATES["plain"])
        self.assertTrue(any("ok:last" in entry for entry in whole))
        for name, options in self.STATES.items():
            with self.subTest(name):
                self.assertEqual(self.load(None, options), whole)
                if name not in self.DIFFERENT:
                    self.assertEqual(self.load(harness.reference("redis-server"), options), whole)


@harness.needs_reference
class WhoHasWaited(admission.BothServers):
    """A request that waited for a key is run when there is one, in the state that the server has then."""

    # What waits, for ok:l.
    WAITING = [["BLPOP", "ok:l", "0"], ["BLMOVE", "ok:l", "ok:m", "LEFT", "LEFT", "0"], ["BRPOPLPUSH", "ok:l", "ok:m", "0"],
               ["BLMPOP", "0", "1", "ok:l", "LEFT"]]
    PUSH = ["EVAL", "#!lua flags=allow-oom\nreturn redis.call('lpush', KEYS[1], 'v')", "1", "ok:l"]
    CHANGES = {
        "nothing": [],
        "out of memory": [admission.CONDITIONS["out of memory"]],
        "the command is taken away": [["ACL", "SETUSER", "limited", "-@list"]],
        "the key is taken away": [["ACL", "SETUSER", "limited", "resetkeys", "~other:*"]],
        "the other key is taken away": [["ACL", "SETUSER", "limited", "resetkeys", "~ok:l"]],
        "writing is taken away": [["ACL", "SETUSER", "limited", "resetkeys", "%R~ok:*"]],
        "the user is turned off": [["ACL", "SETUSER", "limited", "off"]],
    }

    def ask(self, side, changes):
        replies = []
        for words in self.WAITING:
            side.control.call("ACL", "SETUSER", "limited", "reset", "on", "nopass", "~ok:*", "&*", "+@all")
            side.set(())
            side.control.call("DEL", "ok:l", "ok:m")
            with side.server.connect() as client:
                client.call("AUTH", "limited", "x")
                client.send(*words)
                while "blocked_clients:1" not in side.control.call("INFO", "clients"):
                    pass
                # In one turn, so that the change is there when the key is.
                done = side.replies(side.control, [["MULTI"], *changes, self.PUSH, ["EXEC"]])[-1]
                client.socket.settimeout(0.5)
                try:
                    reply = repr(client.read())
                except TimeoutError:
                    reply = "waits"
                left = side.replies(side.control, [["LRANGE", "ok:l", "0", "-1"], ["LRANGE", "ok:m", "0", "-1"]])
            replies.append(f"{done} -> {reply}, left {left}")
            while "blocked_clients:0" not in side.control.call("INFO", "clients"):
                pass
        return replies

    def test_after_each_change(self):
        for name, changes in self.CHANGES.items():
            self.compare(name, self.WAITING, lambda side, changes=changes: self.ask(side, changes))
        self.check()


if __name__ == "__main__":
    harness.unittest.main()

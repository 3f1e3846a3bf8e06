"""A server that stands for a release of another one, beside that release itself: what it lists, says of itself, refuses, and
writes. Releases that scripts/reference has not brought are skipped."""

import os
import re
import shutil
import unittest

import harness

REFERENCE = harness.reference("redis-server")
# What is emulated, and the name of the program that is the thing itself.
RELEASES = {
    "redis 7.0": "redis-server-7.0",
    "redis 8.0": "redis-server-8.0",
    "redis 8.6": "redis-server-8.6",
    "valkey 8.1": "valkey-server-8.1",
    "valkey 9.1": "valkey-server-rival",
}
# Which commands take another number of words there: of vector sets 8.0 counts them when they run, and 7.0 wants one word more.
OTHER_ARITY = {
    "redis 8.0": {"vadd", "vcard", "vdim", "vemb", "vgetattr", "vinfo", "vismember", "vlinks", "vrandmember", "vrem", "vsetattr",
                  "vsim"},
    # There are no debuggers of other scripting engines.
    "valkey 9.1": {"script|debug"},
}
# Fields of INFO that tell how a server is made, or that only appear at times.
OWN_FIELDS = {"latchkey_version", "availability_zone", "paused_reason", "paused_actions", "paused_timeout_milliseconds",
              "replicas_waiting_psync"}


def program_of(release):
    path = REFERENCE and os.path.join(os.path.dirname(REFERENCE), RELEASES[release])
    return path if path and os.path.isfile(path) else None


def info_fields(client):
    text = client.call("INFO", "everything")
    fields = {line.split(":")[0] for line in text.splitlines() if ":" in line and not line.startswith("#")}
    return {field for field in fields - OWN_FIELDS if not field.startswith(("cmdstat_", "latency_percentiles_", "errorstat_"))}


def arities(infos):
    found = {}
    for info in infos:
        found[info[0].lower()] = info[1]
        found.update(arities(info[9] or []))
    return found


def client_fields(client):
    return [field.split("=")[0] for field in client.call("CLIENT", "INFO").split()]


def is_own(name):
    return name.startswith(("lock-", "space-")) or name in ("max-spaces", "random-seed", "exit-when-idle", "lua-memory-limit")


def directory_with_dump_of(server):
    """A new directory, which goes with the server's."""
    directory = os.path.join(server.directory, "copy")
    os.mkdir(directory)
    shutil.copy(os.path.join(server.directory, "dump.rdb"), directory)
    return directory


def reply_or_error(client, *words):
    try:
        return client.call(*words)
    except harness.ReplyError as error:
        return str(error)


def is_answered(client):
    try:
        return client.call("PING") == "PONG"
    except (harness.ConnectionClosed, ConnectionError):
        return False


def requests_until(replica, key):
    """What a replica that said SYNC gets behind the dataset, up to the request that sets the key; times have no digits."""
    size = replica._line().lstrip(b"\n")
    replica._take(int(size[1:]))
    requests = []
    while True:
        words = replica.read()
        if words[0].upper() in ("PING", "REPLCONF"):
            continue
        requests.append([re.sub(r"^[0-9]{13}$", "TIME", word) for word in words])
        if key in words:
            return requests


class BesideTheRelease:
    """Both servers are asked the same."""

    release = ""
    # Directives that the release has and Latchkey has no use for: CONFIG GET does not list them.
    directives_without_meaning = set()
    # Fields of INFO that the release has and Latchkey has not.
    missing_fields = set()

    def setUp(self):
        self.servers = []
        for program, options in ((None, {"emulate": self.release}), (program_of(self.release), {})):
            self.servers.append(harness.Server(program, repl_diskless_sync_delay=0, enable_debug_command="yes", **options))
            self.addCleanup(self.servers[-1].stop)
        self.clients = [server.connect() for server in self.servers]
        for client in self.clients:
            self.addCleanup(client.close)

    def eventually(self, condition):
        harness.ServerTestCase.eventually(self, condition)

    def test_commands_and_their_words(self):
        ours, theirs = self.clients
        listed = set(name.lower() for name in theirs.call("COMMAND", "LIST"))
        self.assertEqual(set(name.lower() for name in ours.call("COMMAND", "LIST")) - self.of_modules(ours), listed)
        mine, real = arities(ours.call("COMMAND")), arities(theirs.call("COMMAND"))
        for name in (set(mine) & set(real)) - OTHER_ARITY.get(self.release, set()):
            self.assertEqual(mine[name], real[name], name)

    def of_modules(self, client):
        """The commands that the image redis:8 has by modules, which the reference here comes without: from 8.0 on, and of no other."""
        names = {name.lower() for module in ("bf", "timeseries", "ReJSON") for name in client.call("COMMAND", "LIST", "FILTERBY", "MODULE", module)}
        self.assertEqual(bool(names), self.release.startswith("redis 8"))
        return names

    def test_fields_and_versions(self):
        for client in self.clients:
            client.call("SET", "k", "v")
        ours, theirs = self.clients
        self.assertEqual(info_fields(ours) ^ info_fields(theirs), self.missing_fields)
        if not self.release.startswith("valkey"):
            self.assertEqual(client_fields(ours), client_fields(theirs))
        for field in ("version", "server"):
            said = [client.call("HELLO", "2") for client in self.clients]
            self.assertEqual(*[reply[reply.index(field) + 1] for reply in said])

    def test_directives(self):
        ours, theirs = [set(client.call("CONFIG", "GET", "*")[::2]) for client in self.clients]
        of_modules = {name for name in ours if name.startswith(("bf-", "cf-", "ts-"))}
        self.assertEqual(len(of_modules), 16 if self.release.startswith("redis 8") else 0)
        self.assertEqual([name for name in ours - theirs - of_modules if not is_own(name)], [])
        self.assertLessEqual(theirs - ours, self.directives_without_meaning)

    def test_files_and_payloads(self):
        """Each reads what the other has written."""
        for client in self.clients:
            client.call("RPUSH", "list", *range(200))
            client.call("HSET", "hash", "f", "v", "g", "w")
            # Too large for a listpack.
            client.call("HSET", "large", *[word for i in range(1000) for word in ("field:%d" % i, i)])
            client.call("SADD", "set", "a", "b")
            client.call("ZADD", "zset", "1", "a", "2.5", "b")
            client.call("XADD", "stream", "1-1", "f", "v")
            client.call("XGROUP", "CREATE", "stream", "group", "0")
            client.call("XREADGROUP", "GROUP", "group", "consumer", "STREAMS", "stream", ">")
            client.call("SAVE")
        for source, target in (self.servers, reversed(self.servers)):
            copy = harness.Server(target.program, **{**target.options, "dir": directory_with_dump_of(source)})
            self.addCleanup(copy.stop)
            with copy.connect() as client:
                self.assertEqual(client.call("DBSIZE"), 6)
                self.assertEqual(client.call("HGET", "large", "field:7"), "7")
                self.assertEqual(client.call("LRANGE", "list", "0", "-1"), [str(i) for i in range(200)])
                self.assertEqual(client.call("XPENDING", "stream", "group")[0], 1)
        theirs = self.clients[1]
        with self.servers[0].connect(binary=True) as binary:
            for key in ("list", "hash", "large", "set", "zset", "stream"):
                theirs.call("DEL", key)
                self.assertEqual(theirs.call("RESTORE", key, "0", binary.call("DUMP", key)), "OK")

    def test_replication(self):
        """It follows the release, and the release follows it."""
        for master, replica in ((0, 1), (1, 0)):
            leader, follower = self.clients[master], self.clients[replica]
            leader.call("FLUSHALL")
            leader.call("SET", "from", str(master))
            follower.call("REPLICAOF", "127.0.0.1", self.servers[master].port)
            self.eventually(lambda: follower.call("GET", "from") == str(master))
            leader.call("HINCRBYFLOAT", "hash", "field", "1.5")
            leader.call("SET", "k", "v", "EX", "100")
            self.eventually(lambda: follower.call("HGET", "hash", "field") == "1.5")
            self.eventually(lambda: follower.call("TTL", "k") > 0)
            follower.call("REPLICAOF", "NO", "ONE")


    def test_replies_of_streams_and_scores(self):
        """What changed in replies with Redis 7.2 and 8.6."""
        replies = []
        for server, client in zip(self.servers, self.clients):
            said = [client.call("ZADD", "z", "0.97315763587744797", "m"), client.call("ZSCORE", "z", "m"),
                    client.call("ZRANGE", "z", "0", "-1", "WITHSCORES"), client.call("ZINCRBY", "z", "0.1", "m")]
            client.call("XADD", "s", "1-1", "f", "v")
            client.call("XGROUP", "CREATE", "s", "g", "0")
            client.call("XREADGROUP", "GROUP", "g", "alice", "STREAMS", "s", ">")
            client.call("XREADGROUP", "GROUP", "g", "bob", "STREAMS", "s", ">")
            full = client.call("XINFO", "STREAM", "s", "FULL")
            group = full[full.index("groups") + 1][0]
            consumers = group[group.index("consumers") + 1]
            said += [full[::2], client.call("XINFO", "STREAM", "s")[::2], group[::2], [consumer[::2] for consumer in consumers],
                     client.call("XINFO", "GROUPS", "s")[0],
                     [consumer[::2] for consumer in client.call("XINFO", "CONSUMERS", "s", "g")]]
            for script in ("return redis.pcall('xread', 'BLOCK', 0, 'STREAMS', 's', '$')",
                           "return redis.pcall('xreadgroup', 'GROUP', 'g', 'alice', 'BLOCK', 0, 'STREAMS', 's', '>')"):
                said.append(reply_or_error(client, "EVAL", script, "1", "s"))
            for ends in (("DEL", "s"), ("XGROUP", "DESTROY", "s", "g"), ("SET", "s", "v"), ("FLUSHALL",)):
                client.call("DEL", "s")
                client.call("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
                with server.connect() as waiting:
                    waiting.send("XREADGROUP", "GROUP", "g", "alice", "BLOCK", "0", "STREAMS", "s", ">")
                    self.eventually(lambda: "blocked_clients:1" in client.call("INFO", "clients"))
                    client.call(*ends)
                    said.append(waiting.read())
            replies.append(said)
        for mine, real in zip(*replies):
            self.assertEqual(mine, real)

    def test_how_words_are_read(self):
        """What changed with Redis 7.2, 7.4 and 8.0, Valkey 8.0 and 9.1."""
        requests = [line.split() for line in (
            "XADD s 1-1 f v", "XREAD STREAMS s +", "XREAD COUNT 1 STREAMS s s + 0",
            "SET k v", "BITCOUNT none 0 1 word", "BITCOUNT none a b", "BITCOUNT k a b", "BITPOS none 0 x", "BITPOS none 1 0 1 word",
            "SET number 7", "OBJECT REFCOUNT number", "OBJECT REFCOUNT k",
            "ZADD z 1 a 2 b", "ZRANGEBYSCORE z 0x1 0x2", "ZCOUNT z (0x1 0x10", "ZRANGE z 0x0 0xff BYSCORE", "ZCOUNT z 0xx 1", "ZCOUNT z x 1",
            "SADD n 0x10 3 -1", "SORT n", "SADD other 0x1y 2", "SORT other",
            "ACL SETUSER somebody +@nosuch", "ACL CAT nosuch")]
        if not self.release.startswith("redis 8"):  # where the types of modules are built in
            requests += [["ACL", "SETUSER", "somebody", "+@json"], ["ACL", "CAT", "bloom"], ["ACL", "CAT"]]
        mine, real = ([repr(reply_or_error(client, *words)) for words in requests] for client in self.clients)
        for words, one, other in zip(requests, mine, real):
            with self.subTest(words):
                self.assertEqual(one, other)

    def test_which_clients_outlive_the_loading_of_users(self):
        path = os.path.join(self.servers[0].directory, "users.acl")
        with open(path, "w", encoding="ascii") as file:
            file.write("user alice on nopass ~* &* +@all\n")
        outlive = []
        for program, options in ((None, {"emulate": self.release}), (program_of(self.release), {})):
            server = harness.Server(program, aclfile=path, **options)
            self.addCleanup(server.stop)
            with server.connect() as client, server.connect() as alice:
                alice.call("AUTH", "alice", "x")
                client.call("ACL", "LOAD")
                outlive.append((is_answered(client), is_answered(alice)))
        self.assertEqual(*outlive)

    def test_what_is_written_for_replicas(self):
        """Where SELECT stands beside MULTI, how far a group has read, and whether serving those who wait removes expired keys."""
        streams = []
        for server, client in zip(self.servers, self.clients):
            client.call("DEBUG", "SET-ACTIVE-EXPIRE", "0")
            with server.connect() as replica, server.connect() as waiting:
                replica.send("SYNC")
                self.eventually(lambda: "connected_slaves:1" in client.call("INFO", "replication"))
                client.call("XGROUP", "CREATE", "s", "g", "0", "MKSTREAM")
                client.call("XADD", "s", "1-1", "f", "v")
                for request in (("SELECT", "3"), ("MULTI",), ("SET", "a", "1"), ("SET", "b", "2"), ("EXEC",), ("SELECT", "0")):
                    client.call(*request)
                client.call("XREADGROUP", "GROUP", "g", "alice", "STREAMS", "s", ">")
                waiting.send("BRPOP", "k", "0")
                self.eventually(lambda: "blocked_clients:1" in client.call("INFO", "clients"))
                for request in (("MULTI",), ("RPUSH", "k", "v"), ("PEXPIRE", "k", "1"), ("DEBUG", "SLEEP", "0.01"), ("EXEC",)):
                    client.call(*request)
                client.call("SET", "last", "1")
                streams.append(requests_until(replica, "last"))
        self.assertEqual(*streams)


def has(release):
    return unittest.skipUnless(program_of(release), "scripts/reference has not brought " + release)


@has("redis 7.0")
class Redis70(BesideTheRelease, unittest.TestCase):
    release = "redis 7.0"
    # For the developers of the release: keeping files that are no longer needed; and there are no I/O threads.
    directives_without_meaning = {"aof-disable-auto-gc", "io-threads-do-reads"}


@has("redis 8.0")
class Redis80(BesideTheRelease, unittest.TestCase):
    release = "redis 8.0"


@has("redis 8.6")
class Redis86(BesideTheRelease, unittest.TestCase):
    release = "redis 8.6"


@has("valkey 8.1")
class Valkey81(BesideTheRelease, unittest.TestCase):
    release = "valkey 8.1"
    # unixsocketgroup and the separate channel are there, but have to be named. RDMA and prefetching across clients are not; memory is
    # not defragmented.
    directives_without_meaning = {
        "rdma-bind", "rdma-completion-vector", "rdma-port", "rdma-rx-size", "prefetch-batch-max-size", "active-defrag-cycle-us",
        "unixsocketgroup"}


@has("valkey 9.1")
class Valkey91(BesideTheRelease, unittest.TestCase):
    release = "valkey 9.1"
    # As of 8.1; besides, cluster-databases and hash-seed have to be named, Multipath TCP is not used, the ports for clients alone are not announced, and a node whose configuration cannot be written stops.
    directives_without_meaning = Valkey81.directives_without_meaning | {
        "cluster-databases", "hash-seed", "mptcp", "repl-mptcp", "cluster-announce-client-port", "cluster-announce-client-tls-port",
        "cluster-config-save-behavior"}
    # Of scripting engines as modules, and of slots that move.
    missing_fields = {
        "engine_0", "engines_count", "engines_total_memory_overhead", "engines_total_used_memory",
        "mem_cluster_slot_export", "mem_cluster_slot_import", "mem_replicas_repl_buffer", "module",
        "slot_migration_fork_in_progress", "total_net_cluster_slot_export_bytes",
        "total_net_cluster_slot_import_bytes"}


class Emulating(unittest.TestCase):
    def server(self, **options):
        server = harness.Server(**options)
        self.addCleanup(server.stop)
        return server

    def test_a_space_stands_for_the_same_release(self):
        server = self.server(emulate="redis 7.0")
        with server.connect() as client:
            client.call("SPACE", "CREATE", "a", "KEEP")
            client.call("SPACE", "ENTER", "a")
            self.assertIn("redis_version:7.0.15", client.call("INFO", "server"))
            self.assertIn("unknown command", client.error_of("HEXPIRE", "h", "5", "FIELDS", "1", "f"))

    def test_the_configuration_is_rewritten_as_the_release_reads_it(self):
        path = os.path.join(harness.tempfile.mkdtemp(prefix="latchkey-e2e-"), "redis.conf")
        self.addCleanup(shutil.rmtree, os.path.dirname(path))
        with open(path, "w", encoding="utf-8") as file:
            file.write("emulate redis 7.0\n")
        server = self.server(file=path)
        with server.connect() as client:
            client.call("CONFIG", "SET", "maxmemory", "100mb")
            client.call("CONFIG", "REWRITE")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.assertIn("emulate redis 7.0\n", text)
        self.assertNotIn("lookahead", text)
        with self.server(file=path).connect() as client:
            self.assertIn("redis_version:7.0.15", client.call("INFO", "server"))

    def test_a_file_that_is_included_cannot_say_it(self):
        directory = harness.tempfile.mkdtemp(prefix="latchkey-e2e-")
        self.addCleanup(shutil.rmtree, directory)
        path = os.path.join(directory, "more.conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write("emulate redis 7.0\n")
        with self.assertRaises(AssertionError) as refused:
            harness.Server(include=path)
        self.assertIn("emulate cannot be in a file that is included", str(refused.exception))

    def test_an_append_only_file_with_valkeys_base_is_loaded(self):
        server = self.server(emulate="valkey 9.1", appendonly="yes", enable_debug_command="yes")
        with server.connect() as client:
            client.call("SET", "a", "1")
            client.call("BGREWRITEAOF")
            harness.ServerTestCase.eventually(self, lambda: "aof_rewrite_in_progress:0" in client.call("INFO", "persistence"))
            client.call("SET", "b", "1")
            self.assertEqual(client.call("DEBUG", "LOADAOF"), "OK")
            self.assertEqual(client.call("DBSIZE"), 2)

    def test_what_cannot_be_emulated_ends_the_start(self):
        with self.assertRaises(AssertionError) as refused:
            harness.Server(emulate="redis 5.0")
        self.assertIn("must be one of the following: no, redis 6.2", str(refused.exception))


if __name__ == "__main__":
    unittest.main()

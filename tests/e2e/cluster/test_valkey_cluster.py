"""What Valkey 9 alone has of clusters and of users, beside Valkey 9.1 itself: CLUSTERSCAN, CLUSTER FLUSHSLOT, several databases in
a cluster, users who may use some databases only. Skipped where scripts/reference --rival has not brought it."""

import os
import shlex
import signal
import unittest

import harness
from test_cluster_nodes import ClusterTestCase
from test_slot_migration import SlotMigrationTestCase

REFERENCE = harness.reference("redis-server")
VALKEY = REFERENCE and os.path.join(os.path.dirname(REFERENCE), "valkey-server-rival")
needs_valkey = unittest.skipUnless(VALKEY and os.path.isfile(VALKEY), "Valkey 9.1 is not unpacked")
PRODUCTS = ((None, {"emulate": "valkey 9.1"}), (VALKEY, {}))


def ask(client, line):
    """The reply, or the error with its dash; of a scan the keys are in order."""
    words = shlex.split(line)
    try:
        reply = client.call(*words)
    except harness.ReplyError as error:
        return "-" + str(error)
    if words[:2] == ["CONFIG", "GET"]:
        return dict(zip(reply[::2], reply[1::2]))
    if words[0] in ("CLUSTERSCAN", "SCAN"):
        return [reply[0], sorted(reply[1])]
    if "GETKEYSINSLOT" in words:
        return sorted(reply)
    return reply


class TwoServers(unittest.TestCase):
    def start(self, **options):
        self.servers, self.clients = [], []
        for program, own in PRODUCTS:
            server = harness.Server(program, enable_debug_command="yes", **own, **options)
            self.addCleanup(server.stop)
            self.servers.append(server)
        self.clients = [self.connect(server) for server in self.servers]

    def connect(self, server):
        client = server.connect()
        self.addCleanup(client.close)
        return client

    def eventually(self, condition):
        harness.ServerTestCase.eventually(self, condition)

    def same(self, line, clients=None):
        """The reply of both, which is the same."""
        replies = [ask(client, line) for client in clients or self.clients]
        self.assertEqual(*replies, line)
        return replies[0]


@needs_valkey
class OneNode(TwoServers):
    """A cluster of one node, of each product."""

    def setUp(self):
        self.start(cluster_enabled="yes", cluster_databases="4")
        for client in self.clients:
            client.call("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
            self.eventually(lambda client=client: "cluster_state:ok" in client.call("CLUSTER", "INFO"))

    def test_errors_of_scans(self):
        for line in ("CLUSTERSCAN", "CLUSTERSCAN 0", "CLUSTERSCAN x", "CLUSTERSCAN 0 SLOT 5", "CLUSTERSCAN 0 SLOT 13907",
                     "CLUSTERSCAN 0 SLOT 16384", "CLUSTERSCAN 0 SLOT x", "CLUSTERSCAN 0 SLOT -1", "CLUSTERSCAN 00",
                     "CLUSTERSCAN 0 COUNT 0", "CLUSTERSCAN 0 COUNT x", "CLUSTERSCAN 0 MATCH", "CLUSTERSCAN 0 FOO 1", "CLUSTERSCAN 0 TYPE foo",
                     "CLUSTERSCAN 0-{06S}-0 SLOT 1", "CLUSTERSCAN 0-{06S}-0 SLOT 0", "CLUSTERSCAN 0-{06S}-0 SLOT 0 SLOT 1",
                     "CLUSTERSCAN 0-{06S}-0 SLOT 0 SLOT x", "CLUSTERSCAN zz-{06S}-12", "CLUSTERSCAN 0-{06S}-x", "CLUSTERSCAN -{06S}-0",
                     "CLUSTERSCAN 0-{}-0", "CLUSTERSCAN 0-{06S}-", "CLUSTERSCAN 0-{06S}-99999999999999999999999", "CLUSTERSCAN 0-{06S}--1",
                     "CLUSTERSCAN 0-06S-0", "CLUSTERSCAN 0-{06S}-0-0", "CLUSTERSCAN a-b-{06S}-0", "CLUSTERSCAN {06S}-0",
                     "CLUSTERSCAN 0-{06S}", "CLUSTERSCAN 0{06S}-0", "CLUSTERSCAN 0-{06S}0", "CLUSTERSCAN x SLOT 99999",
                     "CLUSTERSCAN 0 NOVALUES", "CLUSTERSCAN 0 NOSCORES", "CLUSTERSCAN 0 TYPE foo COUNT x", "SCAN 0 TYPE foo", "SCAN 0 SLOT 1",
                     "SCAN 0 NOSCORES", "CLUSTERSCAN 0-{06S}- SLOT 5 COUNT x"):
            self.same(line)

    def test_scans_of_one_slot(self):
        for i in range(20):
            self.same("SET {06S}%d v" % i)
        self.same("SADD {06S}set a")
        for line in ("CLUSTERSCAN 0-{06S}-0 SLOT 0 COUNT 100", "CLUSTERSCAN 0-{06S}-0 SLOT 0 COUNT 100 MATCH *1*",
                     "CLUSTERSCAN 0-{06S}-0 SLOT 0 COUNT 100 TYPE set", "CLUSTERSCAN zz-{06S}-0 SLOT 0 COUNT 100"):
            cursor, keys = self.same(line)
            self.assertEqual(cursor, "0")
            self.assertTrue(keys)

    def test_patterns_of_one_slot(self):
        for i in range(50):
            self.same("SET {g0}%d v" % i)
        self.same("SET {Qi}a v")
        for line in ("0 MATCH {06S}*", "0 MATCH abc", "0 MATCH {06S}* SLOT 0", "0 MATCH {06S}* SLOT 1", "0-{Qi}-0 MATCH {06S}*",
                     "0-{06S}-0 MATCH {06S}*", "0-{06S}-0 MATCH {Qi}*", "0-{06S}-0 MATCH {Qi}* SLOT 0", "0-{g0}-0 MATCH {g0}* COUNT 1000",
                     "0-{g0}-0 MATCH {g0}[1-3] COUNT 1000", "0-{g0}-0 MATCH {06S}* COUNT 1000", "0 MATCH {g0}1", "0 MATCH {06*}1",
                     "0 MATCH x SLOT 5", "0 MATCH x SLOT 16287", "0-{Qi}-0 MATCH {Qi}* COUNT 1", "0-{5L5}-0 MATCH {Qi}1", "0-{Qi}-0 MATCH x",
                     "0-{Qi}-0 MATCH {06S}* SLOT 1", "x MATCH {06S}* SLOT 1", "0 MATCH x TYPE foo", "0-{g0}-99 SLOT 15519 COUNT 1000",
                     "zz-{g0}-99 SLOT 0 COUNT 1000"):
            self.same("CLUSTERSCAN " + line)

    def test_databases(self):
        for line in ("CONFIG GET *databases", "SELECT 1", "SET {06S}a 1", "SET {06S}b 1", "DBSIZE", "SELECT 0", "DBSIZE", "SET {06S}x 1",
                     "CLUSTER COUNTKEYSINSLOT 0", "CLUSTER GETKEYSINSLOT 0 10", "CLUSTER SLOT-STATS SLOTSRANGE 0 0", "SELECT 1",
                     "CLUSTER COUNTKEYSINSLOT 0", "CLUSTER GETKEYSINSLOT 0 10", "MOVE {06S}a 2", "COPY {06S}b {06S}c DB 3", "COPY {06S}b {06S}c",
                     "SWAPDB 1 2", "SELECT 4", "SELECT 17", "SELECT x", "MOVE {06S}b 20", "COPY {06S}b {06S}d DB 20",
                     "CLUSTERSCAN 0-{06S}-0 SLOT 0", "SELECT 2", "CLUSTERSCAN 0-{06S}-0 SLOT 0", "CLUSTER FLUSHSLOTS",
                     "CLUSTER SETSLOT 0 NODE " + "a" * 40, "CONFIG SET cluster-databases 4"):
            self.same(line)
        node = "b" * 40
        for client in self.clients:
            counts = [part.split(",")[0] for part in client.call("INFO", "keyspace").split()[2:]]
            self.assertEqual(counts, ["db0:keys=1", "db1:keys=2", "db2:keys=1", "db3:keys=1"])
        self.same("CLUSTER SETSLOT 0 MIGRATING " + node)

    def test_what_flushslot_says_and_removes(self):
        for client in self.clients:
            client.call("CONFIG", "SET", "notify-keyspace-events", "KEA")
        listeners = [self.connect(server) for server in self.servers]
        for listener in listeners:
            listener.call("PSUBSCRIBE", "__keyevent@*")
        for line in ("SET {06S}a 1", "SELECT 2", "SET {06S}b 1", "SET {Qi}c 1", "CLUSTER FLUSHSLOT", "CLUSTER FLUSHSLOT 99999", "CLUSTER FLUSHSLOT x",
                     "CLUSTER FLUSHSLOT 0 FOO", "CLUSTER FLUSHSLOT 0 SYNC ASYNC", "DBSIZE", "CLUSTER FLUSHSLOT 0", "DBSIZE", "SELECT 0", "DBSIZE",
                     "CLUSTER FLUSHSLOT 0 SYNC", "CLUSTER FLUSHSLOT 0 ASYNC", "SET last 1"):
            self.same(line)
        heard = [[listener.read()[2:] for _ in range(6)] for listener in listeners]
        self.assertEqual(*heard)
        self.assertIn(["__keyevent@2__:del", "{06S}b"], heard[0])

    def test_flushslot_is_written_for_replicas_as_it_came(self):
        streams = []
        for server, client in zip(self.servers, self.clients):
            with server.connect() as replica:
                replica.send("SYNC")
                self.eventually(lambda client=client: "connected_slaves:1" in client.call("INFO", "replication"))
                for line in ("SELECT 2", "SET {06S}a 1", "CLUSTER FLUSHSLOT 0 ASYNC", "CLUSTER FLUSHSLOT 0", "SET end 1"):
                    ask(client, line)
                size = replica._line().lstrip(b"\n")
                replica._take(int(size[1:]))
                requests = []
                while not requests or requests[-1][1:2] != ["end"]:
                    requests.append([word.lower() for word in replica.read()])
                streams.append([words for words in requests if words[0] not in ("ping", "replconf")])
        self.assertEqual(*streams)
        self.assertIn(["cluster", "flushslot", "0", "async"], streams[0])

    def test_documentation(self):
        """Of the commands; their subcommands come in any order."""
        names = ("clusterscan", "cluster|flushslot", "cluster|migrateslots", "cluster|getslotmigrations", "cluster|cancelslotmigrations")
        for name in names:
            mine, real = [client.call("COMMAND", "DOCS", name) for client in self.clients]
            self.assertEqual(mine, real, name)
            infos = [client.call("COMMAND", "INFO", name)[0] for client in self.clients]
            self.assertEqual(*[info[1] for info in infos], name)
            for i in (2, 6, 7):
                self.assertEqual(*[sorted(info[i]) for info in infos], (name, i))


@needs_valkey
class ScansOfSeveralNodes(ClusterTestCase):
    def scan_all(self, servers, tags_owner, count, between):
        """The keys that a client finds which asks the owner of the cursor's slot; between() is called after each call."""
        clients = {server.port: self.connect(server) for server in servers}
        cursor, keys, port = "0", [], servers[0].port
        calls = 0
        while True:
            try:
                cursor, found = clients[port].call("CLUSTERSCAN", cursor, "COUNT", count)
            except harness.ReplyError as error:
                self.assertTrue(str(error).startswith("MOVED"), error)
                port = int(str(error).rsplit(":", 1)[1])
                continue
            keys += found
            calls += 1
            between(calls)
            if cursor == "0":
                return keys, calls

    def check(self, program, **options):
        servers = self.start([program] * 2, **options)
        # Neighbors of different nodes, and long runs.
        for server, ranges in zip(servers, ((0, 1, 3, 3, 100, 8000), (2, 2, 4, 99, 8001, 16383))):
            with server.connect() as client:
                client.call("CLUSTER", "ADDSLOTSRANGE", *ranges)
        with servers[0].connect() as client:
            client.call("CLUSTER", "SET-CONFIG-EPOCH", "1")
            client.call("CLUSTER", "MEET", "127.0.0.1", servers[1].port)
        self.wait_until_up(servers)
        direct = {server.port: self.connect(server) for server in servers}

        def put(key):
            for client in direct.values():
                try:
                    return client.call("SET", key, "v")
                except harness.ReplyError:
                    continue
            raise AssertionError(key)

        for i in range(500):
            put("key:%d" % i)
        for tag in ("{06S}", "{Qi}", "{5L5}", "{6ZJ}"):
            for i in range(100):
                put("%s:%d" % (tag, i))
        wanted = {"key:%d" % i for i in range(500)} | {"%s:%d" % (tag, i) for tag in ("{06S}", "{Qi}", "{5L5}", "{6ZJ}") for i in range(100)}
        for count in (1000, 10):
            keys, calls = self.scan_all(servers, None, count, lambda n: [put("{06S}more:%d:%d:%d" % (count, n, i)) for i in range(3)])
            self.assertEqual(wanted - set(keys), set())
            self.assertGreater(calls, 5)
        # A slot alone, from a node that does not serve it.
        with servers[1].connect() as client:
            cursor, found = client.call("CLUSTERSCAN", "0", "SLOT", "0")
        self.assertEqual((cursor, found), ("0-{06S}-0", []))

    def test_every_key_is_found_while_others_are_added(self):
        self.check(None, emulate="valkey 9.1")

    def test_so_it_is_in_valkey(self):
        self.check(VALKEY)

    def test_nodes_of_one_hash_seed_go_on_where_others_were(self):
        """The fingerprint of a cursor follows from the seed alone."""
        servers = self.start([None] * 2, hash_seed="cluster")
        others = [self.connect(server) for server in servers]
        fingerprints = []
        for client in others:
            client.call("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
            for i in range(50):
                self.eventually(lambda i=i, client=client: ask(client, "SET {06S}%d v" % i) == "OK")
            fingerprints.append(client.call("CLUSTERSCAN", "0-{06S}-0", "COUNT", "1")[0].split("-")[0])
        self.assertEqual(*fingerprints)
        self.assertNotEqual(fingerprints[0], "0")


@needs_valkey
class UsersOfDatabases(TwoServers):
    def setUp(self):
        self.start()

    def as_user(self, user, line, database=None, rules_then=None):
        """The reply to the request of a user, who is in that database when the rules change."""
        replies = []
        for server, client in zip(self.servers, self.clients):
            with server.connect() as other:
                other.call("AUTH", user, "x")
                if database is not None:
                    other.call("SELECT", database)
                if rules_then:
                    client.call("ACL", "SETUSER", user, *rules_then.split())
                replies.append(ask(other, line))
                if replies[-1] == "OK":
                    other.send("RESET")
        self.assertEqual(*replies, (line, database))
        return replies[0]

    def test_rules(self):
        for rules in ("db=0,1", "alldbs", "resetdbs", "db=3 db=5", "alldbs db=5", "db=5 alldbs", "db=", "db=16", "db=x", "db=1,", "db=,1",
                      "db=1,,2", "db=-1", "db=3-4", "'db=3, 4'", "db=1,1,1", "DB=3,1,2", "db=99999999999999", "db=2147483648", "db=2147483647",
                      "db=01", "db=+1", "ALLDBS", "dbs=1", "db", "db=1 reset", "'db= 4'", "'db=1 '", "db=0x1", "RESETDBS",
                      "'(+set ~y* db=1)' '(+set ~y*)' '(+set ~y* alldbs)' '(+set ~y* resetdbs)'"):
            self.same("ACL SETUSER user reset on nopass +@all ~* " + rules)
            mine, real = [dict(zip(*[iter(client.call("ACL", "GETUSER", "user"))] * 2)) for client in self.clients]
            self.assertEqual(mine["databases"], real["databases"], rules)
            self.assertEqual(mine["selectors"], real["selectors"], rules)
            self.same("ACL LIST")

    def test_who_may_go_where(self):
        self.same("ACL SETUSER a reset on nopass +@all ~* &* db=0,1")
        for line in ("SELECT 2", "SELECT 1", "SELECT 99", "SELECT x", "SELECT -1", "SELECT 16", "MOVE k 2", "MOVE k 1", "MOVE k 99", "MOVE k x",
                     "COPY k k2 DB 2", "COPY k k2 DB 1", "COPY k k2 DB x", "COPY k k2 DB 99", "COPY k k2 DB 1 DB 2", "COPY k k2 FOO DB 2",
                     "COPY k DB 1", "SWAPDB 0 1", "SWAPDB 0 2", "SWAPDB 2 0", "SWAPDB 0 x", "SWAPDB 0 99", "FLUSHALL", "FLUSHDB", "DBSIZE",
                     "EVAL \"return redis.pcall('select',2)\" 0", "EVAL \"return redis.pcall('set','k',1)\" 0",
                     "EVAL \"return redis.pcall('flushall')\" 0", "EVAL \"return redis.acl_check_cmd('select',2)\" 0",
                     "EVAL \"return redis.acl_check_cmd('select',1)\" 0"):
            self.as_user("a", line)

    def test_who_has_lost_the_database_that_is_selected(self):
        for line in ("GET k", "SET k v", "DBSIZE", "PING", "KEYS *", "SCAN 0", "SELECT 0", "SELECT 3", "PUBLISH a b", "SUBSCRIBE a", "MULTI",
                     "EVAL 'return 1' 0", "FLUSHDB", "FLUSHALL", "RANDOMKEY", "MOVE k 0", "COPY k k2 DB 0", "COPY k k2",
                     "SWAPDB 0 1", "WATCH k", "UNWATCH", "OBJECT ENCODING k", "MEMORY USAGE k", "WAIT 0 0", "FCALL f 0", "FCALL f 1 k", "ECHO x",
                     "ACL WHOAMI", "SPUBLISH a b", "CLUSTER KEYSLOT a", "CLUSTERSCAN 0", "DUMP k", "GETX", "GET", "SORT k", "EXEC", "PFSELFTEST",
                     "XREAD STREAMS s 0", "MIGRATE 127.0.0.1 1 k 1 10", "FUNCTION FLUSH", "FUNCTION LIST", "SCRIPT EXISTS x", "TYPE k",
                     "CLIENT TRACKING on"):
            self.same("ACL SETUSER a reset on nopass +@all ~* &* alldbs")
            self.as_user("a", line, database=2, rules_then="db=0,1")

    def test_transactions_and_scripts(self):
        self.same("ACL SETUSER a reset on nopass +@all ~* &* db=1,2")
        for lines in (("MULTI", "SELECT 1", "GET k", "EXEC"), ("MULTI", "SELECT 3", "EXEC"), ("SELECT 1", "MULTI", "SELECT 2", "GET k", "EXEC"),
                      ("GET k", "SELECT 1", "EVAL \"redis.call('select',2) return redis.call('get','k')\" 0")):
            others = [self.connect(server) for server in self.servers]
            for line in ("AUTH a x",) + lines:
                self.same(line, others)

    def test_who_waits_when_the_rules_change(self):
        others = [self.connect(server) for server in self.servers]
        self.same("ACL SETUSER a reset on nopass +@all ~* &* alldbs")
        for line in ("AUTH a x", "SELECT 3"):
            self.same(line, others)
        for other, client in zip(others, self.clients):
            other.send("BLPOP", "q", "0")
            self.eventually(lambda client=client: "blocked_clients:1" in client.call("INFO", "clients"))
        for line in ("ACL SETUSER a db=1", "SELECT 3", "RPUSH q v"):
            self.same(line)
        self.assertEqual(*[other.read() for other in others])
        self.same("LLEN q")

    def test_dry_runs_and_the_log(self):
        self.same("ACL SETUSER a reset on nopass +@all ~* &* db=0,1")
        self.same("ACL SETUSER c reset on nopass +@all ~* resetdbs")
        self.same("ACL SETUSER g reset on nopass (+@all ~* db=0) (+set ~y* db=1) (+select ~y* db=1,2)")
        self.same("ACL SETUSER u reset on nopass +get resetdbs")
        self.same("ACL SETUSER w reset on nopass +@all ~* db=" + ",".join(map(str, range(16))))
        for line in ("a CLUSTER FLUSHSLOT 0", "w FLUSHALL", "w CLUSTER FLUSHSLOT 0", "a SELECT 2", "a GET k", "a SWAPDB 1 2", "a COPY a b DB 3", "a MOVE k 3", "a FLUSHALL", "c GET k", "c PING", "c DBSIZE",
                     "c SELECT 0", "g SELECT 3", "g SET y 1", "g FLUSHALL", "g COPY a b DB 1", "u SELECT 5", "u SWAPDB 1 9", "u SET k v",
                     "u MOVE k 99", "u EVAL x 0", "u CLUSTER FLUSHSLOT 0", "u CLUSTER MIGRATESLOTS SLOTSRANGE 0 0 NODE a",
                     "u CLUSTER CANCELSLOTMIGRATIONS", "u CLUSTER COUNTKEYSINSLOT 1"):
            self.same("ACL DRYRUN " + line)
        for line in ("SELECT 2", "SELECT 3", "FLUSHALL", "COPY a b DB 4", "EVAL \"return redis.pcall('select','2')\" 0"):
            self.as_user("a", line)
        logs = [[{name: entry[name] for name in ("count", "reason", "context", "object", "username")}
                 for entry in (dict(zip(*[iter(each)] * 2)) for each in client.call("ACL", "LOG"))] for client in self.clients]
        self.assertEqual(*logs)
        self.assertEqual(logs[0][0]["reason"], "database")
        denied = [[line for line in client.call("INFO", "stats").splitlines() if line.startswith("acl_access_denied_db")] for client in self.clients]
        self.assertEqual(*denied)


class WithoutEmulation(harness.ServerTestCase):
    def test_only_restricted_users_show_databases(self):
        client = self.connect()
        client.call("ACL", "SETUSER", "free", "on", "+@all")
        client.call("ACL", "SETUSER", "bound", "on", "+@all", "db=1")
        self.assertNotIn("databases", client.call("ACL", "GETUSER", "free"))
        self.assertIn("databases", client.call("ACL", "GETUSER", "bound"))

    def test_redis_does_not_know_them(self):
        server = harness.Server(emulate="redis 8.6")
        self.addCleanup(server.stop)
        with server.connect() as client:
            self.assertIn("Syntax error", client.error_of("ACL", "SETUSER", "a", "db=1"))
            self.assertIn("unknown command", client.error_of("CLUSTERSCAN", "0"))
            self.assertIn("nknown", client.error_of("CLUSTER", "FLUSHSLOT", "0"))

    def test_one_database_in_a_cluster_as_in_redis(self):
        server = harness.Server(cluster_enabled="yes")
        self.addCleanup(server.stop)
        with server.connect() as client:
            self.assertEqual(client.error_of("SELECT", "1"), "ERR SELECT is not allowed in cluster mode")
            client.call("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
            harness.ServerTestCase.eventually(self, lambda: "cluster_state:ok" in client.call("CLUSTER", "INFO"))
            self.assertEqual(client.error_of("MOVE", "k", "1"), "ERR MOVE is not allowed in cluster mode")


def jobs(client):
    return [dict(zip(job[::2], job[1::2])) for job in client.call("CLUSTER", "GETSLOTMIGRATIONS")]


@needs_valkey
class Migrations(SlotMigrationTestCase):
    """CLUSTER MIGRATESLOTS between nodes of both products."""

    def nodes_of(self, *products):
        """Masters of a half of the slots each."""
        self.servers = []
        for program, own in products:
            server = harness.Server(program, cluster_enabled="yes", cluster_node_timeout=1000, cluster_databases="4", enable_debug_command="yes",
                                    repl_diskless_sync_delay="0", **own)
            self.addCleanup(server.stop)
            self.servers.append(server)
        for server, (first, last) in zip(self.servers, ((0, 8191), (8192, 16383))):
            with server.connect() as client:
                client.call("CLUSTER", "ADDSLOTSRANGE", first, last)
        with self.servers[0].connect() as client:
            client.call("CLUSTER", "SET-CONFIG-EPOCH", "1")
            client.call("CLUSTER", "MEET", "127.0.0.1", self.servers[1].port)
        self.wait_until_up(self.servers)
        return self.servers

    def ended(self, server, count=1):
        """The newest of so many jobs, when it has ended."""
        with server.connect() as client:
            self.eventually(lambda: len(jobs(client)) == count and jobs(client)[0]["state"] in ("success", "failed", "cancelled"), "the end of the job")
            return jobs(client)[0]

    def fill_databases(self, server):
        """Keys of every type, in two databases, in slots 0 and 1; what TYPE and DUMP tell of them."""
        with server.connect() as client:
            for database in (0, 3):
                client.call("SELECT", database)
                for tag in ("{06S}", "{Qi}"):
                    client.call("SET", tag + "string", "v" * (10 + database))
                    client.call("SET", tag + "volatile", "1", "EX", "10000")
                    client.call("RPUSH", tag + "list", *range(200))
                    client.call("SADD", tag + "set", *["member:%d" % i for i in range(300)])
                    client.call("ZADD", tag + "zset", *[word for i in range(200) for word in (i, "m%d" % i)])
                    client.call("HSET", tag + "hash", *[word for i in range(200) for word in ("f%d" % i, i)])
                    client.call("XADD", tag + "stream", "1-1", "f", "v")
        return self.contents(server)

    def contents(self, server):
        found = {}
        with server.connect() as client:
            for database in (0, 3):
                client.call("SELECT", database)
                for slot in (0, 1):
                    for key in client.call("CLUSTER", "GETKEYSINSLOT", slot, "1000"):
                        kind = client.call("TYPE", key)
                        read = {"string": ("GET", key), "list": ("LRANGE", key, "0", "-1"), "set": ("SMEMBERS", key), "hash": ("HGETALL", key),
                                "zset": ("ZRANGE", key, "0", "-1", "WITHSCORES"), "stream": ("XRANGE", key, "-", "+")}[kind]
                        value = client.call(*read)
                        found[database, key] = (kind, sorted(value) if kind in ("set", "hash") else value, client.call("TTL", key) > 0)
        return found

    def check(self, *products):
        source, target = self.nodes_of(*products)
        before = self.fill_databases(source)
        self.assertEqual(len(before), 28)
        writers = self.write_to([source, target], slots=(0, 1))
        with source.connect() as client:
            self.assertEqual(client.call("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", "0", "1", "101", "101", "NODE", self.identity(target)), "OK")
        for server, operation in ((source, "EXPORT"), (target, "IMPORT")):
            job = self.ended(server)
            self.assertEqual((job["operation"], job["slot_ranges"], job["state"], job["message"]), (operation, "0-1 101-101", "success", ""))
        self.eventually(lambda: self.owner(0, seen_by=source)[:2] and self.slots_of(source) == 8189, "the new owner")
        self.check_no_loss(writers, [source, target])
        after = self.contents(target)
        self.assertEqual({key: after[key] for key in before}, before)
        self.eventually(lambda: self.contents(source) == {}, "the deletion of what has gone")
        # And back, which the other one sends.
        with target.connect() as client:
            self.assertEqual(client.call("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", "0", "1", "NODE", self.identity(source)), "OK")
        self.assertEqual(self.ended(target, 2)["state"], "success")
        self.eventually(lambda: {key: self.contents(source).get(key) for key in before} == before, "the way back")

    def test_between_two_nodes(self):
        self.check(PRODUCTS[0], PRODUCTS[0])

    def test_without_emulation(self):
        self.check((None, {}), (None, {}))

    def test_addresses_for_clients(self):
        """A node of each product, which both tell each other and their clients."""
        for kinds in (PRODUCTS, (PRODUCTS[0], PRODUCTS[0]), ((None, {}), (None, {}))):
            nodes = [harness.Server(program, cluster_enabled="yes", bind=["127.0.0.1", "::1"], **own) for program, own in kinds]
            self.servers = nodes
            for node in nodes:
                self.addCleanup(node.stop)
            self.cluster("create", *map(self.place, nodes), "--cluster-replicas", 0, check=False)
            with nodes[0].connect() as client:
                client.call("CLUSTER", "MEET", "127.0.0.1", nodes[1].port)
            for number, node in enumerate(nodes):
                with node.connect() as client:
                    client.call("CLUSTER", "ADDSLOTSRANGE", *((0, 8191), (8192, 16383))[number])
            self.wait_until_up(nodes)
            for number, node in enumerate(nodes):
                with node.connect() as client:
                    for family, wrong in (("4", "::1"), ("6", "127.0.0.1")):
                        self.assertIn(f"Invalid IPv{family} address",
                                      client.error_of("CONFIG", "SET", "cluster-announce-client-ipv" + family, wrong))
                    client.call("CONFIG", "SET", "cluster-announce-client-ipv4", f"203.0.113.{number}")
                    client.call("CONFIG", "SET", "cluster-announce-client-ipv6", f"2001:db8::{number}")
            for host, prefix in (("127.0.0.1", "203.0.113."), ("::1", "2001:db8::")):
                for number, node in enumerate(nodes):
                    with node.connect(host) as client:
                        self.eventually(lambda c=client, p=prefix: c.call("CLUSTER", "NODES").count(p) == 2, "the addresses")
                        other = nodes[1 - number].port
                        # "foo" is in slot 12182, "bar" in slot 5061.
                        key, slot = (("foo", 12182), ("bar", 5061))[number]
                        self.assertEqual(client.error_of("GET", key), f"MOVED {slot} {prefix}{1 - number}:{other}")
                        shown = {entry[2][0] for entry in client.call("CLUSTER", "SLOTS")}
                        self.assertEqual(shown, {prefix + "0", prefix + "1"})
            for node in nodes:
                with node.connect() as client:
                    client.call("CONFIG", "SET", "cluster-announce-client-ipv4", "")
            with nodes[0].connect() as client:
                self.eventually(lambda c=client: c.call("CLUSTER", "NODES").count("127.0.0.1:") == 2, "the old addresses")

    def test_ports_and_zones_for_clients(self):
        """A node of each product, which both tell each other and their clients."""
        for kinds in (PRODUCTS, (PRODUCTS[0], PRODUCTS[0]), ((None, {}), (None, {}))):
            nodes = self.nodes_of(*kinds)
            for number, node in enumerate(nodes):
                with node.connect() as client:
                    client.call("CONFIG", "SET", "cluster-announce-client-port", str(6400 + number))
                    client.call("CONFIG", "SET", "availability-zone", f"zone-{number}")
            for number, node in enumerate(nodes):
                with node.connect() as client:
                    for request in ("SLOTS", "SHARDS"):
                        self.eventually(lambda c=client, r=request: all(
                            word in str(c.call("CLUSTER", r)) for word in ("6400", "6401", "zone-0", "zone-1")), "what is announced")
                    lines = sorted(line.split("@")[0].split(":")[1] for line in client.call("CLUSTER", "NODES").splitlines())
                    self.assertEqual(lines, ["6400", "6401"])
                    key, slot = (("foo", 12182), ("bar", 5061))[number]
                    self.assertEqual(client.error_of("GET", key), f"MOVED {slot} 127.0.0.1:{6401 - number}")
            for node in nodes:
                with node.connect() as client:
                    client.call("CONFIG", "SET", "cluster-announce-client-port", "0")
                    client.call("CONFIG", "SET", "availability-zone", "")
            with nodes[0].connect() as client:
                self.eventually(lambda c=client: "zone" not in str(c.call("CLUSTER", "SLOTS")), "no zone")

    def test_to_valkey_and_back(self):
        self.check(PRODUCTS[0], PRODUCTS[1])

    def test_from_valkey_and_back(self):
        self.check(PRODUCTS[1], PRODUCTS[0])

    def test_redis_form_moves_all_databases(self):
        source, target = self.nodes_of((None, {}), (None, {}))
        before = self.fill_databases(source)
        with target.connect() as client:
            client.call("CLUSTER", "MIGRATION", "IMPORT", "0", "1")
        self.eventually(lambda: {key: self.contents(target).get(key) for key in before} == before, "the keys")
        self.eventually(lambda: self.contents(source) == {}, "the deletion of what has gone")

    def test_a_replica_that_swaps_its_dataset_in_knows_the_keys_of_slots(self):
        source, _ = self.nodes_of((None, {}), (None, {}))
        with source.connect() as client:
            for i in range(20):
                client.call("SET", "{06S}%d" % i, "v")
        replica = self.add_replica(source, cluster_databases="4", repl_diskless_load="swapdb")
        with replica.connect() as reader:
            reader.call("READONLY")
            self.eventually(lambda: reader.call("DBSIZE") == 20, "the keys")
            self.assertEqual(reader.call("CLUSTER", "COUNTKEYSINSLOT", "0"), 20)

    def test_errors(self):
        replies = []
        for program, own in PRODUCTS:
            source, target = self.nodes_of((program, own), (program, own))
            mine, other = self.identity(source), self.identity(target)
            said = []
            with source.connect() as client:
                for line in ("", "SLOTSRANGE 0 1", "SLOTSRANGE 10 NODE OTHER", "SLOTSRANGE 10 11 NODE", "SLOTSRANGE NODE OTHER", "FOO 0 1 NODE x", "SLOTSRANGE 10 11 NODE x", "SLOTSRANGE 10 11 NODE " + "a" * 40,
                             "SLOTSRANGE 10 11 NODE MINE", "SLOTSRANGE 11 10 NODE OTHER", "SLOTSRANGE 10 99999 NODE OTHER",
                             "SLOTSRANGE x 10 NODE OTHER", "SLOTSRANGE 10 11 11 12 NODE OTHER", "SLOTSRANGE 16000 16000 NODE OTHER", "SLOTSRANGE 8191 8192 NODE OTHER",
                             "SLOTSRANGE 10 11 NODE OTHER SLOTSRANGE 11 11 NODE OTHER", "SLOTSRANGE 10 11 NODE OTHER FOO", "SLOTSRANGE 10 11 12 NODE OTHER", "SLOTSRANGE 99999 5 NODE OTHER", "SLOTSRANGE -1 5 NODE OTHER"):
                    said.append(ask(client, "CLUSTER MIGRATESLOTS " + line.replace("MINE", mine).replace("OTHER", other)).replace(mine, "MINE"))
                for line in ("CANCELSLOTMIGRATIONS", "GETSLOTMIGRATIONS", "GETSLOTMIGRATIONS x", "SYNCSLOTS FOO", "SYNCSLOTS", "SYNCSLOTS ACK",
                             "SYNCSLOTS ESTABLISH", "SYNCSLOTS ESTABLISH SOURCE x NAME y SLOTSRANGE 1 1", "SYNCSLOTS FINISH", "SYNCSLOTS PAUSED",
                             "SYNCSLOTS SNAPSHOT-EOF", "SYNCSLOTS ESTABLISH SOURCE OTHER NAME %s SLOTSRANGE 20 20" % ("b" * 40),
                             "SYNCSLOTS ESTABLISH SOURCE OTHER NAME %s SLOTSRANGE 9000 9000" % ("b" * 39),
                             "SYNCSLOTS ESTABLISH SOURCE OTHER NAME %s" % ("b" * 40),
                             "SYNCSLOTS ESTABLISH SOURCE OTHER NAME %s SLOTSRANGE 6000 5999" % ("b" * 40),
                             "SYNCSLOTS ESTABLISH SOURCE MINE NAME %s SLOTSRANGE 6000 6000" % ("b" * 40),
                             "SYNCSLOTS ESTABLISH SOURCE %s NAME %s SLOTSRANGE 6000 6000" % ("c" * 40, "b" * 40),
                             "SYNCSLOTS FINISH NAME %s STATE SUCCESS" % ("b" * 40), "SETSLOT 30 MIGRATING OTHER",
                             "MIGRATESLOTS SLOTSRANGE 10 11 NODE OTHER", "SETSLOT 30 STABLE"):
                    said.append(ask(client, "CLUSTER " + line.replace("MINE", mine).replace("OTHER", other)))
            replies.append(said)
        for mine, real in zip(*replies):
            self.assertEqual(mine, real)

    def begin_slowly(self, *products):
        """A migration of slot 0, whose snapshot takes its time."""
        source, target = self.nodes_of(*products)
        with source.connect() as client:
            for i in range(20):
                client.call("SET", "{06S}%d" % i, "v")
            client.call("CONFIG", "SET", "rdb-key-save-delay", "200000")
            client.call("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", "0", "0", "NODE", self.identity(target))
            self.eventually(lambda: jobs(client)[0]["state"] == "snapshotting", "the snapshot")
        return source, target

    def check_nothing_came(self, source, target):
        with target.connect() as client, source.connect() as other:
            self.eventually(lambda: client.call("CLUSTER", "COUNTKEYSINSLOT", "0") == 0 and client.call("DBSIZE") == 0, "the deletion")
            self.assertEqual(other.call("SET", "{06S}0", "w"), "OK")

    def test_a_cancelled_migration_leaves_nothing_behind(self):
        for products in ((PRODUCTS[0],) * 2, PRODUCTS, PRODUCTS[::-1]):
            source, target = self.begin_slowly(*products)
            with target.connect() as client:
                self.assertEqual(client.error_of("CLUSTER", "CANCELSLOTMIGRATIONS"), "ERR No migrations ongoing")
                self.assertEqual(client.error_of("CLUSTER", "SETSLOT", "0", "IMPORTING", self.identity(source)), "ERR Slot import in progress.")
            with source.connect() as client:
                self.assertEqual(client.error_of("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", "0", "0", "NODE", self.identity(target)),
                                 "ERR I am already migrating slot 0.")
                self.assertEqual(client.error_of("CLUSTER", "SETSLOT", "0", "MIGRATING", self.identity(target)), "ERR Slot export in progress.")
                self.assertEqual(client.call("CLUSTER", "CANCELSLOTMIGRATIONS"), "OK")
            self.assertEqual([self.ended(source)[field] for field in ("state", "message")], ["cancelled", ""])
            self.assertEqual([self.ended(target)[field] for field in ("state", "message")],
                             ["failed", "Connection lost to source. Check CLUSTER GETSLOTMIGRATIONS on the source node for more information."])
            self.check_nothing_came(source, target)

    def test_a_flush_ends_it(self):
        for flushed in (0, 1):
            pair = self.begin_slowly(PRODUCTS[0], PRODUCTS[0])
            with pair[flushed].connect() as client:
                client.call("FLUSHALL")
            self.assertEqual([self.ended(pair[flushed])[field] for field in ("state", "message")], ["failed", "Data was flushed"])
            self.assertEqual(self.ended(pair[1 - flushed])["state"], "failed")
            self.check_nothing_came(*pair)

    def test_what_debug_holds_back(self):
        """Writes go on while the pause is held back, and the source serves while the target may not take the slots."""
        source, target = self.nodes_of(PRODUCTS[0], PRODUCTS[0])
        with source.connect() as client, target.connect() as other:
            client.call("DEBUG", "SLOTMIGRATION", "PREVENT-PAUSE", "1")
            other.call("DEBUG", "SLOTMIGRATION", "PREVENT-FAILOVER", "1")
            client.call("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", "0", "0", "NODE", self.identity(target))
            self.eventually(lambda: [job["state"] for job in jobs(client)] == ["waiting-to-pause"], "the end of the snapshot")
            self.assertEqual(client.call("SET", "{06S}a", "1"), "OK")
            client.call("DEBUG", "SLOTMIGRATION", "PREVENT-PAUSE", "0")
            self.eventually(lambda: [job["state"] for job in jobs(other)] == ["failover-granted"], "the grant")
            self.assertEqual(client.call("GET", "{06S}a"), "1")
            other.call("DEBUG", "SLOTMIGRATION", "PREVENT-FAILOVER", "0")
            self.eventually(lambda: [job["state"] for job in jobs(client)] == ["success"], "the end")
            self.eventually(lambda: other.call("GET", "{06S}a") == "1", "the key")

    def begin_and_hold(self):
        """A migration of slot 0 whose writes are sent on as they come, until it is let go."""
        source, target = self.nodes_of(PRODUCTS[0], PRODUCTS[0])
        with source.connect() as client:
            client.call("DEBUG", "SLOTMIGRATION", "PREVENT-PAUSE", "1")
            client.call("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", "0", "0", "NODE", self.identity(target))
            self.eventually(lambda: jobs(client)[0]["state"] == "waiting-to-pause", "the end of the snapshot")
        return source, target

    def test_the_target_is_out_of_memory(self):
        """Whatever may be evicted later, as in Valkey: what is imported may not."""
        source, target = self.begin_and_hold()
        with source.connect() as client, target.connect() as other:
            other.call("CONFIG", "SET", "maxmemory-policy", "allkeys-lru", "maxmemory", "1")
            client.call("SET", "{06S}a", "1")
            self.assertIn("OOM", self.ended(target)["message"])
            self.assertIn("Connection lost to target", self.ended(source)["message"])
            other.call("CONFIG", "SET", "maxmemory", "0")
        self.check_nothing_came(source, target)

    def test_a_target_that_does_not_read(self):
        """What waits for it does not have keys evicted, and ends the migration where it is too much."""
        source, target = self.begin_and_hold()
        target.process.send_signal(signal.SIGSTOP)
        try:
            with source.connect() as client:
                for i in range(20):
                    client.call("SET", "{06S}a", "v" * 1_000_000)
                not_counted = dict(line.split(":", 1) for line in client.call("INFO", "memory").splitlines() if ":" in line)["mem_not_counted_for_evict"]
                self.assertGreater(int(not_counted), 10_000_000)
                client.call("CONFIG", "SET", "client-output-buffer-limit", "replica 1mb 0 0")
                self.assertIn("Connection lost to target", self.ended(source)["message"])
        finally:
            target.process.send_signal(signal.SIGCONT)
        self.assertEqual(self.ended(target)["state"], "failed")

    def test_the_target_restarts_with_what_it_had_saved(self):
        """Its file says what is imported, so that it is deleted, and not taken for a move by hand that was left over."""
        source, target = self.begin_and_hold()
        with source.connect() as client:
            for i in range(20):
                client.call("SET", "{06S}%d" % i, "v")
            with target.connect() as other:
                self.eventually(lambda: other.call("CLUSTER", "COUNTKEYSINSLOT", "0") == 20, "the keys")
                other.call("SET", "{4oi}own", "v")
                other.call("SAVE")
            target.process.kill()
            target.process.wait()
            target.start()
            self.assertEqual(self.ended(source)["state"], "failed")
            with target.connect() as other:
                self.eventually(lambda: other.call("CLUSTER", "COUNTKEYSINSLOT", "0") == 0, "the deletion of what came")
                self.assertEqual(other.call("DBSIZE"), 1)
                self.assertNotIn("[0-", other.call("CLUSTER", "NODES"))
                self.assertEqual([job["state"] for job in jobs(other)], ["failed"])
            self.assertEqual(client.call("CLUSTER", "COUNTKEYSINSLOT", "0"), 20)

    def flagged(self, server, letter):
        with server.connect() as client:
            listed = [dict(field.split("=", 1) for field in line.split()) for line in client.call("CLIENT", "LIST").splitlines()]
        return [each for each in listed if letter in each["flags"]]

    def test_clients_that_slots_move_by(self):
        """CLIENT LIST shows them at both ends, as Valkey does, and CLIENT KILL ends the migration."""
        for products in ((PRODUCTS[0],) * 2, PRODUCTS, PRODUCTS[::-1]):
            source, target = self.begin_slowly(*products)
            seen = [[len(self.flagged(server, letter)) for letter in "Ei"] for server in (source, target)]
            self.assertEqual(seen, [[1, 0], [0, 1]])
            with source.connect() as client:
                self.assertEqual(client.call("CLIENT", "KILL", "ID", self.flagged(source, "E")[0]["id"]), 1)
            for server, state in ((source, "failed"), (target, "failed")):
                self.assertEqual(self.ended(server)["state"], state)
            self.eventually(lambda: not self.flagged(source, "E") and not self.flagged(target, "i"), "the end of the clients")
            self.check_nothing_came(source, target)

    def test_the_target_is_killed(self):
        source, target = self.begin_slowly(PRODUCTS[0], PRODUCTS[0])
        target.process.kill()
        target.process.wait()
        target.process = None
        self.assertEqual([self.ended(source)[field] for field in ("state", "message")],
                         ["failed", "Connection lost to target. Check CLUSTER GETSLOTMIGRATIONS on the target node for more information."])

    def test_replicas_of_the_target(self):
        """They hide what is imported, have it when it is served, and drop what came in vain."""
        for own, emulation in (({"emulate": "valkey 9.1"}, "valkey"), ({}, "own")):
            source, target = self.nodes_of((None, own), (None, own))
            replica = self.add_replica(target, cluster_databases="4", **own)
            with source.connect() as client, replica.connect() as reader:
                reader.call("READONLY")
                for i in range(20):
                    client.call("SET", "{06S}%d" % i, "v")
                client.call("CONFIG", "SET", "rdb-key-save-delay", "100000")
                client.call("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", "0", "0", "NODE", self.identity(target))
                with target.connect() as other:
                    self.eventually(lambda: [job["state"] for job in jobs(other)] == ["receiving-snapshot"], "the snapshot")
                if emulation == "valkey":
                    self.eventually(lambda: [job["state"] for job in jobs(reader)] == ["occurring-on-primary"], "the replica's job")
                self.assertEqual((reader.call("DBSIZE"), reader.call("KEYS", "*")), (0, []))
                client.call("CLUSTER", "CANCELSLOTMIGRATIONS")
                self.ended(target)
                if emulation == "valkey":
                    self.eventually(lambda: jobs(reader)[0]["state"] == "failed", "the replica's job")
                client.call("CONFIG", "SET", "rdb-key-save-delay", "0")
                self.eventually(lambda: not client.call("INFO", "persistence").count("rdb_bgsave_in_progress:1"), "the child's end")
                client.call("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", "0", "0", "NODE", self.identity(target))
                self.assertEqual(self.ended(target, 2)["state"], "success")
                self.eventually(lambda: reader.call("DBSIZE") == 20, "the replica's keys")

    def test_a_replica_takes_the_targets_place(self):
        """The import has failed then, at both of them, and the former master follows with the keys that its successor has."""
        source, target = self.nodes_of(PRODUCTS[0], PRODUCTS[0])
        replica = self.add_replica(target, cluster_databases="4", emulate="valkey 9.1")
        with source.connect() as client, target.connect() as former, replica.connect() as successor:
            # A replica that does not understand its master ends.
            former.call("CONFIG", "SET", "propagation-error-behavior", "panic")
            for i in range(20):
                client.call("SET", "{06S}%d" % i, "v")
            client.call("DEBUG", "SLOTMIGRATION", "PREVENT-PAUSE", "1")
            client.call("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", "0", "0", "NODE", self.identity(target))
            self.eventually(lambda: [job["state"] for job in jobs(client)] == ["waiting-to-pause"], "the end of the snapshot")
            self.eventually(lambda: successor.call("CLUSTER", "COUNTKEYSINSLOT", "0") == 20, "the replica's keys")
            successor.call("CLUSTER", "FAILOVER")
            for server in (source, target, replica):
                self.assertEqual(self.ended(server)["state"], "failed")
            self.eventually(lambda: self.link_is_up(target), "the former master's link")
            self.eventually(lambda: [each.call("CLUSTER", "COUNTKEYSINSLOT", "0") for each in (client, former, successor)] == [20, 0, 0],
                            "the deletion of what came")
            self.assertEqual(former.call("INFO", "replication").count("role:slave"), 1)

    def test_replicas_of_the_source(self):
        """They are told in words of their release that the keys have gone, and so is the append-only file."""
        for own, program, replica_options in (({"emulate": "valkey 9.1"}, None, {"emulate": "valkey 9.1"}),
                                              ({"emulate": "valkey 9.1"}, VALKEY, {}), ({}, None, {})):
            source, target = self.nodes_of((None, {"appendonly": "yes", **own}), (None, own))
            # A replica that does not understand its master ends, rather than to go on with other data.
            replica = self.add_replica(source, program=program, cluster_databases="4", propagation_error_behavior="panic", **replica_options)
            with source.connect() as client, replica.connect() as reader:
                reader.call("READONLY")
                for i in range(20):
                    client.call("SET", "{06S}%d" % i, "v")
                client.call("SET", "{Qi}stays", "v")
                self.eventually(lambda: reader.call("DBSIZE") == 21, "the replica's keys")
                client.call("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", "0", "0", "NODE", self.identity(target))
                self.assertEqual(self.ended(source)["state"], "success")
                self.eventually(lambda: reader.call("DBSIZE") == 1 and client.call("DBSIZE") == 1, "the deletion of what has gone")
                self.eventually(lambda: reader.call("CLUSTER", "COUNTKEYSINSLOT", "0") == 0, "the same by slots")
                client.call("DEBUG", "LOADAOF")
                self.assertEqual((client.call("DBSIZE"), client.call("CLUSTER", "COUNTKEYSINSLOT", "0")), (1, 0))
                self.assertTrue(self.link_is_up(replica))

    def test_a_replica_that_comes_in_the_middle_knows_what_is_imported(self):
        """The dataset that it gets tells it, in Valkey's form: from each product to each."""
        for target_kind, (replica_program, replica_options) in ((PRODUCTS[0], PRODUCTS[0]), (PRODUCTS[0], PRODUCTS[1]), (PRODUCTS[1], PRODUCTS[0])):
            source, target = self.nodes_of(PRODUCTS[1], target_kind)
            with source.connect() as client, target.connect() as other:
                for i in range(20):
                    client.call("SET", "{06S}%d" % i, "v")
                other.call("DEBUG", "SLOTMIGRATION", "PREVENT-FAILOVER", "1")
                client.call("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", "0", "0", "NODE", self.identity(target))
                self.eventually(lambda: [job["state"] for job in jobs(other)] == ["failover-granted"], "the grant")
                replica = self.add_replica(target, program=replica_program, cluster_databases="4", **replica_options)
                with replica.connect() as reader:
                    reader.call("READONLY")
                    self.assertEqual([job["state"] for job in jobs(reader)], ["occurring-on-primary"])
                    self.assertEqual([job["name"] for job in jobs(reader)], [job["name"] for job in jobs(other)])
                    self.assertEqual(reader.call("KEYS", "*"), [])
                    other.call("DEBUG", "SLOTMIGRATION", "PREVENT-FAILOVER", "0")
                    self.eventually(lambda: jobs(reader)[0]["state"] == "success", "the replica's job")
                    self.eventually(lambda: len(reader.call("KEYS", "*")) == 20, "the replica's keys")

    def test_a_replica_of_valkey_follows_its_imports(self):
        source, target = self.nodes_of(PRODUCTS[1], PRODUCTS[1])
        replica = self.add_replica(target, cluster_databases="4", emulate="valkey 9.1")
        with source.connect() as client, replica.connect() as reader:
            reader.call("READONLY")
            for i in range(20):
                client.call("SET", "{06S}%d" % i, "v")
            client.call("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", "0", "0", "NODE", self.identity(target))
            self.assertEqual(self.ended(target)["state"], "success")
            self.eventually(lambda: reader.call("DBSIZE") == 20, "the replica's keys")
            self.assertEqual([job["state"] for job in jobs(reader)], ["success"])



@needs_valkey
class Leaving(ClusterTestCase):
    """A master that shuts down hands over to a replica first, its own or Valkey's, and one of Valkey's to ours."""

    def nodes_of(self, master, replica):
        programs = ((None, {"emulate": "valkey 9.1"}), (None, {"emulate": "valkey 9.1"}), master, replica)
        self.servers = []
        for program, own in programs:
            server = harness.Server(program, cluster_enabled="yes", cluster_node_timeout=30_000, repl_diskless_sync_delay=0, **own)
            self.addCleanup(server.stop)
            self.servers.append(server)
        self.create(self.servers[:3])
        self.cluster("add-node", self.place(self.servers[3]), self.place(self.servers[0]), "--cluster-slave",
                     "--cluster-master-id", self.identity(self.servers[2]))
        self.wait_until_up(self.servers)
        self.eventually(lambda: self.link_is_up(self.servers[3]), "the link")
        return self.servers

    def check(self, master, replica, how):
        _, other, leaving, successor = self.nodes_of(master, replica)
        name = self.identity(successor)
        with leaving.connect() as client:
            client.call("SET", "foo", "bar")  # in slot 12182
            if how == "signal":
                client.call("CONFIG", "SET", "shutdown-on-sigterm", "failover")
                leaving.process.terminate()
            else:
                client.send("SHUTDOWN", "NOSAVE", "FAILOVER")
            leaving.process.wait(timeout=60)
        # Long before anybody could have missed the master.
        self.eventually(lambda: self.role(successor) == "master", "the handing over")
        with other.connect() as client:
            self.eventually(lambda: any(name in str(entry) for entry in client.call("CLUSTER", "SLOTS")), "the new owner")
        with successor.connect() as client:
            self.assertEqual(client.call("GET", "foo"), "bar")

    def test_by_request(self):
        self.check(PRODUCTS[0], PRODUCTS[0], "request")

    def test_by_signal(self):
        self.check(PRODUCTS[0], PRODUCTS[0], "signal")

    def test_to_valkey(self):
        self.check(PRODUCTS[0], PRODUCTS[1], "request")

    def test_from_valkey(self):
        self.check(PRODUCTS[1], PRODUCTS[0], "request")

    def test_nobody_is_there(self):
        *_, leaving, successor = self.nodes_of(PRODUCTS[0], PRODUCTS[0])
        os.kill(successor.process.pid, signal.SIGSTOP)
        try:
            with leaving.connect() as client:
                client.call("CONFIG", "SET", "shutdown-timeout", "0")
                client.call("SET", "foo", "bar")
                client.send("SHUTDOWN", "NOSAVE", "FAILOVER")
                leaving.process.wait(timeout=60)
        finally:
            os.kill(successor.process.pid, signal.SIGCONT)
        self.assertIn("Unable to find a replica to perform the auto failover on shutdown", leaving.log())


if __name__ == "__main__":
    unittest.main()

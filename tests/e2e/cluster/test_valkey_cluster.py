"""What Valkey 9 alone has of clusters and of users, beside Valkey 9.1 itself: CLUSTERSCAN, CLUSTER FLUSHSLOT, several databases in
a cluster, users who may use some databases only. Skipped where scripts/reference --rival has not brought it."""

import os
import shlex
import unittest

import harness
from test_cluster_nodes import ClusterTestCase

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


if __name__ == "__main__":
    unittest.main()

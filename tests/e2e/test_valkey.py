"""What Valkey alone has, beside Valkey 9.1 itself. Skipped where scripts/reference --rival has not brought it."""

import grp
import os
import re
import signal
import unittest

import harness

REFERENCE = harness.reference("redis-server")
VALKEY = REFERENCE and os.path.join(os.path.dirname(REFERENCE), "valkey-server-rival")


@unittest.skipUnless(VALKEY and os.path.isfile(VALKEY), "Valkey 9.1 is not unpacked")
class BesideValkey(unittest.TestCase):
    def setUp(self):
        self.clients = []
        self.servers = []
        for program, options in ((None, {"emulate": "valkey 9.1"}), (VALKEY, {})):
            server = harness.Server(program, enable_debug_command="yes", **options)
            self.addCleanup(server.stop)
            self.servers.append(server)
            client = server.connect()
            self.addCleanup(client.close)
            self.clients.append(client)

    def same(self, *words):
        """The reply of both, which is the same."""
        replies = []
        for client in self.clients:
            try:
                replies.append(client.call(*words))
            except harness.ReplyError as error:
                replies.append("-" + str(error))
        self.assertEqual(*replies, words)
        return replies[0]

    def test_scans_without_scores(self):
        self.same("ZADD", "z", "1", "a", "2", "b")
        self.same("HSET", "h", "f", "v")
        self.same("SADD", "s", "m")
        self.assertEqual(self.same("ZSCAN", "z", "0", "NOSCORES"), ["0", ["a", "b"]])
        for words in (("HSCAN", "h"), ("SSCAN", "s"), ("ZSCAN", "z")):
            for option in ("NOSCORES", "NOVALUES", "NONSENSE"):
                self.same(*words, "0", option)

    def test_users_of_keys_that_are_stored_to(self):
        """Of several options STORE the last one counts, also for who may write there."""
        self.same("ACL", "SETUSER", "a", "on", "nopass", "+@all", "~geo", "~own")
        for name, rest in (("GEORADIUS", ("13", "38", "500", "km")), ("GEORADIUSBYMEMBER", ("m", "500", "km"))):
            for options in (("STORE", "own"), ("STORE", "other"), ("STORE", "own", "STORE", "other"), ("STORE", "other", "STOREDIST", "own"),
                            ("STOREDIST", "own", "STORE", "other"), ("COUNT", "1", "STORE", "own", "STOREDIST", "other")):
                self.same("ACL", "DRYRUN", "a", name, "geo", *rest, *options)

    def test_client_filters(self):
        for client in self.clients:
            client.call("CLIENT", "SETNAME", "one")
            client.call("CLIENT", "SETINFO", "LIB-NAME", "library")
        def count(*words):
            listed = self.same_lines("CLIENT", "LIST", *words)
            return listed if isinstance(listed, str) else len(listed)
        for words, expected in ((["NAME", "one"], 1), (["NAME", "two"], 0), (["NOT-NAME", "one"], 0), (["FLAGS", "N"], 1), (["FLAGS", ""], 1),
                                (["NOT-FLAGS", "P"], 1), (["FLAGS", "P", "FLAGS", "N"], 1), (["LIB-NAME", "library"], 1),
                                (["LIB-VER", ""], 0), (["NOT-LIB-VER", "1"], 1), (["DB", "0"], 1), (["NOT-DB", "0"], 0),
                                (["CAPA", "r"], 0), (["NOT-CAPA", "r"], 1), (["IP", "127.0.0.1"], 1), (["NOT-IP", "127.0.0.1"], 0),
                                (["IDLE", "1000"], 0), (["NOT-USER", "default"], 0), (["NOT-TYPE", "normal"], 0), (["TYPE", "primary"], 0),
                                (["NOT-ID", "123456", "NOT-ADDR", "x", "NOT-LADDR", "y"], 1)):
            self.assertEqual(count(*words), expected, words)
        for words in (["FLAGS", "zz"], ["CAPA", "q"], ["DB", "16"], ["DB", "x"], ["IDLE", "0"], ["IDLE", "x"], ["NOT-IDLE", "5"],
                      ["NOT-MAXAGE", "5"], ["NOT-SKIPME", "yes"], ["NOT-USER", "nobody"], ["NOT-", "x"], ["NAME"]):
            self.assertIn("ERR", count(*words))
        self.same("CLIENT", "KILL", "NAME", "two")
        self.same("CLIENT", "KILL", "FLAGS", "zz")
        self.assertEqual(self.same("CLIENT", "KILL", "NAME", "one", "SKIPME", "NO"), 1)

    def test_input_in_the_buffer_that_clients_share_is_not_counted(self):
        def counted(client, client_id):
            line = client.call("CLIENT", "LIST", "ID", client_id)
            return re.search(r" qbuf=(\d+) ", line)[1], re.search(r" qbuf-free=(\d+) ", line)[1] != "0"
        for server, client in zip(self.servers, self.clients):
            own = client.call("CLIENT", "ID")
            self.assertEqual(counted(client, own), ("0", False))
            other = server.connect()
            self.addCleanup(other.close)
            other_id = other.call("CLIENT", "ID")
            self.assertEqual(counted(client, other_id), ("0", False))
            other.send_raw(b"*1\r\n$200000\r\n" + b"x" * 199999)
            harness.ServerTestCase.eventually(self, lambda c=client, i=other_id: counted(c, i) == ("199999", True))

    def same_lines(self, *words):
        """The lines of CLIENT LIST, of which there are as many in both; or the error, which is the same."""
        replies = []
        for client in self.clients:
            try:
                replies.append(client.call(*words).splitlines())
            except harness.ReplyError as error:
                replies.append(str(error))
        if isinstance(replies[0], str):
            self.assertEqual(*replies, words)
        else:
            self.assertEqual(*map(len, replies), words)
        return replies[0]

    def test_formats_of_the_log(self):
        for client in self.clients:
            client.call("CONFIG", "SET", "loglevel", "debug")
        for time_format in ("legacy", "iso8601", "milliseconds"):
            for line_format in ("legacy", "logfmt", "json"):
                self.same("CONFIG", "SET", "log-format", line_format, "log-timestamp-format", time_format)
                words = 'a "quoted" \\ word,\ttab, end\x01 of ' + line_format + time_format
                if line_format == "legacy":
                    words = line_format + time_format
                self.same("DEBUG", "LOG", words)
        for name, wrong in (("log-format", "xml"), ("log-timestamp-format", "sundial")):
            self.same("CONFIG", "SET", name, wrong)
        logs = [self.shapes_of(server) for server in self.servers]
        self.assertEqual(len(logs[0]), 9)
        self.assertEqual(*logs)

    @staticmethod
    def shapes_of(server):
        """The lines of DEBUG LOG in a server's log, without what differs from time to time."""
        lines = [line for line in server.log().splitlines() if "DEBUG LOG: " in line]
        lines = [re.sub(r"[A-Z][a-z]{2} \d{4}", "Mon 2026", re.sub(r"^(\d+:|pid=\d+|\{.pid.:\d+)", "PID", line)) for line in lines]
        return [re.sub(r"\d", "9", line) for line in lines]

    def test_the_name_in_hello(self):
        def name():
            return self.clients[0].call("HELLO")[1], self.clients[1].call("HELLO")[1]
        self.assertEqual(name(), ("valkey", "valkey"))
        self.same("CONFIG", "SET", "extended-redis-compatibility", "yes")
        self.assertEqual(name(), ("redis", "redis"))
        self.assertEqual(self.clients[0].call("HELLO")[3], self.clients[1].call("HELLO")[3])

    def test_other_names_of_directives(self):
        self.same("CONFIG", "SET", "primaryauth", "secret", "primaryuser", "somebody")
        self.same("CONFIG", "GET", "masterauth")
        self.same("CONFIG", "GET", "primaryuser")
        for name, wrong in (("cluster-manual-failover-timeout", "0"), ("unixsocketgroup", "staff")):
            self.same("CONFIG", "SET", name, wrong)

    def test_the_group_of_the_unix_socket(self):
        directory = harness.tempfile.mkdtemp(prefix="latchkey-e2e-")
        self.addCleanup(harness.shutil.rmtree, directory)
        path = os.path.join(directory, "socket")
        mine = grp.getgrgid(os.getgid()).gr_name
        server = harness.Server(unixsocket=path, unixsocketgroup=mine, unixsocketperm="770")
        self.addCleanup(server.stop)
        self.assertEqual(os.stat(path).st_gid, os.getgid())
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o770)
        for program, emulate in ((None, {"emulate": "valkey 9.1"}), (VALKEY, {})):
            with self.assertRaises(Exception) as caught:
                harness.Server(program, unixsocket=path + "2", unixsocketgroup="no-such-group-anywhere", **emulate)
            self.assertIn("Failed opening Unix socket: getgrnam error for group 'no-such-group-anywhere'", str(caught.exception))

    def test_files_and_payloads_with_deadlines_of_fields(self):
        deadline = 2000000000000
        for client in self.clients:
            client.call("HSET", "h", "f", "v", "g", "w")
            client.call("HPEXPIREAT", "h", deadline, "FIELDS", "1", "f")
            client.call("HSET", "plain", "a", "b")
            client.call("SAVE")
        for source, target in ((self.servers[0], self.clients[1]), (self.servers[1], self.clients[0])):
            with source.connect(binary=True) as binary:
                payload = binary.call("DUMP", "h")
            target.call("RESTORE", "copy", "0", payload, "REPLACE")
            self.assertEqual(target.call("HPEXPIRETIME", "copy", "FIELDS", "2", "f", "g"), [deadline, -1])
        for source, program, options in ((self.servers[0], VALKEY, {}), (self.servers[1], None, {"emulate": "valkey 9.1"}), (self.servers[1], None, {})):
            directory = harness.tempfile.mkdtemp(prefix="latchkey-e2e-")
            self.addCleanup(harness.shutil.rmtree, directory)
            harness.shutil.copy(os.path.join(source.directory, "dump.rdb"), directory)
            copy = harness.Server(program, dir=directory, **options)
            self.addCleanup(copy.stop)
            with copy.connect() as client:
                self.assertEqual(client.call("HPEXPIRETIME", "h", "FIELDS", "2", "f", "g"), [deadline, -1])
                self.assertEqual(client.call("HGETALL", "plain"), ["a", "b"])

    def test_hashes_whose_deadlines_are_gone_or_later_than_ours(self):
        far, latest = 9999999999999000, 2**46 - 1
        self.same("HSET", "gone", "f", "v", "g", "w")
        self.same("HPEXPIREAT", "gone", 2000000000000, "FIELDS", "1", "f")
        self.same("HPERSIST", "gone", "FIELDS", "1", "f")
        self.same("HSET", "far", "f", "v")
        self.assertEqual(self.same("HPEXPIREAT", "far", far, "FIELDS", "1", "f"), [1])
        for source, target in ((self.servers[0], self.clients[1]), (self.servers[1], self.clients[0])):
            with source.connect(binary=True) as binary:
                for key in ("gone", "far"):
                    self.assertEqual(target.call("RESTORE", "copy of " + key, "0", binary.call("DUMP", key)), "OK")
            self.assertEqual(target.call("HMGET", "copy of gone", "f", "g"), ["v", "w"])
        self.assertEqual(self.clients[0].call("HPEXPIRETIME", "copy of far", "FIELDS", "1", "f"), [latest])
        # A replica gets one by the dataset and one by the stream, also if it does not stand for Valkey.
        self.clients[1].call("CONFIG", "SET", "repl-diskless-sync-delay", "0")
        for options in ({"emulate": "valkey 9.1"}, {}):
            follower = harness.Server(**options)
            self.addCleanup(follower.stop)
            with follower.connect() as client:
                self.clients[1].call("DEL", "another")
                self.clients[1].call("HSET", "another", "f", "v")
                client.call("REPLICAOF", "127.0.0.1", self.servers[1].port)
                harness.PatientTestCase.eventually(self, lambda: client.call("HGET", "another", "f") == "v")
                self.clients[1].call("HPEXPIREAT", "another", far, "FIELDS", "1", "f")
                harness.PatientTestCase.eventually(
                    self, lambda: client.call("HPEXPIRETIME", "another", "FIELDS", "1", "f") == [latest])
                self.assertEqual(client.call("HPEXPIRETIME", "far", "FIELDS", "1", "f"), [latest])

    def test_numbers_are_decimal(self):
        for words in (("ZADD", "z", "0x1A", "a"), ("ZADD", "z", "inf", "a"), ("ZINCRBY", "z", "0X1", "a"),
                      ("GEOADD", "places", "0x1", "2", "a"), ("GEOSEARCH", "places", "FROMLONLAT", "1", "1", "BYRADIUS", "0x1", "km")):
            self.same(*words)

    def test_the_words_of_errors(self):
        for code in ("return redis.call('nosuch')", "return server.call('nosuch')", "return redis.call('get')", "return redis.acl_check_cmd('nosuch')",
                     "return server.acl_check_cmd()", "return redis.acl_check_cmd('get')", "return redis.call({})", "return redis.pcall()",
                     "return redis.log(1)", "return redis.set_repl()", "return server.setresp()"):
            self.same("EVAL", code, "0")
        for call in ("f()", "f('x')", "f(1, {})", "f({}, function() end)", "f{function_name={}}", "f{callback=1}",
                     "f{description={}}", "f{z=1}", "f{callback=function() end}", "f{function_name='x'}",
                     "f{function_name='x', callback=function() end, flags=1}"):
            self.same("FUNCTION", "LOAD", "REPLACE", "#!lua name=l\nlocal f = server.register_function\n" + call)
        self.same("XREAD", "STREAMS", "a", "b", "1")
        for words in (["LIST", "ID", "x"], ["LIST", "ID", "1", "x"]):
            self.same("CLIENT", *words)

    def test_scans(self):
        self.same("ZADD", "z", "1", "a", "2", "b")
        for words in (["ZSCAN", "z", "0", "NOSCORES"], ["ZSCAN", "z", "0", "NOSCORES", "COUNT", "1"], ["ZSCAN", "z", "0", "NOVALUES"],
                      ["HSCAN", "h", "0", "NOSCORES"], ["SCAN", "0", "TYPE", "zset"], ["SCAN", "0", "TYPE", "nosuch"]):
            self.same(*words)

    def test_a_key_with_a_deadline_in_the_past_expires(self):
        def expired():
            return [re.search(r"^expired_keys:(\d+)", client.call("INFO", "stats"), re.M).group(1) for client in self.clients]
        self.same("CONFIG", "SET", "notify-keyspace-events", "KEA")
        listeners = [server.connect() for server in self.servers]
        for listener in listeners:
            self.addCleanup(listener.close)
            listener.call("PSUBSCRIBE", "__keyevent@0__:*")
        for words in (["EXPIRE", "k", "-1"], ["PEXPIREAT", "k", "1"], ["GETEX", "k", "PXAT", "1"]):
            self.same("SET", "k", "v")
            self.same(*words)
            self.same("EXISTS", "k")
            self.assertEqual(*expired(), words)
        self.same("SET", "end", "v")
        heard = [[], []]
        for listener, events in zip(listeners, heard):
            while not events or events[-1] != ["__keyevent@0__:set", "end"]:
                events.append(listener.read()[2:])
        self.assertEqual(*heard)

    def test_pauses_in_info(self):
        def paused():
            return [re.findall(r"^(paused_reason|paused_actions):(\w+)", client.call("INFO", "clients"), re.M) for client in self.clients]
        self.assertEqual(*paused())
        self.same("CLIENT", "PAUSE", "60000", "WRITE")
        reasons = paused()
        self.assertEqual(*reasons)
        self.assertEqual(reasons[0], [("paused_reason", "client_pause"), ("paused_actions", "write")])
        self.same("CLIENT", "UNPAUSE")
        self.assertEqual(paused()[0][0], ("paused_reason", "none"))

    def test_script_show(self):
        self.assertIn("NOSCRIPT", self.same("SCRIPT", "SHOW", "f" * 40))
        self.same("SCRIPT", "SHOW")
        sha = self.same("SCRIPT", "LOAD", "return 1")
        self.assertEqual(self.same("SCRIPT", "SHOW", sha), "return 1")
        self.assertEqual(self.same("SCRIPT", "SHOW", sha.upper()), "return 1")
        self.same("COMMAND", "INFO", "script|show")
        self.same("COMMAND", "DOCS", "script|show")

    def test_bgsave_cancel(self):
        self.same("SET", "key", "value")
        self.assertIn("not in progress", self.same("BGSAVE", "CANCEL"))
        self.same("BGSAVE", "CANCEL", "CANCEL")
        self.same("CONFIG", "SET", "rdb-key-save-delay", "10000000")
        self.same("BGSAVE")
        self.assertIn("cancelled", self.same("BGSAVE", "CANCEL"))
        for client in self.clients:
            harness.ServerTestCase.eventually(self, lambda: "rdb_bgsave_in_progress:0" in client.call("INFO", "persistence"))
            self.assertIn("rdb_last_bgsave_status:ok", client.call("INFO", "persistence"))
        self.same("BGREWRITEAOF")
        self.same("BGSAVE", "SCHEDULE")
        self.assertIn("cancelled", self.same("BGSAVE", "CANCEL"))
        self.same("BGSAVE", "CANCEL")

    def test_commandlog(self):
        def log(kind):
            """The words of the requests in a log, which are the same, the latest first, and the amounts."""
            entries = [client.call("COMMANDLOG", "GET", "-1", kind) for client in self.clients]
            shown = [[(entry[3], entry[5]) for entry in each] for each in entries]
            self.assertEqual(*shown)
            return [(entry[3], entry[2]) for entry in entries[0]], [entry[2] for entry in entries[1]]

        for directive in ("commandlog-*", "slowlog-*"):
            replies = [sorted(zip(*[iter(client.call("CONFIG", "GET", directive))] * 2)) for client in self.clients]
            self.assertEqual(*replies)
        self.same("CONFIG", "SET", "commandlog-execution-slower-than", "0", "commandlog-request-larger-than", "1000",
                  "commandlog-reply-larger-than", "1000")
        self.same("COMMANDLOG", "RESET", "slow")
        self.same("CLIENT", "SETNAME", "writer")
        self.same("SET", "key", "v" * 1010)
        self.same("GET", "key")
        self.same("EVAL", "return redis.call('GET', 'key')", "0")
        self.same("EVAL", "return redis.call('SET', 'key', string.rep('v', 2000))", "0")
        self.same("MULTI")
        self.same("SET", "key", "w" * 1000)
        # Of replies within EXEC Valkey counts "+QUEUED" as well, so none of them is compared.
        self.same("EXEC")
        self.assertEqual([entry[3] for entry in self.same_slow("PING", 1)], [["PING"]])
        for kind in ("large-request", "large-reply"):
            ours, theirs = log(kind)
            self.assertGreaterEqual(len(ours), 1)
            self.assertEqual([amount for _, amount in ours], theirs)
        for kind in ("slow", "large-request", "large-reply"):
            self.same("COMMANDLOG", "RESET", kind)
        self.same("COMMANDLOG", "LEN", "large-reply")
        for words in (["GET"], ["GET", "1"], ["GET", "a", "slow"], ["GET", "-2", "slow"], ["GET", "1", "none"], ["LEN"], ["LEN", "none"],
                      ["RESET", "none"], ["NONE"]):
            self.same("COMMANDLOG", *words)
        for words in (["commandlog-request-larger-than", "-2"], ["commandlog-large-reply-max-len", "-1"],
                      ["commandlog-execution-slower-than", "-2"], ["slowlog-max-len", "-1"]):
            self.same("CONFIG", "SET", *words)
        self.same("COMMAND", "INFO", "commandlog|get", "commandlog|help", "commandlog|len", "commandlog|reset")
        self.same("COMMAND", "DOCS", "commandlog")

    def same_slow(self, word, count):
        self.same(word)
        return self.clients[0].call("COMMANDLOG", "GET", count, "slow")

    def test_import_mode(self):
        self.same("CLIENT", "IMPORT-SOURCE", "ON")
        self.same("CLIENT", "IMPORT-SOURCE", "NONE")
        self.same("CONFIG", "SET", "import-mode", "yes")
        self.same("SET", "k", "v", "PXAT", "5")
        self.same("SET", "l", "v")
        self.same("PEXPIREAT", "l", "-1")
        self.same("SET", "m", "v")
        self.same("GETEX", "m", "PXAT", "5")
        for words in (["DBSIZE"], ["GET", "k"], ["TTL", "k"], ["EXISTS", "k", "l"], ["CLIENT", "IMPORT-SOURCE", "NONE"]):
            self.same(*words)
        self.same("CLIENT", "IMPORT-SOURCE", "ON")
        for words in (["GET", "k"], ["TTL", "k"], ["PTTL", "l"], ["EXISTS", "k", "l", "m"], ["EVAL", "return redis.call('GET', 'k')", "0"]):
            self.same(*words)
        self.same("MULTI")
        self.same("GET", "k")
        self.same("EXEC")
        for client in self.clients:
            self.assertIn(" flags=I ", client.call("CLIENT", "INFO"))
        self.same("CONFIG", "SET", "import-mode", "no")
        self.same("GET", "k")
        self.same("CLIENT", "IMPORT-SOURCE", "OFF")
        self.same("CLIENT", "IMPORT-SOURCE", "ON")
        for client in self.clients:
            harness.ServerTestCase.eventually(self, lambda: client.call("DBSIZE") == 0)
        self.same("COMMAND", "INFO", "client|import-source")
        self.same("COMMAND", "DOCS", "client|import-source")

    def test_redirection_of_clients(self):
        self.same("CLIENT", "CAPA")
        self.same("CLIENT", "CAPA", "other", "REDIRECT")
        self.same("SET", "k", "v")
        self.same("REPLICAOF", "127.0.0.1", "1")
        for words in (["GET", "k"], ["SET", "k", "v"], ["PING"], ["PUBLISH", "a", "b"], ["EVAL", "return 1", "0"]):
            self.same(*words)
        self.same("MULTI")
        self.assertIn("REDIRECT 127.0.0.1:1", self.same("GET", "k"))
        self.same("EXEC")
        self.same("READONLY")
        self.assertEqual(self.same("GET", "k"), "v")
        self.same("SET", "k", "w")
        self.same("READWRITE")
        self.same("GET", "k")
        self.same("RESET")
        self.same("GET", "k")
        for client in self.clients:
            self.assertIn(" flags=N capa=r db=0 ", client.call("CLIENT", "INFO"))
        self.same("COMMAND", "INFO", "client|capa")
        self.same("COMMAND", "DOCS", "client|capa")

    def test_availability_zone(self):
        for zone in ("west-1", ""):
            self.same("CONFIG", "SET", "availability-zone", zone)
            self.same("CONFIG", "GET", "availability-zone")
            ours, theirs = [client.call("HELLO", "2") for client in self.clients]
            self.assertEqual(ours[::2], theirs[::2])
            self.assertEqual("availability_zone" in ours, zone != "")
            for client in self.clients:
                self.assertIn("\navailability_zone:%s\r\n" % zone, client.call("INFO", "server"))
        self.same("CONFIG", "GET", "dual-channel-replication-enabled")

    def test_flags_of_commands(self):
        changed = ["client|caching", "client|getname", "client|getredir", "client|id", "client|no-evict", "client|no-touch",
                   "client|reply", "client|setinfo", "client|setname", "cluster|info", "cluster|myid", "cluster|myshardid",
                   "cluster|nodes", "exec", "memory|malloc-stats", "memory|purge", "multi", "script|exists", "script|flush",
                   "select", "watch"]
        for name in changed:
            flags = [set(client.call("COMMAND", "INFO", name)[0][2]) for client in self.clients]
            self.assertEqual(*flags, name)
        docs = [client.call("COMMAND", "DOCS") for client in self.clients]
        deprecated = [{name for name, fields in zip(each[::2], each[1::2]) if "deprecated_since" in fields} for each in docs]
        self.assertEqual(*deprecated)
        self.same("MULTI")
        for words in (["MULTI"], ["WATCH", "k"], ["CLIENT", "REPLY", "ON"], ["EXEC"]):
            self.same(*words)


@unittest.skipUnless(VALKEY and os.path.isfile(VALKEY), "Valkey 9.1 is not unpacked")
class InAClusterOfValkey(harness.ServerTestCase):
    """Nodes of both servers."""

    def start(self, *programs):
        self.nodes = []
        for program in programs:
            options = {"emulate": "valkey 9.1"} if program is None else {}
            server = harness.Server(program, cluster_enabled="yes", cluster_node_timeout=2000, repl_diskless_sync_delay=0, **options)
            self.addCleanup(server.stop)
            self.nodes.append(server)
        for node in self.nodes[1:]:
            self.call(0, "CLUSTER", "MEET", "127.0.0.1", node.port)
        self.call(0, "CLUSTER", "ADDSLOTSRANGE", 0, 8191)
        self.call(1, "CLUSTER", "ADDSLOTSRANGE", 8192, 16383)
        self.ids = [self.call(i, "CLUSTER", "MYID") for i in range(len(self.nodes))]
        for i in range(len(self.nodes)):
            self.eventually(lambda: "cluster_state:ok" in self.call(i, "CLUSTER", "INFO")
                            and all(node in self.call(i, "CLUSTER", "NODES") for node in self.ids))

    def call(self, node, *words):
        with self.nodes[node].connect() as client:
            return client.call(*words)

    def replicate(self, replica, master):
        self.eventually(lambda: self.ids[master] in self.call(replica, "CLUSTER", "NODES"))
        self.call(replica, "CLUSTER", "REPLICATE", self.ids[master])
        self.eventually(lambda: "master_link_status:up" in self.call(replica, "INFO", "replication"))
        # Valkey tells of moves beforehand those alone that have acknowledged the dataset.
        self.eventually(lambda: "state=online" in self.call(master, "INFO", "replication"))

    def moves(self, node):
        line = next(line for line in self.call(node, "CLUSTER", "NODES").splitlines() if "myself" in line)
        return re.findall(r"\[\S+\]", line)

    def try_moves(self, master, replica):
        self.start(master, None, replica)
        migrating = ["[5->-%s]" % self.ids[1]]
        # A replica that comes later gets the moves with the dataset.
        self.call(0, "CLUSTER", "SETSLOT", 5, "MIGRATING", self.ids[1])
        self.replicate(2, 0)
        self.eventually(lambda: self.moves(2) == migrating)
        # One that is there gets them before the master has them.
        self.call(0, "CLUSTER", "SETSLOT", 9000, "IMPORTING", self.ids[1])
        self.eventually(lambda: self.moves(2) == migrating + ["[9000-<-%s]" % self.ids[1]])
        self.call(0, "CLUSTER", "SETSLOT", 5, "STABLE")
        self.eventually(lambda: self.moves(2) == ["[9000-<-%s]" % self.ids[1]])
        # It goes on with them when it takes over.
        self.eventually(lambda: "master_link_status:up" in self.call(2, "INFO", "replication"))
        self.call(2, "CLUSTER", "FAILOVER")
        self.eventually(lambda: "role:master" in self.call(2, "INFO", "replication"))
        self.assertEqual(self.moves(2), ["[9000-<-%s]" % self.ids[1]])
        self.eventually(lambda: "role:slave" in self.call(0, "INFO", "replication"))

    def test_a_replica_of_valkey_is_told_of_moves(self):
        self.try_moves(None, VALKEY)

    def test_a_replica_is_told_of_moves_by_valkey(self):
        self.try_moves(VALKEY, None)

    def test_a_move_is_refused_where_a_replica_does_not_answer(self):
        self.start(None, None, None)
        self.replicate(2, 0)
        self.nodes[2].process.send_signal(signal.SIGSTOP)
        try:
            with self.assertRaisesRegex(harness.ReplyError, "NOREPLICAS"):
                self.call(0, "CLUSTER", "SETSLOT", 5, "MIGRATING", self.ids[1], "TIMEOUT", "100")
            self.assertEqual(self.moves(0), [])
            # The client may go meanwhile.
            client = self.nodes[0].connect()
            client.send("CLUSTER", "SETSLOT", 6, "MIGRATING", self.ids[1], "TIMEOUT", "100000")
            self.eventually(lambda: "blocked_clients:1" in self.call(0, "INFO", "clients"))
            client.close()
            self.eventually(lambda: "blocked_clients:0" in self.call(0, "INFO", "clients"))
            # 0 is no limit.
            client = self.nodes[0].connect()
            self.addCleanup(client.close)
            client.send("CLUSTER", "SETSLOT", 6, "MIGRATING", self.ids[1], "TIMEOUT", "0")
            self.eventually(lambda: "blocked_clients:1" in self.call(0, "INFO", "clients"))
        finally:
            self.nodes[2].process.send_signal(signal.SIGCONT)
        self.assertEqual(client.read(), "OK")
        self.call(0, "CLUSTER", "SETSLOT", 6, "STABLE")
        self.call(0, "CLUSTER", "SETSLOT", 7, "MIGRATING", self.ids[1])
        self.assertEqual(self.moves(0), ["[7->-%s]" % self.ids[1]])

    def test_the_order_of_replicas(self):
        self.start(None, None, None, VALKEY, None)
        for replica in (2, 3, 4):
            self.replicate(replica, 0)
        ranges = [self.nodes[0].port] + [port for _, port in sorted((self.ids[i], self.nodes[i].port) for i in (2, 3, 4))]
        for node in range(5):
            self.eventually(lambda: [place[1] for place in self.call(node, "CLUSTER", "SLOTS")[0][2:]] == ranges)

if __name__ == "__main__":
    unittest.main()

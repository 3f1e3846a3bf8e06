"""Users and what they may do, over real connections: logging in, files that keep them, transactions and scripts, what is hidden
from the logs, and python3-redis as one of them."""

import os
import unittest

import harness

try:
    import redis
except ImportError:
    redis = None

NO_KEY = "NOPERM No permissions to access a key"


class Users(harness.ServerTestCase):
    def setUp(self):
        self.root = self.connect()

    def tearDown(self):
        for name in self.root.call("ACL", "USERS"):
            if name != "default":
                self.root.call("ACL", "DELUSER", name)

    def user(self, name, *rules):
        """A connection that has logged in as a new user with these rules."""
        self.root.call("ACL", "SETUSER", name, "on", ">secret", *rules)
        client = self.connect()
        self.assertEqual(client.call("AUTH", name, "secret"), "OK")
        return client

    def test_a_user_comes_and_goes(self):
        anna = self.user("anna", "+@all", "~anna:*")
        self.assertIn(" user=anna ", anna.call("CLIENT", "INFO"))
        self.assertEqual(anna.call("SET", "anna:a", "1"), "OK")
        self.assertEqual(anna.error_of("SET", "berta:a", "1"), NO_KEY)
        self.assertEqual(self.root.call("CLIENT", "KILL", "USER", "anna"), 1)
        self.assertEqual(anna.read_until_closed(), b"")
        again = self.user("anna")
        self.assertEqual(again.call("SET", "anna:a", "1"), "OK")
        self.assertEqual(self.root.call("ACL", "DELUSER", "anna"), 1)
        self.assertEqual(again.read_until_closed(), b"")
        self.assertEqual(
            self.connect().error_of("HELLO", "3", "AUTH", "anna", "secret"),
            "WRONGPASS invalid username-password pair or user is disabled.",
        )

    def test_one_that_deletes_itself_gets_the_reply_first(self):
        anna = self.user("anna", "+acl")
        self.assertEqual(anna.call("ACL", "DELUSER", "anna"), 1)
        self.assertEqual(anna.read_until_closed(), b"")

    def test_requests_of_a_pipeline_are_judged_one_by_one(self):
        anna = self.user("anna", "+@all", "~mine")
        requests = [("SET", "mine", "1"), ("SET", "yours", "1"), ("INCR", "mine"), ("GET", "yours")]
        anna.send_raw(b"".join(harness.encode(*request) for request in requests))
        replies = [anna.read() for _ in requests]
        self.assertEqual(replies, ["OK", harness.ReplyError(NO_KEY), 2, harness.ReplyError(NO_KEY)])

    def test_listeners_leave_when_they_may_no_longer_listen(self):
        anna = self.user("anna", "+@all", "resetchannels", "&news:*")
        anna.call("SUBSCRIBE", "news:a")
        self.root.call("ACL", "SETUSER", "anna", "&more")
        self.root.call("PUBLISH", "news:a", "hello")
        self.assertEqual(anna.read(), ["message", "news:a", "hello"])
        self.root.call("ACL", "SETUSER", "anna", "resetchannels")
        self.assertEqual(anna.read_until_closed(), b"")

    def test_transactions_and_scripts(self):
        anna = self.user("anna", "+@all", "~mine")
        anna.call("MULTI")
        anna.call("SET", "mine", "1")
        self.root.call("ACL", "SETUSER", "anna", "resetkeys", "~other")
        (refusal,) = anna.call("EXEC")
        self.assertIn("no permission to touch the specified keys", str(refusal))
        self.assertIn(
            "ACL failure in script: No permissions to access a key",
            anna.error_of("EVAL", "return redis.call('SET', 'mine', 1)", "0"),
        )
        contexts = [dict(zip(entry[::2], entry[1::2]))["context"] for entry in self.root.call("ACL", "LOG", "2")]
        self.assertEqual(contexts, ["lua", "multi"])

    def test_neither_the_slow_log_nor_monitors_see_rules(self):
        self.root.call("CONFIG", "SET", "slowlog-log-slower-than", "0")
        self.addCleanup(self.root.call, "CONFIG", "SET", "slowlog-log-slower-than", "-1")
        monitor = self.connect()
        monitor.call("MONITOR")
        self.user("anna", "+get")
        self.root.call("ACL", "GETUSER", "anna")
        self.root.call("PING")
        words = [entry[3] for entry in self.root.call("SLOWLOG", "GET", "-1")]
        self.assertIn(["ACL", "SETUSER"] + ["(redacted)"] * 4, words)
        self.assertIn(["ACL", "GETUSER", "(redacted)"], words)
        self.assertIn(["AUTH", "(redacted)", "(redacted)"], words)
        seen = ""
        while '"PING"' not in seen:
            seen += monitor.read() + "\n"
        self.assertNotIn("secret", seen)
        self.assertNotIn("anna", seen)

    @unittest.skipUnless(redis, "python3-redis is not installed")
    def test_a_client_library(self):
        root = redis.Redis(port=self.server.port, decode_responses=True)
        self.addCleanup(root.close)
        root.acl_setuser("anna", enabled=True, passwords=["+secret"], categories=["+@read"], keys=["data:*"], commands=["-mget"])
        described = root.acl_getuser("anna")
        self.assertEqual(described["flags"], ["on", "sanitize-payload"])
        self.assertEqual(described["categories"], ["-@all", "+@read"])
        anna = redis.Redis(port=self.server.port, username="anna", password="secret", decode_responses=True)
        self.addCleanup(anna.close)
        self.assertIsNone(anna.get("data:a"))
        with self.assertRaises(redis.exceptions.NoPermissionError):
            anna.mget("data:a")
        with self.assertRaises(redis.exceptions.NoPermissionError):
            anna.set("data:a", "1")
        self.assertEqual(root.acl_log()[0]["object"], "set")
        with self.assertRaisesRegex(redis.exceptions.RedisError, "invalid username-password pair"):
            redis.Redis(port=self.server.port, username="anna", password="wrong").ping()


class InAFile(unittest.TestCase):
    """Users that an ACL file keeps."""

    def serve(self, text):
        """A server whose ACL file holds `text` when it starts."""
        directory = harness.tempfile.mkdtemp(prefix="latchkey-e2e-users-")
        self.addCleanup(harness.shutil.rmtree, directory)
        self.path = os.path.join(directory, "users.acl")
        self.write(text)
        server = harness.Server(aclfile=self.path)
        self.addCleanup(server.stop)
        return server

    def write(self, text):
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(text)

    def test_what_is_saved_is_there_after_a_restart(self):
        server = self.serve("user anna on nopass ~a* +get\n")
        with server.connect() as client:
            self.assertEqual(client.call("ACL", "USERS"), ["anna", "default"])
            client.call("ACL", "SETUSER", "berta", "on", ">secret", "+@all", "(+get", "~x)")
            lines = client.call("ACL", "LIST")
            self.assertEqual(client.call("ACL", "SAVE"), "OK")
        server.process.kill()
        server.process.wait()
        server.start()
        with server.connect() as client:
            self.assertEqual(client.call("ACL", "LIST"), lines)

    def test_loading_concerns_those_whose_rules_have_changed(self):
        server = self.serve("user anna on nopass &* +@all\nuser berta on nopass &* +@all\nuser carla on nopass +@all\n")
        with server.connect() as root, server.connect() as anna, server.connect() as berta, server.connect() as carla:
            for name, client in (("anna", anna), ("berta", berta), ("carla", carla)):
                client.call("AUTH", name, "")
            anna.call("SUBSCRIBE", "news")
            berta.call("SUBSCRIBE", "news")
            self.write("user anna on nopass &* +@all -get\nuser berta on nopass &other +@all\n")
            self.assertEqual(root.call("ACL", "LOAD"), "OK")
            self.assertEqual(root.call("PUBLISH", "news", "hello"), 1)
            self.assertEqual(anna.read(), ["message", "news", "hello"])
            self.assertEqual(berta.read_until_closed(), b"")
            self.assertEqual(carla.read_until_closed(), b"")

    def test_a_file_with_a_mistake_changes_nothing(self):
        server = self.serve("user anna on nopass +@all\n")
        self.write("user berta on\nuser carla +zebra\n")
        with server.connect() as client:
            self.assertEqual(
                client.error_of("ACL", "LOAD"),
                "ERR %s:2: Error in applying operation '+zebra': Unknown command or category name in ACL. WARNING: ACL errors "
                "detected, no change to the previously active ACL rules was performed" % self.path,
            )
            self.assertEqual(client.call("ACL", "USERS"), ["anna", "default"])

    def test_no_server_starts_with_a_wrong_file(self):
        with self.assertRaisesRegex(AssertionError, "Aborting Redis startup because of ACL errors: "):
            self.serve("user anna zebra\n")


class InTheConfiguration(unittest.TestCase):
    def test_users_are_read_and_written_with_the_other_directives(self):
        directory = harness.tempfile.mkdtemp(prefix="latchkey-e2e-users-")
        self.addCleanup(harness.shutil.rmtree, directory)
        path = os.path.join(directory, "server.conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write("user anna on nopass ~a* +@all -flushall\n")
        anna = "user anna on nopass sanitize-payload ~a* resetchannels +@all -flushall"
        server = harness.Server(file=path)
        self.addCleanup(server.stop)
        with server.connect() as client:
            self.assertIn(anna, client.call("ACL", "LIST"))
            client.call("ACL", "SETUSER", "berta", "on")
            client.call("CONFIG", "SET", "requirepass", "secret")
            self.assertEqual(client.call("CONFIG", "REWRITE"), "OK")
            client.call("AUTH", "anna", "x")
            self.assertEqual(client.error_of("FLUSHALL"), "NOPERM User anna has no permissions to run the 'flushall' command")
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
        self.assertEqual(lines[0], anna)
        self.assertIn("user berta on sanitize-payload resetchannels -@all", lines)
        self.assertIn('requirepass "secret"', lines)
        server.process.kill()
        server.process.wait()
        server.start()
        with server.connect() as client:
            self.assertEqual(client.call("AUTH", "secret"), "OK")
            self.assertEqual(client.call("ACL", "USERS"), ["anna", "berta", "default"])

    def test_a_password_is_the_default_users(self):
        server = harness.Server(requirepass="secret")
        self.addCleanup(server.stop)
        with server.connect() as client:
            self.assertEqual(client.error_of("PING"), "NOAUTH Authentication required.")
            self.assertEqual(client.call("AUTH", "default", "secret"), "OK")
            client.call("CONFIG", "SET", "requirepass", "other")
            with server.connect() as second:
                self.assertEqual(second.call("AUTH", "other"), "OK")


class OfAMaster(unittest.TestCase):
    """A replica logs in as a user, and obeys the master whatever its own users may do."""

    def test_a_replica_logs_in_with_a_name(self):
        master = harness.Server(requirepass="secret")
        self.addCleanup(master.stop)
        replica = harness.Server(masteruser="copier", masterauth="copy")
        self.addCleanup(replica.stop)
        with master.connect() as client, replica.connect() as other:
            client.call("AUTH", "secret")
            client.call("ACL", "SETUSER", "copier", "on", ">copy", "+psync", "+replconf", "+ping")
            other.call("ACL", "SETUSER", "default", "-set")
            other.call("REPLICAOF", "127.0.0.1", master.port)
            client.call("SET", "key", "value")
            deadline = harness.time.monotonic() + harness.REPLY_TIMEOUT_S
            while other.send("GET", "key") or other.read() != "value":
                self.assertLess(harness.time.monotonic(), deadline, replica.log())
                harness.time.sleep(0.01)
            self.assertIn("user=(superuser)", other.call("CLIENT", "LIST", "TYPE", "master"))
            self.assertIn("user=copier", client.call("CLIENT", "LIST", "TYPE", "replica"))

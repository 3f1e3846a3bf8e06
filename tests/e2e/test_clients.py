"""CLIENT and its kin: what is told of clients, how they are paused, silenced, unblocked and closed; who may log in."""

import os
import re
import signal
import threading
import unittest

import harness

WRONG_PASSWORD = "WRONGPASS invalid username-password pair or user is disabled."
MUST_AUTHENTICATE = "NOAUTH Authentication required."

FOUR_SECONDS = """#!lua name=waiting
redis.register_function('wait', function()
  local last = redis.call('TIME')[1] + 4
  while redis.call('TIME')[1] - last < 0 do end
end)
"""


def fields(line):
    return dict(field.split("=", 1) for field in line.split())


class Described(harness.ServerTestCase):
    def described(self, client_id):
        return fields(self.admin.call("CLIENT", "LIST", "ID", client_id))

    def setUp(self):
        self.admin = self.connect()

    def test_every_field_of_the_reference_is_told_in_its_order(self):
        line = self.admin.call("CLIENT", "INFO")
        names = re.findall(r"([a-z-]+)=", line)
        self.assertEqual(
            names[:34],
            "id addr laddr fd name age idle flags db sub psub ssub multi watch qbuf qbuf-free argv-mem multi-mem rbs rbp obl oll "
            "omem tot-mem events cmd user redir resp lib-name lib-ver io-thread tot-net-in tot-net-out".split(),
        )

    def test_a_request_in_the_making_is_counted(self):
        client = self.connect()
        client_id = client.call("CLIENT", "ID")
        self.assertEqual(self.described(client_id)["qbuf"], "0")
        client.send_raw(b"*3\r\n$3\r\nSET\r\n$5\r\nstart")
        self.eventually(lambda: int(self.described(client_id)["qbuf"]) > 0)
        told = self.described(client_id)
        self.assertEqual((told["qbuf"], told["argv-mem"]), ("5", "3"))
        self.assertGreater(int(told["tot-mem"]), int(told["qbuf"]) + int(told["qbuf-free"]))

    def test_a_transaction_is_counted(self):
        client = self.connect()
        client_id = client.call("CLIENT", "ID")
        client.call("WATCH", "a", "b")
        client.call("MULTI")
        client.call("SET", "c", "x" * 1000)
        told = self.described(client_id)
        self.assertEqual((told["flags"], told["multi"], told["watch"], told["cmd"]), ("x", "1", "2", "set"))
        self.assertGreater(int(told["multi-mem"]), 1000)

    def test_unread_replies_are_counted(self):
        self.admin.call("SET", "value", "v" * 1_000_000)
        client = self.connect()
        client_id = client.call("CLIENT", "ID")
        client.send_raw(harness.encode("GET", "value") * 50)
        self.eventually(lambda: self.described(client_id)["events"] == "rw")
        told = self.described(client_id)
        self.assertGreater(int(told["omem"]), 10_000_000)
        self.assertGreater(int(told["tot-mem"]), int(told["omem"]))
        for _ in range(50):
            self.assertEqual(len(client.read()), 1_000_000)
        self.assertEqual(client.call("PING"), "PONG")
        told = self.described(client_id)
        self.assertEqual((told["omem"], told["oll"], told["events"]), ("0", "0", "r"))

    def test_bytes_and_commands_are_counted(self):
        client = self.connect()
        client_id = client.call("CLIENT", "ID")
        before = self.described(client_id)
        client.call("ECHO", "hello")
        after = self.described(client_id)
        grown = [int(after[name]) - int(before[name]) for name in ("tot-net-in", "tot-net-out", "tot-cmds")]
        self.assertEqual(grown, [len(harness.encode("ECHO", "hello")), len("$5\r\nhello\r\n"), 1])

    def test_clients_are_selected_by_what_they_are(self):
        first, second = self.connect(), self.connect()
        ids = [first.call("CLIENT", "ID"), second.call("CLIENT", "ID")]
        told = self.admin.call("CLIENT", "LIST", "ID", ids[1], "99999", ids[0]).splitlines()
        self.assertEqual([int(fields(line)["id"]) for line in told], [ids[1], ids[0]])
        self.assertEqual(self.admin.call("CLIENT", "LIST", "TYPE", "pubsub"), "")
        address = "%s:%d" % first.socket.getsockname()
        told = self.admin.call("CLIENT", "LIST", "ADDR", address, "USER", "default", "SKIPME", "yes").splitlines()
        self.assertEqual([int(fields(line)["id"]) for line in told], [ids[0]])
        self.assertEqual(self.admin.error_of("CLIENT", "LIST", "TYPE", "foo"), "ERR Unknown client type 'foo'")
        self.assertEqual(self.admin.error_of("CLIENT", "LIST", "ID", "x"), "ERR Invalid client ID")

    def test_a_name_is_one_word(self):
        error = "ERR Client names cannot contain spaces, newlines or special characters."
        self.assertEqual(self.admin.error_of("CLIENT", "SETNAME", "two words"), error)
        self.assertEqual(self.admin.error_of("HELLO", "3", "SETNAME", "two\nlines"), error)
        self.admin.call("CLIENT", "SETNAME", "anna")
        self.assertEqual(self.admin.call("CLIENT", "GETNAME"), "anna")
        self.admin.call("CLIENT", "SETNAME", "")
        self.assertIsNone(self.admin.call("CLIENT", "GETNAME"))


class Killed(harness.ServerTestCase):
    def test_by_address_the_old_way(self):
        admin, client = self.connect(), self.connect()
        client.call("PING")
        self.assertEqual(admin.call("CLIENT", "KILL", "%s:%d" % client.socket.getsockname()), "OK")
        self.assertEqual(client.read_until_closed(), b"")
        self.assertEqual(admin.error_of("CLIENT", "KILL", "127.0.0.1:1"), "ERR No such client")

    def test_by_ids(self):
        admin, clients = self.connect(), [self.connect() for _ in range(3)]
        ids = [client.call("CLIENT", "ID") for client in clients]
        self.assertEqual(admin.call("CLIENT", "KILL", "ID", ids[0], ids[2], "99999"), 2)
        self.assertEqual(clients[1].call("PING"), "PONG")

    def test_who_asks_is_spared_unless_it_asks_not_to_be(self):
        admin, client = self.connect(), self.connect()
        client.call("PING")
        self.assertEqual(admin.call("CLIENT", "KILL", "TYPE", "normal"), 1)
        self.assertEqual(admin.call("CLIENT", "KILL", "SKIPME", "no"), 1)
        self.assertEqual(admin.read_until_closed(), b"")

    def test_a_blocked_client_too(self):
        admin, client = self.connect(), self.connect()
        client_id = client.call("CLIENT", "ID")
        client.send("WAIT", "1", "0")
        self.eventually(lambda: fields(admin.call("CLIENT", "LIST", "ID", client_id))["flags"] == "b")
        self.assertEqual(admin.call("CLIENT", "KILL", "ID", client_id), 1)
        self.assertEqual(client.read_until_closed(), b"")

    def test_the_scripts_own_client_is_out_of_reach(self):
        admin = self.connect()
        admin.call("CLIENT", "KILL", "TYPE", "normal")
        self.assertEqual(admin.call("EVAL", "return redis.call('PING')", "0"), "PONG")
        self.assertEqual(len(admin.call("CLIENT", "LIST").splitlines()), 1)


class Waiting(harness.ServerTestCase):
    def setUp(self):
        self.admin = self.connect()
        self.client = self.connect()
        self.client_id = self.client.call("CLIENT", "ID")
        self.addCleanup(self.admin.call, "CLIENT", "UNPAUSE")

    def until_blocked(self):
        self.eventually(lambda: "b" in fields(self.admin.call("CLIENT", "LIST", "ID", self.client_id))["flags"])

    def test_nothing_to_wait_for(self):
        self.assertEqual(self.client.call("WAIT", "0", "0"), 0)
        self.assertEqual(self.client.call("WAIT", "-1", "0"), 0)

    def test_the_timeout_ends_it(self):
        self.assertEqual(self.client.call("WAIT", "1", "20"), 0)

    def test_not_in_a_transaction(self):
        self.client.call("MULTI")
        self.client.call("WAIT", "1", "0")
        self.assertEqual(self.client.call("EXEC"), [0])

    def test_another_client_ends_it(self):
        for how, reply in (
            ([], 0),
            (["TIMEOUT"], 0),
            (["ERROR"], harness.ReplyError("UNBLOCKED client unblocked via CLIENT UNBLOCK")),
        ):
            self.client.send("WAIT", "1", "0")
            self.until_blocked()
            self.assertEqual(self.admin.call("CLIENT", "UNBLOCK", self.client_id, *how), 1)
            self.assertEqual(self.client.read(), reply)
            self.assertEqual(self.client.call("PING"), "PONG")
        self.assertEqual(self.admin.call("CLIENT", "UNBLOCK", self.client_id), 0)

    def test_what_comes_meanwhile_waits_its_turn(self):
        self.client.send("WAIT", "1", "0")
        self.until_blocked()
        text = "x" * 100_000
        self.client.send_raw(harness.encode("SET", "meanwhile", text) + b"GET meanwhile\r\nWAIT 1 1\r\nPING 'last one'\r\n")
        self.assertEqual(self.admin.call("EXISTS", "meanwhile"), 0)
        self.assertEqual(self.admin.call("CLIENT", "UNBLOCK", self.client_id), 1)
        self.assertEqual([self.client.read() for _ in range(5)], [0, "OK", text, 0, "last one"])

    def test_who_leaves_while_waiting_is_noticed(self):
        self.client.send("WAIT", "1", "0")
        self.until_blocked()
        self.client.close()
        self.eventually(lambda: self.admin.call("CLIENT", "LIST", "ID", self.client_id) == "")

    def test_a_pause_of_writes_lets_reads_through(self):
        self.admin.call("CLIENT", "PAUSE", "100000", "WRITE")
        self.assertIsNone(self.client.call("GET", "quoted"))
        self.client.send_raw(b"set quoted 'by quotes'\r\n")
        self.until_blocked()
        self.admin.call("CLIENT", "UNPAUSE")
        self.assertEqual(self.client.read(), "OK")
        self.assertEqual(self.client.call("GET", "quoted"), "by quotes")

    def test_a_transaction_waits_for_what_it_holds(self):
        self.client.call("MULTI")
        self.client.call("SET", "in", "transaction")
        self.admin.call("CLIENT", "PAUSE", "100000", "WRITE")
        self.client.send("EXEC")
        self.until_blocked()
        self.admin.call("CLIENT", "UNPAUSE")
        self.assertEqual(self.client.read(), ["OK"])

    def test_a_pause_of_all_ends_by_itself(self):
        self.assertEqual(self.admin.call("CLIENT", "PAUSE", "50"), "OK")
        self.assertEqual(self.admin.call("CLIENT", "UNPAUSE"), "OK")

    def test_a_pause_is_not_shortened_by_another(self):
        self.admin.call("CLIENT", "PAUSE", "100000", "WRITE")
        self.admin.call("CLIENT", "PAUSE", "1", "WRITE")
        self.client.send("SET", "paused", "twice")
        self.until_blocked()
        self.admin.call("CLIENT", "UNPAUSE")
        self.assertEqual(self.client.read(), "OK")

    def test_errors_are_not_paused(self):
        self.admin.call("CLIENT", "PAUSE", "100000", "WRITE")
        self.assertEqual(self.client.error_of("SET", "a"), "ERR wrong number of arguments for 'set' command")


class Silenced(harness.ServerTestCase):
    def replies_to(self, lines):
        """What comes back for inline commands, up to an end mark that is always answered."""
        with self.server.connect() as client:
            client.send_raw("".join(line + "\r\n" for line in lines + ["CLIENT REPLY ON", "ECHO end"]).encode())
            replies = []
            while not replies or replies[-1] != "end":
                replies.append(client.read())
            return replies[:-2]

    def test_off_until_on(self):
        self.assertEqual(self.replies_to(["CLIENT REPLY OFF", "PING 1", "NONSENSE", "GET"]), [])

    def test_skip_leaves_out_one(self):
        self.assertEqual(self.replies_to(["CLIENT REPLY SKIP", "PING 1", "PING 2"]), ["2"])
        self.assertEqual(self.replies_to(["CLIENT REPLY SKIP", "NONSENSE", "PING 2"]), ["2"])
        self.assertEqual(self.replies_to(["CLIENT REPLY SKIP", "CLIENT REPLY SKIP", "PING 1", "PING 2"]), ["2"])

    def test_skip_holds_for_a_request_that_has_waited(self):
        other = self.connect()
        other.call("CLIENT", "PAUSE", "100000", "WRITE")
        client = self.connect()
        client.send_raw(harness.encode("CLIENT", "REPLY", "SKIP") + harness.encode("SET", "k", "v") + harness.encode("GET", "k"))
        self.eventually(lambda: "cmd=set " in other.call("CLIENT", "LIST"))
        other.call("CLIENT", "UNPAUSE")
        self.assertEqual(client.read(), "v")

    def test_skip_is_nothing_while_off(self):
        self.assertEqual(self.replies_to(["CLIENT REPLY OFF", "CLIENT REPLY SKIP", "PING 1"]), [])

    def test_reset_gives_the_voice_back(self):
        self.assertEqual(self.replies_to(["CLIENT REPLY OFF", "RESET", "PING 1"]), ["RESET", "1"])


class Reset(harness.ServerTestCase):
    def test_a_connection_is_as_new_but_for_its_library(self):
        client = self.connect()
        client.call("HELLO", "3", "SETNAME", "anna")
        client.call("CLIENT", "SETINFO", "lib-name", "testlib")
        client.call("SELECT", "5")
        client.call("CLIENT", "NO-EVICT", "on")
        client.call("CLIENT", "NO-TOUCH", "on")
        client.call("WATCH", "a")
        client.call("MULTI")
        self.assertEqual(client.call("RESET"), "RESET")
        told = fields(client.call("CLIENT", "INFO"))
        kept = {name: told[name] for name in ("name", "db", "flags", "resp", "multi", "watch", "lib-name")}
        self.assertEqual(
            kept, {"name": "", "db": "0", "flags": "N", "resp": "2", "multi": "-1", "watch": "0", "lib-name": "testlib"}
        )

    def test_quit_answers_and_nothing_behind_it_runs(self):
        client = self.connect()
        client.send_raw(b"QUIT\r\nSET after quit\r\n" + b"x" * 100_000)
        self.assertEqual(client.read_until_closed(), b"+OK\r\n")
        self.assertEqual(self.connect().call("EXISTS", "after"), 0)


class Greeting(harness.ServerTestCase):
    def test_the_server_introduces_itself(self):
        client = self.connect()
        greeting = client.call("HELLO", "3")
        self.assertEqual(
            list(greeting), ["server", "version", "proto", "id", "mode", "role", "modules"])
        self.assertEqual(
            (greeting["server"], greeting["version"], greeting["proto"], greeting["mode"], greeting["role"]),
            ("redis", "8.6.3", 3, "standalone", "master"),
        )
        self.assertEqual(client.call("HELLO")["proto"], 3)
        self.assertEqual(client.call("HELLO", "2")[4:6], ["proto", 2])

    def test_errors(self):
        client = self.connect()
        for words, error in {
            ("4",): "NOPROTO unsupported protocol version",
            ("x",): "ERR Protocol version is not an integer or out of range",
            ("3", "AUTH", "a"): "ERR Syntax error in HELLO option 'AUTH'",
            ("3", "SETNAME"): "ERR Syntax error in HELLO option 'SETNAME'",
            ("3", "nonsense"): "ERR Syntax error in HELLO option 'nonsense'",
            ("3", "AUTH", "nobody", "x"): WRONG_PASSWORD,
        }.items():
            self.assertEqual(client.error_of("HELLO", *words), error)
        self.assertEqual(client.call("HELLO")[4:6], ["proto", 2])

    def test_no_password_is_asked_for(self):
        client = self.connect()
        self.assertEqual(
            client.error_of("AUTH", "x"),
            "ERR AUTH <password> called without any password configured for the default user. Are you sure your "
            "configuration is correct?",
        )
        self.assertEqual(client.call("AUTH", "default", "anything"), "OK")
        self.assertEqual(client.error_of("AUTH", "nobody", "x"), WRONG_PASSWORD)
        self.assertEqual(client.error_of("AUTH", "a", "b", "c"), "ERR syntax error")


class GoneInATransaction(harness.ServerTestCase):
    options = {"busy-reply-threshold": 20, "client-output-buffer-limit": "normal 0 100kb 1"}

    def test_what_it_asks_for_when_it_is_gone_is_for_nobody(self):
        admin = self.connect()
        admin.call("SET", "large", "x" * 20_000_000)
        admin.call("FUNCTION", "LOAD", FOUR_SECONDS)
        gone = self.connect()
        gone.call("HELLO", "3")
        gone.call("SCRIPT", "DEBUG", "SYNC")
        for request in (("GET", "large"), ("MULTI",), ("FCALL", "wait", "0"), ("SUBSCRIBE", "channel"), ("PSUBSCRIBE", "c*"),
                        ("SSUBSCRIBE", "shard"), ("CLIENT", "TRACKING", "ON", "BCAST"), ("EVAL", "return 1", "0"),
                        ("SET", "done", "1"), ("EXEC",)):
            gone.send(*request)

        def is_done():
            admin.send("GET", "done")
            return admin.read() == "1"

        self.eventually(is_done, timeout_s=20)
        self.assertEqual(admin.call("PUBLISH", "channel", "message"), 0)
        self.assertEqual(admin.call("SPUBLISH", "shard", "message"), 0)
        self.assertEqual(admin.call("SET", "done", "2"), "OK")
        clients = admin.call("INFO", "clients")
        for line in ("connected_clients:1", "pubsub_clients:0", "tracking_clients:0"):
            self.assertIn(line + "\r\n", clients)


class TakingTooMuch(harness.ServerTestCase):
    """maxmemory-clients."""

    options = {"maxmemory-clients": "400kb"}

    def send_while_the_server_is_stopped(self, client, data):
        """So that it finds all of it, or as much as fits on the way, in one turn."""
        sender = threading.Thread(target=client.send_raw, args=(data,))
        os.kill(self.server.process.pid, signal.SIGSTOP)
        try:
            sender.start()
            sender.join(0.2)
        finally:
            os.kill(self.server.process.pid, signal.SIGCONT)
        sender.join()

    def test_a_request_that_is_read_in_one_turn_counts_before_it_runs(self):
        admin, client = self.connect(), self.connect()
        admin.call("CONFIG", "SET", "maxmemory-clients", "0")
        for _ in range(20):  # until the kernel has given the connection much room
            client.call("ECHO", "x" * 2_000_000)  # more than what stays allocated
        admin.call("CONFIG", "SET", "maxmemory-clients", "400kb")
        self.send_while_the_server_is_stopped(client, harness.encode("SET", "large", "x" * 410_000))
        self.assertEqual(client.read_until_closed(), b"")
        self.assertEqual(admin.call("EXISTS", "large"), 0)
        self.assertIn("evicted_clients:1\r\n", admin.call("INFO", "stats"))

    def test_one_that_fits_runs(self):
        client = self.connect()
        for _ in range(3):
            self.send_while_the_server_is_stopped(client, harness.encode("SET", "fits", "x" * 200_000))
            self.assertEqual(client.read(), "OK")


class Authentication(harness.ServerTestCase):
    options = {"requirepass": "secret"}

    def test_nothing_runs_before_it(self):
        client = self.connect()
        self.assertEqual(client.error_of("GET", "a"), MUST_AUTHENTICATE)
        self.assertEqual(client.error_of("MULTI"), MUST_AUTHENTICATE)
        self.assertRegex(client.error_of("HELLO", "3"), "^NOAUTH HELLO must be called with the client already authenticated")
        self.assertEqual(client.error_of("AUTH", "wrong"), WRONG_PASSWORD)
        self.assertEqual(client.error_of("AUTH", "default", "secretx"), WRONG_PASSWORD)
        self.assertEqual(client.call("AUTH", "secret"), "OK")
        self.assertEqual(client.call("PING"), "PONG")
        self.assertEqual(client.call("RESET"), "RESET")
        self.assertEqual(client.error_of("PING"), MUST_AUTHENTICATE)
        self.assertEqual(client.call("HELLO", "3", "AUTH", "default", "secret")["proto"], 3)
        self.assertEqual(client.call("PING"), "PONG")

    def test_a_greeting_that_fails_changes_nothing(self):
        client = self.connect()
        client.error_of("HELLO", "3", "AUTH", "default", "secret", "nonsense")
        client.error_of("HELLO", "3", "AUTH", "default", "secret", "SETNAME", "two words")
        self.assertEqual(client.error_of("PING"), MUST_AUTHENTICATE)

    def test_requests_are_small_before_it(self):
        for request, reason in (
            (b"*11\r\n", "unauthenticated multibulk length"),
            (b"*1\r\n$16385\r\n", "unauthenticated bulk length"),
        ):
            client = self.connect()
            client.send_raw(request)
            self.assertEqual(client.read_until_closed(), b"-ERR Protocol error: %s\r\n" % reason.encode())

    def test_who_does_not_read_is_let_go_before_it(self):
        client = self.connect()
        with self.assertRaises(OSError):
            for _ in range(100_000):
                client.send_raw(harness.encode("GET", "a") * 100)

    def test_a_new_password_is_for_new_clients(self):
        admin, stranger = self.connect(), self.connect()
        self.assertEqual(stranger.error_of("PING"), MUST_AUTHENTICATE)
        admin.call("AUTH", "secret")
        admin.call("CONFIG", "SET", "requirepass", "")
        try:
            self.assertEqual(stranger.call("PING"), "PONG")
            admin.call("CONFIG", "SET", "requirepass", "other")
            self.assertEqual(admin.call("PING"), "PONG")
            self.assertEqual(stranger.error_of("PING"), MUST_AUTHENTICATE)
            self.assertEqual(stranger.call("AUTH", "other"), "OK")
        finally:
            admin.call("CONFIG", "SET", "requirepass", "secret")


if __name__ == "__main__":
    unittest.main()

"""io-threads: what clients see is the same when several threads read and write for them."""

import os
import random
import re
import signal
import socket
import threading
import time
import unittest

import harness


def figures(client, section="threads"):
    """{"io_thread_0": {"clients": 1, "reads": 2, "writes": 3}, ...}"""
    lines = re.findall(r"(io_thread_\d+):clients=(\d+),reads=(\d+),writes=(\d+)", client.call("INFO", section))
    return {name: dict(zip(("clients", "reads", "writes"), map(int, rest))) for name, *rest in lines}


def until(condition, timeout_s=30):
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError("in vain: %r" % condition)
        time.sleep(0.01)


class OneThread(harness.ServerTestCase):
    options = {"io-threads": "1"}

    def test_there_are_no_other_threads(self):
        client = self.connect()
        self.assertIn("io_threads_active:0\r\n", client.call("INFO", "server"))
        self.assertEqual(list(figures(client)), ["io_thread_0"])
        self.assertIn("io_threaded_reads_processed:0\r\nio_threaded_writes_processed:0\r\n", client.call("INFO", "stats"))
        self.assertIn(" io-thread=0 ", client.call("CLIENT", "LIST"))


class TwoThreads(harness.ServerTestCase):
    options = {"io-threads": "2", "maxclients": "2000", "enable-debug-command": "yes"}
    threads = 2

    def crowd(self, count):
        return [self.connect() for _ in range(count)]

    def test_the_threads_have_names(self):
        tasks = "/proc/%d/task" % self.server.process.pid
        names = []
        for task in os.listdir(tasks):
            with open("%s/%s/comm" % (tasks, task), encoding="ascii") as comm:
                names.append(comm.read().strip())
        self.assertEqual(sorted(name for name in names if name.startswith("io_thd_")),
                         ["io_thd_%d" % i for i in range(1, self.threads)])

    def test_clients_are_spread_and_told_where_they_are(self):
        clients = self.crowd(6)
        self.assertIn("io_threads_active:1\r\n", clients[0].call("INFO", "server"))
        shown = figures(clients[0])
        self.assertEqual(list(shown), ["io_thread_%d" % i for i in range(self.threads)])
        self.assertEqual(shown["io_thread_0"]["clients"], 0)
        counts = [shown["io_thread_%d" % i]["clients"] for i in range(1, self.threads)]
        self.assertLessEqual(max(counts) - min(counts), 1)
        listed = re.findall(r" io-thread=(\d+)", clients[0].call("CLIENT", "LIST"))
        self.assertEqual([listed.count(str(i)) for i in range(1, self.threads)], counts)

    def test_the_directive_cannot_change_while_the_server_runs(self):
        self.assertEqual(self.connect().error_of("CONFIG", "SET", "io-threads", "3"),
                         "ERR CONFIG SET failed (possibly related to argument 'io-threads') - can't set immutable config")

    def test_every_client_gets_the_replies_to_its_own_pipeline(self):
        clients = self.crowd(60)
        before = figures(clients[0])
        for turn in range(30):
            sent = []
            for number, client in enumerate(clients):
                words = ["%d:%d:%d" % (turn, number, i) + "x" * (number * i % 700) for i in range(1 + number % 40)]
                sent.append(words)
                client.send_raw(b"".join(harness.encode("ECHO", word) for word in words))
            for words, client in zip(sent, clients):
                self.assertEqual([client.read() for _ in words], words)
        after = figures(clients[0])

        def done(what):
            return sum(after[name][what] - before[name][what] for name in after)
        self.assertGreaterEqual(done("reads"), 30 * 60)
        self.assertGreaterEqual(done("writes"), 30 * 60)

    def test_the_threads_take_part_when_many_clients_are_busy(self):
        admin, clients = self.connect(), self.crowd(40)

        def counted():
            return tuple(map(int, re.findall(r"io_threaded_\w+_processed:(\d+)", admin.call("INFO", "stats"))[:2]))
        before = counted()

        def busy():
            for client in clients:
                client.send_raw(harness.encode("ECHO", "x" * 3000) * 5)
            for client in clients:
                self.assertEqual([client.read() for _ in range(5)], ["x" * 3000] * 5)
            return all(now > then for now, then in zip(counted(), before))
        # Whether a thread comes in time for a share of one turn is up to the system.
        until(busy, 120)
        shown = figures(admin)
        self.assertEqual(counted()[0], sum(v["reads"] for name, v in shown.items() if name != "io_thread_0"))

    def test_large_values_arrive_whole(self):
        values = [bytes(random.Random(seed).randbytes(1_500_000 + seed)) for seed in range(12)]
        clients = [self.connect(binary=True) for _ in values]

        def exchange(number):
            client = clients[number]
            for turn in range(3):
                client.send("SET", "large:%d" % number, values[number])
                self.assertEqual(client.read(), b"OK")
                client.send_raw(harness.encode("GET", "large:%d" % number) * 3)
                replies.extend(client.read() == values[number] for _ in range(3))
        replies = []
        crew = [threading.Thread(target=exchange, args=(i,)) for i in range(len(values))]
        for each in crew:
            each.start()
        for each in crew:
            each.join()
        self.assertEqual(replies, [True] * (9 * len(values)))

    def test_requests_in_pieces(self):
        clients = self.crowd(16)
        request = harness.encode("ECHO", "in pieces") * 3
        for place in range(len(request)):
            for client in clients:
                client.send_raw(request[place:place + 1])
        for client in clients:
            self.assertEqual([client.read() for _ in range(3)], ["in pieces"] * 3)

    def test_clients_that_vanish_do_no_harm(self):
        admin = self.connect()
        chance = random.Random(7)
        for _ in range(15):
            for client in [harness.Client(socket.create_connection(("127.0.0.1", self.server.port))) for _ in range(40)]:
                client.send_raw(harness.encode("SET", "vanish", "y" * chance.choice((1, 5000, 100_000))) * 3 +
                                harness.encode("GET", "vanish") * chance.randrange(4) +
                                b"*2\r\n$4\r\nECHO\r\n$100000\r\nnever")
                if chance.random() < 0.5:
                    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                client.socket.close()
        self.assertEqual(admin.call("PING"), "PONG")
        name = admin.call("CLIENT", "ID")
        until(lambda: admin.call("CLIENT", "LIST").count("\n") == 1)
        self.assertIn("id=%d " % name, admin.call("CLIENT", "LIST"))

    def test_a_client_may_kill_others_of_the_same_turn(self):
        clients = self.crowd(20)
        ids = [client.call("CLIENT", "ID") for client in clients]
        os.kill(self.server.process.pid, signal.SIGSTOP)
        try:
            clients[0].send_raw(b"".join(harness.encode("CLIENT", "KILL", "ID", i) for i in ids[10:]))
            for client in clients[1:]:
                client.send("PING")
        finally:
            os.kill(self.server.process.pid, signal.SIGCONT)
        self.assertEqual([clients[0].read() for _ in range(10)], [1] * 10)
        self.assertEqual([client.read() for client in clients[1:10]], ["PONG"] * 9)
        for client in clients[10:]:
            self.assertIn(client.read_until_closed(), (b"", b"+PONG\r\n"))

    def test_paused_clients_wait_and_are_then_answered_in_order(self):
        admin, clients = self.connect(), self.crowd(20)
        self.assertEqual(admin.call("CLIENT", "PAUSE", 100_000, "WRITE"), "OK")
        for number, client in enumerate(clients):
            client.send_raw(harness.encode("ECHO", "first") + harness.encode("SET", "paused:%d" % number, number) +
                            harness.encode("GET", "paused:%d" % number))
        self.assertEqual([client.read() for client in clients], ["first"] * 20)
        until(lambda: "blocked_clients:20\r\n" in admin.call("INFO", "clients"))
        for client in clients:
            client.send("ECHO", "last")
        self.assertEqual(admin.call("CLIENT", "UNPAUSE"), "OK")
        for number, client in enumerate(clients):
            self.assertEqual([client.read() for _ in range(3)], ["OK", str(number), "last"])

    def test_clients_that_wait_for_keys_are_served_in_their_order(self):
        admin, clients = self.connect(), self.crowd(20)
        for client in clients:
            client.send_raw(harness.encode("BLPOP", "queue", 0) + harness.encode("ECHO", "behind"))
        until(lambda: "blocked_clients:20\r\n" in admin.call("INFO", "clients"))
        admin.call("RPUSH", "queue", *range(20))
        values = []
        for client in clients:
            values.append(int(client.read()[1]))
            self.assertEqual(client.read(), "behind")
        self.assertEqual(sorted(values), list(range(20)))

    def test_monitors_and_subscribers_hear_everything(self):
        watcher, listener, clients = self.connect(), self.connect(), self.crowd(20)
        watcher.call("MONITOR")
        listener.call("SUBSCRIBE", "news")
        for number, client in enumerate(clients):
            client.send_raw(b"".join(harness.encode("PUBLISH", "news", "%d:%d" % (number, i)) for i in range(50)))
        for client in clients:
            self.assertEqual([client.read() for _ in range(50)], [1] * 50)
        expected = sorted("%d:%d" % (number, i) for number in range(20) for i in range(50))
        heard = [listener.read()[2] for _ in expected]
        seen = []
        while len(seen) < len(expected):
            line = watcher.read()
            if '"PUBLISH"' in line:
                seen.append(line.rsplit('"', 2)[1])
        self.assertEqual(sorted(heard), expected)
        self.assertEqual(seen, heard)

    def test_the_limit_of_output_holds(self):
        admin, greedy = self.connect(), self.connect()
        admin.call("SET", "megabyte", "z" * 1_000_000)
        admin.call("CONFIG", "SET", "client-output-buffer-limit", "normal 30000000 0 0")
        try:
            greedy.send_raw(harness.encode("GET", "megabyte") * 500)
            until(lambda: "client_output_buffer_limit_disconnections:1\r\n" in admin.call("INFO", "stats"))
        finally:
            admin.call("CONFIG", "SET", "client-output-buffer-limit", "normal 0 0 0")
        self.assertEqual(admin.call("PING"), "PONG")

    def test_quit_and_protocol_errors_end_with_their_reply(self):
        for request, reply in ((harness.encode("QUIT"), b"+OK\r\n"),
                               (b"*1\r\n:1\r\n", b"-ERR Protocol error: expected '$', got ':'\r\n")):
            for client in self.crowd(12):
                client.send_raw(request)
                self.assertEqual(client.read_until_closed(), reply)

    def test_half_closed_clients_get_all_replies(self):
        clients = self.crowd(12)
        for client in clients:
            client.send_raw(harness.encode("ECHO", "x" * 10_000) * 20)
            client.socket.shutdown(socket.SHUT_WR)
        for client in clients:
            self.assertEqual(client.read_until_closed().count(b"x"), 200_000)

    def test_a_client_that_debugs_scripts_is_served_by_the_main_thread(self):
        client, others = self.connect(), self.crowd(3)
        self.assertEqual(figures(others[0])["io_thread_0"]["clients"], 0)
        self.assertEqual(client.call("SCRIPT", "DEBUG", "YES"), "OK")
        self.assertEqual(figures(others[0])["io_thread_0"]["clients"], 1)
        self.assertEqual(client.call("SCRIPT", "DEBUG", "NO"), "OK")
        self.assertEqual(figures(others[0])["io_thread_0"]["clients"], 0)

    def test_slow_scripts_let_others_be_served(self):
        admin, slow, clients = self.connect(), self.connect(), self.crowd(8)
        slow.send("EVAL", "while true do end", 0)
        until(lambda: isinstance(self.answer(admin, "GET", "x"), harness.ReplyError))
        for client in clients:
            client.send("ECHO", "busy")
        for client in clients:
            self.assertTrue(str(client.read()).startswith("BUSY"))
        self.assertEqual(admin.call("SCRIPT", "KILL"), "OK")
        self.assertIsInstance(slow.read(), harness.ReplyError)
        self.assertEqual([client.call("ECHO", "free") for client in clients], ["free"] * 8)

    @staticmethod
    def answer(client, *words):
        client.send(*words)
        return client.read()


class FourThreads(TwoThreads):
    options = {**TwoThreads.options, "io-threads": "4"}
    threads = 4


class Changing(harness.ServerTestCase):
    """As in Valkey 9.1: CONFIG SET changes how many threads there are, while clients are served."""

    options = {"emulate": "valkey 9.1"}

    def test_clients_are_served_by_as_many_threads_as_there_are(self):
        control = self.connect()
        clients = []
        for wanted in (4, 2, 1, 3, 5, 1, 4):
            self.assertEqual(control.call("CONFIG", "SET", "io-threads", wanted), "OK")
            self.assertEqual(control.call("CONFIG", "GET", "io-threads"), ["io-threads", str(wanted)])
            clients += [self.connect() for _ in range(8)]
            for turn in range(5):
                for number, client in enumerate(clients):
                    client.send_raw(b"".join(harness.encode("ECHO", "%d %d %d" % (number, turn, i)) for i in range(20)))
                for number, client in enumerate(clients):
                    self.assertEqual([client.read() for _ in range(20)], ["%d %d %d" % (number, turn, i) for i in range(20)])
            # Valkey's CLIENT LIST does not tell which thread serves a client.
            tasks = "/proc/%d/task" % self.server.process.pid
            names = [open("%s/%s/comm" % (tasks, task)).read() for task in os.listdir(tasks)]
            self.assertEqual(sum(name.startswith("io_thd_") for name in names), wanted - 1)


class Durable(unittest.TestCase):
    def test_what_was_acknowledged_is_there_after_a_kill(self):
        server = harness.Server(io_threads="4", appendonly="yes", appendfsync="always")
        try:
            clients = [server.connect() for _ in range(30)]
            for turn in range(20):
                for number, client in enumerate(clients):
                    client.send_raw(harness.encode("SET", "durable:%d" % number, turn) + harness.encode("INCR", "all"))
                replies = [(client.read(), client.read()) for client in clients]
                self.assertEqual([first for first, _ in replies], ["OK"] * 30)
                self.assertEqual(sorted(second for _, second in replies), list(range(turn * 30 + 1, turn * 30 + 31)))
            server.process.kill()
            server.process.wait()
            server.start()
            client = server.connect()
            self.assertEqual(client.call("GET", "all"), "600")
            self.assertEqual(client.call("MGET", *("durable:%d" % i for i in range(30))), ["19"] * 30)
        finally:
            server.stop()


class Following(unittest.TestCase):
    def test_a_replica_follows_with_threads_on_both_sides(self):
        master = harness.Server(io_threads="4")
        replica = harness.Server(io_threads="4")
        try:
            first, second = master.connect(), replica.connect()
            first.call("SET", "before", "x" * 3_000_000)
            second.call("REPLICAOF", "127.0.0.1", master.port)
            until(lambda: "master_link_status:up\r\n" in second.call("INFO", "replication"))
            clients = [master.connect() for _ in range(20)]
            for client in clients:
                client.send_raw(b"".join(harness.encode("RPUSH", "list", "y" * (i % 3000)) for i in range(500)))
            for client in clients:
                for _ in range(500):
                    client.read()
            # WAIT is for what its own client has written.
            first.call("SET", "last", "written")
            self.assertEqual(first.call("WAIT", 1, 60_000), 1)
            self.assertEqual(second.call("LLEN", "list"), 10_000)
            self.assertEqual(second.call("STRLEN", "before"), 3_000_000)
            self.assertRegex(first.call("INFO", "replication"), r"slave0:.*,io-thread=[1-3]\r\n")
            self.assertRegex(second.call("INFO", "replication"), r"master_client_io_thread:[1-3]\r\n")
        finally:
            replica.stop()
            master.stop()


class Ending(unittest.TestCase):
    def test_a_busy_server_shuts_down(self):
        server = harness.Server(io_threads="4")
        stop = threading.Event()

        def busy():
            try:
                while not stop.is_set():
                    client = server.connect()
                    for _ in range(100):
                        client.send_raw(harness.encode("ECHO", "x" * 2000) * 10)
                        for _ in range(10):
                            client.read()
            except (OSError, harness.ConnectionClosed):
                pass
        crew = [threading.Thread(target=busy) for _ in range(8)]
        for each in crew:
            each.start()
        try:
            time.sleep(0.3)
            admin = server.connect()
            admin.send("SHUTDOWN", "NOSAVE")
            self.assertEqual(admin.read_until_closed(), b"")
            self.assertEqual(server.process.wait(60), 0)
        finally:
            stop.set()
            for each in crew:
                each.join()
            server.stop()


if __name__ == "__main__":
    unittest.main()

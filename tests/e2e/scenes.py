"""What tests of faults have in common: servers that must end well, clients that go away badly, and what a server at rest shows.

    class Fault(scenes.FaultTestCase):
        def test_a_client_that_is_reset_leaves_nothing_behind(self):
            server = self.start(busy_reply_threshold=5)
            client = scenes.impatient(server)
            client.send("EVAL", scenes.slow_script(1), 0)
            scenes.reset(client)
            self.expect_rest(server)
"""

import concurrent.futures
import contextlib
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import time
import unittest

import harness

# What no log may hold, whatever was done to the server.
TROUBLE = re.compile("BUG REPORT START|Sanitizer|runtime error:|ASSERTION FAILED|Guru Meditation")

# Sanitized servers take their time.
PATIENCE_S = int(os.environ.get("LATCHKEY_PATIENCE_S", "30"))

# Errors of those who ask while something else has the server.
BUSY = ("BUSY", "LOADING", "MASTERDOWN")


class SoundServer(harness.Server):
    """A server that must end with status 0 and without a word of a crash or of a sanitizer in its log, unless it was killed by
    kill()."""

    was_killed = False

    def kill(self):
        self.was_killed = True
        self.process.kill()
        self.process.wait()

    def start(self):
        self.was_killed = False
        super().start()

    def suspend(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def is_alive(self):
        return self.process is not None and self.process.poll() is None

    def wait_for_end(self):
        """Until it has ended by itself, and well."""
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise AssertionError("server did not end:\n" + self.log()[-6000:]) from None
        self.expect_sound()

    def expect_sound(self):
        """That it has neither crashed nor said anything that it should not."""
        log = self.log()
        found = TROUBLE.search(log)
        status = self.process.poll()
        if found or (status not in (None, 0) and not self.was_killed):
            start = max(found.start() - 2000, 0) if found else -6000
            raise AssertionError("status %s:\n%s" % (status, log[start:][:12000]))

    def stop(self):
        if self.process is None:
            return
        try:
            if self.process.poll() is None:
                self.resume()
                self.process.send_signal(signal.SIGTERM)
                try:
                    self.process.wait(PATIENCE_S)
                except subprocess.TimeoutExpired:
                    self.kill()
                    raise AssertionError("server did not stop:\n" + self.log()[-6000:]) from None
            self.expect_sound()
        finally:
            self.process = None
            shutil.rmtree(self.directory, ignore_errors=True)


def connect_narrow(server):
    """A client whose kernel takes hardly anything that it does not read."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.settimeout(harness.REPLY_TIMEOUT_S)
    sock.connect(("127.0.0.1", server.port))
    return harness.Client(sock)


def reset(client):
    """Goes away with RST instead of FIN."""
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


def slow_script(seconds, result="'slow'"):
    """A script that takes so much of the processor's time. It calls nothing that a hook could not interrupt."""
    return "local last = os.clock() + %s while os.clock() < last do end return %s" % (seconds, result)


def ask(server, *words):
    """The reply, errors included, on a connection of its own; None if there is none to be had."""
    try:
        with server.connect() as client:
            client.send(*words)
            return client.read()
    except (OSError, harness.ConnectionClosed):
        return None


def is_error(reply, *prefixes):
    return isinstance(reply, harness.ReplyError) and str(reply).startswith(prefixes or "")


def figures(server, *sections):
    """What INFO tells; empty while nobody may ask."""
    reply = ask(server, "INFO", *sections)
    if not isinstance(reply, str):
        return {}
    return dict(line.split(":", 1) for line in reply.splitlines() if ":" in line)


class FaultTestCase(unittest.TestCase):
    def start(self, program=None, **options):
        options.setdefault("enable_debug_command", "yes")
        options.setdefault("repl_diskless_sync_delay", "0")
        server = SoundServer(program, **options)
        self.addCleanup(server.stop)
        return server

    def connect(self, server):
        client = server.connect()
        self.addCleanup(client.close)
        return client

    def eventually(self, condition, *servers, what="it"):
        """Waits until condition() holds; the servers must live meanwhile."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            for server in servers:
                if not server.is_alive():
                    server.expect_sound()
                    self.fail("%s did not come to pass: the server has ended:\n%s" % (what, server.log()[-4000:]))
            if time.monotonic() > deadline:
                self.fail("%s did not come to pass\n%s" % (what, "\n".join(server.log()[-4000:] for server in servers)))
            time.sleep(0.01)

    def wait_until_busy(self, server):
        self.eventually(lambda: is_error(ask(server, "PING"), *BUSY), server, what="being busy")

    def wait_until_loading(self, server):
        def loads():
            told = figures(server, "persistence")
            return told.get("loading") == "1" or told.get("async_loading") == "1"

        self.eventually(loads, server, what="loading")

    def expect_rest(self, server, clients=1):
        """Nobody is served, waits or is loaded any more; what comes is answered."""
        self.eventually(lambda: ask(server, "PING") == "PONG", server, what="an answer")
        rest = {"loading": "0", "async_loading": "0", "blocked_clients": "0", "connected_clients": str(clients)}
        told = {}

        def rests():
            told.update(figures(server, "persistence", "clients"))
            return all(told.get(name) == value for name, value in rest.items())

        try:
            self.eventually(rests, server, what="rest")
        except AssertionError:
            self.fail("not at rest: %s\n%s" % ({name: told.get(name) for name in rest}, server.log()[-4000:]))
        self.assertEqual(ask(server, "SCRIPT", "KILL"), harness.ReplyError("NOTBUSY No scripts in execution right now."))
        self.assertEqual(ask(server, "EVAL", "return {1, ARGV[1]}", "0", "two"), [1, "two"])
        server.expect_sound()

    def expect_equal(self, master, *replicas):
        """Once nobody writes to the master any more, they come to hold what it holds."""
        for replica in replicas:
            self.eventually(lambda: figures(replica, "replication").get("master_link_status") == "up", master, replica, what="the link")
            self.eventually(lambda: ask(replica, "DEBUG", "DIGEST") == ask(master, "DEBUG", "DIGEST"), master, replica, what="equality")
            self.assertEqual(ask(replica, "FUNCTION", "DUMP"), ask(master, "FUNCTION", "DUMP"))


def test_name(words):
    return "test_" + re.sub("[^a-z0-9]+", "_", words.lower()).strip("_")


def each(cases):
    """Gives a test class a test for each of the cases, which are arguments of its check() by what the test is named after."""

    def add_tests(cls):
        def add(name, arguments):
            setattr(cls, test_name(name), lambda self: self.check(*arguments))

        for name, arguments in cases.items():
            add(name, arguments if isinstance(arguments, tuple) else (arguments,))
        return cls

    return add_tests


class Stage:
    """Runs the tests of a class in threads, a few at once and in the order of their names: most of a scene's time is waiting. A test
    that is asked for takes the result of its thread."""

    AT_ONCE = int(os.environ.get("LATCHKEY_SCENES_AT_ONCE", "4"))

    def __init__(self, cls, cases):
        self.cls = cls
        self.cases = cases
        self.names = sorted(cases)
        self.results = {}
        self.threads = None

    def result_of(self, name):
        if self.threads is None:
            self.threads = concurrent.futures.ThreadPoolExecutor(self.AT_ONCE)
        place = self.names.index(name)
        for near in self.names[place:place + self.AT_ONCE]:
            if near not in self.results:
                self.results[near] = self.threads.submit(self.perform, near)
        return self.results[name].result()

    def perform(self, name):
        scene = self.cls()
        with contextlib.ExitStack() as cleanups:
            scene.addCleanup = cleanups.callback
            scene.check(*self.cases[name])


def side_by_side(cases):
    """Like each(), for scenes that may run beside one another. They have neither setUp() nor tearDown()."""

    def add_tests(cls):
        stage = Stage(cls, {test_name(name): arguments for name, arguments in cases.items()})
        for name in stage.names:
            setattr(cls, name, lambda self, name=name: stage.result_of(name))
        return cls

    return add_tests

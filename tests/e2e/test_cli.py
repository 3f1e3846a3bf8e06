"""redis-cli and redis-benchmark take the server for redis-server: every mode that needs no other type of value."""

import fcntl
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import tempfile
import termios
import time
import unittest

import clients
import harness

ESCAPES = re.compile(rb"\x1b\[[0-9;]*[a-zA-Z]")
PIPED = 20000
TIMEOUT_S = 60


class Terminal:
    """A program on a terminal of its own, with an empty home directory."""

    def __init__(self, *command):
        self.home = tempfile.mkdtemp(prefix="latchkey-e2e-")
        process, self.terminal = pty.fork()
        if process == 0:
            environment = dict(os.environ, TERM="xterm", HOME=self.home)
            os.execve(command[0], [str(word) for word in command], environment)
        self.process = process
        self.shown = ""
        self.unread = b""
        # Wide, so that a line and its hints stay on one line.
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 500, 0, 0))

    def type(self, keys):
        os.write(self.terminal, keys.encode())

    def wait_for(self, text):
        """Reads until `text` appears, and returns all up to its end, without what moves the cursor and colours."""
        deadline = time.monotonic() + TIMEOUT_S
        while text not in self.shown:
            ready, _, _ = select.select([self.terminal], [], [], max(deadline - time.monotonic(), 0))
            try:
                piece = os.read(self.terminal, 1 << 16) if ready else b""
            except OSError:
                piece = b""
            if not piece:
                raise AssertionError("%r did not appear in %r" % (text, self.shown))
            plain = ESCAPES.sub(b"", self.unread + piece).replace(b"\r", b"")
            # The beginning of an escape sequence waits for its end.
            cut = plain.find(b"\x1b") if b"\x1b" in plain else len(plain)
            self.shown += plain[:cut].decode("utf-8", "replace")
            self.unread = plain[cut:]
        end = self.shown.index(text) + len(text)
        before, self.shown = self.shown[:end], self.shown[end:]
        return before

    def close(self):
        try:
            os.kill(self.process, 15)
        except ProcessLookupError:
            pass
        os.close(self.terminal)
        os.waitpid(self.process, 0)
        shutil.rmtree(self.home, ignore_errors=True)


class CliTestCase(harness.ServerTestCase):
    def setUp(self):
        self.client = self.connect()
        self.client.call("FLUSHALL")

    def cli(self, *words, stdin=b"", program="redis-cli"):
        """Runs the program to its end; (what it printed, its exit status)."""
        command = [clients.tool(program), "-p", self.server.port, *words]
        done = subprocess.run([str(word) for word in command], input=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=TIMEOUT_S)
        return done.stdout.decode("utf-8", "replace"), done.returncode

    def output_of(self, *words, **how):
        output, status = self.cli(*words, **how)
        self.assertEqual(status, 0, output)
        return output

    def fill(self):
        """Ten keys, the last one the largest."""
        for number in range(1, 11):
            self.client.call("SET", "key:%d" % number, "x" * (10 << number))


class AtTheTerminal(CliTestCase):
    def setUp(self):
        super().setUp()
        self.terminal = Terminal(clients.tool("redis-cli"), "-p", self.server.port)
        self.addCleanup(self.terminal.close)
        self.prompt = "127.0.0.1:%d" % self.server.port
        self.terminal.wait_for(self.prompt + "> ")

    def enter(self, line, prompt="> "):
        """Types a line and returns what is answered up to the next prompt."""
        self.terminal.type(line + "\r")
        self.terminal.wait_for(line + "\n")
        return self.terminal.wait_for(self.prompt + prompt)[: -len(self.prompt + prompt)]

    def test_values_are_shown_as_redis_cli_shows_them(self):
        self.assertEqual(self.enter("SET name 'a \"b\" \\n'"), "OK\n")
        self.assertEqual(self.enter("GET name"), '"a \\"b\\" \\\\n"\n')
        self.assertEqual(self.enter("GET nosuch"), "(nil)\n")
        self.assertEqual(self.enter("INCR counter"), "(integer) 1\n")
        self.assertEqual(self.enter("INCR name"), "(error) ERR value is not an integer or out of range\n")
        self.assertEqual(self.enter("MGET name nosuch"), '1) "a \\"b\\" \\\\n"\n2) (nil)\n')
        self.assertEqual(self.enter("2 INCR counter"), "(integer) 2\n(integer) 3\n")

    def test_the_prompt_tells_the_database_and_the_transaction(self):
        self.assertEqual(self.enter("SELECT 3", prompt="[3]> "), "OK\n")
        self.assertEqual(self.enter("MULTI", prompt="[3](TX)> "), "OK\n")
        self.assertEqual(self.enter("SET a 1", prompt="[3](TX)> "), "QUEUED\n")
        self.assertEqual(self.enter("EXEC", prompt="[3]> "), "1) OK\n")

    def test_hints_tell_what_a_command_takes(self):
        hints = {
            "GETDEL ": "key",
            "SET ": "key value ",
            "SET name value ": "[NX|XX",
            "SETRANGE name ": "offset value",
            "MSET ": "key value [key value ...]",
            "EXPIRE name ": "seconds [NX|XX|GT|LT]",
            "EVAL script ": "numkeys [key [key ...]] [arg [arg ...]]",
            "OBJECT ENCODING ": "key",
            "CLIENT SETNAME ": "connection-name",
            "SCAN 0 ": "[MATCH pattern] [COUNT count] [TYPE type]",
        }
        for typed, hint in hints.items():
            with self.subTest(typed=typed):
                self.terminal.type(typed)
                self.terminal.wait_for(typed + hint)
                self.terminal.type("\x15")

    def test_help_describes_a_command_and_a_group(self):
        self.assertEqual(self.enter("help getdel"), (
            "\n  GETDEL key\n  summary: Returns the string value of a key after deleting the key.\n"
            "  since: 6.2.0\n  group: string\n\n"))
        group = self.enter("help @transactions")
        self.assertEqual(re.findall(r"^  ([A-Z]+) ", group, re.M), ["DISCARD", "EXEC", "MULTI", "UNWATCH", "WATCH"])

    def test_help_knows_every_command_of_the_server(self):
        for name in self.client.call("COMMAND", "LIST"):
            with self.subTest(command=name):
                self.assertIn("  " + name.upper().replace("|", " "), self.enter("help " + name.replace("|", " ")))

    def test_the_tab_key_completes_commands(self):
        self.terminal.type("RANDOMK\t")
        self.terminal.wait_for("RANDOMKEY")

    def test_a_connection_that_was_killed_is_made_again(self):
        self.enter("SELECT 2", prompt="[2]> ")
        self.client.call("CLIENT", "KILL", "TYPE", "NORMAL", "SKIPME", "YES")
        self.terminal.type("PING\r")
        self.terminal.wait_for("Error: Server closed the connection\nnot connected> ")
        self.assertEqual(self.enter("PING", prompt="[2]> "), "PONG\n")


class InScripts(CliTestCase):
    def test_words_of_the_command_line_are_a_command(self):
        self.assertEqual(self.output_of("SET", "name", "a b"), "OK\n")
        self.assertEqual(self.output_of("GET", "name"), "a b\n")
        self.assertEqual(self.output_of("-x", "SET", "name", stdin=b"from\x00input"), "OK\n")
        self.assertEqual(self.output_of("-X", "place", "SET", "place", "value", stdin=b"name"), "OK\n")
        self.assertEqual(self.output_of("--no-raw", "GET", "name"), '"value"\n')
        self.assertEqual(self.output_of("-r", "3", "INCR", "counter"), "1\n2\n3\n")
        self.assertEqual(self.output_of("-n", "2", "DBSIZE"), "0\n")
        self.assertEqual(self.output_of("--csv", "MGET", "name", "counter"), '"value","3"\n')
        self.assertEqual(self.output_of("-3", "--json", "MGET", "name", "nosuch"), '["value",null]\n')
        self.assertEqual(self.output_of("-u", "redis://127.0.0.1:%d/2" % self.server.port, "DBSIZE"), "0\n")

    def test_an_error_is_the_exit_status_when_asked(self):
        output, status = self.cli("-e", "NOSUCH")
        self.assertEqual((output.strip(), status), ("ERR unknown command 'NOSUCH'", 1))

    def test_eval_runs_a_file(self):
        with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
            script.write("redis.call('SET', KEYS[1], ARGV[1])\nreturn {KEYS[1], redis.call('GET', KEYS[1])}\n")
            script.flush()
            self.assertEqual(self.output_of("--eval", script.name, "name", ",", "value"), "name\nvalue\n")

    def test_pipe_sends_any_number_of_commands(self):
        requests = b"".join(harness.encode("SET", "key:%d" % i, "value %d" % i) for i in range(PIPED))
        output = self.output_of("--pipe", stdin=requests)
        self.assertIn("errors: 0, replies: %d" % PIPED, output)
        self.assertEqual(self.client.call("DBSIZE"), PIPED)

    def test_pipe_counts_errors(self):
        output, status = self.cli("--pipe", stdin=b"SET a 1\r\nINCR a\r\nNOSUCH\r\n" + harness.encode("GET"))
        self.assertIn("errors: 2, replies: 4", output)
        self.assertEqual(status, 1)

    def test_scan_finds_every_key(self):
        for number in range(500):
            self.client.call("SET", "key:%d" % number, "")
        self.client.call("SET", "other \n key", "")
        found = self.output_of("--scan", "--pattern", "key:*").split()
        self.assertEqual(sorted(found), sorted("key:%d" % number for number in range(500)))
        self.assertEqual(self.output_of("--scan", "--pattern", "other*", "--quoted-pattern", '"other*"', "--count", "1000"),
                         "other \n key\n")


class Surveys(CliTestCase):
    def test_bigkeys_and_memkeys_find_the_largest(self):
        self.fill()
        output = self.output_of("--bigkeys")
        self.assertIn("Sampled 10 keys in the keyspace!", output)
        self.assertIn('Biggest string found "key:10" has 10240 bytes', output)
        self.assertIn("10 strings with 20460 bytes (100.00% of keys, avg size 2046.00)", output)
        output = self.output_of("--memkeys")
        self.assertRegex(output, r'Biggest string found "key:10" has \d+ bytes')

    def test_hotkeys_wants_frequencies(self):
        self.fill()
        output, status = self.cli("--hotkeys")
        self.assertIn("ERR An LFU maxmemory policy is not selected, access frequency not tracked.", output)
        self.assertEqual(status, 1)
        self.client.call("CONFIG", "SET", "maxmemory-policy", "allkeys-lfu")
        self.addCleanup(self.client.call, "CONFIG", "SET", "maxmemory-policy", "noeviction")
        self.fill()
        for _ in range(1000):
            self.client.call("GET", "key:3")
        self.assertRegex(self.output_of("--hotkeys"), r"hot key found with counter: \d+\s+keyname: \"?key:3")

    def test_latency_is_measured_with_pings(self):
        low, high, average, count = self.output_of("--latency", "-i", "1").split()
        self.assertLessEqual(float(low), float(average))
        self.assertLessEqual(float(average), float(high))
        self.assertGreater(int(count), 0)

    def test_stat_shows_the_server_at_work(self):
        self.fill()
        terminal = Terminal(clients.tool("redis-cli"), "-p", self.server.port, "--stat", "-i", "0.01")
        self.addCleanup(terminal.close)
        terminal.wait_for("keys       mem      clients")
        shown = terminal.wait_for("(+1)")
        keys, memory, connected, *_ = shown.splitlines()[-1].split()
        self.assertEqual(keys, "10")
        self.assertRegex(memory, r"^[0-9.]+[BKM]$")
        self.assertGreaterEqual(int(connected), 2)


class Benchmark(CliTestCase):
    TESTS = {"ping": ["PING_INLINE", "PING_MBULK"], "set": ["SET"], "get": ["GET"], "incr": ["INCR"], "mset": ["MSET (10 keys)"]}

    def benchmark(self, *words):
        """The names of the tests that ran."""
        output = self.output_of("-t", ",".join(self.TESTS), "-n", "2000", "--csv", *words, program="redis-benchmark")
        self.assertNotIn("rror", output)
        return re.findall(r'^"([^"]*)","[0-9.]+"', output, re.M)

    def test_its_default_tests_run(self):
        expected = [name for names in self.TESTS.values() for name in names]
        self.assertEqual(self.benchmark(), expected)
        self.assertEqual(self.benchmark("-P", "16", "-r", "1000", "-d", "100"), expected)
        self.assertEqual(self.benchmark("--threads", "2", "-c", "20", "-k", "0"), expected)
        self.assertEqual(self.client.call("DBSIZE") > 100, True)


del CliTestCase

if __name__ == "__main__":
    unittest.main()

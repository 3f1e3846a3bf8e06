"""Directives whose effect only a whole server shows: renamed commands, and settings that it refuses to start with. The recorded
texts are the reference's (8.0.2) where it has them."""

import os
import signal
import subprocess
import tempfile
import unittest

import harness

START_TIMEOUT_S = 10


def start_in_vain(configuration):
    """What a server says that must not start with this configuration file."""
    with tempfile.TemporaryDirectory(prefix="latchkey-e2e-") as directory:
        path = os.path.join(directory, "server.conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write("port 0\nunixsocket %s/socket\n" % directory + configuration)
        run = subprocess.run([os.environ["LATCHKEY_SERVER"], path], capture_output=True, text=True, timeout=START_TIMEOUT_S)
        assert run.returncode == 1, run
        return run.stdout + run.stderr


class RenamedCommands(harness.ServerTestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.NamedTemporaryFile("w", suffix=".conf", encoding="utf-8") as file:
            file.write('rename-command GET fetch\n'
                       'rename-command SET get\n'
                       'rename-command FLUSHALL ""\n'
                       'rename-command APPEND APPEND\n'
                       'rename-command INCR "count up"\n')
            file.flush()
            cls.options = {"include": file.name}
            super().setUpClass()

    def setUp(self):
        self.client = self.connect()

    def test_a_command_answers_to_its_new_name_in_any_case(self):
        self.client.call("GET", "key", "value")
        self.assertEqual(self.client.call("FETCH", "key"), "value")
        self.assertEqual(self.client.call("count up", "number"), 1)
        self.assertEqual(self.client.call("append", "other", "text"), 4)

    def test_its_old_name_is_unknown_as_is_that_of_a_removed_command(self):
        for name in ("SET", "incr"):
            self.assertEqual(self.client.error_of(name, "key", "1"),
                             "ERR unknown command '%s', with args beginning with: 'key' '1' " % name)
        self.assertEqual(self.client.error_of("FLUSHALL"), "ERR unknown command 'FLUSHALL'")

    def test_errors_name_it_as_it_was(self):
        self.assertEqual(self.client.error_of("fetch"), "ERR wrong number of arguments for 'get' command")

    def test_commands_about_commands_find_it_by_the_new_name_and_show_the_old_one(self):
        get, old, removed = self.client.call("COMMAND", "INFO", "fetch", "set", "flushall")
        self.assertEqual(get[0], "get")
        self.assertEqual([old, removed], [None, None])
        self.assertEqual(self.client.call("COMMAND", "INFO", "get")[0][0], "set")
        self.assertEqual(self.client.call("COMMAND", "DOCS", "fetch")[0], "get")
        self.assertEqual(self.client.call("COMMAND", "GETKEYS", "fetch", "key"), ["key"])
        self.assertEqual(self.client.error_of("COMMAND", "GETKEYS", "flushall"), "ERR Invalid command specified")
        names = self.client.call("COMMAND", "LIST")
        self.assertIn("set", names)
        self.assertNotIn("flushall", names)

    def test_figures_of_calls_keep_the_old_name(self):
        self.client.call("CONFIG", "RESETSTAT")
        self.client.call("FETCH", "key")
        self.assertIn("cmdstat_get:calls=1,", self.client.call("INFO", "commandstats"))

    def test_scripts_call_it_by_the_new_name(self):
        self.client.call("EVAL", "return redis.call('get', 'scripted', 'value')", 0)
        self.assertEqual(self.client.call("EVAL", "return redis.call('fetch', 'scripted')", 0), "value")
        self.assertTrue(self.client.error_of("EVAL", "return redis.call('set', 'k', 'v')", 0).startswith(
            "ERR Unknown Redis command called from script"))

    def test_it_works_in_a_transaction(self):
        self.client.call("MULTI")
        self.assertEqual(self.client.call("get", "key", "value"), "QUEUED")
        self.assertEqual(self.client.call("fetch", "key"), "QUEUED")
        self.assertEqual(self.client.call("EXEC"), ["OK", "value"])


class RefusedSettings(unittest.TestCase):
    def assert_refused(self, line, reason, before="# The line that is wrong comes next."):
        said = start_in_vain("%s\n%s\n" % (before, line))
        self.assertIn("*** FATAL CONFIG FILE ERROR (Redis 8.6.3) ***\nReading the configuration file, at line 4\n>>> '%s'\n%s\n"
                      % (line, reason), said)

    def test_a_command_that_is_not_there_cannot_be_renamed(self):
        self.assert_refused("rename-command NOSUCH other", "No such command in rename-command")
        self.assert_refused('rename-command "" other', "No such command in rename-command")
        self.assert_refused("rename-command config|get other", "No such command in rename-command")

    def test_a_command_cannot_take_the_name_of_another(self):
        self.assert_refused("rename-command GET set", "Target command name already exists")
        self.assert_refused("rename-command SET OTHER", "Target command name already exists", before="rename-command GET other")


class Watchdog(unittest.TestCase):
    def setUp(self):
        self.server = harness.Server(enable_debug_command="yes")
        self.addCleanup(self.server.stop)
        self.client = self.server.connect()
        self.addCleanup(self.client.close)

    def test_the_period_is_no_shorter_than_two_ticks(self):
        self.client.call("CONFIG", "SET", "watchdog-period", "1")
        self.assertEqual(self.client.call("CONFIG", "GET", "watchdog-period"), ["watchdog-period", "200"])
        self.client.call("CONFIG", "SET", "watchdog-period", "0")
        self.assertEqual(self.client.call("CONFIG", "GET", "watchdog-period"), ["watchdog-period", "0"])

    def test_a_loop_that_stops_is_reported_and_goes_on(self):
        self.client.call("CONFIG", "SET", "watchdog-period", "200")
        self.client.call("DEBUG", "SLEEP", "0.4")
        self.assertIn("--- WATCHDOG TIMER EXPIRED ---", self.server.log())
        self.assertIn("------ STACK TRACE DONE ------", self.server.log())
        self.assertEqual(self.client.call("PING"), "PONG")

    def test_sigalrm_asks_where_the_server_stands(self):
        os.kill(self.server.process.pid, signal.SIGALRM)
        self.assertEqual(self.client.call("PING"), "PONG")
        self.assertIn("Received SIGALRM", self.server.log())


if __name__ == "__main__":
    unittest.main()

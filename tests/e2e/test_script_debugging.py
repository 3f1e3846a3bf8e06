"""SCRIPT DEBUG: a script is taken through its lines, in the server or in a child of it."""

import time
import unittest
from pathlib import Path

import harness
import scenes

SCRIPT = """local sum = 0
local words = {1, 'two', {3}}
redis.call('SET', KEYS[1], ARGV[1])
for i = 1, 3 do
  sum = sum + i
end
redis.breakpoint()
redis.debug('sum', sum)
return {redis.call('GET', KEYS[1]), sum}"""

UNKNOWN = ["<error> Unknown Redis Lua debugger command or wrong number of arguments."]


class Debugging(harness.ServerTestCase):
    options = {"enable-debug-command": "yes"}

    def begin(self, mode, script=SCRIPT):
        client = self.connect()
        self.assertEqual(client.call("SCRIPT", "DEBUG", mode), "OK")
        self.assertEqual(client.call("EVAL", script, "1", "key", "value"),
                         ["* Stopped at 1, stop reason = step over", "-> 1   " + script.splitlines()[0]])
        return client

    def end(self, client):
        self.assertEqual(client.read_until_closed(), b"")

    def test_a_script_is_run_line_by_line(self):
        client = self.begin("SYNC")
        self.assertEqual(client.call("step"), ["* Stopped at 2, stop reason = step over",
                                               "-> 2   local words = {1, 'two', {3}}"])
        self.assertEqual(client.call("n")[0], "* Stopped at 3, stop reason = step over")
        self.assertEqual(client.call("n"), ["<redis> SET key value", '<reply> "+OK"',
                                            "* Stopped at 4, stop reason = step over", "-> 4   for i = 1, 3 do"])
        self.assertEqual(client.call("print"), ["<value> sum = 0", '<value> words = {1; "two"; {3}}'])
        self.assertEqual(client.call("p", "sum"), ["<value> 0"])
        self.assertEqual(client.call("p", "ARGV"), ['<value> {"value"}'])
        self.assertEqual(client.call("p", "nothing"), ["No such variable."])
        self.assertEqual(client.call("c"), ["* Stopped at 8, stop reason = redis.breakpoint() called",
                                            "-> 8   redis.debug('sum', sum)"])
        self.assertEqual(client.call("c"), ['<debug> line 8: "sum", 6', "<endsession>"])
        self.assertEqual(client.read(), ["value", 6])
        self.end(client)
        with self.connect() as other:
            self.assertEqual(other.call("GET", "key"), "value")

    def test_breakpoints_stop_a_script(self):
        client = self.begin("SYNC")
        self.assertEqual(client.call("b"), ["No breakpoints set. Use 'b <line>' to add one."])
        self.assertEqual(client.call("b", "5"), ["   4   for i = 1, 3 do", "  #5     sum = sum + i", "   6   end"])
        self.assertEqual(client.call("break"), ["1 breakpoints set:", "  #5     sum = sum + i"])
        self.assertEqual(client.call("b", "99", "-1", "x"),
                         ["Wrong line number.", "No breakpoint in the specified line.", "Invalid argument:'x'"])
        self.assertEqual(client.call("continue"), ["* Stopped at 5, stop reason = break point", "->#5     sum = sum + i"])
        self.assertEqual(client.call("t"), ["In top level:", "->#5     sum = sum + i"])
        self.assertEqual(client.call("b", "0"), ["All breakpoints removed."])
        self.assertEqual(client.call("list", "2", "1"), ["   1   local sum = 0", "   2   local words = {1, 'two', {3}}",
                                                        "   3   redis.call('SET', KEYS[1], ARGV[1])"])
        self.assertEqual(len(client.call("whole")), len(SCRIPT.splitlines()))
        self.assertEqual(client.call("a"), ["<endsession>"])
        error = client.read()
        self.assertTrue(str(error).startswith("ERR script aborted for user request"), error)
        self.end(client)

    def test_code_and_commands_are_run_in_between(self):
        client = self.begin("SYNC")
        self.assertEqual(client.call("e", "1", "+", "1"), ["<retval> 2"])
        self.assertEqual(client.call("eval", "return", "{a = KEYS[1]}"), ['<retval> {["a"]="key"}'])
        self.assertEqual(client.call("e", "a b"), ["<error> ldb_eval:1: '=' expected near 'b'"])
        self.assertEqual(client.call("e", "error('x')"), ["<error> ldb_eval:1: x"])
        self.assertEqual(client.call("r", "RPUSH", "list", "a", "b"), ["<redis> RPUSH list a b", "<reply> 2"])
        self.assertEqual(client.call("redis", "LRANGE", "list", "0", "-1"),
                         ["<redis> LRANGE list 0 -1", '<reply> ["a","b"]'])
        self.assertEqual(client.call("r", "GET", "none"), ["<redis> GET none", "<reply> NULL"])
        self.assertEqual(client.call("r", "INCR", "list")[1],
                         "<error> -WRONGTYPE Operation against a key holding the wrong kind of value")
        self.assertEqual(client.call("r", "nosuch"),
                         ["<redis> nosuch", "<error> Unknown Redis command called from script"])
        self.assertEqual(client.call("nosuch"), UNKNOWN)
        self.assertEqual(client.call("e"), UNKNOWN)
        self.assertEqual(client.call("maxlen", "5"), ["<value> replies are truncated at 60 bytes."])
        self.assertEqual(client.call("e", "string.rep('x', 100)"),
                         ['<retval> "' + "x" * 50 + " ...",
                          "<hint> The above reply was trimmed. Use 'maxlen 0' to disable trimming."])
        self.assertEqual(client.call("m", "0"), ["<value> replies are unlimited."])
        client.close()

    def test_what_a_forked_session_writes_is_forgotten(self):
        with self.connect() as other:
            other.call("FLUSHALL")
            client = self.begin("YES")
            # The server goes on meanwhile.
            self.assertEqual(other.call("SET", "other", "1"), "OK")
            self.assertEqual(client.call("r", "SET", "key", "1"), ["<redis> SET key 1", '<reply> "+OK"'])
            self.assertEqual(client.call("c")[0], "* Stopped at 8, stop reason = redis.breakpoint() called")
            self.assertEqual(client.call("c")[-1], "<endsession>")
            self.assertEqual(client.read(), ["value", 6])
            self.end(client)
            self.assertIsNone(other.call("GET", "key"))

    def test_a_script_whose_user_leaves_goes_on(self):
        client = self.begin("SYNC")
        client.close()
        with self.connect() as other:
            self.assertEqual(other.call("GET", "key"), "value")

    def test_an_endless_script_whose_user_leaves_ends(self):
        with self.connect() as other:
            other.call("CONFIG", "SET", "busy-reply-threshold", "100")
            self.addCleanup(lambda: self.connect().call("CONFIG", "SET", "busy-reply-threshold", "5000"))
            for name, script in (("lines", "local i = 0\nwhile true do\n  i = i + 1\nend"),
                                 ("one line", "while true do end"),
                                 ("protected", "while true do\n  pcall(function()\n    while true do end\n  end)\nend")):
                with self.subTest(name):
                    self.begin("SYNC", script).close()
                    # Nobody is served until it has ended.
                    self.assertEqual(other.call("PING"), "PONG")
            self.begin("YES", "while true do end").close()
            pid = self.server.process.pid
            children = Path(f"/proc/{pid}/task/{pid}/children")
            self.eventually(lambda: not children.read_text())

    def test_a_user_who_is_gone_before_the_session_begins(self):
        for mode in ("SYNC", "YES"):
            with self.subTest(mode=mode):
                busy, client = self.connect(), self.connect()
                self.assertEqual(client.call("PING"), "PONG")
                busy.send("DEBUG", "SLEEP", "0.5")
                time.sleep(0.1)
                client.send_raw(harness.encode("SCRIPT", "DEBUG", mode) + harness.encode("EVAL", "return 1", "0"))
                scenes.reset(client)
                self.assertEqual(busy.read(), "OK")
                self.assertEqual(self.connect().call("PING"), "PONG")

    def test_what_is_no_script_is_not_debugged(self):
        with self.connect() as client:
            self.assertEqual(client.call("SCRIPT", "DEBUG", "YES"), "OK")
            self.assertEqual(client.error_of("EVALSHA", "0" * 40, "0"),
                             "ERR Please use EVAL instead of EVALSHA for debugging")
            self.assertEqual(client.call("SCRIPT", "DEBUG", "NO"), "OK")
            self.assertEqual(client.call("EVAL", "return 1", "0"), 1)
            self.assertEqual(client.error_of("SCRIPT", "DEBUG", "MAYBE"), "ERR Use SCRIPT DEBUG YES/SYNC/NO")
            client.call("SCRIPT", "DEBUG", "SYNC")
            self.assertEqual(client.call("EVAL", "retur x", "0"), ["<endsession>"])
            self.assertIn("Error compiling script", str(client.read()))


if __name__ == "__main__":
    unittest.main()

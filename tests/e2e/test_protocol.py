"""Requests as bytes: shapes, pieces, and what is answered to those that are none. The recorded answers are the reference's
(8.0.2)."""

import unittest

import harness

# Bytes that are not, or not quite, requests; what comes back; whether the connection is closed then.
RECORDED = {
    "an empty line is ignored": (b"\r\nPING\r\n", b"+PONG\r\n", False),
    "a line of blanks is ignored": (b"  \t \r\nPING\r\n", b"+PONG\r\n", False),
    "an array of nothing is ignored": (b"*0\r\nPING\r\n", b"+PONG\r\n", False),
    "an array of less than nothing is ignored": (b"*-10\r\nPING\r\n", b"+PONG\r\n", False),
    "too many arguments": (b"*3000000000\r\n", b"-ERR Protocol error: invalid multibulk length\r\n", True),
    "one argument more than an int holds": (b"*2147483648\r\n", b"-ERR Protocol error: invalid multibulk length\r\n", True),
    "a count that is no number": (b"*abc\r\n", b"-ERR Protocol error: invalid multibulk length\r\n", True),
    "a count that is not there": (b"*\r\n", b"-ERR Protocol error: invalid multibulk length\r\n", True),
    "a count with a blank": (b"* 1\r\n", b"-ERR Protocol error: invalid multibulk length\r\n", True),
    "a count with a leading zero": (b"*01\r\n", b"-ERR Protocol error: invalid multibulk length\r\n", True),
    "a count of digits without end": (b"*" + b"1" * 70000, b"-ERR Protocol error: too big mbulk count string\r\n", True),
    "an argument without its mark": (
        b"*3\r\n$3\r\nSET\r\n$1\r\nx\r\nfooz\r\n", b"-ERR Protocol error: expected '$', got 'f'\r\n", True),
    "a line break for a mark": (b"*1\r\n\rfoo\r\n", b"-ERR Protocol error: expected '$', got ' '\r\n", True),
    "a byte that is no text for a mark": (b"*1\r\n\xfffoo\r\n", b"-ERR Protocol error: expected '$', got '\xff'\r\n", True),
    "a negative length": (b"*1\r\n$-10\r\n", b"-ERR Protocol error: invalid bulk length\r\n", True),
    "a length over the limit": (b"*1\r\n$2000000000\r\n", b"-ERR Protocol error: invalid bulk length\r\n", True),
    "a length that is no number": (b"*1\r\n$blabla\r\n", b"-ERR Protocol error: invalid bulk length\r\n", True),
    "a length with a sign": (b"*1\r\n$+4\r\nPING\r\n", b"-ERR Protocol error: invalid bulk length\r\n", True),
    "a length with a leading zero": (b"*1\r\n$04\r\nPING\r\n", b"-ERR Protocol error: invalid bulk length\r\n", True),
    "a length of digits without end": (
        b"*1\r\n$" + b"1" * 70000, b"-ERR Protocol error: too big bulk count string\r\n", True),
    "a command without a name": (
        b"*1\r\n$0\r\n\r\nPING\r\n", b"-ERR unknown command ''\r\n+PONG\r\n", False),
    "any two bytes end an argument": (b"*1\r\n$4\r\nPINGxx*1\r\n$4\r\nPING\r\n", b"+PONG\r\n+PONG\r\n", False),
    "only a line feed ends a line": (b"PING\nPING\n", b"+PONG\r\n+PONG\r\n", False),
    "a carriage return is a blank inside a line": (b"PING\rx\r\n", b"$1\r\nx\r\n", False),
    "double quotes and escapes": (b'echo "a\\n\\x41\\q\\""\r\n', b'$5\r\na\nAq"\r\n', False),
    "single quotes": (b"echo 'a\\'b\\n'\r\n", b"$5\r\na'b\\n\r\n", False),
    "quotes that are not closed": (b'echo "abc\r\n', b"-ERR Protocol error: unbalanced quotes in request\r\n", True),
    "text behind a closing quote": (
        b'set "a"b c\r\nping\r\n', b"-ERR Protocol error: unbalanced quotes in request\r\n", True),
    "a line without end": (b"A" * 70000, b"-ERR Protocol error: too big inline request\r\n", True),
    "nothing is read behind an error": (
        b"*1\r\nfoo\r\nPING\r\nPING\r\n", b"-ERR Protocol error: expected '$', got 'f'\r\n", True),
    "what came before an error is answered": (
        b"PING\r\n*1\r\nfoo\r\n", b"+PONG\r\n-ERR Protocol error: expected '$', got 'f'\r\n", True),
    "an unknown command": (
        b"FOO bar\r\n", b"-ERR unknown command 'FOO', with args beginning with: 'bar' \r\n", False),
    "a post to a web server": (b"POST / HTTP/1.1\r\nHost: x\r\n\r\n", b"", True),
    "a request to a web server": (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"", True),
    "a header line": (b"host: x\r\nPING\r\n", b"", True),
}


def answer(server, request, closed):
    with server.connect() as client:
        client.send_raw(request)
        if not closed:
            client.send("ECHO", "end")
        data = client.read_until_closed() if closed else b""
        while not closed and not data.endswith(b"$3\r\nend\r\n"):
            data += client.socket.recv(1 << 16)
        return data.removesuffix(b"$3\r\nend\r\n")


class Requests(harness.ServerTestCase):
    def test_bytes_are_answered_as_the_reference_does(self):
        for name, (request, reply, closed) in RECORDED.items():
            with self.subTest(name):
                self.assertEqual(answer(self.server, request, closed), reply)

    def test_an_attack_from_a_web_page_is_reported_once_a_minute(self):
        answer(self.server, b"POST / HTTP/1.1\r\n\r\n", True)
        answer(self.server, b"POST / HTTP/1.1\r\n\r\n", True)
        self.assertEqual(self.server.log().count("Possible SECURITY ATTACK detected"), 1)

    def test_a_request_may_arrive_byte_by_byte(self):
        client = self.connect()
        for byte in harness.encode("SET", "key", "value") + b"GET key\r\n":
            client.send_raw(bytes([byte]))
        self.assertEqual([client.read(), client.read()], ["OK", "value"])

    def test_a_large_argument_may_arrive_in_pieces(self):
        client = self.connect(binary=True)
        value = bytes(range(256)) * 40_000
        request = harness.encode("SET", "large", value) + harness.encode("GET", "large") + harness.encode("PING")
        for start in range(0, len(request), 777_777):
            client.send_raw(request[start : start + 777_777])
        self.assertEqual([client.read(), client.read(), client.read()], [b"OK", value, b"PONG"])

    def test_a_pipeline_is_answered_in_order_however_long_it_is(self):
        client = self.connect()
        count = 20_000
        requests = b"".join(harness.encode("SET", "key", i) + harness.encode("GET", "key") for i in range(count))
        half = len(requests) // 2
        client.send_raw(requests[:half])
        client.send_raw(requests[half:])
        for i in range(count):
            self.assertEqual(client.read(), "OK")
            self.assertEqual(client.read(), str(i))

    def test_a_request_may_have_many_arguments(self):
        client = self.connect()
        keys = [word for i in range(100_000) for word in (f"many:{i}", i)]
        self.assertEqual(client.call("MSET", *keys), "OK")
        self.assertEqual(client.call("GET", "many:99999"), "99999")

    def test_the_largest_argument_is_configured(self):
        admin = self.connect()
        admin.call("CONFIG", "SET", "proto-max-bulk-len", "2mb")
        self.addCleanup(admin.call, "CONFIG", "SET", "proto-max-bulk-len", "512mb")
        value = "x" * (2 * 1024 * 1024)
        self.assertEqual(admin.call("SET", "just", value), "OK")
        refused = self.connect()
        refused.send_raw(b"*1\r\n$2097153\r\n")
        self.assertEqual(refused.read_until_closed(), b"-ERR Protocol error: invalid bulk length\r\n")


class LargeValues(harness.ServerTestCase):
    """A large value is the buffer it came in, so it must be whole whatever stood around it, and whatever happens to it next."""

    options = {"appendonly": "yes", "enable_debug_command": "yes"}

    def setUp(self):
        self.client = self.connect()

    def value(self, size):
        return ("%07d," % size * (size // 8 + 1))[:size]

    def test_values_of_all_sizes_are_kept(self):
        for size in (100_000, 131_071, 131_072, 140_000, 1_000_000, 20_000_000):
            for key in ("k", "k" * 300, "k" * 200_000):
                with self.subTest(size=size, key=len(key)):
                    self.assertEqual(self.client.call("SET", key, self.value(size)), "OK")
                    self.assertEqual(self.client.call("GET", key), self.value(size))
                    taken = self.client.call("MEMORY", "USAGE", key)
                    self.assertLess(taken, 1.26 * (size + 2 * len(key)) + 20_000)

    def test_a_pipeline_of_them(self):
        for number in range(20):
            self.client.send("SET", "key:%d" % number, self.value(200_000 + number))
            self.client.send("STRLEN", "key:%d" % number)
        for number in range(20):
            self.assertEqual(self.client.read(), "OK")
            self.assertEqual(self.client.read(), 200_000 + number)
        self.assertEqual(self.client.call("GET", "key:7"), self.value(200_007))

    def test_they_are_changed_like_others(self):
        value = self.value(300_000)
        self.client.call("SET", "key", value)
        self.assertEqual(self.client.call("APPEND", "key", "end"), 300_003)
        self.assertEqual(self.client.call("SETRANGE", "key", "0", "start"), 300_003)
        self.assertEqual(self.client.call("GET", "key"), "start" + value[5:] + "end")
        self.assertEqual(self.client.call("SET", "key", value, "GET", "EX", "1000"), "start" + value[5:] + "end")
        self.assertEqual(self.client.call("GETSET", "key", value[::-1]), value)
        self.client.call("COPY", "key", "copied")
        self.client.call("DEL", "key")
        self.assertEqual(self.client.call("GET", "copied"), value[::-1])

    def test_every_way_to_set_them(self):
        value = self.value(250_000)
        self.client.call("MULTI")
        self.client.call("SET", "queued", value)
        self.client.call("EXEC")
        self.client.call("EVAL", "return redis.call('SET', KEYS[1], ARGV[1])", "1", "scripted", value)
        self.client.call("SETNX", "absent", value)
        self.client.call("PSETEX", "timed", "1000000", value)
        self.client.call("MSET", "first", value, "second", value)
        self.assertIsNone(self.client.call("SET", "absent", "x" * 200_000, "NX"))
        for key in ("queued", "scripted", "absent", "timed", "first", "second"):
            self.assertEqual(self.client.call("GET", key), value, key)

    def test_they_are_written_to_the_append_only_file(self):
        value = self.value(400_000)
        self.client.call("SET", "kept", value)
        self.client.call("SET", "timed", value, "EX", "1000")
        self.assertEqual(self.client.call("DEBUG", "LOADAOF"), "OK")
        self.assertEqual(self.client.call("GET", "kept"), value)
        self.assertEqual(self.client.call("GET", "timed"), value)


class HalfClosed(harness.ServerTestCase):
    def test_who_has_said_all_still_gets_all_replies(self):
        admin = self.connect()
        admin.call("SET", "value", "v" * 100_000)
        client = self.connect()
        client.send_raw(harness.encode("GET", "value") * 200)
        client.socket.shutdown(1)
        self.assertEqual(len(client.read_until_closed()), 200 * (len("$100000\r\n") + 100_000 + 2))

    def test_a_request_that_never_ends_is_dropped_with_its_connection(self):
        admin = self.connect()
        client = self.connect()
        client.send_raw(b"*2\r\n$3\r\nGET\r\n")
        client.socket.shutdown(1)
        self.assertEqual(client.read_until_closed(), b"")
        self.eventually(lambda: len(admin.call("CLIENT", "LIST").splitlines()) == 1)


if __name__ == "__main__":
    unittest.main()

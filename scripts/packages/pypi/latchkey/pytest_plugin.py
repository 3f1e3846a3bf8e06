"""A pytest plugin: a server beside the tests, and a server of its own within it (a space) for each test.

    redis_url        the URL of this test's space; what a client or the code under test is given
    latchkey_space   the same as an object: .url, .name, .server
    latchkey_clock   moves the clock of this test's space: .advance("30m"), .set("2024-01-01T00:00:00Z"), .freeze(), .resume(), .reset()
    latchkey_server  latchkey.Server, one for each process of the run; starts when the first test asks for it

Under pytest-xdist each worker has a server of its own. It starts in some milliseconds, takes some megabytes, and ends with its worker,
however that ends, so there is nothing for the workers to agree on, on this machine or on several; and since a server runs commands on
one thread, workers do not wait for each other. With `--latchkey-url` (or LATCHKEY_URL) no server is started and all workers use the one that runs there,
each test still in a space of its own.

In pytest.ini, `latchkey_directives` has lines of a configuration file, such as `emulate redis 7.0`.
"""

import os
import re
import shlex
import socket
import ssl
import urllib.parse
import uuid

import pytest

from ._server import LatchkeyError, space, start


def pytest_addoption(parser):
    group = parser.getgroup("latchkey")
    group.addoption("--latchkey-url", default=os.environ.get("LATCHKEY_URL"), metavar="URL",
                    help="use the Latchkey server that runs there instead of starting one (LATCHKEY_URL)")
    parser.addini("latchkey_directives", "lines of a configuration file for the server that tests run with", type="linelist")


class _Running:
    """A server somebody else has started and will end."""

    def __init__(self, url):
        self.url = url
        self.port = urllib.parse.urlsplit(url).port

    def space(self, name=None):
        return space(self.url, name)

    def stop(self):
        pass


@pytest.fixture(scope="session")
def latchkey_server(pytestconfig):
    """The server of this process of the run."""
    running = pytestconfig.getoption("--latchkey-url")
    if running:
        server = _Running(running)
    else:
        lines = [shlex.split(line) for line in pytestconfig.getini("latchkey_directives")]
        server = start(directives=[(name, words) for name, *words in lines])
    yield server
    server.stop()


class Space:
    """A server of its own: `url`, `name`, and the `server` it is in."""

    def __init__(self, server, name):
        self.server, self.name = server, name
        self.url = server.space(name)


@pytest.fixture
def latchkey_space(latchkey_server, request):
    """A space that nobody else is in, whose name begins with the test's."""
    readable = re.sub("[^A-Za-z0-9_.-]", "-", request.node.name)[:80]
    return Space(latchkey_server, f"{readable}-{uuid.uuid4().hex}")


@pytest.fixture
def redis_url(latchkey_space):
    """The URL of this test's space."""
    return latchkey_space.url


@pytest.fixture
def latchkey_clock(latchkey_space):
    """The clock of this test's space."""
    clock = Clock(latchkey_space.url)
    yield clock
    clock.close()


class Clock:
    """CLOCK of the server at `url`, over a connection of its own. Durations are "30m", "1.5s", or seconds as a number.

    What is due when the clock moves has happened when the call returns: keys have expired, and clients that waited with a timeout have
    their reply.
    """

    def __init__(self, url):
        parts = urllib.parse.urlsplit(url)
        try:
            self._link = socket.create_connection((parts.hostname, parts.port or 6379))
        except OSError as error:
            raise LatchkeyError(f"There is no server at {parts.hostname}:{parts.port or 6379}: {error.strerror}.") from None
        if parts.scheme == "rediss":
            self._link = ssl.create_default_context().wrap_socket(self._link, server_hostname=parts.hostname)
        self._replies = self._link.makefile("rb")
        self._call("AUTH", urllib.parse.unquote(parts.username or "default"), urllib.parse.unquote(parts.password or ""))

    def advance(self, duration):
        """Moves the clock forward through all that is due; returns the new Unix time in seconds."""
        if isinstance(duration, (int, float)):
            duration = f"{duration * 1000:.0f}ms"
        return self._call("CLOCK", "ADVANCE", duration) / 1000

    def set(self, time):
        """To "2024-01-01T00:00:00Z", or Unix time in seconds; returns it in seconds."""
        return self._call("CLOCK", "SET", str(time)) / 1000

    def freeze(self):
        return self._call("CLOCK", "FREEZE") / 1000

    def resume(self):
        return self._call("CLOCK", "RESUME") / 1000

    def reset(self):
        """Back to the machine's time."""
        return self._call("CLOCK", "RESET") / 1000

    def close(self):
        self._replies.close()
        self._link.close()

    def _call(self, *words):
        """The reply to a command that is answered by a status or a number."""
        parts = [word.encode() for word in words]
        self._link.sendall(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts))
        line = self._replies.readline().decode()
        if not line.endswith("\r\n"):
            raise LatchkeyError(f"The server closed the connection on {' '.join(words)}.")
        if line[0] == "-":
            raise LatchkeyError(f"The server answered {words[0]} {words[1]} with: {line[1:].strip()}")
        return int(line[1:]) if line[0] == ":" else line[1:].strip()


"""Starts a server for tests and ends it. Each is a process of its own, on a free port, that ends with this one."""

import atexit
import collections.abc
import errno
import os
import platform
import re
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse
import uuid

START_TIMEOUT_S = 30
STOP_TIMEOUT_S = 10  # the server finishes what it writes before it ends; after this it is killed


class LatchkeyError(Exception):
    """Says what is wrong and what to do."""


def binary_path():
    """The path of the program: what LATCHKEY_SERVER_BINARY names, or the one that came with this package."""
    named = os.environ.get("LATCHKEY_SERVER_BINARY")
    if named:
        if os.path.exists(named):
            return os.path.abspath(named)
        raise LatchkeyError(f"LATCHKEY_SERVER_BINARY names {named}, which is not there.")
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "latchkey-server")
    if sys.platform != "linux" or not os.path.exists(path):
        raise LatchkeyError(
            f"latchkey has no program for {sys.platform} on {platform.machine()}; its wheels are for Linux on x86_64 and aarch64. Run it in "
            "a Linux container, or build it on this machine and name the program in the environment variable LATCHKEY_SERVER_BINARY.")
    return path


def cannot_run(program, error):
    """The error for a program that could not be run, from what the system said."""
    if error.errno == errno.EACCES:
        return LatchkeyError(f"{program} may not be executed. Run chmod +x on it; if that does not help, the file system it lies on is "
                             "mounted noexec.")
    if error.errno == errno.ENOENT:
        return LatchkeyError(f"{program} is not there, or the C library it needs is not. Install latchkey again.")
    if error.errno == errno.ENOEXEC:
        return LatchkeyError(f"{program} is not for this kind of machine, {platform.machine()}. Install latchkey again, here.")
    return LatchkeyError(f"{program} cannot be run: {error.strerror}.")


def space(url, name=None):
    """`Server.space` where only the server's URL is known."""
    name = uuid.uuid4().hex if name is None else name
    if not isinstance(name, str) or not re.fullmatch("[!-~]{1,128}", name) or name.lower() == "main":
        raise LatchkeyError(f'The name of a space has 1 to 128 printable ASCII characters, no blanks, and is not "main"; this one is {name!r}.')
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("redis", "rediss"):
        raise LatchkeyError(f"The URL of a space needs a host and a port; {url} has none.")
    password = parts.password or "x"  # any will do where the server has none
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=f"space-{urllib.parse.quote(name, safe='')}:{password}@{host}").geturl()


class Server:
    """A running server; `latchkey.start()` makes it.

    url   redis://127.0.0.1:PORT, with the password if `requirepass` was given
    port  a number
    pid   of its process
    """

    def __init__(self, process, directory, url):
        self._process, self._directory = process, directory
        self.url = url
        self.port = urllib.parse.urlsplit(url).port
        self.pid = process.pid
        self._owner = os.getpid()

    def space(self, name=None):
        """The URL of a server of its own within this one, made when its first client comes: databases, channels, configuration, clock.
        The same name gives the same space; without one each call gives a new space."""
        return space(self.url, name)

    def stop(self):
        """Ends the server, and returns when it has ended. May be called again. In a process forked from the one that started the
        server it does nothing."""
        if self._owner != os.getpid():
            return
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._directory:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory = None
        atexit.unregister(self.stop)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def start(port="auto", config=None, directives=None, binary=None, timeout=START_TIMEOUT_S):
    """Starts a server and returns it when it takes requests.

    port        to listen on; a free one unless given
    config      a configuration file. Without one the server listens on this machine only, and saves nothing
    directives  by name, such as {"maxmemory": "100mb", "emulate": ["redis", "7.0"], "appendonly": True}; or a list of such pairs, in
                which a name may come again: [("user", ["alice", "on"]), ("user", ["bob", "on"])]
    binary      the program to run instead of the one that came with this package
    timeout     how long it may take until it is ready, in seconds

    Raises LatchkeyError. The server ends with this process, however that ends.
    """
    program = os.fspath(binary) if binary else binary_path()
    directives = list(directives.items() if isinstance(directives, collections.abc.Mapping) else directives or ())
    try:
        directory = tempfile.mkdtemp(prefix="latchkey-")
    except OSError as error:
        raise LatchkeyError(f"No folder can be made for temporary files ({error}). Free some space there, or name another place in the "
                            "environment variable TMPDIR.") from None
    log = os.path.join(directory, "log")
    process = None
    try:
        with open(log, "ab") as errors:
            try:
                process = subprocess.Popen(_command(program, port, config, directives, directory), stdin=subprocess.DEVNULL,
                                           stdout=subprocess.PIPE, stderr=errors)
            except OSError as error:
                raise cannot_run(program, error) from None
        server = Server(process, directory, _with_password(_ready(process, log, port, timeout), directives))
    except BaseException:
        if process and process.poll() is None:
            process.kill()
            process.wait()
        shutil.rmtree(directory, ignore_errors=True)
        raise
    finally:
        if process:
            process.stdout.close()
    atexit.register(server.stop)
    return server


def _words(value):
    if isinstance(value, bool):
        return ["yes" if value else "no"]
    return [str(word) for word in value] if isinstance(value, (list, tuple)) else [str(value)]


def _with_password(url, directives):
    [password] = _words(dict(directives).get("requirepass", ""))
    return url.replace("redis://", f"redis://:{urllib.parse.quote(password, safe='')}@") if password else url


def _command(program, port, config, directives, directory):
    """The command line; what the caller says comes last and so counts."""
    if port != "auto" and not (isinstance(port, int) and 1 <= port <= 65535):
        raise LatchkeyError(f'port is a number from 1 to 65535 or "auto"; this one is {port!r}.')
    defaults = {"port": port}
    if not config:
        defaults.update({"bind": ["127.0.0.1", "-::1"], "save": "", "dir": directory})
    for name, _ in directives:
        defaults.pop(name, None)
    line = [program] + ([os.path.abspath(config)] if config else [])
    for name, value in [*defaults.items(), *directives, ("print-url", True), ("exit-with-parent", True)]:
        line += [f"--{name}", *_words(value)]
    return line


def _ready(process, log, port, timeout):
    """The URL, a line of standard output. The server logs there too until it has read its directives."""
    deadline = time.monotonic() + timeout
    output = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while not (url := re.search(rb"^((?:rediss?|unix)://.*)\n", output, re.MULTILINE)):
            if not selector.select(max(0, deadline - time.monotonic())):
                raise LatchkeyError(f"The server was not ready after {timeout} s, and was ended. Its log:\n{_text(log, output)}")
            part = os.read(process.stdout.fileno(), 4096)
            if not part:
                raise _could_not_start(process.wait(), _text(log, output), port)
            output += part
    return url[1].decode()


def _text(log, output):
    with open(log, "rb") as file:
        return (output + file.read()).decode(errors="replace").strip()


def _could_not_start(status, log, port):
    said = "\n".join(log.splitlines()[-8:])
    if "Address already in use" in log:
        return LatchkeyError(f"Port {port} is in use. Leave port out to get a free one, or end the program that has it. The server's log:\n{said}")
    if "bind: Permission denied" in log:
        return LatchkeyError(f"Port {port} is not for this user: ports below 1024 need root. Leave port out to get a free one. The server's "
                             f"log:\n{said}")
    if status == -signal.SIGILL:
        return LatchkeyError("This processor lacks instructions the server is built with (x86-64-v2, of 2009).")
    end = f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
    return LatchkeyError(f"The server {end} before it was ready. Its log:\n{said or '(empty)'}")

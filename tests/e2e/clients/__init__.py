"""Real clients of the server, driven by a test: redis-cli and the libraries that Debian ships.

    crew = clients.PhpRedis(port=server.port, count=40)
    crew[0].ask("set_nx_px", "lock", "token", 30000)    # 1, through phpredis
    crew.race("setnx", lambda i: ("lock", i))           # all forty at once; the list of answers
    crew.close()

Each client is a process of its own with a connection of its own. The verbs are those of worker.py beside this file.
"""

import json
import os
import shutil
import socket
import subprocess
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[2]
ANSWER_TIMEOUT_S = 60


NODE = Path(os.environ.get("LATCHKEY_NODE_DIR") or CHECKOUT / "build" / "node").absolute()
needs_node_modules = unittest.skipUnless((NODE / "complete").is_file(), "scripts/test has not installed Node's libraries")


def beside_node_modules(directory, script):
    """Copies a program for Node into `directory`, where it finds the libraries of tests/e2e/node; returns its path. Node looks
    for them beside the program and above it, and nowhere else."""
    link = Path(directory, "node_modules")
    if not link.is_symlink():
        link.symlink_to(NODE / "node_modules")
    return shutil.copy(script, directory)


class ClientError(Exception):
    """The library reported an error."""


def tool(name):
    """The reference's redis-cli, redis-benchmark... where scripts/reference has fetched it, else the machine's."""
    reference = Path(os.environ.get("LATCHKEY_REFERENCE_DIR") or CHECKOUT / "build" / "reference")
    for program in (reference / "bin" / (name + "-8.0"), shutil.which(name)):
        if program and Path(program).exists():
            return str(Path(program).absolute())
    raise AssertionError("no %s: install redis-tools" % name)


class Worker:
    """One client. send() and answer() in pairs, so that several can be under way."""

    def ask(self, verb, *arguments):
        self.send(verb, *arguments)
        return self.answer()


class Crew(list):
    """Some clients of one kind at one server."""

    def race(self, verb, arguments_of):
        """Lets all clients do one thing at once, with arguments_of(number of the client)."""
        for number, worker in enumerate(self):
            worker.send(verb, *arguments_of(number))
        return [worker.answer() for worker in self]


class LibraryWorker(Worker):
    def __init__(self, channel):
        self.channel = channel
        self.stream = channel.makefile("rw")

    def send(self, verb, *arguments):
        self.stream.write(json.dumps([verb, *arguments]) + "\n")
        self.stream.flush()

    def answer(self):
        line = self.stream.readline()
        if not line:
            raise AssertionError("the client's process has ended")
        answer = json.loads(line)
        if "error" in answer:
            raise ClientError(answer["error"])
        return answer["ok"]


class LibraryCrew(Crew):
    command = []

    def __init__(self, port, count):
        super().__init__()
        with tempfile.TemporaryDirectory(prefix="latchkey-e2e-") as directory:
            path = os.path.join(directory, "control")
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(path)
                listener.listen(count)
                listener.settimeout(ANSWER_TIMEOUT_S)
                self.process = subprocess.Popen([*self.command, path, str(port), str(count)])
                for _ in range(count):
                    channel, _ = listener.accept()
                    channel.settimeout(ANSWER_TIMEOUT_S)
                    self.append(LibraryWorker(channel))

    def close(self):
        for worker in self:
            worker.stream.close()
            worker.channel.close()
        self.process.wait(ANSWER_TIMEOUT_S)


class PythonRedis(LibraryCrew):
    """Debian's python3-redis, which its own python3 finds."""

    command = ["/usr/bin/python3", str(HERE / "worker.py")]


class PhpRedis(LibraryCrew):
    """phpredis, Debian's php-redis."""

    command = ["php", str(HERE / "worker.php")]


class RubyRedis(LibraryCrew):
    """Debian's ruby-redis."""

    command = ["ruby", str(HERE / "worker.rb")]


class RubySemaphores(LibraryCrew):
    """Semaphores made of a list of tokens, with ruby-redis: the verbs of semaphore.rb."""

    command = ["ruby", str(HERE / "semaphore.rb")]


class CliVerbs(Worker):
    """The verbs as the words one types into redis-cli; subclasses say how words get there."""

    VERBS = {
        "get": lambda key: [["GET", key]],
        "set": lambda key, value: [["SET", key, value]],
        "setnx": lambda key, value: [["SETNX", key, value]],
        "getset": lambda key, value: [["GETSET", key, value]],
        "multi_setnx_expire": lambda key, value, ttl: [
            ["MULTI"], ["SETNX", key, value], ["EXPIRE", key, ttl], ["EXEC"]],
        "eval": lambda script, keys, arguments: [["EVAL", script, len(keys), *keys, *arguments]],
        "set_nx_px": lambda key, value, ttl_ms: [["SET", key, value, "NX", "PX", ttl_ms]],
        "set_nx_ex": lambda key, value, ttl: [["SET", key, value, "NX", "EX", ttl]],
        "raw": lambda *words: [list(words)],
    }
    FLAGS = {"set", "set_nx_px", "set_nx_ex"}

    def reply(self, verb, text):
        try:
            value = json.loads(text)
        except ValueError:
            raise ClientError(text.strip()) from None
        return int(value == "OK") if verb in self.FLAGS else value


class CliSession(CliVerbs):
    """A redis-cli that reads its commands from a pipe."""

    def __init__(self, port):
        self.process = subprocess.Popen([tool("redis-cli"), "-p", str(port), "--json"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.under_way = None

    def send(self, verb, *arguments):
        lines = self.VERBS[verb](*arguments)
        self.under_way = (verb, len(lines))
        for words in lines:
            self.process.stdin.write(" ".join(self.quoted(str(word)) for word in words) + "\n")
        self.process.stdin.flush()

    @staticmethod
    def quoted(word):
        return '"%s"' % word.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

    def answer(self):
        verb, lines = self.under_way
        for _ in range(lines):
            text = self.process.stdout.readline()
            while text == "\n":
                text = self.process.stdout.readline()
        return self.reply(verb, text)

    def close(self):
        self.process.stdin.close()
        self.process.wait(ANSWER_TIMEOUT_S)
        self.process.stdout.close()


class CliCall(CliVerbs):
    """A redis-cli for each command, as a shell script calls it."""

    def __init__(self, port):
        self.port = port

    def send(self, verb, *arguments):
        (words,) = self.VERBS[verb](*arguments)
        command = [tool("redis-cli"), "-p", str(self.port), "--json", *map(str, words)]
        self.verb = verb
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def answer(self):
        return self.reply(self.verb, self.process.communicate(timeout=ANSWER_TIMEOUT_S)[0])


class RedisCli(Crew):
    """redis-cli in sessions."""

    def __init__(self, port, count):
        super().__init__(CliSession(port) for _ in range(count))

    def close(self):
        for worker in self:
            worker.close()


class RedisCliCalls(Crew):
    """redis-cli in a process for each command."""

    def __init__(self, port, count):
        super().__init__(CliCall(port) for _ in range(count))

    def close(self):
        pass

"""The two servers, and a stream run on both."""

import os
import select
import socket
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e"))
import harness  # noqa: E402

from . import commands, compare, resp, streams

DATABASES = 4
REPLY_TIMEOUT_S = 5
SHORT_DEADLINE_S = 0.012


class Connection:
    """A connection that hands out replies with their bytes."""

    def __init__(self, port):
        self.port = port
        self.socket = None
        self.connect()

    def connect(self):
        self.close()
        self.socket = socket.create_connection(("127.0.0.1", self.port), REPLY_TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.pushes = []
        self.buffer = bytearray()
        self.start = 0

    def close(self):
        if self.socket:
            self.socket.close()

    def send(self, data):
        try:
            self.socket.sendall(data)
        except OSError:
            pass  # the reply will tell

    def read(self):
        """The next reply; what a client that tracks is told before it is kept in `pushes`."""
        while True:
            try:
                reply, self.start = resp.parse(self.buffer, self.start)
                if self.start == len(self.buffer):
                    self.buffer.clear()
                    self.start = 0
                # SUNSUBSCRIBE is answered by a push.
                if reply.kind != ">" or reply.value[0].value != b"invalidate":
                    return reply
                self.pushes.append(reply)
                continue
            except resp.Incomplete:
                pass
            try:
                piece = self.socket.recv(1 << 16)
            except socket.timeout:
                return resp.Silent
            except OSError:
                return resp.Closed
            if not piece:
                return resp.Closed
            self.buffer += piece

    def read_all(self):
        """Everything until the server closes, or stays silent."""
        data = bytes(self.buffer[self.start :])
        self.socket.settimeout(0.3)
        try:
            while True:
                piece = self.socket.recv(1 << 16)
                if not piece:
                    return data + b"(closed)"
                data += piece
        except socket.timeout:
            return data
        except OSError:
            return data + b"(closed)"

    def call(self, *words):
        self.send(resp.encode([word if isinstance(word, bytes) else str(word).encode() for word in words]))
        return self.read()


class Side:
    """One of the servers."""

    def __init__(self, program):
        self.program = program
        self.server = None
        self.clients = {}
        self.start()

    def start(self):
        self.server = harness.Server(self.program, databases=DATABASES, enable_debug_command="yes", loglevel="warning")
        self.control = Connection(self.server.port)
        self.control.call("DEBUG", "SET-ACTIVE-EXPIRE", "0")

    def alive(self):
        return self.server.process.poll() is None

    def revive(self):
        """Starts the server again if it has ended; returns its log if so."""
        if self.alive():
            return None
        log = self.server.log()
        self.close_clients()
        self.server.process = None
        self.start()
        return log

    def close_clients(self):
        for client in self.clients.values():
            client.close()
        self.clients = {}

    def reset(self, settings):
        """An empty server with these settings, as a stream finds it."""
        self.close_clients()
        for words in (["CLIENT", "UNPAUSE"], ["CLIENT", "TRACKING", "OFF"], ["FLUSHALL"], ["SCRIPT", "FLUSH"], ["FUNCTION", "FLUSH"],
                      ["SELECT", "0"], ["ACL", "DELUSER", "anna", "berta", "carla"], ["ACL", "LOG", "RESET"]):
            if self.control.call(*words) in (resp.Closed, resp.Silent):
                self.restart()
                break
        self.control.call("CONFIG", "SET", *(word for setting in settings.items() for word in setting))

    def restart(self):
        self.close_clients()
        self.control.close()
        if self.alive():
            self.server.process.kill()
            self.server.process.wait()
        self.server.process = None
        self.start()

    def client(self, number):
        if number not in self.clients:
            self.clients[number] = Connection(self.server.port)
        return self.clients[number]

    def reconnect(self, number):
        self.clients.pop(number).close()

    def told(self, number):
        """The keys that a client has been told to forget by now, or none for all; in which messages is a matter of chance."""
        client = self.client(number)
        client.call("CLIENT", "ID")
        messages, client.pushes = client.pushes, []
        return sorted({key.value for message in messages for key in message.value[1].value or [message.value[1]]}, key=repr)

    def known_commands(self):
        reply = self.control.call("COMMAND", "LIST")
        return {name.value.decode().lower() for name in reply.value}

    def touch_all(self):
        """Lets the server find what has expired."""
        for db in range(DATABASES):
            self.control.call("SELECT", db)
            self.control.call("SCAN", "0", "COUNT", "1000000")

    def walk(self, number, words, options):
        """What a walk finds, each once and in order; of fields and members with scores, with these. Or the error."""
        pairs = words[0] == b"ZSCAN" or words[0] == b"HSCAN"
        found, cursor = set(), b"0"
        while True:
            reply = self.client(number).call(*words, cursor, *options)
            if reply.kind != "*" or len(reply.value) != 2:
                return reply.raw
            cursor = reply.value[0].value
            texts = [part.value for part in reply.value[1].value]
            found.update(zip(texts[::2], texts[1::2]) if pairs else texts)
            if cursor == b"0":
                return sorted(found)

    def wait(self, number, request):
        """Lets a client ask, and returns when it waits or has its answer: its number, and the answer or None."""
        client = self.client(number)
        ident = client.call("CLIENT", "ID").value
        client.send(request.encoded())
        end = time.monotonic() + REPLY_TIMEOUT_S
        while time.monotonic() < end:
            if select.select([client.socket], [], [], 0)[0]:
                return ident, client.read()
            listed = self.control.call("CLIENT", "LIST", "ID", ident).value
            if listed is None or b" flags=b" in listed:
                break
        return ident, None

    def release(self, number, ident, answer):
        """The answer of a client that waited, if only that there was nothing."""
        if answer is None:
            self.control.call("CLIENT", "UNBLOCK", ident)
            answer = self.client(number).read()
        return answer

    def dataset(self, known):
        """{(db, key): what there is to know about it}, and under (-1, b"") the digest of all."""
        self.touch_all()
        found = {}
        for db in range(DATABASES):
            self.control.call("SELECT", db)
            keys = self.control.call("KEYS", "*")
            for key in sorted(reply.value for reply in keys.value or []):
                kind = self.control.call("TYPE", key).value
                command, rest, ordered = commands.READERS.get(kind.decode(), (["TYPE"], [], True))
                reply = self.control.call(*command, key, *rest)
                content = reply.raw if ordered else sorted(part.raw for part in reply.value)
                encoding = self.control.call("OBJECT", "ENCODING", key).raw if "object" in known else b""
                deadline = self.control.call("PEXPIRETIME", key) if "pexpiretime" in known else None
                found[(db, key)] = (kind, content, encoding, deadline)
        # By now every key whose time is up has been found, and the digest is without it. Deadlines are in it, so that it is only
        # the same for a dataset that has none, and vector sets, whose digests are a server's own.
        def differs(entry):
            return entry[0] == b"vectorset" or (entry[3] and entry[3].raw != b":-1\r\n")

        if "debug" in known and not any(differs(entry) for entry in found.values()):
            found[(-1, b"")] = (b"digest", self.control.call("DEBUG", "DIGEST").raw, b"", None)
        return found


class Difference:
    """Where two servers part."""

    def __init__(self, step, what, ours, theirs, log=None):
        self.step = step
        self.what = what
        self.ours = ours
        self.theirs = theirs
        self.log = log

    def __str__(self):
        text = "%s\n  ours:      %s\n  reference: %s" % (self.what, *shown(self.ours, self.theirs))
        return text + ("\n  our server ended; the end of its log:\n%s" % self.log[-3000:] if self.log else "")


def shown(*values, most=300):
    """Two values as text; where they are long, from shortly before they part."""
    texts = [repr(value) for value in values]
    if max(map(len, texts)) <= most:
        return texts
    start = max(len(os.path.commonprefix(texts)) - most // 3, 0)
    return ["..."[: start] + text[start : start + most] + ("..." if len(text) > start + most else "") for text in texts]


def without_version(dump):
    """A payload without its last ten bytes: the version of the format that the server writes, and the checksum of all."""
    return dump and dump[:-10]


class Pair:
    def __init__(self, ours, reference):
        self.sides = (Side(ours), Side(reference))
        ours, theirs = (side.known_commands() for side in self.sides)
        self.known = ours & theirs
        self.not_shared = ours ^ theirs
        # MSETEX came with Redis 8.4.
        self.newer = "msetex" in theirs

    def close(self):
        for side in self.sides:
            side.close_clients()
            side.control.close()
            side.server.stop()

    def run(self, settings, steps):
        """The first Difference, or None."""
        for side in self.sides:
            side.reset(settings)
        self.queued = [None] * streams.CLIENTS
        self.anybody_tracks = False
        difference = None
        for number, step in enumerate(steps):
            difference = self._step(number, step)
            if difference:
                break
        else:
            difference = self._compare_datasets(len(steps)) or self._exchange(len(steps))
        log = self.sides[0].revive()
        self.sides[1].revive()
        if log and difference:
            difference.log = log
        elif difference and resp.Silent.raw in (difference.ours, difference.theirs):
            for side in self.sides:
                side.restart()
        return difference

    def _step(self, number, step):
        if isinstance(step, streams.Pipeline):
            return self._pipeline(number, step)
        if isinstance(step, streams.Broken):
            return self._broken(number, step)
        if isinstance(step, streams.Waiting):
            return self._waiting(number, step)
        ours, theirs = (side.walk(step.client, step.words, step.options) for side in self.sides)
        return None if ours == theirs else Difference(number, str(step), ours, theirs)

    def _waiting(self, number, step):
        waits = [[side.wait(*waiter) for waiter in step.waiters] for side in self.sides]
        for (_, request), (_, ours), (_, theirs) in zip(step.waiters, *waits):
            if (ours and ours.raw) != (theirs and theirs.raw):
                return Difference(number, "%s: waits (None), or answers at once" % request, ours and ours.raw, theirs and theirs.raw)
        difference = self._pipeline(number, step.waker)
        for (client, request), *asked in zip(step.waiters, *waits):
            ours, theirs = (side.release(client, *wait) for side, wait in zip(self.sides, asked))
            if not difference and ours.raw != theirs.raw:
                difference = Difference(number, str(request), ours.raw, theirs.raw)
        return difference

    def _pipeline(self, number, step):
        data = b"".join(request.encoded() for request in step.requests)
        clients = [side.client(step.client) for side in self.sides]
        if not self.anybody_tracks and any(request.starts_with(b"CLIENT", b"TRACKING") for request in step.requests):
            # Ours forgets who has read what when nobody tracks any more.
            self.anybody_tracks = True
            for side in self.sides:
                side.control.call("CLIENT", "TRACKING", "ON")
        for client in clients:
            # Long pipelines arrive in pieces, at places that depend on nothing but their length.
            cut = len(data) * 2 // 3
            client.send(data[:cut])
            client.send(data[cut:])
        for request in step.requests:
            ours, theirs = (client.read() for client in clients)
            if not self._equal(step.client, request, ours, theirs):
                return Difference(number, str(request), ours.raw, theirs.raw)
            if theirs is resp.Closed:
                for side in self.sides:
                    side.reconnect(step.client)
                self.queued[step.client] = None
                break
        if step.pause:
            time.sleep(SHORT_DEADLINE_S)
            for side in self.sides:
                side.touch_all()
        return self._compare_told(number, step)

    def _compare_told(self, number, step):
        """What clients are told between replies. Who is within a transaction is asked when it has ended."""
        if not self.anybody_tracks:
            return None
        for client in range(streams.CLIENTS):
            if self.queued[client] is None and client in self.sides[0].clients:
                ours, theirs = (side.told(client) for side in self.sides)
                if ours != theirs:
                    return Difference(number, "client %d is told, after\n  %s" % (client, step), ours, theirs)
        return None

    def _equal(self, client, request, ours, theirs):
        name = request.words[0].upper()
        queued = self.queued[client]
        if queued is not None and name == b"EXEC" and len(request.words) == 1:
            self.queued[client] = None
            return compare.exec_equal(ours, theirs, queued, self.newer)
        if theirs.raw == b"+QUEUED\r\n":
            queued.append(request.compare)
        elif name == b"MULTI" and theirs.raw == b"+OK\r\n":
            self.queued[client] = []
        elif name in (b"DISCARD", b"RESET", b"QUIT") and theirs.kind != "-":
            self.queued[client] = None
        return compare.replies_equal(ours, theirs, request.compare, self.newer)

    def _same_encoding(self, ours, theirs):
        return ours == theirs or self.newer and compare.string_encodings(ours, theirs)

    def _broken(self, number, step):
        for side in self.sides:
            side.client(step.client).send(step.data)
        ours, theirs = (side.client(step.client).read_all() for side in self.sides)
        for side in self.sides:
            side.reconnect(step.client)
        self.queued[step.client] = None
        return None if compare.same_bytes(ours, theirs) else Difference(number, str(step), ours, theirs)

    def _exchange(self, end):
        """Each server is given what the other one dumps in place of its own; both must then hold what they held."""
        if not {"dump", "restore", "select"} <= self.known:
            return None
        for db, key in sorted(place for place in self.sides[0].dataset(self.known) if place[0] >= 0):
            dumps = []
            for side in self.sides:
                side.control.call("SELECT", db)
                dumps.append(side.control.call("DUMP", key).value)
            encoding = self.sides[0].control.call("OBJECT", "ENCODING", key).value
            kind = self.sides[0].control.call("TYPE", key).value
            # Tables have an order of their own; streams and field deadlines hold times, graphs of vectors chance.
            if without_version(dumps[0]) != without_version(dumps[1]) and kind != b"vectorset" and encoding not in (b"hashtable", b"listpackex", b"stream", None):
                return Difference(end, "DUMP of key %r in database %d at the end" % (key, db), *dumps)
            for side, dump in zip(self.sides, reversed(dumps)):
                # One of them may be gone by now.
                if dump is None:
                    continue
                ttl = max(int(side.control.call("PEXPIRETIME", key).value), 0)
                reply = side.control.call("RESTORE", key, ttl, dump, "REPLACE", "ABSTTL")
                if reply.raw != b"+OK\r\n":
                    return Difference(end, "RESTORE of key %r in database %d at the end" % (key, db), reply.raw, dump)
        return self._compare_datasets(end)

    def _compare_datasets(self, end):
        ours, theirs = (side.dataset(self.known) for side in self.sides)
        for place in sorted(set(ours) | set(theirs)):
            a, b = ours.get(place), theirs.get(place)
            if a is None or b is None or a[:2] != b[:2] or not self._same_encoding(a[2], b[2]) or (
                    a[3] is not None and not compare.replies_equal(a[3], b[3], "near_ms")):
                def tell(entry):
                    return entry and (*entry[:3], entry[3] and entry[3].raw)
                return Difference(end, "database %d, key %r at the end" % place, tell(a), tell(b))
        return None

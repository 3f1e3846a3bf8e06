"""A stream is a list of steps, generated from a seed; it is what a run sends and what shrinking makes smaller."""

import hashlib
import random

from . import grammar, resp, values

CLIENTS = 3
# Bytes that are no requests: after each the server closes the connection, or at least answers what the reference does.
BROKEN = [
    b"*abc\r\n", b"*3\r\n$abc\r\n", b"*1\r\n$-5\r\n", b"*2\r\n:1\r\n", b"*1\r\nPING\r\n", b"*99999999999\r\n",
    b"*2147483648\r\n", b"*1\r\n$4\r\nPINGPING\r\n", b'GET "unbalanced\r\n', b"GET 'unbalanced\r\n", b'GET "a"b\r\n',
    b"*" + b"1" * 70000, b"*1\r\n$" + b"1" * 70000, b"x" * 70000, b"POST / HTTP/1.1\r\nHost: a\r\n\r\n",
    b"*1\r\n$99999999999\r\n", b"*1\r\n$536870913\r\n", b"*1\r\n$+4\r\nPING\r\n", b"*1\r\n$ 4\r\nPING\r\n", b"*01\r\n$4\r\nPING\r\n",
]
NOISE = [b"\r\n", b"\n", b"*0\r\n", b"*-1\r\n", b"  \r\n"]


class Request:
    """One request. `form`: how it travels ("array", "inline", "noise": after bytes that ask nothing)."""

    def __init__(self, words, compare=None, form="array"):
        self.words = words
        self.compare = compare
        self.form = form

    def encoded(self):
        if self.form == "inline":
            return resp.encode_inline(self.words)
        if self.form == "noise":
            return NOISE[len(self.words) % len(NOISE)] + resp.encode(self.words)
        return resp.encode(self.words)

    def __str__(self):
        text = " ".join(resp.quoted(word) if len(word) < 500 else "<%r x %d>" % (word[:1], len(word)) for word in self.words)
        return text + ("" if self.form == "array" else "   (%s)" % self.form)


class Pipeline:
    """Requests of one client that are sent at once; then, with `pause`, time until every deadline of a millisecond has passed and
    the servers have found out."""

    def __init__(self, client, requests, pause=False):
        self.client = client
        self.requests = requests
        self.pause = pause

    def __str__(self):
        lines = ["client %d> %s" % (self.client, request) for request in self.requests]
        return "\n".join(lines + ["(pause)"] * self.pause)


class Broken:
    """Bytes that are no request; the client connects again afterwards."""

    def __init__(self, client, data):
        self.client = client
        self.data = data

    def __str__(self):
        return "client %d> raw %r" % (self.client, self.data if len(self.data) < 200 else self.data[:20] + b"...")


class Walk:
    """SCAN from cursor 0 to cursor 0; the keys found are a set."""

    def __init__(self, client, options):
        self.client = client
        self.options = options

    def __str__(self):
        return "client %d> SCAN 0 ... 0 %s" % (self.client, " ".join(map(resp.quoted, self.options)))


class Generator:
    def __init__(self, vocabulary, seed):
        self.vocabulary = vocabulary
        self.rng = random.Random(seed)
        self.bodies = [body for _, body in vocabulary.scripts]
        self.kinds = dict(values.KINDS, script=self._script, loaded=self._loaded, body=self._body, sha=self._sha,
                          request=self._request_words, described=self._described)

    def stream(self, length, theme=None):
        """(theme, steps) with about `length` requests."""
        rng = self.rng
        chosen = rng.choice(sorted(self.vocabulary.themes))
        theme = theme or chosen
        self.rows = self.vocabulary.themes[theme]
        clients = rng.choice([1, 1, 2, CLIENTS])
        steps = []
        if "hello" in self.vocabulary.commands:
            steps += [Pipeline(client, [Request([b"HELLO", b"3"], "hello")])
                      for client in range(clients) if rng.random() < 0.4]
        longest = rng.choice([1, 5, 20, 100])
        broken = 0.01 if theme in ("connection", "everything") else 0
        self.in_multi = [False] * CLIENTS
        sent = 0
        while sent < length:
            client = rng.randrange(clients)
            if rng.random() < broken:
                steps.append(Broken(client, rng.choice(BROKEN)))
                self.in_multi[client] = False
                sent += 1
                continue
            if "scan" in self.vocabulary.commands and theme in ("keyspace", "everything") and rng.random() < 0.03 \
                    and not self.in_multi[client]:
                steps.append(Walk(client, self._walk_options()))
                continue
            requests, pause = self._pipeline(client, rng.randrange(1, longest + 1))
            sent += len(requests)
            steps.append(Pipeline(client, requests, pause))
        return theme, steps

    def _pipeline(self, client, size):
        requests = []
        for _ in range(size):
            row = self.rng.choice(self.rows)
            if (self.in_multi[client] and not row.in_multi) or (row.alone and requests):
                continue
            request = self._request(row)
            requests.append(request)
            self._follow_multi(client, request)
            if row.alone:
                return requests, row.pause
        return requests or [Request([b"GET", b"k1"])], False

    def _request(self, row):
        words = row.template.words(self.rng, self.kinds)
        # What must stand alone for its effect keeps its words.
        if self.rng.random() < 0.06 and not row.alone:
            words = grammar.mutate(words, self.rng)
        elif self.rng.random() < 0.05:
            words = [bytes(words[0]).swapcase(), *words[1:]]
        if not self.vocabulary.comparable(words):
            words = [b"GET", b"k1"]
        form = "array"
        if self.rng.random() < 0.06 and sum(map(len, words)) < 2000:
            form = self.rng.choice(["inline", "inline", "noise"])
        return Request(words, row.compare, form)

    def _follow_multi(self, client, request):
        name = request.words[0].upper()
        if name == b"MULTI":
            self.in_multi[client] = True
        elif name == b"EXEC" or name in (b"DISCARD", b"RESET", b"QUIT") and len(request.words) == 1:
            self.in_multi[client] = False

    def _walk_options(self):
        options = []
        if self.rng.random() < 0.5:
            options += [b"COUNT", self.rng.choice([b"1", b"3", b"10", b"1000"])]
        if self.rng.random() < 0.4:
            options += [b"MATCH", values.KINDS["pattern"](self.rng)]
        if self.rng.random() < 0.3:
            options += [b"TYPE", self.rng.choice([b"string", b"STRING", b"list", b"hash"])]
        return options

    def _script(self, rng):
        arguments, body = rng.choice(self.vocabulary.scripts)
        return [body, *arguments.words(rng)]

    def _loaded(self, rng):
        arguments, body = rng.choice(self.vocabulary.scripts[:8])
        sha = hashlib.sha1(body).hexdigest()
        return [(sha.upper() if rng.random() < 0.1 else sha).encode(), *arguments.words(rng)]

    def _body(self, rng):
        return rng.choice(self.bodies[:12] if rng.random() < 0.7 else self.bodies)

    def _sha(self, rng):
        return hashlib.sha1(self._body(rng)).hexdigest().encode()

    def _request_words(self, rng):
        row = rng.choice(self.rows)
        if any(isinstance(part, grammar.Kind) and part.name == "request" for part in row.template.parts):
            return [b"GET", b"k1"]
        return row.template.words(rng, self.kinds)

    def _described(self, rng):
        return rng.choice(self.vocabulary.described).encode() if rng.random() < 0.9 else b"nosuch"

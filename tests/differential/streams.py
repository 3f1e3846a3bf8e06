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
# Scripts that make a request's words a call.
CALLERS = [b"return redis.call(unpack(ARGV))", b"return redis.pcall(unpack(ARGV))", b"redis.setresp(3) return redis.call(unpack(ARGV))",
           b"local reply = redis.call(unpack(ARGV)) return reply"]
# What is walked through: the command, and the kind of its key.
WALKS = {
    "keyspace": [(b"SCAN",)],
    "everything": [(b"SCAN",)],
    "hashes": [(b"HSCAN", "hash")],
    "sets": [(b"SSCAN", "set")],
    "sorted_sets": [(b"ZSCAN", "zset")],
    "collections": [(b"SCAN",), (b"HSCAN", "hash"), (b"SSCAN", "set"), (b"ZSCAN", "zset")],
}
NOISE = [b"\r\n", b"\n", b"*0\r\n", b"*-1\r\n", b"  \r\n"]


class Request:
    """One request. `form`: how it travels ("array", "inline", "noise": after bytes that ask nothing)."""

    def __init__(self, words, compare=None, form="array"):
        self.words = words
        self.compare = compare
        self.form = form

    def starts_with(self, *names):
        return tuple(word.upper() for word in self.words[: len(names)]) == names

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
    """SCAN or its kin from cursor 0 to cursor 0; what is found is a set."""

    def __init__(self, client, words, options):
        self.client = client
        self.words = words
        self.options = options

    def __str__(self):
        return "client %d> %s" % (self.client, " ".join(map(resp.quoted, [*self.words, b"0", b"...", b"0", *self.options])))


class Waiting:
    """Clients that wait, one after the other, for what a last one's pipeline brings; who still waits then is released."""

    def __init__(self, waiters, waker):
        self.waiters = waiters
        self.waker = waker

    def __str__(self):
        return "\n".join(["client %d> %s   (waits)" % waiter for waiter in self.waiters] + [str(self.waker), "(release)"])


class Stream:
    """`settings`: what the servers are configured to first (values.Settings)."""

    def __init__(self, theme, settings):
        self.theme = theme
        self.settings = settings
        self.steps = []


class Generator:
    def __init__(self, vocabulary, seed):
        self.vocabulary = vocabulary
        self.rng = random.Random(seed)
        self.bodies = [body for _, body in vocabulary.scripts]
        self.kinds = dict(values.KINDS, script=self._script, loaded=self._loaded, body=self._body, sha=self._sha,
                          request=self._request_words, described=self._described)

    def stream(self, length, theme):
        """A Stream with about `length` requests."""
        rng = self.rng
        stream = Stream(theme, values.Settings(rng))
        self.compact = stream.settings.compact
        self.kinds["limit"] = stream.settings.change
        self.rows = [row for row in self.vocabulary.themes[theme]
                     if not (row.limits and self.compact) and not (row.scatters and not stream.settings.scatter)]
        self.blocking = [row for row in self.rows if row.blocks]
        clients = rng.choice([1, 1, 2, CLIENTS])
        if "hello" in self.vocabulary.commands:
            stream.steps += [Pipeline(client, [Request([b"HELLO", b"3"], "hello")])
                             for client in range(clients) if rng.random() < 0.4]
        longest = rng.choice([1, 5, 20, 100])
        self.in_multi = [False] * CLIENTS
        sent = 0
        while sent < length:
            steps = self._steps(theme, rng.randrange(clients), longest)
            sent += sum(len(step.requests) if isinstance(step, Pipeline) else 1 for step in steps)
            stream.steps += steps
        return stream

    def _steps(self, theme, client, longest):
        chance = self.rng.random()
        if chance < 0.01 and theme in ("connection", "everything"):
            self.in_multi[client] = False
            return [Broken(client, self.rng.choice(BROKEN))]
        if chance < 0.03 and not self.in_multi[client]:
            walks = [walk for walk in WALKS.get(theme, ()) if walk[0].lower().decode() in self.vocabulary.commands]
            if walks:
                name, *kinds = self.rng.choice(walks)
                return [Walk(client, [name, *(self.kinds[kind](self.rng) for kind in kinds)], self._walk_options(not kinds))]
        if chance < 0.1 and self.blocking and not any(self.in_multi):
            return self._waiting()
        return [self._pipeline(client, self.rng.randrange(1, longest + 1))]

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
                return Pipeline(client, requests, row.pause)
        return Pipeline(client, requests or [Request([b"GET", b"k1"])])

    def _waiting(self):
        """Mostly for keys that are not there yet, one of which the waker then brings."""
        rng = self.rng
        kinds = dict(self.kinds, timeout=lambda _: b"0")
        waiters = [(client, self.rng.choice(self.blocking)) for client in range(rng.randrange(1, CLIENTS))]
        waiters = [(client, Request(row.template.words(rng, kinds), row.compare)) for client, row in waiters]
        request = rng.choice(waiters)[1]
        waker = self._pipeline(CLIENTS - 1, rng.randrange(1, 6))
        waker.requests = [request for request in waker.requests if not self._waits(request)]
        steps = []
        keys = [word for word in request.words[1:] if len(word) == 2 and word[:1] in b"lz"]
        if keys and rng.random() < 0.8:
            bring = [b"ZADD", rng.choice(keys), b"1", b"a", b"2", b"b"] if request.words[0][:2].upper() == b"BZ" \
                else [b"RPUSH", rng.choice(keys), *self.kinds["elements"](rng)]
            waker.requests.insert(rng.randrange(len(waker.requests) + 1), Request(bring))
            steps.append(Pipeline(CLIENTS - 1, [Request([b"DEL", *keys])]))
        # What the waker begins it ends.
        if self.in_multi[CLIENTS - 1]:
            waker.requests.append(Request([b"EXEC"]))
            self.in_multi[CLIENTS - 1] = False
        return [*steps, Waiting(waiters, waker)]

    def _waits(self, request):
        return any(request.words[0].lower().decode("latin1") == row.literals[0] for row in self.blocking)

    def _request(self, row):
        words = row.template.words(self.rng, self.kinds)
        if self.rng.random() < 0.06 and not row.exact:
            words = grammar.mutate(words, self.rng)
        elif self.rng.random() < 0.05:
            words = [bytes(words[0]).swapcase(), *words[1:]]
        if not self.vocabulary.comparable(words, row.compare):
            words = [b"GET", b"k1"]
        if row.scripted and self.rng.random() < 0.06:
            return self._scripted(row, words)
        form = "array"
        # A line that begins with an asterisk is no inline request.
        if self.rng.random() < 0.06 and sum(map(len, words)) < 2000 and not words[0].startswith(b"*"):
            form = self.rng.choice(["inline", "inline", "noise"])
        return Request(words, None if row.ordered is False and self.compact else row.compare, form)

    def _scripted(self, row, words):
        script = self.rng.choice(CALLERS)
        # Maps and sets lose their order in Lua.
        keeps_order = row.ordered is False and self.compact and b"setresp" not in script
        return Request([b"EVAL", script, b"0", *words], None if keeps_order else row.compare)

    def _follow_multi(self, client, request):
        name = request.words[0].upper()
        if name == b"MULTI":
            self.in_multi[client] = True
        elif name == b"EXEC" or name in (b"DISCARD", b"RESET", b"QUIT") and len(request.words) == 1:
            self.in_multi[client] = False

    def _walk_options(self, of_keys):
        options = []
        if self.rng.random() < 0.5:
            options += [b"COUNT", self.rng.choice([b"1", b"3", b"10", b"1000"])]
        if self.rng.random() < 0.4:
            options += [b"MATCH", values.KINDS["pattern"](self.rng)]
        if of_keys and self.rng.random() < 0.3:
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

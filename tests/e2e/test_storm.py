"""Everything at once: several clients send requests made from the syntax that COMMAND DOCS tells, of all commands there are, to a
server with I/O threads, spaces and checkpoints. It must go on answering, and end without a word of a crash or of a sanitizer.

What is sent follows from the seed; in which order the server gets it does not, for the clients are independent."""

import random
import socket
import threading
import unittest

import harness
import scenes

LARGEST = 2**63 - 1
NUMBERS = ("0", "1", "2", "3", "5", "10", "-1", "-2", str(LARGEST), str(-LARGEST - 1), str(2**62), str(2**32), str(2**64), "0.5", "-0", "1e308",
           "inf", "nan")
WORDS = ("a", "b", "f1", "f2", "1-1", "*", "$", ">", "-", "+", "(1", "[a", "", "x" * 300, "g1", "c1", ".a > 1", '{"a":[1]}', "[", "(" * 50,
         "LEFT", "GET", "set", "@write", "space-two", "return redis.call('INCR', KEYS[1])", "for i = 1, 5000 do redis.call('INCR', 'key3') end")
KEYS = tuple("key%d" % i for i in range(16)) + ("lock:one", "semaphore:two", "{t}a", "{t}b")

# They end the process, tie the server to another one, or leave a client that hears nothing any more.
LEFT_OUT = {"shutdown", "replicaof", "slaveof", "failover", "migrate", "sync", "psync", "monitor", "debug", "script|debug", "client|reply",
            "client|pause", "fault|add", "clock|freeze", "module|load", "module|loadex", "config|set", "config|rewrite", "acl|setuser",
            "acl|deluser", "bgsave", "bgrewriteaof", "save", "wait", "waitaof", "space|listen"}
SETTINGS = (("maxmemory-policy", ("allkeys-lru", "noeviction")), ("lock-notify", ("yes", "no")), ("lock-watch-max-keys", ("1", "10000")),
            ("notify-keyspace-events", ("", "KEA")), ("hash-max-listpack-entries", ("0", "128")), ("list-max-listpack-size", ("1", "-2")),
            ("busy-reply-threshold", ("1", "5000")), ("tracking-table-max-keys", ("1", "1000000")), ("random-seed", ("1", "2")),
            ("client-output-buffer-limit", ("normal 0 0 0", "normal 100kb 50kb 1")))


def pairs(flat):
    return dict(zip(flat[::2], flat[1::2]))


def syntaxes(docs):
    """{"client|kill": its arguments, ...} of all commands that have a handler."""
    found = {}
    for name, described in pairs(docs).items():
        fields = pairs(described)
        if "subcommands" in fields:
            found.update(syntaxes(fields["subcommands"]))
        else:
            found[name] = fields.get("arguments", [])
    return found


class Requests:
    """Requests that follow the syntax, most of the time, with words that mean something to commands and words that do not."""

    def __init__(self, commands, seed):
        self.random = random.Random(seed)
        self.commands = commands
        self.names = sorted(set(commands) - LEFT_OUT)

    def next(self):
        if self.random.random() < 0.02:
            name, values = self.random.choice(SETTINGS)
            return ["CONFIG", "SET", name, self.random.choice(values)]
        name = self.random.choice(self.names)
        words = name.split("|")
        for argument in self.commands[name]:
            self.add(pairs(argument), words)
        if self.random.random() < 0.1:
            words.insert(self.random.randrange(1, len(words) + 1), self.word())
        return words

    def word(self):
        return self.random.choice(self.random.choice((NUMBERS, WORDS, KEYS)))

    def add(self, argument, words, may_be_left_out=True):
        flags = argument.get("flags", [])
        if may_be_left_out and "optional" in flags and self.random.random() < 0.6:
            return
        for i in range(self.random.choice((1, 1, 2, 3)) if "multiple" in flags else 1):
            if "token" in argument and (i == 0 or "multiple_token" in flags):
                words.append(argument["token"])
            self.add_value(argument, words)

    def add_value(self, argument, words):
        kind = argument["type"]
        if kind == "oneof":
            self.add(pairs(self.random.choice(argument["arguments"])), words, may_be_left_out=False)
        elif kind == "block":
            for each in argument["arguments"]:
                self.add(pairs(each), words)
        elif kind == "key":
            words.append(self.random.choice(KEYS))
        elif kind in ("integer", "double", "unix-time"):
            words.append(self.random.choice(NUMBERS[:6] if self.random.random() < 0.8 else NUMBERS))
        elif kind != "pure-token":
            words.append(self.word())


class Storm(scenes.FaultTestCase):
    requests_of_each = 1500
    clients = 6

    def setUp(self):
        self.server = self.start(io_threads=4, enable_test_commands="yes", space_linger_ms=20, maxmemory="200mb", maxmemory_policy="allkeys-lru")
        with self.server.connect() as client:
            self.commands = syntaxes(client.call("COMMAND", "DOCS"))

    def play(self, seed):
        """One client after another, each with requests in batches; whoever is closed or waits for ever comes again."""
        requests = Requests(self.commands, seed)
        sent = 0
        while sent < self.requests_of_each:
            with self.server.connect() as client:
                client.socket.settimeout(0.05)
                if requests.random.random() < 0.4:
                    client.send("AUTH", "space-" + requests.random.choice(("one", "two", "three~redis-7.0", "four~valkey-9.1")), "x")
                for _ in range(requests.random.randrange(5, 60)):
                    batch = [requests.next() for _ in range(requests.random.choice((1, 3, 10)))]
                    sent += len(batch)
                    try:
                        client.send_raw(b"".join(harness.encode(*words) for words in batch))
                        while client.socket.recv(1 << 16):
                            pass
                        break
                    except socket.timeout:
                        continue
                    except OSError:
                        break

    def test_the_server_stands(self):
        players = [threading.Thread(target=self.play, args=(seed,)) for seed in range(self.clients)]
        for player in players:
            player.start()
        for player in players:
            player.join()
        # A CLOCK ADVANCE, or a script, may still be at work.
        for words in (("CLOCK", "RESET"), ("FLUSHALL",), ("SET", "key", "value")):
            self.eventually(lambda words=words: not scenes.is_error(scenes.ask(self.server, *words), "ERR"), self.server, what=" ".join(words))
        self.assertEqual(scenes.ask(self.server, "GET", "key"), "value")


if __name__ == "__main__":
    unittest.main()

"""What a command is to the generator: a template and how its replies compare."""

from . import grammar


class Row:
    """`compare` names what makes two replies equal where that is not their bytes (see compare.py).

    `alone`      is a pipeline of its own
    `in_multi`   False: is not queued
    `pause`      after it the clock must go on
    `ordered`    False: its reply has the order of a hash table, which only matters less than its bytes where there are tables
    `scripted`   is also called by scripts
    `exact`      its words stay as they are
    `blocks`     may wait (see streams.Waiting), and is exact
    `limits`     changes how large values may become in their small encodings
    `scatters`   leaves a small value in the order of a hash table
    """

    def __init__(self, template, compare=None, alone=False, always=False, in_multi=True, needs=None, pause=False, ordered=True,
                 scripted=False, exact=False, blocks=False, limits=False, scatters=False):
        self.template = grammar.Template(template)
        self.compare = compare
        self.alone = alone
        self.always = always
        self.in_multi = in_multi
        self.needs = needs
        self.pause = pause
        self.ordered = ordered
        self.scripted = scripted
        # What must stand alone for its effect is exact too.
        self.exact = exact or alone or blocks
        self.blocks = blocks
        self.limits = limits
        self.scatters = scatters
        self.literals = [part.text.decode().lower() for part in self.template.parts[:2] if isinstance(part, grammar.Words)]

    def known_to(self, commands):
        """`commands`: the names that COMMAND LIST gives, in lower case."""
        if self.always:
            return True
        if not self.literals or self.literals[0] not in commands or (self.needs and self.needs not in commands):
            return False
        has_subcommands = any(name.startswith(self.literals[0] + "|") for name in commands)
        return not has_subcommands or len(self.literals) < 2 or "|".join(self.literals) in commands


def call(template, compare=None, **how):
    """A command on a collection."""
    return Row(template, compare, scripted=True, **how)


def unordered(template, compare="any_order", **how):
    """A command whose reply has the order of a hash table, where the value is one."""
    return Row(template, compare, scripted=True, ordered=False, **how)


def blocking(template):
    """A command that may wait. Its timeouts are short, but within streams.Waiting."""
    return Row(template, blocks=True)


# What is done to keys of every collection; <own> stands for a kind of keys.
_KEYSPACE = [
    "DEL <own>", "UNLINK <own>+", "EXISTS <own>", "TYPE <own>", "RENAME <own> <own>", "RENAMENX <own> <own>",
    "COPY <own> <own> [REPLACE]", "COPY <own> <own> REPLACE", "PEXPIREAT <own> 4102444800000", "PERSIST <own>",
    "OBJECT ENCODING <own>", "OBJECT ENCODING <own>", "OBJECT ENCODING <own>", "DEBUG DIGEST-VALUE <own>+",
]
_OTHERS = [
    "SET <other> <small>", "RPUSH <other> <element>", "SADD <other> <element>", "HSET <other> <element> <element>",
    "ZADD <other> 1 <element>", "DEL <other>+", "GET <other>",
]
_TRANSACTIONS = ["MULTI", "MULTI", "EXEC", "EXEC", "EXEC", "DISCARD", "WATCH <own>", "HELLO 2", "HELLO 3"]
_LIMITS = ["CONFIG SET <limit>"]


def shared(own):
    """The rows that every theme of collections has, for its kind of keys."""
    def made(templates, **how):
        return [Row(line.replace("<own>", "<%s>" % own), "hello" if line.startswith("HELLO") else None, **how)
                for line in templates]
    return (made(_KEYSPACE, scripted=True) + made(_OTHERS) + made(_TRANSACTIONS) + made(_LIMITS, limits=True, in_multi=True))

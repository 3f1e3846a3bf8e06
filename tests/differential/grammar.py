"""Templates of commands. A template is a line like

    SET <key> <value> [NX|XX] [GET] [EX <seconds>|KEEPTTL]

where <kind> is a word of that kind, <kind>+ one to four of them, [a|b] one of the alternatives or nothing, (a|b) one of them,
and (a)+ one to four times. Everything else stands for itself.
"""

import re

from . import values

TOKEN = re.compile(r"\s*([\[\]()|]|<[a-z_]+>|[^\s\[\]()|<>]+)(\+)?")


class Words:
    """A literal."""

    def __init__(self, text):
        self.text = text.encode()

    def expand(self, rng, _):
        return [self.text]


class Kind:
    def __init__(self, name):
        self.name = name

    def expand(self, rng, kinds):
        word = kinds[self.name](rng)
        return word if isinstance(word, list) else [word]


class Choice:
    def __init__(self, alternatives, optional):
        self.alternatives = alternatives
        self.optional = optional

    def expand(self, rng, kinds):
        if self.optional and rng.random() < 0.6:
            return []
        return expand_all(rng.choice(self.alternatives), rng, kinds)


class Repeat:
    def __init__(self, part):
        self.part = part

    def expand(self, rng, kinds):
        return [word for _ in range(rng.choice([1, 1, 2, 2, 3, 4])) for word in self.part.expand(rng, kinds)]


def expand_all(parts, rng, kinds):
    return [word for part in parts for word in part.expand(rng, kinds)]


class Template:
    def __init__(self, line):
        self.line = line
        self._tokens = TOKEN.findall(line)
        self.parts = self._alternatives("")[0]

    def words(self, rng, kinds=None):
        return expand_all(self.parts, rng, kinds or values.KINDS)

    def _alternatives(self, closing):
        alternatives = [[]]
        while self._tokens:
            token, repeated = self._tokens.pop(0)
            if token in (")", "]"):
                if token != closing:
                    raise ValueError("unbalanced template: " + self.line)
                self._closed_with_plus = bool(repeated)
                return alternatives
            if token == "|" and closing:
                alternatives.append([])
                continue
            if token in ("(", "["):
                inner = self._alternatives(")" if token == "(" else "]")
                part = Choice(inner, optional=token == "[")
                repeated = self._closed_with_plus
            elif token.startswith("<"):
                part = Kind(token[1:-1])
            else:
                part = Words(token)
                repeated = False
            alternatives[-1].append(Repeat(part) if repeated else part)
        if closing:
            raise ValueError("unbalanced template: " + self.line)
        return alternatives


def mutate(words, rng):
    """Words that are most likely wrong: one too many, too few, another kind."""
    words = list(words)
    how = rng.randrange(6)
    at = rng.randrange(1, len(words)) if len(words) > 1 else 0
    if how == 0 and at:
        del words[at]
    elif how == 1:
        words.insert(at + 1, values.word(rng))
    elif how == 2 and at:
        words[at] = values.word(rng)
    elif how == 3 and at:
        words.insert(at, words[at])
    elif how == 4:
        words = words[: at + 1]
    else:
        words[at] = words[at].lower() if rng.random() < 0.5 else words[at].title()
    return words

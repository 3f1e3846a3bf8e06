"""Requests to bytes, and bytes to replies: each reply with its bytes as they came."""


class Reply:
    """One reply: `raw` its bytes, `kind` the byte of its type, `value` bytes, or for aggregates the list of their replies
    (of a map: key, value, key, value...). A null is value None."""

    __slots__ = ("raw", "kind", "value")

    def __init__(self, raw, kind, value):
        self.raw = raw
        self.kind = kind
        self.value = value

    def __eq__(self, other):
        return isinstance(other, Reply) and self.raw == other.raw

    __hash__ = None


class Closed:
    """Stands where a reply would, when the server has closed the connection instead."""

    raw = b"(connection closed)"
    kind = "closed"
    value = None


class Silent:
    """Stands where a reply would, when none came in time."""

    raw = b"(no reply)"
    kind = "silent"
    value = None


class Incomplete(Exception):
    """The bytes end within a reply."""


def parse(data, start=0):
    """(reply, end) of the reply that begins at `start`."""
    end = data.find(b"\r\n", start)
    if end < 0:
        raise Incomplete
    kind = chr(data[start])
    head = bytes(data[start + 1 : end])
    end += 2
    if kind in "+-:_#,(":
        return Reply(bytes(data[start:end]), kind, None if kind == "_" else head), end
    if kind in "$=!":
        if head == b"-1":
            return Reply(bytes(data[start:end]), kind, None), end
        size = int(head)
        if len(data) < end + size + 2:
            raise Incomplete
        value = bytes(data[end : end + size])
        return Reply(bytes(data[start : end + size + 2]), kind, value), end + size + 2
    if kind in "*~>%|":
        if head == b"-1":
            return Reply(bytes(data[start:end]), kind, None), end
        count = int(head) * (2 if kind in "%|" else 1)
        # An attribute is followed by the reply that it is about.
        values = []
        for _ in range(count + (kind == "|")):
            value, end = parse(data, end)
            values.append(value)
        return Reply(bytes(data[start:end]), kind, values), end
    raise ValueError("not RESP: %r" % bytes(data[start : start + 80]))


def encode(words):
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        parts.append(b"$%d\r\n%s\r\n" % (len(word), word))
    return b"".join(parts)


def quoted(word):
    """A word as it stands in an inline request: in double quotes when it must."""
    if word and all(33 <= byte < 127 and byte not in b"\"'\\" for byte in word):
        return word.decode()
    text = "".join(
        chr(byte) if 32 <= byte < 127 and byte not in b"\"\\" else "\\x%02x" % byte for byte in word)
    return '"%s"' % text


def encode_inline(words):
    return " ".join(quoted(word) for word in words).encode() + b"\r\n"

"""What counts as equal. Replies are equal when their bytes are; the few whose content differs by nature have a comparison here,
named by the row of their command."""

NEAR_SECONDS = 3
NO_ARGUMENTS = b", with args beginning with: \r\n"


def _number(reply):
    return int(reply.value) if reply.kind == ":" else None


def _near(ours, theirs, tolerance):
    a, b = _number(ours), _number(theirs)
    return a is not None and b is not None and min(a, b) >= 0 and abs(a - b) <= tolerance


def near(ours, theirs):
    """Seconds that a clock gave."""
    return _near(ours, theirs, NEAR_SECONDS)


def near_ms(ours, theirs):
    """Milliseconds that a clock gave."""
    return _near(ours, theirs, NEAR_SECONDS * 1000)


def same_type(ours, theirs):
    """A random choice, a number of the server's own."""
    if ours.kind != theirs.kind or (ours.value is None) != (theirs.value is None):
        return False
    if isinstance(ours.value, list):
        return len(ours.value) == len(theirs.value) and all(map(same_type, ours.value, theirs.value))
    return True


def same_kind(ours, theirs):
    """Figures of the server's own, however many it has; errors are compared."""
    return ours.raw == theirs.raw if "-" in (ours.kind, theirs.kind) else ours.kind == theirs.kind


def any_order(ours, theirs):
    """An array whose order means nothing."""
    return (ours.kind == theirs.kind and isinstance(ours.value, list) and isinstance(theirs.value, list)
            and sorted(reply.raw for reply in ours.value) == sorted(reply.raw for reply in theirs.value))


def _pairs(reply):
    """A map, or what RESP2 has in its place."""
    return {reply.value[i].raw: reply.value[i + 1] for i in range(0, len(reply.value) - 1, 2)}


def any_order_pairs(ours, theirs):
    if ours.kind != theirs.kind or not isinstance(ours.value, list) or not isinstance(theirs.value, list):
        return False
    return sorted((k, v.raw) for k, v in _pairs(ours).items()) == sorted((k, v.raw) for k, v in _pairs(theirs).items())


def _scan_step(ours, theirs, contents):
    """A walk in one step: what was found, if both say that it was all."""
    a, b = ours.value, theirs.value
    if not isinstance(a, list) or not isinstance(b, list) or len(a) != 2 or len(b) != 2:
        return False
    return a[0].value != b"0" or b[0].value != b"0" or contents(a[1], b[1])


def scan_step(ours, theirs):
    return _scan_step(ours, theirs, any_order)


def scan_step_fields(ours, theirs):
    return _scan_step(ours, theirs, any_order_pairs)


def _each(ours, theirs, same):
    if ours.kind != theirs.kind or not isinstance(ours.value, list) or not isinstance(theirs.value, list):
        return False
    return len(ours.value) == len(theirs.value) and all(a.raw == b.raw or same(a, b) for a, b in zip(ours.value, theirs.value))


def near_each(ours, theirs):
    return _each(ours, theirs, near)


def near_each_ms(ours, theirs):
    return _each(ours, theirs, near_ms)


def near_deep_ms(ours, theirs):
    """Numbers somewhere within that a clock may have given."""
    if ours.raw == theirs.raw or near_ms(ours, theirs):
        return True
    return _each(ours, theirs, near_deep_ms)


def and_more(ours, theirs):
    """Ours begins with theirs: a list to which newer versions add."""
    return isinstance(ours.value, list) and isinstance(theirs.value, list) and \
        [each.raw for each in ours.value[:len(theirs.value)]] == [each.raw for each in theirs.value]


def newer_refusal(ours, theirs):
    """Errors whose words are those of Redis 8.6."""
    return ours.kind == theirs.kind == "-"


def newer_stream(ours, theirs):
    """A stream's description, which has fields that Redis 8.0 does not know."""
    if ours.kind != theirs.kind or not isinstance(ours.value, list) or not isinstance(theirs.value, list):
        return False
    a, b = _pairs(ours), _pairs(theirs)
    return all(key in a and (a[key].raw == value.raw or near_deep_ms(a[key], value)) for key, value in b.items())


def _unordered(reply):
    if not isinstance(reply.value, list):
        return reply.raw
    return (reply.kind, tuple(sorted((_unordered(part) for part in reply.value), key=repr)))


def any_order_deep(ours, theirs):
    """Documentation: the order of subcommands and of commands is that of a table without order."""
    return _unordered(ours) == _unordered(theirs)


unordered_flags = any_order_deep


def hello(ours, theirs):
    """A server's name for itself, its version, its modules, and the number of the connection."""
    if ours.kind != theirs.kind or not isinstance(ours.value, list) or len(ours.value) != len(theirs.value):
        return False
    for i in range(0, len(ours.value), 2):
        name = ours.value[i].value
        if ours.value[i].raw != theirs.value[i].raw:
            return False
        if name not in (b"server", b"version", b"id", b"modules") and ours.value[i + 1].raw != theirs.value[i + 1].raw:
            return False
    return True


def fields(ours, theirs):
    """Lines of name=value: the names, behind which ours may have more (as Valkey has)."""
    def names(reply):
        return [part.split(b"=")[0] for part in reply.value.split()] if isinstance(reply.value, bytes) else None
    a, b = names(ours), names(theirs)
    return ours.kind == theirs.kind and a is not None and b is not None and a[: len(b)] == b


def cursor_and_any(ours, theirs):
    """One step of SCAN."""
    return same_shape(ours, theirs)


def same_shape(ours, theirs):
    return ours.kind == theirs.kind and isinstance(ours.value, list) == isinstance(theirs.value, list)


COMPILE_ERROR = b"-ERR Error compiling script (new function): user_script:"


def script(ours, theirs):
    """What a compiler says of a script that is no Lua is its own."""
    return ours.raw.startswith(COMPILE_ERROR) and theirs.raw.startswith(COMPILE_ERROR)


def string_encodings(ours, theirs):
    """Redis 8.6 keeps a string with its key, and says `raw` of one that is too long for that, which depends on the key too."""
    return {ours, theirs} == {b"$3\r\nraw\r\n", b"$6\r\nembstr\r\n"}


def same_bytes(ours, theirs):
    """Before Redis 8.6 more is said of a command that is not there when it came without arguments."""
    return ours == theirs or NO_ARGUMENTS in theirs and theirs.replace(NO_ARGUMENTS, b"\r\n") == ours


def replies_equal(ours, theirs, compare=None, newer=False):
    """`newer`: the reference is Redis 8.6, of which some replies have other words."""
    if same_bytes(ours.raw, theirs.raw) or newer and string_encodings(ours.raw, theirs.raw):
        return True
    # Other errors are never a matter of chance.
    if compare is None or compare not in ("script", "newer_refusal") and (ours.kind in "-!" or theirs.kind in "-!"):
        return False
    return globals()[compare](ours, theirs)


def exec_equal(ours, theirs, queued, newer=False):
    """EXEC: each reply by the comparison of its request. `queued`: names of comparisons, or None."""
    if ours.raw == theirs.raw:
        return True
    if ours.kind != "*" or theirs.kind != "*" or ours.value is None or theirs.value is None:
        return False
    return len(ours.value) == len(theirs.value) == len(queued) and all(
        replies_equal(a, b, how, newer) for a, b, how in zip(ours.value, theirs.value, queued))

"""A smaller stream that still makes the servers differ."""

from . import streams


def shrink(steps, differs, budget=400):
    """The smallest list of steps found with at most `budget` runs. differs(steps) tells whether the servers part."""
    budget = [budget]

    def tried(candidate):
        if budget[0] <= 0:
            return False
        budget[0] -= 1
        return differs(candidate)

    steps = _without(steps, tried)
    for rewrite in (_unpipelined, _plain):
        candidate = rewrite(steps)
        if tried(candidate):
            steps = _without(candidate, tried)
    return _fewer_words(steps, tried)


def _without(items, differs):
    """Leaves out what can be left out: halves first, then smaller pieces, then one by one."""
    size = max(len(items) // 2, 1)
    while items:
        start, shorter = 0, False
        while start < len(items):
            candidate = items[:start] + items[start + size :]
            if differs(candidate):
                items, shorter = candidate, True
            else:
                start += size
        if size == 1 and not shorter:
            break
        size = max(size // 2, 1)
    return items


def _unpipelined(steps):
    """One request a step."""
    flat = []
    for step in steps:
        if isinstance(step, streams.Pipeline):
            last = len(step.requests) - 1
            flat += [streams.Pipeline(step.client, [request], step.pause and number == last)
                     for number, request in enumerate(step.requests)]
        else:
            flat.append(step)
    return flat


def _plain(steps):
    """One client, ordinary requests."""
    plain = []
    for step in steps:
        if isinstance(step, streams.Pipeline):
            plain.append(streams.Pipeline(0, [streams.Request(r.words, r.compare) for r in step.requests], step.pause))
        else:
            plain.append(step)
    return plain


def _fewer_words(steps, differs):
    for number, step in enumerate(steps):
        if not isinstance(step, streams.Pipeline) or len(step.requests) != 1:
            continue
        request = step.requests[0]

        def with_words(words):
            shorter = streams.Pipeline(step.client, [streams.Request(words, request.compare, request.form)], step.pause)
            return steps[:number] + [shorter] + steps[number + 1 :]

        words = request.words
        for at in range(len(words) - 1, 0, -1):
            candidate = words[:at] + words[at + 1 :]
            if differs(with_words(candidate)):
                words = candidate
        for at in range(1, len(words)):
            for simple in (b"1", b"a"):
                candidate = words[:at] + [simple] + words[at + 1 :]
                if len(words[at]) > 3 and differs(with_words(candidate)):
                    words = candidate
                    break
        steps = with_words(words)
    return steps

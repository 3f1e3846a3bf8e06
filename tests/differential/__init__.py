"""Sends the same generated streams of commands to two servers and compares what they answer; see scripts/differential.

    values.py    kinds of words: keys, values, numbers, deadlines, and thresholds of encodings
    grammar.py   templates of commands, and how one becomes words
    rows.py      a command as data: its template, and how its replies compare
    commands.py  the commands, by themes; lists.py, hashes.py, sets.py, sorted_sets.py and stream_values.py have those of
                 collections
    scripts.py   Lua scripts as data
    functions.py function libraries as data
    tracking.py  clients that are told of changes
    users.py     users, and what they may do
    streams.py   what a stream is, and how one is generated from a seed
    resp.py      requests to bytes, bytes to replies
    pair.py      the two servers, and a stream run on both
    compare.py   what counts as equal
    shrink.py    a smaller stream that still differs

A new command is one line in one of these. Only commands that both servers know are generated.
"""

"""Sends the same generated streams of commands to two servers and compares what they answer; see scripts/differential.

    values.py    kinds of words: keys, values, numbers, deadlines
    grammar.py   templates of commands, and how one becomes words
    commands.py  the commands as data: templates, and which replies differ by nature
    scripts.py   Lua scripts as data
    streams.py   what a stream is, and how one is generated from a seed
    resp.py      requests to bytes, bytes to replies
    pair.py      the two servers, and a stream run on both
    compare.py   what counts as equal
    shrink.py    a smaller stream that still differs

A new command is one line in commands.py. Only commands that both servers know are generated.
"""

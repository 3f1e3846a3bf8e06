"""Latchkey: an in-memory server that speaks the Redis protocol, for tests.

    server = latchkey.start()              # on a free port, saves nothing, ends with this process
    redis.Redis.from_url(server.url)
    redis.Redis.from_url(server.space())   # a server of one's own within it
    server.stop()

The same as a context manager: `with latchkey.start() as server:`. Only Python's standard library is needed.
"""

from ._server import LatchkeyError, Server, binary_path, space, start

__all__ = ["LatchkeyError", "Server", "binary_path", "space", "start"]

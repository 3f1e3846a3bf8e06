"""Forks COUNT clients of python3-redis and lets a test drive each: worker.py CONTROL_SOCKET PORT COUNT

Every client connects to the control socket and then answers lines [verb, argument...] of JSON with lines {"ok": ...} or
{"error": ...}. The verbs are those of worker.php and worker.rb; each is said in the way of its library. A true is 1, a false 0.
"""

import json
import os
import socket
import sys

import redis


def flags(replies):
    return [int(reply) for reply in replies]


class Verbs:
    def __init__(self, port):
        self.redis = redis.Redis(host="127.0.0.1", port=port, decode_responses=True)

    def get(self, key):
        return self.redis.get(key)

    def setnx(self, key, value):
        return int(self.redis.setnx(key, value))

    def getset(self, key, value):
        return self.redis.getset(key, value)

    def multi_setnx_expire(self, key, value, ttl):
        with self.redis.pipeline(transaction=True) as transaction:
            return flags(transaction.setnx(key, value).expire(key, ttl).execute())

    def eval(self, script, keys, arguments):
        return self.redis.register_script(script)(keys=keys, args=arguments)

    def set_nx_px(self, key, value, ttl_ms):
        return int(bool(self.redis.set(key, value, nx=True, px=ttl_ms)))

    def set_nx_ex(self, key, value, ttl):
        return int(bool(self.redis.set(key, value, nx=True, ex=ttl)))

    def set(self, key, value):
        return int(self.redis.set(key, value))

    def raw(self, *words):
        reply = self.redis.execute_command(*words)
        return "OK" if reply is True else reply


def serve(control, verbs):
    channel = socket.socket(socket.AF_UNIX)
    channel.connect(control)
    stream = channel.makefile("rw")
    for line in stream:
        verb, *arguments = json.loads(line)
        try:
            answer = {"ok": getattr(verbs, verb)(*arguments)}
        except redis.RedisError as error:
            answer = {"error": str(error)}
        stream.write(json.dumps(answer) + "\n")
        stream.flush()


def serve_all(kind, control, port, count):
    """So many processes, each with verbs of its own."""
    children = []
    for _ in range(int(count)):
        child = os.fork()
        if child == 0:
            serve(control, kind(int(port)))
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)


if __name__ == "__main__":
    serve_all(Verbs, *sys.argv[1:])

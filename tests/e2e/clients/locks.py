"""Clients that take locks with python3-redis, driven as those of worker.py are: locks.py KIND CONTROL_SOCKET PORT COUNT

KIND is "redis-py", the library's own Lock, or "redisson": what Redisson's RLock asks of a server, which is a hash of holders with
their counts, changed by scripts, and a channel on which those who wait hear of a release.

    acquire NAME TTL_MS         tries once; 1 if the lock is this client's now
    prolong NAME TTL_MS         1 if it was still this client's, and is for so long from now on
    release NAME                1 if it was still this client's
    work NAME TTL_MS ROUNDS     so many times: waits for the lock, reads NAME:count and writes one more, releases it, and rests
    connections                 the ids of its connections
"""

import random
import sys
import time
import uuid

import redis

import worker

RELEASED = "0"

REDISSON_ACQUIRE = """
local mine = redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1
if mine or redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return nil
end
return redis.call('PTTL', KEYS[1])
"""

REDISSON_PROLONG = """
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return 0
end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
"""

REDISSON_RELEASE = """
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return nil
end
if redis.call('HINCRBY', KEYS[1], ARGV[1], -1) > 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return 0
end
redis.call('DEL', KEYS[1])
redis.call('PUBLISH', KEYS[2], ARGV[3])
return 1
"""


class Locks:
    def __init__(self, port):
        self.redis = redis.Redis(port=port, decode_responses=True, client_name="client-" + uuid.uuid4().hex[:6])

    def connections(self):
        return [self.redis.client_id()]

    def work(self, name, ttl_ms, rounds):
        for _ in range(rounds):
            while not self.acquire(name, ttl_ms):
                self.wait(name)
            count = int(self.redis.get(name + ":count") or 0)
            self.redis.set(name + ":count", count + 1)
            self.release(name)
            self.rest()
        return rounds

    def rest(self):
        """Leaves the lock to others: who asks for it again at once keeps it from those who look now and then."""
        time.sleep(random.uniform(0.002, 0.01))


class RedisPyLocks(Locks):
    def __init__(self, port):
        super().__init__(port)
        self.held = {}

    def acquire(self, name, ttl_ms):
        lock = self.redis.lock(name, timeout=ttl_ms / 1000)
        if not lock.acquire(blocking=False):
            return 0
        self.held[name] = lock
        return 1

    def prolong(self, name, ttl_ms):
        try:
            return int(self.held[name].extend(ttl_ms / 1000, replace_ttl=True))
        except redis.exceptions.LockNotOwnedError:
            return 0

    def release(self, name):
        try:
            self.held.pop(name).release()
            return 1
        except redis.exceptions.LockNotOwnedError:
            return 0

    def work(self, name, ttl_ms, rounds):
        for _ in range(rounds):
            with self.redis.lock(name, timeout=ttl_ms / 1000, sleep=random.uniform(0.002, 0.01)):
                count = int(self.redis.get(name + ":count") or 0)
                self.redis.set(name + ":count", count + 1)
            self.rest()
        return rounds


class RedissonLocks(Locks):
    TTL_MS = 30000

    def __init__(self, port):
        super().__init__(port)
        self.me = f"{uuid.uuid4()}:1"  # as Redisson names a thread of a client
        self.scripts = [self.redis.register_script(text) for text in (REDISSON_ACQUIRE, REDISSON_PROLONG, REDISSON_RELEASE)]
        self.listener = None

    def acquire(self, name, ttl_ms):
        return int(self.scripts[0]([name], [self.me, ttl_ms]) is None)

    def prolong(self, name, ttl_ms):
        return self.scripts[1]([name], [self.me, ttl_ms])

    def release(self, name):
        return int(self.scripts[2]([name, self.channel(name)], [self.me, self.TTL_MS, RELEASED]) is not None)

    def channel(self, name):
        return "redisson_lock__channel:{" + name + "}"

    def wait(self, name):
        """Until somebody releases the lock, or for a moment: it may have been released before this client listened."""
        if self.listener is None:
            self.listener = self.redis.pubsub(ignore_subscribe_messages=True)
            self.listener.subscribe(self.channel(name))
        self.listener.get_message(timeout=0.05)


if __name__ == "__main__":
    worker.serve_all({"redis-py": RedisPyLocks, "redisson": RedissonLocks}[sys.argv[1]], *sys.argv[2:])

"""A job queue as libraries like BullMQ build it, in small: python3 marker_queue.py PORT NAME [hold].

    NAME:id         counts the jobs
    NAME:job:ID     a hash: what to do, and for whom it waits
    NAME:wait       a list of the jobs that can be done now; NAME:active those under way
    NAME:delayed    a zset of the jobs that wait for their time, by milliseconds and then by number
    NAME:completed  a zset of the jobs that are done, by when
    NAME:marker     a zset that wakes one idle worker (BZPOPMIN): score 0 for a job that waits, else the time of a delayed one
    NAME:events     a stream of what happens, kept to about EVENTS_KEPT entries
    NAME:lock:ID    whose the job is, for a time; a job without it has lost its worker

All moves are scripts. As a program it is a worker, which ends when it finds the list NAME:closing; with `hold` it takes a job for
SHORT_LOCK_MS only, and hangs.
"""

import signal
import sys
import time

import redis

EVENTS_KEPT = 200
LOCK_MS = 30_000
SHORT_LOCK_MS = 200
IDLE_S = 0.2

# Every script begins with these; ARGV[1] is the prefix, ARGV[2] the time in milliseconds.
COMMON = """
local prefix, now = ARGV[1], tonumber(ARGV[2])
local function key(name) return prefix .. ':' .. name end
local function tell(event, id)
  redis.call('XADD', key('events'), 'MAXLEN', '~', %d, '*', 'event', event, 'job', id)
end
local function make_ready(id)
  redis.call('LPUSH', key('wait'), id)
  redis.call('ZADD', key('marker'), 0, '0')
  tell('waiting', id)
end
local function mark_next_delayed()
  local first = redis.call('ZRANGE', key('delayed'), 0, 0, 'WITHSCORES')
  if first[2] then redis.call('ZADD', key('marker'), math.floor(tonumber(first[2]) / 4096), '1') end
end
""" % EVENTS_KEPT

ADD = """
local id = redis.call('INCR', key('id'))
redis.call('HSET', key('job:' .. id), 'data', ARGV[3], 'delay', ARGV[4])
tell('added', id)
local delay = tonumber(ARGV[4])
if delay == 0 then
  make_ready(id)
else
  redis.call('ZADD', key('delayed'), (now + delay) * 4096 + id % 4096, id)
  redis.call('HSET', key('job:' .. id), 'due', now + delay)
  tell('delayed', id)
  mark_next_delayed()
end
return id
"""

TAKE = """
local due = redis.call('ZRANGEBYSCORE', key('delayed'), 0, (now + 1) * 4096 - 1, 'LIMIT', 0, 1000)
for _, id in ipairs(due) do
  redis.call('ZREM', key('delayed'), id)
  make_ready(id)
end
mark_next_delayed()
local id = redis.call('LMOVE', key('wait'), key('active'), 'RIGHT', 'LEFT')
if not id then return {} end
if redis.call('LLEN', key('wait')) > 0 then redis.call('ZADD', key('marker'), 0, '0') end
redis.call('SET', key('lock:' .. id), ARGV[3], 'PX', ARGV[4])
redis.call('HSET', key('job:' .. id), 'taken', now)
redis.call('HINCRBY', key('job:' .. id), 'attempts', 1)
tell('active', id)
return {id, redis.call('HGETALL', key('job:' .. id))}
"""

FINISH = """
local id = ARGV[3]
if redis.call('GET', key('lock:' .. id)) ~= ARGV[4] then return 0 end
redis.call('DEL', key('lock:' .. id))
if redis.call('LREM', key('active'), -1, id) == 0 then return redis.error_reply('NOTACTIVE ' .. id) end
redis.call('ZADD', key('completed'), now, id)
redis.call('HSET', key('job:' .. id), 'result', ARGV[5])
tell('completed', id)
return 1
"""

RECOVER = """
local lost = 0
for _, id in ipairs(redis.call('LRANGE', key('active'), 0, -1)) do
  if redis.call('EXISTS', key('lock:' .. id)) == 0 then
    redis.call('LREM', key('active'), 1, id)
    tell('stalled', id)
    make_ready(id)
    lost = lost + 1
  end
end
return lost
"""


class Queue:
    def __init__(self, port, name):
        self.client = redis.Redis(port=port, decode_responses=True)
        self.name = name
        self._add = self.client.register_script(COMMON + ADD)
        self._take = self.client.register_script(COMMON + TAKE)
        self._finish = self.client.register_script(COMMON + FINISH)
        self._recover = self.client.register_script(COMMON + RECOVER)

    def key(self, name):
        return self.name + ":" + name

    def now_ms(self):
        seconds, microseconds = self.client.time()
        return seconds * 1000 + microseconds // 1000

    def _run(self, script, *arguments):
        keys = [self.key(name) for name in ("id", "wait", "active", "delayed", "completed", "marker", "events")]
        return script(keys=keys, args=[self.name, self.now_ms(), *arguments])

    def add(self, data, delay_ms=0):
        return self._run(self._add, data, delay_ms)

    def take(self, owner, lock_ms=LOCK_MS):
        """A job's number and its fields, or None."""
        taken = self._run(self._take, owner, lock_ms)
        return (taken[0], dict(zip(taken[1][::2], taken[1][1::2]))) if taken else None

    def finish(self, job, owner, result):
        """Whether the job was still the owner's."""
        return self._run(self._finish, job, owner, result) == 1

    def recover(self):
        """Gives back the jobs whose workers have gone; how many."""
        return self._run(self._recover)

    def wait_for_work(self):
        """Sleeps until the marker says that there is something to take, or for IDLE_S."""
        popped = self.client.bzpopmin(self.key("marker"), timeout=IDLE_S)
        if popped:
            wait_ms = popped[2] - self.now_ms()
            if popped[1] == "1" and wait_ms > 0:
                time.sleep(min(wait_ms / 1000, IDLE_S))


def work(queue, owner, holds):
    while True:
        job = queue.take(owner, SHORT_LOCK_MS if holds else LOCK_MS)
        if job is None:
            if queue.client.exists(queue.key("closing")):
                return
            queue.wait_for_work()
            continue
        number, fields = job
        if holds:
            queue.client.rpush(queue.key("held"), number)
            signal.pause()
        queue.client.rpush(queue.key("done"), number)
        queue.finish(number, owner, fields["data"].upper())


if __name__ == "__main__":
    work(Queue(int(sys.argv[1]), sys.argv[2]), sys.argv[3], "hold" in sys.argv[4:])

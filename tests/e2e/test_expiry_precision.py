#!/usr/bin/env python3
"""Keys go when their time has come, by themselves, and are counted.

As a test this counts keys, of which none may be left over or too many be gone. By hand it measures how late they go and what
that costs others:

    tests/e2e/test_expiry_precision.py --measure [--program SERVER] [--keys 1000000] [--spread 10] [--pin]

The measurement gives every key a deadline, spread evenly and in no order over some seconds. One client asks again and again
for the size of the database and for expired_keys; another sends GET and times the replies, before the first deadline and then
while keys expire. A key's lateness lies between two bounds: it was still there when a poll was sent, it was gone when the
reply of a later one arrived.
"""

import argparse
import multiprocessing
import os
import sys
import time
import unittest

import harness

BATCH = 5000


def load(client, count, option, time_of):
    """Sets `count` keys that expire as `option` (PX, PXAT) and time_of(i) say."""
    for first in range(0, count, BATCH):
        last = min(first + BATCH, count)
        client.send_raw(
            b"".join(harness.encode("SET", "key:%d" % i, "value", option, time_of(i)) for i in range(first, last))
        )
        for _ in range(first, last):
            reply = client.read()
            assert reply == "OK", reply


def expired_keys(client):
    for line in client.call("INFO", "stats").splitlines():
        if line.startswith("expired_keys:"):
            return int(line.split(":")[1])
    raise AssertionError("INFO stats has no expired_keys")


def now_ms():
    return time.time() * 1000


class ActiveExpiry(harness.ServerTestCase):
    def setUp(self):
        self.client = self.connect()
        self.client.call("FLUSHALL")
        self.expired_before = expired_keys(self.client)

    def expired(self):
        return expired_keys(self.client) - self.expired_before

    def test_every_key_goes_at_its_time_and_is_counted_once(self):
        count = 20000
        load(self.client, count, "PX", lambda i: 1 + i * 7919 % 1000)
        self.eventually(lambda: self.client.call("DBSIZE") == 0)
        self.assertEqual(self.expired(), count)

    def test_no_key_goes_before_its_time(self):
        count = 5000
        start = int(now_ms()) + 500
        load(self.client, count, "PXAT", lambda i: start + i % 1000)
        while self.client.call("DBSIZE") > 0:
            gone = self.expired()
            self.assertLessEqual(gone, sum(1 for i in range(count) if start + i % 1000 <= now_ms()))

    def test_only_keys_whose_time_has_come_go(self):
        load(self.client, 3000, "PX", lambda i: 1000000)
        for i in range(1000):
            self.assertEqual(self.client.call("PERSIST", "key:%d" % i), 1)
            self.assertEqual(self.client.call("PEXPIRE", "key:%d" % (1000 + i), 1 + i % 300), 1)
        self.eventually(lambda: self.client.call("DBSIZE") == 2000)
        self.assertEqual(self.expired(), 1000)
        self.assertEqual(self.client.call("TTL", "key:0"), -1)
        self.assertEqual(self.client.call("EXISTS", "key:2000"), 1)

    def test_deadlines_put_off_are_kept_to(self):
        load(self.client, 1000, "PX", lambda i: 1000000)
        for i in range(1000):
            self.assertEqual(self.client.call("PEXPIRE", "key:%d" % i, 100000 if i % 2 else 200), 1)
        for i in range(1, 1000, 2):
            self.assertEqual(self.client.call("PEXPIRE", "key:%d" % i, 300), 1)
        self.eventually(lambda: self.client.call("DBSIZE") == 0)
        self.assertEqual(self.expired(), 1000)


# --- The measurement -------------------------------------------------------------------------------------------------------


def time_gets(server, started, ended, results):
    """Times GET until `ended`; replies to requests sent before `started` belong to the quiet time."""
    client = server.connect()
    client.call("SET", "probe", "value")
    quiet, busy = [], []
    request = harness.encode("GET", "probe")
    while not ended.is_set():
        into = busy if started.is_set() else quiet
        sent = time.perf_counter()
        client.send_raw(request)
        client.read()
        into.append((time.perf_counter() - sent) * 1000)
        time.sleep(0.0005)
    results.put((quiet, busy))


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def describe(values):
    return "p50 %.3f  p99 %.3f  p99.9 %.3f  max %.3f ms  (%d requests)" % (
        percentile(values, 0.5), percentile(values, 0.99), percentile(values, 0.999), max(values), len(values))


def poll_until_empty(client, count, start_ms, spread_ms):
    """Follows the expiry of `count` keys; gives the two bounds of the greatest lateness in milliseconds and the time that the
    whole took."""

    def deadline_ms(rank):
        return start_ms + rank * spread_ms // count

    expired_before = expired_keys(client)
    at_least = at_most = 0.0
    gone_before = 0
    polls = 0
    while True:
        sent = now_ms()
        left = client.call("DBSIZE") - 1
        gone = expired_keys(client) - expired_before
        received = now_ms()
        polls += 1
        if left + gone < count:
            raise AssertionError("%d keys went uncounted" % (count - left - gone))
        if gone < count:
            at_least = max(at_least, sent - deadline_ms(gone))
        if gone > gone_before:
            if deadline_ms(gone - 1) > received:
                raise AssertionError("a key went before its time")
            at_most = max(at_most, received - deadline_ms(gone_before))
        gone_before = gone
        if gone == count and left == 0:
            return at_least, at_most, received - start_ms, polls
        time.sleep(0.004)


def cpu_seconds(pid):
    """User and system time of a process."""
    with open("/proc/%d/stat" % pid, encoding="ascii") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(options):
    server = harness.Server(program=options.program)
    if options.pin:
        os.sched_setaffinity(server.process.pid, {0})
        os.sched_setaffinity(0, {1})
    client = server.connect()
    spread_ms = int(options.spread * 1000)
    # Some number without a common factor with the count: deadlines in no order of the keys.
    step = 1000003
    start_ms = int(now_ms()) + int(options.lead * 1000)
    load(client, options.keys, "PXAT", lambda i: start_ms + (i * step % options.keys) * spread_ms // options.keys)
    quiet_s = (start_ms - now_ms()) / 1000
    if quiet_s < 1:
        raise SystemExit("loading took too long: give a greater --lead")
    started, ended, results = multiprocessing.Event(), multiprocessing.Event(), multiprocessing.Queue()
    prober = multiprocessing.Process(target=time_gets, args=(server, started, ended, results))
    prober.start()
    time.sleep(max(start_ms - now_ms(), 0) / 1000 - 0.05)
    started.set()
    cpu_before = cpu_seconds(server.process.pid)
    at_least, at_most, took_ms, polls = poll_until_empty(client, options.keys, start_ms, spread_ms)
    cpu_used = cpu_seconds(server.process.pid) - cpu_before
    ended.set()
    quiet, busy = results.get()
    prober.join()
    print("%d keys over %.1f s: all gone and counted %.0f ms after the first deadline, %d polls" % (
        options.keys, options.spread, took_ms, polls))
    print("greatest lateness: at least %.0f ms, at most %.0f ms" % (at_least, at_most))
    print("GET, quiet:    " + describe(quiet))
    print("GET, expiring: " + describe(busy))
    print("p99 differs by %.3f ms; the server used %.2f s of CPU" % (
        percentile(busy, 0.99) - percentile(quiet, 0.99), cpu_used))
    server.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true", help="measure instead of testing")
    parser.add_argument("--program", default=os.environ.get("LATCHKEY_SERVER"), help="the server; default: LATCHKEY_SERVER")
    parser.add_argument("--keys", type=int, default=1000000)
    parser.add_argument("--spread", type=float, default=10, help="seconds over which the deadlines are spread")
    parser.add_argument("--lead", type=float, default=45, help="seconds from the start of loading to the first deadline")
    parser.add_argument("--pin", action="store_true", help="the server on one core, the load on another")
    if "--measure" not in sys.argv:
        unittest.main()
    measure(parser.parse_args())


if __name__ == "__main__":
    main()

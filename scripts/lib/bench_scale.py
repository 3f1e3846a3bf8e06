"""The third group of scripts/bench, "scale": what an operation and a key cost with a thousand to fifty million keys, and how long
clients wait while something large happens.

Each size is measured on a process of its own, one server after the other, for fifty million keys fill a machine. How long clients
wait is told by a `Prober`: a process that sends PING every half millisecond beside whatever goes on, and takes a PING that could not
be sent in time as one that has waited since it was due. So one stop of 10 ms counts as the twenty waits that it is. Where the
system allows it, server and prober are real-time processes, so that others on the machine do not count as stops; both may use
all cores, as a server may.
"""

import contextlib
import gc
import multiprocessing
import os
import socket
import threading
import time

from bench_heavy import Link, Row, cpu_us, fail
from bench_load import run_load
from bench_server import encode

SIZES = (1_000, 100_000, 1_000_000, 10_000_000, 50_000_000)
PERIOD_NS = 500_000
FILL = """for i = tonumber(ARGV[1]), tonumber(ARGV[2]) - 1 do
  redis.call('SET', string.format('key:%012d', i), ARGV[3], unpack(ARGV, 4))
end"""
HASH = """for i = tonumber(ARGV[1]), tonumber(ARGV[2]) - 1 do
  redis.call('HSET', 'hash', 'field:' .. i, ARGV[3])
end"""


def prefer(process):
    """Puts a process before all others, but not what it starts, where that is permitted."""
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(process, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(10))


def run_script(server, script, count, *words, chunk=100_000):
    with Link(server) as link:
        for first in range(0, count, chunk):
            link.ask("EVAL", script, 0, first, min(count, first + chunk), *words)


# --- Sizes ---------------------------------------------------------------------------------------

def measure_sizes(servers, largest, rounds, progress):
    """Returns rows: CPU of GET and SET at pipeline 16, and bytes per key, for each size up to `largest`."""
    rows = {}
    for size in (size for size in SIZES if size <= largest):
        for server in servers:
            server.start()
            before = server.anonymous_bytes()
            run_script(server, FILL, size, "v" * 32)
            taken = {"GET": [], "SET": []}
            for _ in range(rounds):
                for name, words in (("GET", ()), ("SET", ("v" * 32,))):
                    started = cpu_us(server)
                    run_load(server, 600_000, 16, name, "key:__rand_int__", *words, keys=size)
                    taken[name].append((cpu_us(server) - started) / 600_000)
            for name, values in taken.items():
                rows.setdefault((f"{name.lower()}-16", size), {})[server.name] = values
            if size >= 100_000:
                rows.setdefault(("bytes per key", size), {})[server.name] = [(server.settled_bytes() - before) / size]
            server.stop()
        progress(f"{size:,} keys done")
    return [(Row(f"{name}, {size:,} keys", "scale", None, None, "bytes" if "bytes" in name else "us"), taken)
            for (name, size), taken in rows.items()]


# --- Waits ---------------------------------------------------------------------------------------

def probe(port, end, results):
    """In a process of its own: the waits of PINGs, in nanoseconds, until `end` is set."""
    prefer(0)
    os.sched_setaffinity(0, range(os.cpu_count()))
    gc.disable()
    waits = []
    with socket.create_connection(("127.0.0.1", port)) as link:
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link.sendall(b"PING\r\n")
        link.recv(64)
        results.send("ready")
        due = time.perf_counter_ns()
        while not end.is_set():
            link.sendall(b"PING\r\n")
            link.recv(64)
            now = time.perf_counter_ns()
            while due <= now:
                waits.append(now - due)
                due += PERIOD_NS
            time.sleep((due - now) / 1e9)
            # What the system was late with in waking this process is not the server's.
            due = time.perf_counter_ns()
    results.send(sorted(waits))


@contextlib.contextmanager
def probed(server, waits):
    """Adds to the list `waits` how long PINGs took within, from the shortest to the longest."""
    end = multiprocessing.Event()
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=probe, args=(server.port, end, theirs))
    process.start()
    ours.recv()
    try:
        yield
    finally:
        end.set()
        waits.extend(ours.recv())
        process.join()


@contextlib.contextmanager
def writing(server, keys):
    """Two clients that set random keys within, one at a time."""
    stop = threading.Event()

    def write():
        with Link(server) as link:
            number = 1
            while not stop.is_set():
                number = number * 48271 % 2147483647
                link.socket.sendall(encode(("SET", f"key:{number % keys:012}", "w" * 32)))
                link.socket.recv(256)

    writers = [threading.Thread(target=write) for _ in range(2)]
    for writer in writers:
        writer.start()
    try:
        yield
    finally:
        stop.set()
        for writer in writers:
            writer.join()


def wait_until(condition, seconds=120):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("what was to be measured did not end")
        time.sleep(0.05)


def nothing(server, _):
    yield
    time.sleep(3)


def growth(server, keys):
    yield
    run_load(server, keys, 16, "SET", "key:__rand_int__", "v" * 32, clients=4, keys=10 * keys)


def expiry(server, keys):
    with Link(server) as link:
        due_ms = int(link.ask("TIME")[0]) * 1000 + 4000 + keys // 200
    run_script(server, FILL, keys, "v" * 32, "PXAT", due_ms)
    # Whoever asks for the number of keys is not in the way of what is measured.
    time.sleep(max(0, due_ms / 1000 - time.time() - 0.2))
    yield
    wait_until(lambda: server.figure("expired_keys") >= keys)
    time.sleep(0.2)


def flush(server, keys):
    run_script(server, FILL, keys, "v" * 32)
    yield
    with Link(server) as link:
        link.ask("FLUSHALL")
    time.sleep(1)


def delete(server, keys):
    run_script(server, HASH, keys, "v" * 8)
    yield
    with Link(server) as link:
        link.ask("DEL", "hash")
    time.sleep(1)


def snapshot(server, keys):
    run_script(server, FILL, keys, "v" * 32)
    with writing(server, keys):
        yield
        # As long with every server, so that the stop for the fork has the same share of all waits.
        end = time.monotonic() + 5 + keys / 500_000
        with Link(server) as link:
            link.ask("BGSAVE")
        server.await_child()
        time.sleep(max(0, end - time.monotonic()))


def eviction(server, keys):
    run_script(server, FILL, keys, "v" * 32)
    with Link(server) as link:
        link.ask("CONFIG", "SET", "maxmemory-policy", "allkeys-lru", "maxmemory", server.figure("used_memory"))
    yield
    run_load(server, keys // 4, 1, "SET", "key:__rand_int__", "v" * 32, clients=4, keys=10 * keys)
    if server.figure("evicted_keys") == 0:
        fail(server, "nothing evicted", ["maxmemory"])


# A name, how many of --largest keys it is about, and a generator that prepares, yields, and does what is measured.
EVENTS = (
    ("nothing", 0, nothing),
    ("growth by SET", 1, growth),
    ("expiry of 1/10 at once", 0.1, expiry),
    ("FLUSHALL", 1, flush),
    ("DEL of a hash", 1, delete),
    ("BGSAVE under SET", 1, snapshot),
    ("eviction under SET", 1, eviction),
)


def measure_waits(servers, keys, progress):
    """Returns rows: the 99.9th percentile of the waits during each event, and the longest."""
    rows = []
    for name, share, event in EVENTS:
        percentile, longest = {}, {}
        for server in servers:
            server.start()
            os.sched_setaffinity(server.process.pid, range(os.cpu_count()))
            prefer(server.process.pid)
            waits = []
            steps = event(server, int(keys * share))
            next(steps)
            with probed(server, waits):
                next(steps, None)
            percentile[server.name] = [waits[int(len(waits) * 0.999)] / 1e6]
            longest[server.name] = [waits[-1] / 1e6]
            server.stop()
        size = f" ({int(keys * share):,})" if share else ""
        rows.append((Row(f"{name}{size}, p99.9", "wait", None, None, "ms"), percentile))
        rows.append((Row(f"{name}{size}, longest", "wait", None, None, "ms"), longest))
        progress(f"{name} done")
    return rows


def measure_scale(servers, options, progress):
    """Returns (rows, {row's name: {server's name: [per round]}})."""
    measured = measure_sizes(servers, options.largest, options.rounds, progress)
    measured += measure_waits(servers, min(options.largest, 10_000_000), progress)
    return [row for row, _ in measured], {row.name: taken for row, taken in measured}

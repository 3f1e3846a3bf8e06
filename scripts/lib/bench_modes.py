"""The rows of the group "heavy and modes" that are not one heavy command: limits and eviction, users, files, replication, clusters,
many clients, start."""

import contextlib
import os
import socket
import threading
import time
from pathlib import Path

from bench_heavy import Link, Row, Stock, ask, cpu_us, fail, load_cost, under
from bench_server import KEYS, Server, encode

GET = ("GET", "key:__rand_int__")
SET = ("SET", "key:__rand_int__", "v" * 64)


@contextlib.contextmanager
def commands_around(server, begin, end):
    ask(server, *begin)
    try:
        yield
    finally:
        ask(server, *end)


def while_set(begin, end):
    return lambda server: commands_around(server, begin, end)


# --- Memory --------------------------------------------------------------------------------------

POLICIES = ("allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-ttl")
LIMIT = "60mb"
# Reads keys out of 1,000,000, low numbers more often; what is missing is written.
SKEWED = """local seed = tonumber(ARGV[1])
for i = 1, 50 do
  seed = (seed * 16807) % 2147483647
  local u = seed / 2147483647
  local key = 'key:' .. math.floor(1000000 * u * u * u)
  if not redis.call('GET', key) then redis.call('SET', key, ARGV[2], 'EX', 100000 + seed % 1000) end
end"""


def eviction(policy, misses):
    """CPU of one access in a cache that is full; or, with `misses`, how many of a hundred accesses miss."""
    def measure(server):
        with Link(server) as link:
            link.ask("CONFIG", "SET", "maxmemory", LIMIT, "maxmemory-policy", policy)
            sha = link.ask("SCRIPT", "LOAD", SKEWED).decode()

            def access(calls, first):
                for start in range(0, calls, 500):
                    link.exchange(b"".join(encode(("EVALSHA", sha, "0", str(1 + (first + start + number) * 7919 % 2147483646),
                                                   "v" * 100)) for number in range(500)))

            access(20_000, 0)  # fills it
            link.ask("CONFIG", "RESETSTAT")
            started = cpu_us(server)
            access(5_000, 20_000)
            spent = (cpu_us(server) - started) / (5_000 * 50)
            rate = server.figure("keyspace_misses") * 100 / (5_000 * 50)
            if server.figure("evicted_keys") == 0:
                fail(server, "nothing evicted", ["maxmemory", LIMIT])
            link.ask("FLUSHALL")
            link.ask("CONFIG", "SET", "maxmemory", "0", "maxmemory-policy", "noeviction")
        return rate if misses else spent

    return measure


def bytes_per_key(script, count):
    """Growth of resident memory over the keys that the script makes; measured once, in a process of its own."""
    def measure(server):
        fresh = Server(server.name, server.program, server.core)
        fresh.start()
        try:
            before = fresh.anonymous_bytes()
            ask(fresh, ("EVAL", script, "0"))
            return (fresh.settled_bytes() - before) / count
        finally:
            fresh.stop()

    return measure


SMALL_HASHES = "for i = 1, 1000000 do redis.call('HSET', 'hash:' .. i, 'name', 'user' .. i, 'age', i % 100, 'city', 'Oslo') end"
SMALL_SETS = "for i = 1, 500000 do redis.call('SADD', 'set:' .. i, i, i + 1, i + 2) end"
SMALL_LISTS = "for i = 1, 500000 do redis.call('RPUSH', 'list:' .. i, 'a' .. i, 'b' .. i, 'c' .. i) end"
SMALL_ZSETS = "for i = 1, 500000 do redis.call('ZADD', 'zset:' .. i, 1, 'a' .. i, 2, 'b' .. i, 3, 'c' .. i) end"
PLAIN_KEYS = "for i = 1, 1000000 do redis.call('SET', string.format('key:%012d', i), string.rep('v', 32)) end"


def cost_of_script(text, count):
    """CPU of the script, for each of its `count` steps, on an empty server."""
    def measure(server):
        with Link(server) as link:
            started = cpu_us(server)
            link.ask("EVAL", text, "0")
            spent = (cpu_us(server) - started) / count
            link.ask("FLUSHALL")
        return spent

    return measure


def expiry(server):
    """CPU for each key of 500,000 that fall due at once."""
    with Link(server) as link:
        link.ask("EVAL", "for i = 1, 500000 do redis.call('SET', 'key:' .. i, 'value', 'PX', 3000) end", "0")
        started = cpu_us(server)
        while link.ask("DBSIZE") != b"0":
            time.sleep(0.2)
        return (cpu_us(server) - started) / 500_000


# --- Clients -------------------------------------------------------------------------------------

def clients_of(server, count, request=b""):
    links = []
    for _ in range(count):
        link = socket.create_connection(("127.0.0.1", server.port))
        if request:
            link.sendall(request)
        links.append(link)
    return links


def close_all(links):
    for link in links:
        link.close()


def idle_clients(count):
    """Resident bytes of an idle client."""
    def measure(server):
        fresh = Server(server.name, server.program, server.core)
        fresh.start(options=("--maxclients", str(count + 100)))
        try:
            before = fresh.anonymous_bytes()
            links = clients_of(fresh, count, b"PING\r\n")
            time.sleep(8)  # buffers of clients that are idle are given back
            grown = (fresh.anonymous_bytes() - before) / count
            close_all(links)
            return grown
        finally:
            fresh.stop()

    return measure


def beside_idle_clients(count, measurement):
    def measure(server):
        links = clients_of(server, count)
        try:
            return measurement(server)
        finally:
            close_all(links)

    return measure


def publish(subscribers):
    """CPU of PUBLISH for each subscriber."""
    def measure(server):
        links = clients_of(server, subscribers, encode(("SUBSCRIBE", "channel")))
        with Link(server) as link:
            while link.ask("PUBLISH", "channel", "x") != str(subscribers).encode():
                time.sleep(0.01)
            messages = 200
            started = cpu_us(server)
            link.exchange(encode(("PUBLISH", "channel", "v" * 64)) * messages)
            spent = (cpu_us(server) - started) / messages / subscribers
        close_all(links)
        return spent

    return measure


def blocked(count):
    """CPU for each of clients that wait in BLPOP and are served by RPUSH."""
    def measure(server):
        links = clients_of(server, count, encode(("BLPOP", "queue", "0")))
        with Link(server) as link:
            while server.figure("blocked_clients") != count:
                time.sleep(0.01)
            started = cpu_us(server)
            link.exchange(encode(("RPUSH", "queue", "element")) * count)
            # This process waits for none of the clients meanwhile: to wake it again for each would cost the server more than all
            # else, or nothing, if the one that it waits for is served last.
            time.sleep(0.1)
            spent = (cpu_us(server) - started) / count
        for link in links:
            if not link.recv(100).startswith(b"*2"):
                fail(server, "no element", ["BLPOP"])
        close_all(links)
        return spent

    return measure


@contextlib.contextmanager
def monitored(server):
    """One client sees all commands."""
    link = socket.create_connection(("127.0.0.1", server.port))
    link.sendall(b"MONITOR\r\n")
    link.recv(5)

    def drain():
        with contextlib.suppress(OSError):
            while link.recv(1 << 20):
                pass

    reader = threading.Thread(target=drain, daemon=True)
    reader.start()
    try:
        yield
    finally:
        link.shutdown(socket.SHUT_RDWR)
        reader.join()
        link.close()


USER = [("ACL", "SETUSER", "limited", "on", ">secret", "~key:*", "+get", "+set", "+config")]


# --- Replication ---------------------------------------------------------------------------------

def wait_for_link(server):
    deadline = time.monotonic() + 60
    while b"master_link_status:up" not in ask(server, ("INFO", "replication")):
        if time.monotonic() > deadline:
            fail(server, "no link to the master", ["REPLICAOF"])
        time.sleep(0.05)


@contextlib.contextmanager
def peers(server, count, core=1):
    """Other processes of the same program, on the load's core."""
    others = [Server(server.name, server.program, core) for _ in range(count)]
    try:
        for other in others:
            other.start()
        yield others
    finally:
        for other in others:
            other.stop()


def with_replicas(count, measurement):
    def measure(server):
        with peers(server, count) as replicas:
            for replica in replicas:
                ask(replica, ("REPLICAOF", "127.0.0.1", str(server.port)))
            for replica in replicas:
                wait_for_link(replica)
            return measurement(server)

    return measure


def as_replica(server):
    """CPU of a replica for each SET that its master passes on."""
    operations = 300_000
    with peers(server, 1) as (master,):
        ask(server, ("REPLICAOF", "127.0.0.1", str(master.port)))
        wait_for_link(server)
        started = cpu_us(server)
        load_cost(operations, 16, *SET)(master)
        ask(master, ("SET", "last", "one"), ("WAIT", "1", "10000"))
        spent = (cpu_us(server) - started) / operations
        ask(server, ("REPLICAOF", "NO", "ONE"))
    return spent


# --- Files ---------------------------------------------------------------------------------------

def child_ticks(server):
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[13]) + int(fields[14])


def dirty_bytes_of_children(server):
    children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text().split()
    total = 0
    for child in children:
        with contextlib.suppress(OSError, ProcessLookupError):
            text = Path(f"/proc/{child}/smaps_rollup").read_text()
            total += int(text.partition("Private_Dirty:")[2].split()[0]) * 1024
    return total


def background_file(figure, *command):
    """BGSAVE or BGREWRITEAOF of the stock: CPU of the "child" (ms), "wall" (ms), or what the child holds of its own at most, in
    "memory" (MB)."""
    def measure(server):
        server.await_child()
        before, started, most = child_ticks(server), time.monotonic(), 0
        ask(server, command)
        while True:
            text = ask(server, ("INFO", "persistence"))
            if not any(f"{name}:1".encode() in text for name in (
                    "rdb_bgsave_in_progress", "aof_rewrite_in_progress", "aof_rewrite_scheduled")):
                break
            most = max(most, dirty_bytes_of_children(server))
            time.sleep(0.005)
        wall = time.monotonic() - started
        if b"last_bgsave_status:err" in text or b"last_bgrewrite_status:err" in text:
            fail(server, "the child has failed", command)
        ticks = child_ticks(server) - before
        return {"child": ticks * 1000 / os.sysconf("SC_CLK_TCK"), "wall": wall * 1000, "memory": most / 1e6}[figure]

    return measure


def save_cost(server):
    started = cpu_us(server)
    ask(server, ("SAVE",))
    return (cpu_us(server) - started) / 1000


def load_time(server):
    """CPU of a start with the stock's file, in ms."""
    ask(server, ("SAVE",))
    fresh = Server(server.name, server.program, server.core)
    fresh.start(server.directory)
    try:
        if fresh.figure("rdb_last_load_keys_loaded") < KEYS:
            fail(server, "keys are missing", ["DEBUG"])
        return cpu_us(fresh) / 1000
    finally:
        fresh.kill()


def start_time(server):
    """From the start of the process to the first answered PING, in ms."""
    fresh = Server(server.name, server.program, server.core)
    taken = fresh.start()
    fresh.stop()
    return taken


# --- The rows ------------------------------------------------------------------------------------

EMPTY = Stock("empty, for modes", options=("--maxclients", "10100"))
FULL = Stock("a million keys, for modes", [
    ("EVAL", f"for i = 0, {KEYS - 1} do redis.call('SET', string.format('key:%012d', i), string.rep('v', 64)) end", "0"),
    *USER])
CLUSTER = Stock("cluster", cluster=True)
TEN_MILLION = Stock("ten million keys", [
    ("EVAL", "for i = 0, 9999999 do redis.call('SET', string.format('k%012d', i), i) end", "0")])

AOF_OFF = [("CONFIG", "SET", "appendonly", "no")]


@contextlib.contextmanager
def appending(server, policy):
    ask(server, ("CONFIG", "SET", "appendfsync", policy), ("CONFIG", "SET", "auto-aof-rewrite-percentage", "0"),
        ("CONFIG", "SET", "appendonly", "yes"))
    server.await_child()
    try:
        yield
    finally:
        ask(server, ("CONFIG", "SET", "appendonly", "no"))


GET_16 = load_cost(450_000, 16, *GET)
SET_16 = load_cost(450_000, 16, *SET)
MODES = [
    *[Row(f"access, {policy}", "eviction", EMPTY, eviction(policy, misses=False), warm=False) for policy in POLICIES],
    *[Row(f"misses, {policy}", "eviction", EMPTY, eviction(policy, misses=True), unit="%", warm=False) for policy in POLICIES],
    Row("expiry of 500,000 keys at once", "expiry", EMPTY, expiry, warm=False),
    Row("1,000,000 small hashes", "small values", EMPTY, cost_of_script(SMALL_HASHES, 1_000_000), warm=False),
    Row("bytes, hash of 3 fields", "small values", EMPTY, bytes_per_key(SMALL_HASHES, 1_000_000), unit="bytes", warm=False),
    Row("bytes, set of 3 integers", "small values", EMPTY, bytes_per_key(SMALL_SETS, 500_000), unit="bytes", warm=False),
    Row("bytes, list of 3", "small values", EMPTY, bytes_per_key(SMALL_LISTS, 500_000), unit="bytes", warm=False),
    Row("bytes, zset of 3", "small values", EMPTY, bytes_per_key(SMALL_ZSETS, 500_000), unit="bytes", warm=False),
    Row("bytes, key of 16 and 32", "small values", EMPTY, bytes_per_key(PLAIN_KEYS, 1_000_000), unit="bytes", warm=False),
    Row("PUBLISH to 200", "clients", EMPTY, publish(200)),
    Row("500 blocked in BLPOP", "clients", EMPTY, blocked(500)),
    Row("GET, 1 client", "clients", EMPTY, load_cost(40_000, 1, *GET, clients=1)),
    Row("GET, 50 clients", "clients", EMPTY, load_cost(200_000, 1, *GET)),
    Row("GET, 1,000 clients", "clients", EMPTY, load_cost(200_000, 1, *GET, clients=1000)),
    Row("GET, 9,000 clients", "clients", EMPTY, load_cost(200_000, 1, *GET, clients=9000)),
    Row("GET p16, 9,000 idle clients", "clients", EMPTY, beside_idle_clients(9000, GET_16)),
    Row("bytes, idle client of 9,000", "clients", EMPTY, idle_clients(9000), unit="bytes", warm=False),
    Row("GET p16", "modes", FULL, GET_16),
    Row("SET p16", "modes", FULL, SET_16),
    Row("GET p16, limited memory", "modes", FULL, under(while_set([("CONFIG", "SET", "maxmemory", "64gb")],
                                                                  [("CONFIG", "SET", "maxmemory", "0")]), GET_16)),
    Row("GET p16, restricted user", "modes", FULL, load_cost(450_000, 16, *GET, first=["AUTH limited secret"])),
    Row("GET p16, tracking", "modes", FULL, load_cost(450_000, 16, *GET, first=["HELLO 3", "CLIENT TRACKING on"])),
    Row("GET p16, MONITOR", "modes", FULL, under(monitored, load_cost(200_000, 16, *GET))),
    Row("SET p16, notifications", "modes", FULL, under(while_set([("CONFIG", "SET", "notify-keyspace-events", "KEA")],
                                                                 [("CONFIG", "SET", "notify-keyspace-events", "")]), SET_16)),
    Row("SET p16, AOF everysec", "modes", FULL, under(lambda server: appending(server, "everysec"), SET_16)),
    Row("SET p1, AOF always", "modes", FULL, under(lambda server: appending(server, "always"), load_cost(20_000, 1, *SET))),
    Row("SET p16, 1 replica", "replication", FULL, with_replicas(1, SET_16), warm=False),
    Row("SET p16, 3 replicas", "replication", FULL, with_replicas(3, load_cost(300_000, 16, *SET)), warm=False),
    Row("SAVE of 1,000,000, CPU", "files", FULL, save_cost, unit="ms"),
    Row("BGSAVE, CPU of child", "files", FULL, background_file("child", "BGSAVE"), unit="ms", warm=False),
    Row("BGSAVE, wall", "files", FULL, background_file("wall", "BGSAVE"), unit="ms", warm=False),
    Row("BGSAVE, memory of child", "files", FULL, background_file("memory", "BGSAVE"), unit="MB", warm=False),
    Row("BGREWRITEAOF, CPU of child", "files", FULL, background_file("child", "BGREWRITEAOF"), unit="ms", warm=False),
    Row("BGREWRITEAOF, wall", "files", FULL, background_file("wall", "BGREWRITEAOF"), unit="ms", warm=False),
    Row("load of 1,000,000, CPU", "files", FULL, load_time, unit="ms", warm=False),
    Row("GET p16, cluster", "modes", CLUSTER, GET_16),
    Row("SET p16, cluster", "modes", CLUSTER, SET_16),
    Row("SET applied as a replica", "replication", Stock("replica"), as_replica, warm=False),
    Row("start", "start", Stock("start"), start_time, unit="ms"),
    Row("GET p16 with 10,000,000 keys", "sizes", TEN_MILLION, load_cost(600_000, 16, "GET", "k__rand_int__", keys=10_000_000), warm=False),
    Row("GET p16, missing in 10,000,000", "sizes", TEN_MILLION, load_cost(600_000, 16, "GET", "m__rand_int__"), warm=False),
]

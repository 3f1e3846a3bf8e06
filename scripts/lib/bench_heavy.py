"""The second group of scripts/bench, "heavy and modes": how its rows are measured, printed and written.

A row is one number for each server: server CPU of one command or operation unless its unit says otherwise, all
threads included. Rows of one stock (what servers hold, and the options they start with) are measured on the same
processes, in rounds: each row on each server in turn, then all again. The middle value of the rounds counts. A server
that answers an error ends the run.
"""

import os
import socket
import statistics
import sys
import time
from dataclasses import dataclass, field

from bench_load import run_load
from bench_server import encode

END = b"$16\r\nend of the reply\r\n"


def fail(server, reply, command):
    words = " ".join(str(part) for part in command)[:100]
    sys.exit(f"scripts/bench: {server.name} answers {reply!r} to {words}")


class Link:
    """A connection whose replies are read without being taken apart, so that large ones cost the load little."""

    buffer = bytearray(1 << 20)

    def __init__(self, server):
        self.server = server
        self.socket = socket.create_connection(("127.0.0.1", server.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def exchange(self, request):
        """Sends requests, and returns when all are answered. The first reply must not be an error."""
        self.socket.sendall(request + encode(("ECHO", END[5:-2].decode())))
        view = memoryview(self.buffer)
        tail, first = b"", b""
        while not tail.endswith(END):
            size = self.socket.recv_into(view)
            if size == 0:
                sys.exit(f"scripts/bench: {self.server.name} has closed the connection")
            first = first or bytes(view[:80])
            tail = (tail + bytes(view[max(0, size - len(END)):size]))[-len(END):]
        if first[:1] == b"-":
            fail(self.server, first, [request[:60]])

    def ask(self, *command):
        """The reply: a string or number as it came, or a list. An error, also within a list, ends the run."""
        self.socket.sendall(encode([str(part) for part in command]))
        replies = self.socket.makefile("rb")

        def read():
            line = replies.readline()
            kind, rest = line[:1], line[1:-2]
            if kind == b"-" or not line:
                fail(self.server, line, command)
            if kind == b"$":
                return replies.read(int(rest) + 2)[:-2] if rest != b"-1" else None
            if kind == b"*":
                return [read() for _ in range(max(0, int(rest)))]
            return rest

        return read()


def ask(server, *commands):
    """Sends commands one by one, and returns the last reply."""
    with Link(server) as link:
        for command in commands:
            reply = link.ask(*command)
    return reply


def cpu_us(server, idle=False):
    """CPU time of all threads once the server waits; `idle`: once its background threads have finished as well."""
    time.sleep(0.002)
    spent = server.cpu_ns()
    while idle:
        time.sleep(0.03)
        before, spent = spent, server.cpu_ns()
        idle = spent - before > 1_500_000
    return spent / 1000


@dataclass
class Stock:
    """What servers hold: `commands` are sent to each, after it has started with `options`. Those without the command `needs` take no
    part."""
    name: str
    commands: list = field(default_factory=list)
    options: tuple = ()
    cluster: bool = False
    needs: str = ""


@dataclass
class Row:
    """`measure` takes a server and returns a number. `warm`: it is called once before it counts."""
    name: str
    group: str
    stock: Stock
    measure: object
    unit: str = "us"
    warm: bool = True


def commands_cost(times, *commands, before=(), idle=False):
    """A measurement: CPU of the commands, `times` times one after another, per time. What is in `before` is sent before each
    time and does not count. `idle`: work that the server leaves to its background threads counts."""
    request = b"".join(encode(command) for command in commands)
    setup = b"".join(encode(command) for command in before)

    def measure(server):
        with Link(server) as link:
            for command in (*before, *commands):
                link.ask(*command)
            spent = 0
            if not before:
                started = cpu_us(server, idle)
                link.exchange(request * times)
                return (cpu_us(server, idle) - started) / times
            for _ in range(times):
                link.exchange(setup)
                started = cpu_us(server, idle)
                link.exchange(request)
                spent += cpu_us(server, idle) - started
        return spent / times

    return measure


def scan_cost(*command, count=1000):
    """A measurement: CPU of a whole SCAN, HSCAN, SSCAN or ZSCAN."""
    def measure(server):
        with Link(server) as link:
            started, cursor = cpu_us(server), b"0"
            while True:
                cursor = link.ask(*command, cursor.decode(), "COUNT", count)[0]
                if cursor == b"0":
                    return cpu_us(server) - started

    return measure


def load_cost(operations, pipeline, *command, **how):
    """A measurement: CPU per operation under load, with random numbers of keys; see run_load()."""
    def measure(server):
        started = cpu_us(server)
        done, _, _ = run_load(server, operations, pipeline, *command, **how)
        return (cpu_us(server) - started) / done

    return measure


def under(condition, measurement):
    """The measurement while a context manager of the server holds."""
    def measure(server):
        with condition(server):
            return measurement(server)

    return measure


def fill(text, count, *keys):
    """An EVAL that runs `text` with i = 1 .. count and id, its twelve digits."""
    return ("EVAL", f"for i = 1, {count} do local id = string.format('%012d', i) {text} end", str(len(keys)), *keys)


def row(group, stock, name, *command, times=10, **options):
    return Row(name, group, stock, commands_cost(times, command, **options))


def measure_rows(servers, rows, rounds):
    """Returns {row's name: {server's name: [per round]}}, and prints the rows of each stock when they are done: all of them take
    more than an hour."""
    figures = {row.name: {server.name: [] for server in servers} for row in rows}
    stocks = []
    for row in rows:
        if row.stock not in stocks:
            stocks.append(row.stock)
    for stock in stocks:
        able = []
        for server in servers:
            if stock.cluster:
                server.start_cluster()
            else:
                server.start(options=stock.options)
            if stock.needs and not ask(server, ("COMMAND", "INFO", stock.needs))[0]:
                server.stop()
                continue
            able.append(server)
            if stock.commands:
                ask(server, *stock.commands)
            cpu_us(server, idle=True)
        for number in range(rounds):
            for row in (row for row in rows if row.stock is stock):
                for server in able:
                    if number == 0 and row.warm:
                        row.measure(server)
                    figures[row.name][server.name].append(row.measure(server))
        for server in able:
            server.stop()
        if able:
            print_rows([row for row in rows if row.stock is stock], figures, able)
    return figures


def choose_rows(rows, pattern):
    chosen = [row for row in rows if not pattern or pattern in row.name or pattern == row.group]
    if not chosen:
        sys.exit(f"scripts/bench: no row of the group has {pattern!r}; there are {', '.join(row.name for row in rows)}")
    return chosen


def print_rows(rows, figures, servers):
    """Each row with the first server's ratio to each other, and to the best of them."""
    ours, *others = [server.name for server in servers]
    print(f"\n{'':34}{'unit':>8}{ours:>13}" + "".join(f"{name:>13}{'ratio':>7}" for name in others) + f"{'best':>8}")
    for row in rows:
        values = {name: statistics.median(taken) for name, taken in figures[row.name].items() if taken}
        line = f"{row.group + ' ' + row.name:34}{row.unit:>8}{values[ours]:13,.3f}"
        for name in others:
            line += f"{values[name]:13,.3f}{values[ours] / values[name] if values[name] else 0:7.2f}"
        best = min((values[name] for name in others), default=0)
        print(line + (f"{values[ours] / best:8.2f}" if best else ""), flush=True)


def rows_of_report(rows, figures):
    """For bench_report; a value is the middle one of the rounds."""
    return [{"name": row.name, "group": row.group, "unit": row.unit,
             "values": {name: statistics.median(taken) for name, taken in figures[row.name].items() if taken}} for row in rows]

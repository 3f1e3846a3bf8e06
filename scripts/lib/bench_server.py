"""The servers that scripts/bench measures: started, filled, asked, and what the kernel says of them."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent.parent
KEYS = 1_000_000


def encode(command):
    """A command as it goes over the wire; __rand_int__ counts for the 12 digits it is replaced by."""
    parts = [part.encode() for part in command]
    return b"*%d\r\n" % len(parts) + b"".join(
        b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextlib.contextmanager
def on_core(core):
    """This thread runs on one core meanwhile, and so do the processes that it starts. Setting that in the child instead would
    have it copy this process first, which takes longer than a server's start."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


class Server:
    """One server process on its core, in an empty directory of its own."""

    def __init__(self, name, program, core):
        self.name, self.program, self.core = name, program, core

    def start(self, directory=None, options=()):
        """Starts the process; returns the milliseconds until it answered PING, which is when it has loaded what is in the
        directory, a new one unless given."""
        self.port = free_port()
        self.directory = directory or tempfile.mkdtemp(prefix="latchkey-bench-")
        log = os.path.join(self.directory, "log")
        with on_core(self.core):
            started = time.perf_counter()
            self.process = subprocess.Popen(
                [self.program, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
                 "--dir", self.directory, "--logfile", log, *options],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = started + 60
        while time.perf_counter() < deadline and self.process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)) as link:
                link.sendall(b"PING\r\n")
                if link.recv(16) == b"+PONG\r\n":
                    return (time.perf_counter() - started) * 1000
            time.sleep(0.0001)
        words = Path(log).read_text()[-500:] if os.path.exists(log) else "it wrote no log"
        self.stop()
        sys.exit(f"scripts/bench: {self.name} does not start: {words}")

    def start_cluster(self):
        """Starts the process as the one node of a cluster, and waits until the cluster serves."""
        self.start(options=("--cluster-enabled", "yes", "--cluster-port", str(free_port())))
        self.error_of("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
        deadline = time.perf_counter() + 30
        while words := self.error_of("GET", "key"):
            if time.perf_counter() > deadline:
                sys.exit(f"scripts/bench: the cluster of {self.name} does not serve: {words}")
            time.sleep(0.05)

    def kill(self):
        """Ends the process and leaves its directory."""
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def cpu_ns(self):
        """Time all threads of the process have been on a core."""
        total = 0
        for task in os.scandir(f"/proc/{self.process.pid}/task"):
            with contextlib.suppress(FileNotFoundError):
                total += int(Path(task.path, "schedstat").read_text().split()[0])
        return total

    def loop_cpu_ns(self):
        """Time the thread that serves clients has been on a core."""
        return int(Path(f"/proc/{self.process.pid}/task/{self.process.pid}/schedstat").read_text().split()[0])

    def resident_bytes(self):
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def anonymous_bytes(self):
        """Resident memory that is not of files, such as the program."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("RssAnon:")[2].split()[0]) * 1024

    def settled_bytes(self):
        """Resident memory once tables have finished growing and allocators have let go of what was freed, which takes them
        ten seconds."""
        readings = [self.anonymous_bytes()]
        for _ in range(30):
            time.sleep(1)
            readings.append(self.anonymous_bytes())
            if len(readings) > 11 and readings[-11] - readings[-1] < 0.002 * readings[-1]:
                break
        return readings[-1]

    def error_of(self, *command):
        with socket.create_connection(("127.0.0.1", self.port)) as link:
            link.sendall(encode(command))
            reply = link.recv(4096)
        return reply.decode(errors="replace").split("\r\n")[0][1:] if reply[:1] == b"-" else None

    def figure(self, name):
        """A number from INFO."""
        with socket.create_connection(("127.0.0.1", self.port)) as link:
            link.sendall(b"INFO everything\r\n")
            replies = link.makefile("rb")
            text = replies.read(int(replies.readline()[1:])).decode(errors="replace")
        return int(text.partition(f"\n{name}:")[2].partition("\r")[0])

    def await_child(self):
        """Until no child writes, and none is about to."""
        while self.figure("rdb_bgsave_in_progress") + self.figure("aof_rewrite_in_progress") + self.figure("aof_rewrite_scheduled"):
            time.sleep(0.05)

    def fill(self, command):
        """Sends the command KEYS times, with numbers from 0 on for %012d; each must be answered by a status, a number
        or a string of one line."""
        with socket.create_connection(("127.0.0.1", self.port)) as link:
            replies = link.makefile("rb")
            for first in range(0, KEYS, 1000):
                link.sendall(b"".join(
                    encode([part.replace("%012d", f"{number:012}").replace("%group", f"{number // 10:012}") for part in command])
                    for number in range(first, first + 1000)))
                for _ in range(1000):
                    if (reply := replies.readline())[:1] not in b"+:$":
                        sys.exit(f"scripts/bench: {self.name} answers {reply!r} to {command[0]}")
                    if reply[:1] == b"$":
                        replies.readline()

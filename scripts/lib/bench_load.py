"""The load of scripts/bench, a program of our own: bench_load.cpp says why. It is compiled when it is first needed."""

import subprocess
import sys
from pathlib import Path

from bench_server import CHECKOUT, KEYS

SOURCE = Path(__file__).with_suffix(".cpp")
PROGRAM = CHECKOUT / "build" / "bench" / "load"


def compile_program(path):
    subprocess.run(["g++", "-std=c++20", "-O2", "-o", path, SOURCE], check=True)


def load_program():
    if not PROGRAM.exists() or PROGRAM.stat().st_mtime < SOURCE.stat().st_mtime:
        PROGRAM.parent.mkdir(parents=True, exist_ok=True)
        compile_program(PROGRAM)
    return PROGRAM


def run_load(server, operations, pipeline, *command, clients=50, keys=KEYS, first=()):
    """Sends a command, with random numbers below `keys` for __rand_int__, at least `operations` times. The requests in `first` are sent
    before by each client. Returns how many were sent, operations per second, and the 99th percentile of latencies in milliseconds; an
    error reply ends the run."""
    words = [load_program(), server.port, clients, pipeline, operations, keys]
    for request in first:
        words += ["-x", request]
    result = subprocess.run([str(word) for word in (*words, "--", *command)], capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"scripts/bench: {server.name}, {' '.join(command)[:100]}: {result.stderr[-200:]}")
    done, rate, p99_ms = result.stdout.split()
    return int(done), float(rate), float(p99_ms)

#!/usr/bin/env python3
"""Runs the end-to-end tests (test_*.py beside this file and in its folders) against the server that LATCHKEY_SERVER names.

    LATCHKEY_SERVER=build/release/src/latchkey-server tests/e2e/run.py [-j N] [--except PATTERN]... [PATTERN...]

Patterns select test files by name (test_locks, locks), or leave them out. With -j files run in processes of their own, N at a time;
their output comes when they have ended. Ends with the line `N passed, N failed`.
"""

import argparse
import concurrent.futures
import os
import queue
import re
import subprocess
import sys
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
FIRST_PORT, LAST_PORT = 10000, 19999  # as harness.free_port() has them
SERVER_CRASHED = "server ended with"  # harness.Server.stop()


class CountingResult(unittest.TextTestResult):
    """Counts what passed; the tests of a class that cannot be set up are never begun."""

    passed = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1


def passes_alone(test) -> bool:
    """Whether a test that failed passes when it is run again: processes that are killed and stopped on a machine that others use
    as well come too late now and then. What cannot be loaded or set up does not."""
    name = test.id()
    try:
        again = unittest.defaultTestLoader.loadTestsFromName(name)
    except (ImportError, AttributeError, TypeError):
        return False
    return again.countTestCases() == 1 and unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(again).wasSuccessful()


def run_file(path, ports) -> tuple[int, int]:
    """Runs one file in a process of its own, whose servers listen on these ports; how many tests have passed and failed."""
    started = time.monotonic()
    done = subprocess.run([sys.executable, __file__, path.name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          env=dict(os.environ, LATCHKEY_PORTS="%d-%d" % ports))
    print(f"{done.stdout}{path.name} took {time.monotonic() - started:.0f} s\n", flush=True)
    counts = re.findall(r"^(\d+) passed, (\d+) failed$", done.stdout, re.M)
    # Whatever has ended it, it was not its tests.
    return tuple(map(int, counts[-1])) if counts else (0, 1)


def run_files(paths, jobs) -> int:
    # The largest first, so that none is begun last and waited for alone.
    paths.sort(key=lambda path: path.stat().st_size, reverse=True)
    share = (LAST_PORT + 1 - FIRST_PORT) // jobs
    free = queue.SimpleQueue()
    for i in range(jobs):
        free.put((FIRST_PORT + i * share, FIRST_PORT + (i + 1) * share - 1))

    def run(path):
        ports = free.get()
        try:
            return run_file(path, ports)
        finally:
            free.put(ports)

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        counts = list(pool.map(run, paths))
    passed, failed = (sum(column) for column in zip(*counts)) if counts else (0, 0)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-j", "--jobs", type=int, default=1, metavar="N")
    parser.add_argument("--except", dest="left_out", action="append", default=[], metavar="PATTERN")
    parser.add_argument("patterns", nargs="*", metavar="PATTERN")
    options = parser.parse_args()
    every_path = sorted(HERE.rglob("test_*.py"), key=lambda path: path.name)
    # Modules are found by name, wherever they are.
    sys.path[:0] = sorted({str(path.parent) for path in every_path} | {str(HERE)})
    paths = [path for path in every_path
             if not options.patterns or any(word in path.name for word in options.patterns)]
    paths = [path for path in paths if not any(word in path.name for word in options.left_out)]
    if options.jobs > 1:
        return run_files(paths, options.jobs)
    suite = unittest.TestSuite()
    for path in paths:
        suite.addTests(unittest.defaultTestLoader.loadTestsFromName(path.stem))
    result = unittest.TextTestRunner(verbosity=2, resultclass=CountingResult).run(suite)
    for test, reason in result.skipped:
        print(f"skipped: {test}: {reason}")
    failed = len(result.unexpectedSuccesses)
    tracebacks = {}  # by test; one whose parts (subTest) fail has several
    for test, traceback in result.failures + result.errors:
        tracebacks.setdefault(getattr(test, "test_case", test), []).append(traceback)
    for test, all_of_it in tracebacks.items():
        traceback = "\n".join(all_of_it)
        # A server that crashed is a defect however seldom it does.
        if SERVER_CRASHED not in traceback and passes_alone(test):
            result.passed += 1
            print(f"passed the second time only: {test}\n{traceback}")
        else:
            failed += 1
            print(f"FAILED: {test}: {traceback.strip().splitlines()[-1]}")
    print(f"{result.passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

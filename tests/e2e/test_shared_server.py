"""Suites whose tests FLUSHALL, CONFIG SET and SUBSCRIBE, run in parallel by the harnesses people use, all over one server.

Each suite (clients/shared_server_suite.*) is run three times: alone, by eight workers in spaces of their own, which must be as
green as alone, and by eight workers that share the first server, which must not be green: else the suite would show nothing.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import clients
import harness

WORKERS = 8
TIMEOUT_S = 300
SUITE = str(clients.HERE / "shared_server_suite")


def has_python(*modules):
    found = subprocess.run([sys.executable, "-c", "import " + ", ".join(modules)], capture_output=True, check=False)
    return found.returncode == 0


class SharedServer(harness.ServerTestCase):
    def run_suite(self, *command, workers, spaces, cwd=None):
        """The exit status of a run, and what it printed."""
        meeting = tempfile.mkdtemp(dir=self.server.directory)
        environment = {**os.environ, "SHARED_PORT": str(self.server.port), "SHARED_WORKERS": str(workers),
                       "SHARED_MEETING": meeting, "SHARED_SPACES": "yes" if spaces else "no"}
        ran = subprocess.run([*command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment,
                             cwd=cwd or meeting, timeout=TIMEOUT_S, check=False)
        return ran.returncode, ran.stdout

    def three_times(self, run, passed, failed):
        """`passed` matches the output of a run in which all tests pass, alone and of all workers; `failed` that of one in which
        tests fail."""
        alone, by_all = passed
        status, output = run(1, spaces=False)
        self.assertEqual(status, 0, output)
        self.assertRegex(output, alone)

        main = self.connect()
        main.call("FLUSHALL")
        main.call("SET", "witness", "here")
        threshold = main.call("CONFIG", "GET", "latency-monitor-threshold")
        status, output = run(WORKERS, spaces=True)
        self.assertEqual(status, 0, output)
        self.assertRegex(output, by_all)
        self.assertEqual(main.call("KEYS", "*"), ["witness"])
        self.assertEqual(main.call("CONFIG", "GET", "latency-monitor-threshold"), threshold)
        self.eventually(lambda: main.call("SPACE", "LIST") == [])

        status, output = run(WORKERS, spaces=False)
        self.assertNotEqual(status, 0, output)
        self.assertRegex(output, failed)
        self.assertIsNone(main.call("GET", "witness"))

    @unittest.skipUnless(has_python("pytest", "xdist", "redis"), "needs python3-pytest-xdist and python3-redis")
    def test_pytest_xdist(self):
        def run(workers, spaces):
            processes = str(workers) if workers > 1 else "0"  # 0: none but pytest itself
            return self.run_suite(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", processes, SUITE + ".py",
                                  workers=workers, spaces=spaces)

        self.three_times(run, passed=["(?m)^24 passed", "(?m)^24 passed"], failed=r"(?m)^\d+ failed.*in ")

    @clients.needs_node_modules
    def test_vitest_with_threads(self):
        def run(workers, spaces):
            with tempfile.TemporaryDirectory() as directory:
                for part in range(workers):
                    program = clients.beside_node_modules(directory, SUITE + ".test.mjs")
                    Path(program).rename(Path(directory, f"part{part}.test.mjs"))
                threads = [f"--poolOptions.threads.{limit}Threads={workers}" for limit in ("min", "max")]
                return self.run_suite("node_modules/.bin/vitest", "run", "--no-color", "--pool=threads", *threads,
                                      workers=workers, spaces=spaces, cwd=directory)

        self.three_times(run, passed=["Tests  3 passed", f"Tests  {3 * WORKERS} passed"], failed=r"Tests  \d+ failed")

    @unittest.skipUnless(shutil.which("ruby"), "needs ruby, ruby-minitest and ruby-redis")
    def test_minitest_in_threads(self):
        def run(workers, spaces):
            return self.run_suite("ruby", SUITE + ".rb", workers=workers, spaces=spaces)

        green = "24 runs, .* 0 failures, 0 errors"
        self.three_times(run, passed=[green, green], failed=r"24 runs, .* [1-9]\d* failures")


if __name__ == "__main__":
    unittest.main()

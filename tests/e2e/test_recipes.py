"""The recipes of README's "In your tests" (recipes/), run as they are, all against one server."""

import os
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

import harness

RECIPES = Path(__file__).resolve().parent / "recipes"
TIMEOUT_S = 120


def has_python(module):
    found = subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True, check=False)
    return found.returncode == 0


class Recipes(harness.ServerTestCase):
    def run_recipe(self, *command):
        environment = {**os.environ, "REDIS_PORT": str(self.server.port)}
        ran = subprocess.run([*command], capture_output=True, text=True, env=environment, cwd=self.server.directory,
                             timeout=TIMEOUT_S, check=False)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        # Nothing of it was seen in the first server, and its spaces go.
        client = self.connect()
        self.assertEqual(client.call("DBSIZE"), 0)
        self.eventually(lambda: client.call("SPACE", "LIST") == [])
        return ran.stdout + ran.stderr

    @unittest.skipUnless(has_python("pytest") and has_python("redis"), "needs python3-pytest and python3-redis")
    def test_pytest(self):
        self.assertIn("2 passed", self.run_recipe(sys.executable, "-m", "pytest", "-p", "no:cacheprovider",
                                                  str(RECIPES / "pytest_recipe.py")))

    @unittest.skipUnless(has_python("redis"), "needs python3-redis")
    def test_unittest(self):
        self.assertIn("OK", self.run_recipe(sys.executable, str(RECIPES / "unittest_recipe.py")))

    @unittest.skipUnless(shutil.which("ruby"), "needs ruby, ruby-minitest and ruby-redis")
    def test_minitest(self):
        self.assertIn("2 runs, 2 assertions, 0 failures, 0 errors",
                      self.run_recipe("ruby", str(RECIPES / "minitest_recipe.rb")))

    @unittest.skipUnless(shutil.which("redis-cli"), "needs redis-cli")
    def test_shell(self):
        self.assertIn("passed", self.run_recipe(str(RECIPES / "shell_recipe.sh")))


if __name__ == "__main__":
    unittest.main()

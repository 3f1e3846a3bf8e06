"""The recipes of README's "In your tests" (recipes/), run as they are, all against one server."""

import os
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

import clients
import harness

RECIPES = Path(__file__).resolve().parent / "recipes"
TIMEOUT_S = 120


def has_python(module):
    found = subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True, check=False)
    return found.returncode == 0


class Recipes(harness.ServerTestCase):
    options = {"space-linger-ms": "100"}

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

    def beside_modules(self, name):
        """A recipe's path in a directory from which Node finds its libraries."""
        return clients.beside_node_modules(self.server.directory, RECIPES / name)

    @unittest.skipUnless(has_python("pytest") and has_python("redis"), "needs python3-pytest and python3-redis")
    def test_pytest(self):
        self.assertIn("2 passed", self.run_recipe(sys.executable, "-m", "pytest", "-p", "no:cacheprovider",
                                                  str(RECIPES / "pytest_recipe.py")))

    @unittest.skipUnless(has_python("pytest") and has_python("redis"), "needs python3-pytest and python3-redis")
    def test_pytest_on_several_releases(self):
        self.assertIn("12 passed", self.run_recipe(sys.executable, "-m", "pytest", "-p", "no:cacheprovider",
                                                   str(RECIPES / "versions_recipe.py")))

    @unittest.skipUnless(has_python("redis"), "needs python3-redis")
    def test_unittest(self):
        self.assertIn("OK", self.run_recipe(sys.executable, str(RECIPES / "unittest_recipe.py")))

    @unittest.skipUnless(shutil.which("ruby"), "needs ruby, ruby-minitest and ruby-redis")
    def test_minitest(self):
        self.assertIn("2 runs, 2 assertions, 0 failures, 0 errors",
                      self.run_recipe("ruby", str(RECIPES / "minitest_recipe.rb")))

    @unittest.skipUnless(shutil.which("rspec"), "needs ruby-rspec and ruby-redis")
    def test_rspec(self):
        self.assertIn("2 examples, 0 failures", self.run_recipe("rspec", str(RECIPES / "rspec_recipe.rb")))

    @unittest.skipUnless(shutil.which("phpunit"), "needs phpunit and php-redis")
    def test_phpunit(self):
        self.assertIn("OK (2 tests, 2 assertions)",
                      self.run_recipe("phpunit", "--no-configuration", "--do-not-cache-result", str(RECIPES / "SessionTest.php")))

    @clients.needs_node_modules
    def test_vitest(self):
        self.beside_modules("vitest_recipe.test.mjs")
        self.assertIn("Tests  2 passed", self.run_recipe("node_modules/.bin/vitest", "run", "--no-color"))

    @clients.needs_node_modules
    def test_mocha(self):
        self.assertIn("2 passing", self.run_recipe("node_modules/.bin/mocha", self.beside_modules("mocha_recipe.mjs")))

    @clients.needs_node_modules
    def test_node_test(self):
        output = self.run_recipe("node", "--test", self.beside_modules("node_test_recipe.mjs"))
        self.assertRegex(output, "(?m)^. pass 2$")

    @unittest.skipUnless(shutil.which("redis-cli"), "needs redis-cli")
    def test_shell(self):
        self.assertIn("passed", self.run_recipe(str(RECIPES / "shell_recipe.sh")))


if __name__ == "__main__":
    unittest.main()

"""SORT ... ALPHA in the order of a language, which the C library knows. The order of English is made for the test, as the machine may
have none but "C". The recorded orders are the reference's (8.0.2)."""

import os
import shutil
import subprocess
import tempfile
import unittest

import harness

WORDS = ["b", "a", "B", "A", "\u00e4", "z", "Z", "a b", "ab", "a-b", "_", "9", "10"]
BY_BYTES = ["10", "9", "A", "B", "Z", "_", "a", "a b", "a-b", "ab", "b", "z", "\u00e4"]
IN_ENGLISH = ["_", "10", "9", "a", "A", "\u00e4", "a b", "a-b", "ab", "b", "B", "z", "Z"]
LOCALE = "en_US.UTF-8"


def make_locale():
    """A directory with the locale."""
    directory = tempfile.mkdtemp(prefix="latchkey-e2e-")
    # Its warnings are about other categories, and make its status 1.
    subprocess.run(["localedef", "-i", "en_US", "-f", "UTF-8", os.path.join(directory, LOCALE)], capture_output=True, check=False)
    return directory


class SortOrder(harness.ServerTestCase):
    @classmethod
    def setUpClass(cls):
        cls.locales = make_locale()
        cls.addClassCleanup(shutil.rmtree, cls.locales, ignore_errors=True)
        cls.server = harness.Server(environment={"LOCPATH": cls.locales, "LC_ALL": LOCALE})

    def setUp(self):
        self.client = self.connect()
        self.client.call("FLUSHALL")
        self.client.call("RPUSH", "words", *WORDS)
        self.addCleanup(self.client.call, "CONFIG", "SET", "locale-collate", "")

    def sort(self, *how):
        return self.client.call("SORT", "words", *how, "ALPHA")

    def test_the_environment_names_the_order(self):
        self.assertEqual(self.sort(), IN_ENGLISH)
        self.assertEqual(self.sort("DESC"), IN_ENGLISH[::-1])
        self.assertEqual(self.sort("LIMIT", "3", "4"), IN_ENGLISH[3:7])
        self.assertEqual(self.client.call("EVAL", "return redis.call('sort', 'words', 'alpha')", 0), IN_ENGLISH)

    def test_so_are_the_values_of_other_keys_compared(self):
        for word in WORDS:
            self.client.call("SET", "weight:" + word, word)
        self.assertEqual(self.sort("BY", "weight:*"), IN_ENGLISH)

    def test_what_is_stored_is_in_the_order_of_bytes(self):
        self.client.call("SORT", "words", "ALPHA", "STORE", "sorted")
        self.assertEqual(self.client.call("LRANGE", "sorted", 0, -1), BY_BYTES)

    def test_the_order_is_changed_while_the_server_runs(self):
        self.client.call("CONFIG", "SET", "locale-collate", "C")
        self.assertEqual(self.sort(), BY_BYTES)
        self.client.call("CONFIG", "SET", "locale-collate", LOCALE)
        self.assertEqual(self.sort(), IN_ENGLISH)

    def test_an_unknown_locale_is_refused_and_changes_nothing(self):
        self.assertEqual(self.client.error_of("CONFIG", "SET", "locale-collate", "xx_YY"),
                         "ERR CONFIG SET failed (possibly related to argument 'locale-collate') - Invalid locale name")
        self.assertEqual(self.client.call("CONFIG", "GET", "locale-collate"), ["locale-collate", ""])
        self.assertEqual(self.sort(), IN_ENGLISH)

    def test_texts_are_alike_up_to_the_first_nul_and_then_stay_as_they_came(self):
        self.client.call("RPUSH", "alike", "\0", "\0\0", "", "\0b", "\0a")
        for how in ((), ("DESC",)):
            self.assertEqual(self.client.call("SORT", "alike", "ALPHA", *how), ["\0", "\0\0", "", "\0b", "\0a"])


class UnknownLocale(unittest.TestCase):
    def test_a_server_does_not_start_with_a_locale_that_is_not_there(self):
        run = subprocess.run([os.environ["LATCHKEY_SERVER"], "--port", "0", "--locale-collate", "xx_YY"], capture_output=True,
                             text=True, timeout=harness.START_TIMEOUT_S)
        self.assertEqual(run.returncode, 1)
        self.assertIn("Failed to configure LOCALE for invalid locale name.", run.stdout)


if __name__ == "__main__":
    unittest.main()

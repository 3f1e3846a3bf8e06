"""redis-check-aof says the same of a file as the reference's does, with the same exit status, wherever the file is damaged."""

import os
import random
import subprocess
import tempfile
import unittest
from pathlib import Path

import harness

REQUESTS = harness.encode("SELECT", 0) + harness.encode("SET", "f", "hi")
TRANSACTION = harness.encode("MULTI") + harness.encode("SET", "bar", "world") + harness.encode("EXEC")
MANIFEST = b"file base seq 1 type b\nfile first seq 1 type i\nfile last seq 2 type i\n"


def stamped(*seconds):
    return b"".join(b"#TS:%d\r\n" % second + harness.encode("SET", "at", second) for second in seconds)


@harness.needs_reference
class Checked(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.home = tempfile.TemporaryDirectory(prefix="latchkey-check-")
        cls.ours = os.path.join(cls.home.name, "redis-check-aof")
        os.symlink(os.path.abspath(os.environ["LATCHKEY_SERVER"]), cls.ours)

    @classmethod
    def tearDownClass(cls):
        cls.home.cleanup()

    def run_in(self, program, files, arguments, answer):
        with tempfile.TemporaryDirectory(prefix="latchkey-check-") as directory:
            for name, data in files.items():
                Path(directory, name).write_bytes(data)
            done = subprocess.run([program, *arguments], cwd=directory, input=answer, capture_output=True, timeout=60)
            left = {name: Path(directory, name).read_bytes() for name in files}
        return done.returncode, done.stdout.replace(program.encode(), b"redis-check-aof"), left

    def compare(self, files, *arguments, answer=b"y\n"):
        with self.subTest(files=files, arguments=arguments):
            self.assertEqual(self.run_in(self.ours, files, arguments, answer),
                             self.run_in(harness.reference("redis-check-aof"), files, arguments, answer))

    def test_wherever_a_file_is_cut(self):
        whole = REQUESTS + TRANSACTION
        for end in range(0, len(whole) + 1):
            # The reference shows what its buffer held before where a line has no end.
            if whole[:end].endswith((b"\r\n", b"\r")) or whole[end - 2:end].isalpha():
                self.compare({"file": whole[:end]}, *(("--fix",) if end % 2 else ()), "file")

    def test_wherever_a_byte_is_wrong(self):
        whole = REQUESTS + TRANSACTION
        chance = random.Random(5)
        for at in range(0, len(whole)):
            if whole[at:at + 1] in b"\n*$":
                damaged = bytearray(whole)
                damaged[at] = chance.choice(b"!x#")
                self.compare({"file": bytes(damaged)}, "file")

    def test_times(self):
        for second in (99, 100, 101, 103, 105, 200):
            self.compare({"file": stamped(100, 101, 105)}, "--truncate-to-timestamp", str(second), "file")
        self.compare({"file": b"#TS:xx\r\n" + REQUESTS}, "--truncate-to-timestamp", "100", "file")
        self.compare({"file": REQUESTS}, "--truncate-to-timestamp", "soon", "file")

    def test_several_files(self):
        good = {"manifest": MANIFEST, "base": REQUESTS, "first": TRANSACTION, "last": stamped(100, 200)}
        self.compare(good, "manifest")
        for name in ("base", "first", "last"):
            self.compare({**good, name: b""}, "manifest")
            for arguments in (("manifest",), ("--fix", "manifest")):
                self.compare({**good, name: good[name][:-1]}, *arguments)
            self.compare({**good, name: stamped(100, 200)}, "--truncate-to-timestamp", "150", "manifest")
            self.compare({each: data for each, data in good.items() if each != name}, "manifest")
        self.compare({"manifest": b"# one\nfile base seq 1 type b\n", "base": REQUESTS}, "manifest")
        self.compare({"manifest": b"file last seq 1 type h\n", "last": REQUESTS}, "manifest")

    def test_no_means_no(self):
        self.compare({"file": REQUESTS + b"*1\r"}, "--fix", "file", answer=b"n\n")
        self.compare({"file": REQUESTS + b"!!!"}, "--fix", "file", answer=b"")

    def test_how_it_is_called(self):
        for arguments in ((), ("--fix",), ("--mend", "file"), ("--truncate-to-timestamp", "file"), ("nothing",),
                          ("--fix", "nothing"), ("a", "b", "c", "d")):
            self.compare({"file": REQUESTS}, *arguments)


if __name__ == "__main__":
    unittest.main()

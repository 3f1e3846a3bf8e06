"""What scripts/packages/ decides by: what a program asks of its machine (scripts/lib/elf.py), and the tags of wheels that follow."""

import importlib.machinery
import importlib.util
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path
from unittest import mock

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CHECKOUT / "scripts" / "lib"))
import elf  # noqa: E402
import package_sources  # noqa: E402

SERVER = os.environ.get("LATCHKEY_SERVER")


def maker(kind):
    """A package's `make`, as a module."""
    loader = importlib.machinery.SourceFileLoader(f"make_{kind}", str(CHECKOUT / "scripts" / "packages" / kind / "make"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    with mock.patch.object(sys, "dont_write_bytecode", True):
        loader.exec_module(module)
    return module


def program(machine=62, segments=()):
    """An ELF file with these program headers: (type, offset, address, length)."""
    header = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 2, machine, 1, 0, 64, 0, 0, 64, 56, len(segments), 0, 0, 0)
    return header + b"".join(struct.pack("<IIQQQQQQ", kind, 0, offset, address, 0, length, length, 0) for kind, offset, address, length in segments)


class Elf(unittest.TestCase):
    def of(self, image):
        with tempfile.NamedTemporaryFile() as file:
            file.write(image)
            file.flush()
            return elf.needs(file.name)

    def refused(self, image, words):
        with self.assertRaisesRegex(elf.NotAProgram, words):
            self.of(image)

    def test_a_static_program(self):
        found = self.of(program(segments=[(1, 0, 0x400000, 4096)]))
        self.assertTrue(found.static)
        self.assertEqual((found.cpu, found.libraries, found.glibc), ("x64", (), None))

    def test_a_program_with_a_loader_is_not_static(self):
        self.assertFalse(self.of(program(machine=183, segments=[(3, 0, 0x400000, 28)])).static)

    def test_a_static_program_that_may_lie_anywhere_has_a_dynamic_section_of_no_libraries(self):
        dynamic = 64 + 2 * 56
        image = program(segments=[(1, 0, 0, 4096), (2, dynamic, dynamic, 32)]) + struct.pack("<qQqQ", 5, 0, 0, 0)
        self.assertTrue(self.of(image).static)

    def test_what_is_no_program_is_said(self):
        self.refused(b"#!/bin/sh\n", "is not a Linux program")
        self.refused(program()[:4] + b"\1" + program()[5:], "is not a program of 64 bits")
        self.refused(program(machine=22), r"another processor \(ELF machine 22\)")
        self.refused(program(segments=[(1, 0, 0, 64)])[:100], "cut short or damaged")
        self.refused(program(segments=[(2, 1000, 0, 32)]), "cut short or damaged")

    @unittest.skipUnless(SERVER and shutil.which("readelf"), "needs LATCHKEY_SERVER and binutils")
    def test_it_agrees_with_readelf_on_the_server(self):
        found = elf.needs(SERVER)
        read = subprocess.run(["readelf", "--wide", "--dynamic", "--version-info", "--program-headers", SERVER], capture_output=True, text=True,
                              check=True).stdout
        self.assertEqual(list(found.libraries), [line.split("[")[1].split("]")[0] for line in read.splitlines() if "(NEEDED)" in line])
        self.assertEqual(found.interpreter, "INTERP" in read)
        versions = [word.split("_")[1] for word in read.split() if word.startswith("GLIBC_2")]
        newest = max((tuple(map(int, version.split(".")[:2])) for version in versions), default=None)
        self.assertEqual(found.glibc, newest)


class Wheel(unittest.TestCase):
    def tags(self, cpu="x64", interpreter=True, libraries=("libc.so.6",), glibc=(2, 28)):
        return maker("pypi").tags(package_sources.Binary(cpu, Path("x"), elf.Needs(cpu, interpreter, tuple(libraries), glibc)))[0]

    def test_tags_follow_from_what_the_binary_needs(self):
        self.assertEqual(self.tags(interpreter=False, libraries=(), glibc=None),
                         ["manylinux_2_17_x86_64", "manylinux2014_x86_64", "musllinux_1_1_x86_64"])
        self.assertEqual(self.tags(), ["manylinux_2_28_x86_64"])
        self.assertEqual(self.tags(glibc=(2, 5)), ["manylinux_2_17_x86_64"])
        self.assertEqual(self.tags(cpu="arm64", libraries=("libm.so.6", "ld-linux-aarch64.so.1")), ["manylinux_2_28_aarch64"])
        self.assertEqual(self.tags(libraries=("libc.so.6", "liblzf.so.1")), ["linux_x86_64"])


class Sources(unittest.TestCase):
    def test_archives_are_the_same_bytes_for_the_same_files(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = {}
            for name in ("b", "a"):
                path = paths[name] = Path(folder, name)
                path.write_text(name)
            paths["a"].chmod(0o755)
            first, second = Path(folder, "1.zip"), Path(folder, "2.zip")
            package_sources.write_zip(first, paths)
            os.utime(paths["a"], (1, 1))
            package_sources.write_zip(second, dict(reversed(paths.items())))
            self.assertEqual(first.read_bytes(), second.read_bytes())
            with zipfile.ZipFile(first) as archive:
                self.assertEqual([(entry.filename, entry.external_attr >> 16 & 0o777) for entry in archive.infolist()],
                                 [("a", 0o755), ("b", 0o644)])

    def test_a_binary_that_is_not_there_is_said(self):
        with mock.patch.dict(os.environ, LATCHKEY_PACKAGE_BINARY="/nonexistent"), self.assertRaises(SystemExit) as refused:
            package_sources.binaries("npm")
        self.assertEqual(str(refused.exception), "scripts/packages/npm/make: /nonexistent is not there; LATCHKEY_PACKAGE_BINARY names it")


if __name__ == "__main__":
    unittest.main()

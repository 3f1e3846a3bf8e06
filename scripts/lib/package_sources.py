"""What the `make` programs under scripts/packages/ have in common: where the binaries and the version come from, and where a
package is put together.

    build = package_sources.Build("npm")    # build/packages/npm/, emptied
    build.binaries                          # [Binary(cpu="x64", path=..., needs=...), ...], at least one

scripts/package says by LATCHKEY_PACKAGES where build/packages/ is, and by LATCHKEY_SHORT=yes that this machine's processor is enough. For tests,
LATCHKEY_PACKAGE_BINARY names another program to put into the package, and LATCHKEY_PACKAGE_OUTPUT another folder than build/packages/KIND/.
"""

import hashlib
import os
import re
import shutil
import stat
import sys
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

import elf

CHECKOUT = Path(__file__).resolve().parents[2]
PACKAGES = Path(os.environ.get("LATCHKEY_PACKAGES") or CHECKOUT / "build" / "packages")
BINARIES = PACKAGES / "binary"
LICENCE = "BSD-3-Clause"
AUTHORS = "the Latchkey authors"
SUMMARY = "An in-memory server that speaks the Redis protocol, for tests: clocks that move, a space for each test, checkpoints"
# The time of files in archives: the same bytes whenever they are made. The first moment a zip archive can hold.
EPOCH = int(os.environ.get("SOURCE_DATE_EPOCH") or 315532800)


@dataclass(frozen=True)
class Binary:
    cpu: str
    path: Path
    needs: elf.Needs


def fail(kind, words):
    sys.exit(f"scripts/packages/{kind}/make: {words}")


def version():
    """As meson.build has it, where it is said once."""
    return re.search(r"^\s*version: '([^']+)'", (CHECKOUT / "meson.build").read_text(), re.M)[1]


def binaries(kind):
    """One for each processor there is a build for; the one for this machine's kind must be there."""
    named = os.environ.get("LATCHKEY_PACKAGE_BINARY")
    paths = [Path(named or BINARIES / "latchkey-server-linux-x64")]
    if os.environ.get("LATCHKEY_SHORT") != "yes":
        paths.append(BINARIES / "latchkey-server-linux-arm64")
    if not paths[0].is_file():
        fail(kind, f"{paths[0]} is not there; " + ("LATCHKEY_PACKAGE_BINARY names it" if named else
                                                   "`scripts/package binary` makes it, or name a program in LATCHKEY_PACKAGE_BINARY"))
    found = {}
    for path in paths:
        if not path.is_file():
            continue
        try:
            wanted = elf.needs(path)
        except elf.NotAProgram as error:
            fail(kind, str(error))
        found.setdefault(wanted.cpu, Binary(wanted.cpu, path, wanted))
    return list(found.values())


class Build:
    """An emptied folder build/packages/KIND/, and its folder `stage/`, in which packages are put together."""

    def __init__(self, kind):
        self.kind = kind
        self.binaries = binaries(kind)
        self.sources = CHECKOUT / "scripts" / "packages" / kind
        self.directory = Path(os.environ.get("LATCHKEY_PACKAGE_OUTPUT") or PACKAGES / kind)
        shutil.rmtree(self.directory, ignore_errors=True)
        self.stage = self.directory / "stage"
        self.stage.mkdir(parents=True)

    def put(self, text, *place, executable=False):
        """Writes a file below the stage."""
        path = self.stage.joinpath(*place)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755 if executable else 0o644)

    def copy(self, source, *place, executable=None):
        """Copies a file below the stage, with mode 755 or 644 whatever the checkout's umask."""
        path = self.stage.joinpath(*place)
        path.parent.mkdir(parents=True, exist_ok=True)
        if executable is None:
            executable = bool(os.stat(source).st_mode & stat.S_IXUSR)
        shutil.copyfile(source, path)
        path.chmod(0o755 if executable else 0o644)

    def copy_tree(self, source, *place):
        for path in sorted(Path(source).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                self.copy(path, *place, *path.relative_to(source).parts)

    def made(self, *paths):
        """Says what there is now, with the checksum by which a second build can be compared."""
        for path in paths:
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            print(f"{os.path.relpath(path, CHECKOUT)}  {path.stat().st_size / 1e6:.1f} MB  sha256 {digest}")


def write_zip(archive, files):
    """Writes a zip archive of {name in it: path of the file}: the same bytes for the same files."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as out:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, time.gmtime(max(EPOCH, 315532800))[:6])
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix, so that modes count
            entry.external_attr = (stat.S_IFREG | (0o755 if os.access(files[name], os.X_OK) else 0o644)) << 16
            out.writestr(entry, Path(files[name]).read_bytes())

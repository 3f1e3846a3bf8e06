"""What a Linux program asks of the machine it runs on, read from its ELF headers.

    needs("latchkey-server").cpu         "x64" or "arm64"
    needs("latchkey-server").static      no dynamic loader, no shared library: any C library will do
    needs("latchkey-server").libraries   ("libc.so.6", ...), in the file's order
    needs("latchkey-server").glibc       (2, 28): the newest symbol version GLIBC_x.y it asks for; None without one

Format: the System V ABI (gABI), chapters 4 and 5; symbol versions as in the Linux Standard Base, "Symbol Versioning".
64 bits, little endian: all that Latchkey is built for.
"""

import re
import struct
from dataclasses import dataclass
from pathlib import Path

CPUS = {62: "x64", 183: "arm64"}  # e_machine: EM_X86_64, EM_AARCH64
PT_LOAD, PT_DYNAMIC, PT_INTERP = 1, 2, 3
DT_NEEDED, DT_STRTAB, DT_VERNEED, DT_VERNEEDNUM = 1, 5, 0x6FFFFFFE, 0x6FFFFFFF


class NotAProgram(Exception):
    """The file is no ELF program of a kind known here; the text says why."""


@dataclass(frozen=True)
class Needs:
    cpu: str
    interpreter: bool
    libraries: tuple
    glibc: tuple | None

    @property
    def static(self):
        return not self.interpreter and not self.libraries


def needs(path):
    """Raises NotAProgram, and OSError where the file cannot be read."""
    image = Path(path).read_bytes()
    try:
        return _needs(image)
    except NotAProgram as error:
        raise NotAProgram(f"{path} {error}") from None
    except (struct.error, ValueError, UnicodeDecodeError):
        raise NotAProgram(f"{path} is cut short or damaged") from None


def _needs(image):
    if image[:4] != b"\x7fELF":
        raise NotAProgram("is not a Linux program (ELF)")
    if image[4:6] != b"\x02\x01":
        raise NotAProgram("is not a program of 64 bits, little endian")
    machine = struct.unpack_from("<H", image, 18)[0]
    if machine not in CPUS:
        raise NotAProgram(f"is for another processor (ELF machine {machine}) than x86-64 and arm64")
    segments = _segments(image)
    dynamic = next((place for kind, place, _, _ in segments if kind == PT_DYNAMIC), None)
    libraries, glibc = _dynamic_needs(image, segments, dynamic) if dynamic is not None else ((), None)
    return Needs(CPUS[machine], any(kind == PT_INTERP for kind, *_ in segments), libraries, glibc)


def _segments(image):
    """(type, offset in the file, virtual address, bytes in the file) of each program header."""
    first = struct.unpack_from("<Q", image, 32)[0]
    size, count = struct.unpack_from("<HH", image, 54)
    headers = (struct.unpack_from("<IIQQQQ", image, first + number * size) for number in range(count))
    return [(kind, offset, address, length) for kind, _, offset, address, _, length in headers]


def _dynamic_needs(image, segments, place):
    """The libraries, and the newest glibc version, that the dynamic section at `place` names."""

    def in_file(address):
        for kind, offset, start, length in segments:
            if kind == PT_LOAD and start <= address < start + length:
                return address - start + offset
        raise ValueError("an address outside of the file")

    wanted, entries = [], {}
    while (entry := struct.unpack_from("<qQ", image, place))[0] != 0:
        place += 16
        if entry[0] == DT_NEEDED:
            wanted.append(entry[1])
        entries[entry[0]] = entry[1]
    if DT_STRTAB not in entries:
        return (), None
    strings = in_file(entries[DT_STRTAB])

    def text(offset):
        return image[strings + offset:image.index(b"\0", strings + offset)].decode()

    versions = []
    need = in_file(entries[DT_VERNEED]) if DT_VERNEED in entries else 0
    for _ in range(entries.get(DT_VERNEEDNUM, 0)):
        _, count, _, first, following = struct.unpack_from("<HHIII", image, need)
        version = need + first
        for _ in range(count):
            _, _, _, name, further = struct.unpack_from("<IHHII", image, version)
            if found := re.fullmatch(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?", text(name)):
                versions.append((int(found[1]), int(found[2])))
            version += further
        need += following
    return tuple(text(offset) for offset in wanted), max(versions, default=None)

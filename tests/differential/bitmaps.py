"""Strings as rows of bits."""

from .rows import call, shared

_READ = "GET <field_type> <field_offset>"
_WRITE = "(SET|INCRBY) <field_type> <field_offset> <field_number>"
_OVERFLOW = "OVERFLOW (WRAP|SAT|FAIL)"

COMMANDS = [
    call("SETBIT <row> <bit_offset> <bit>"),
    call("SETBIT <row> <bit_offset> <bit>"),
    call("GETBIT <row> <bit_offset>"),
    call("SET <row> <row_bytes>"),
    call("SET <row> <row_bytes>"),
    call("SET <row> <int>"),
    call("GET <row>"),
    call("STRLEN <row>"),
    call("BITCOUNT <row>"),
    call("BITCOUNT <row> <index> <index> [BYTE|BIT|<word>]"),
    call("BITCOUNT <row> <bit_index> <bit_index> BIT"),
    call("BITPOS <row> <bit> [<index> [<index> [BYTE|BIT|<word>]]]"),
    call("BITPOS <row> <bit> <bit_index> <bit_index> BIT"),
    call("BITOP (AND|OR|XOR) <row> <row>+"),
    call("BITOP (AND|OR|XOR|NOT|<word>) <row> <row>+"),
    call("BITOP NOT <row> <row>"),
]

FIELDS = [
    call("BITFIELD <row> (%s|%s)+" % (_READ, _WRITE)),
    call("BITFIELD <row> %s (%s|%s)+" % (_OVERFLOW, _WRITE, _READ)),
    call("BITFIELD <row> %s %s %s (%s)+" % (_WRITE, _OVERFLOW, _WRITE, _WRITE)),
    call("BITFIELD <row> (%s|%s|OVERFLOW <word>|<word>)+" % (_READ, _WRITE)),
    call("BITFIELD <row> (%s)+" % _READ),
    call("BITFIELD_RO <row> (%s)+" % _READ),
    call("BITFIELD_RO <row> (%s|%s|%s|<word>)+" % (_READ, _WRITE, _OVERFLOW)),
    call("BITFIELD_RO <row> GET <field_type> (4294967295|4294967296|#67108863|#4294967295)"),
]

ROWS = COMMANDS + FIELDS + shared("row")

"""HyperLogLogs. Their bytes are read back, so that they are compared too."""

from .rows import Row, call, shared

ADDING = [
    call("PFADD <sketch>"),
    call("PFADD <sketch> <element>+"),
    call("PFADD <sketch> <elements>"),
    call("PFADD <sketch> <numbered>"),
    call("PFADD <sketch> <numbered>"),
    call("PFMERGE <sketch> <sketch>+"),
    call("PFMERGE <sketch>"),
]
ASKING = [
    call("PFCOUNT <sketch>"),
    call("PFCOUNT <sketch>"),
    call("PFCOUNT <sketch>+"),
    call("GET <sketch>"),
    call("GET <sketch>"),
    call("STRLEN <sketch>"),
]
# Those that only administrators may call do not come from scripts.
DEBUGGING = [
    Row("PFDEBUG (ENCODING|DECODE|TODENSE|encoding|<word>) <sketch>"),
    Row("PFDEBUG DECODE <sketch>"),
    Row("PFDEBUG GETREG <sketch>"),
    Row("PFDEBUG SIMD (ON|OFF)", exact=True),
]
OUTSIDE = [call("SET <sketch> <sketch_bytes>")]

ROWS = ADDING * 3 + ASKING * 2 + DEBUGGING + OUTSIDE + shared("sketch")

"""Places in sorted sets. No two of a stream are alike, because the reference leaves the order of what is equally far to chance."""

from .rows import call, shared

ADDING = [
    call("GEOADD <geo> (<place> <element>)+"),
    call("GEOADD <geo> <places>"),
    call("GEOADD <geo> [NX|XX] [CH] (<place> <element>)+"),
    call("GEOADD <geo> (NX|XX|CH|GT|<word>)+ <place> <element>"),
    call("ZREM <geo> <element>+"),
]
ASKING = [
    call("GEOPOS <geo> <element>+"),
    call("GEOHASH <geo> <element>+"),
    call("GEODIST <geo> <element> <element> [<length_unit>]"),
    call("ZRANGE <geo> 0 -1 WITHSCORES"),
]
_RESULT = " [ASC|DESC] [COUNT <pops> [ANY]] [WITHCOORD] [WITHDIST] [WITHHASH]"
_ANY = " (ASC|DESC|COUNT 2|ANY|WITHDIST|STORE g1|STOREDIST g1|STOREDIST|FROMMEMBER a|FROMLONLAT <place>|BYRADIUS <length>|BYBOX 1 <length>|<word>)+"
SEARCHING = [
    call("GEOSEARCH <geo> (FROMMEMBER <element>|FROMLONLAT <place>) (BYRADIUS|BYBOX <size>) <length>" + _RESULT),
    call("GEOSEARCH <geo> FROMLONLAT <place> (BYRADIUS|BYBOX <size>) <length>" + _RESULT),
    call("GEOSEARCH <geo> FROMLONLAT <place> BYRADIUS <length>" + _ANY),
    call("GEOSEARCH <geo>" + _ANY),
    call("GEOSEARCHSTORE <geo> <geo> FROMLONLAT <place> (BYRADIUS|BYBOX <size>) <length> [COUNT <pops>] [STOREDIST]"),
    call("GEOSEARCHSTORE <geo> <geo> FROMMEMBER <element> BYRADIUS <length>" + _ANY),
    call("GEORADIUS <geo> <place> <length>" + _RESULT),
    call("GEORADIUS <geo> <place> <length> (STORE|STOREDIST) <geo> [COUNT <pops>]"),
    call("GEORADIUS <geo> <place> <length>" + _ANY),
    call("GEORADIUS_RO <geo> <place> <length>" + _ANY),
    call("GEORADIUSBYMEMBER <geo> <element> <length>" + _RESULT),
    call("GEORADIUSBYMEMBER <geo> <element> <length>" + _ANY),
    call("GEORADIUSBYMEMBER_RO <geo> <element> <length>" + _RESULT),
]

ROWS = ADDING * 3 + ASKING + SEARCHING + shared("geo")

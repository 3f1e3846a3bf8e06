"""Vector sets. Components are small whole numbers, so that lengths and scores are exact; sets are so small that a search sees
all of them. Which comes first of several that are equally near is chance, so names are compared in any order.
"""

from .rows import Row
from .rows import call as called


def call(template, compare=None):
    """8.0 has these commands take any number of words, and counts them when they run; 8.6 and this server before."""
    return called(template, compare, exact=True)


ADDING = [
    call("VADD <vset> VALUES 2 <component> <component> <vector_element>"),
    call("VADD <vset> VALUES 2 <component> <component> <vector_element> SETATTR <attributes>"),
    call("VADD <vset> <vector> <vector_element> [CAS] [Q8] [EF 10]"),
    call("VADD <vset> <vector> <vector_element> (NOQUANT|BIN|Q8|CAS|M <count>|EF <count>|SETATTR <attributes>|<word>)+"),
    call("VADD <vset> REDUCE 1 VALUES 2 <component> <component> <vector_element>"),
]
CHANGING = [
    call("VREM <vset> <vector_element>"),
    call("VSETATTR <vset> <vector_element> <attributes>"),
    call("VSETATTR <vset> <vector_element> <no_attributes>"),
]
ASKING = [
    call("VCARD <vset>"),
    call("VDIM <vset>"),
    call("VEMB <vset> <vector_element> [RAW|<word>]"),
    call("VGETATTR <vset> <vector_element>"),
    call("VISMEMBER <vset> <vector_element>"),
    call("VRANGE <vset> <lex> <lex> [<count>]"),
    call("VRANGE <vset> - + [<count>]"),
    call("VRANDMEMBER <vset> [<count>]", compare="same_type"),
    call("VRANDMEMBER <vset> 100", compare="any_order"),
    call("VLINKS <vset> <vector_element> <word>"),
    call("VLINKS <vset> nosuchelement [WITHSCORES]"),
]
SEARCHING = [
    call("VSIM <vset> ELE <vector_element>", compare="any_order"),
    call("VSIM <vset> <vector> [TRUTH] [NOTHREAD] [EF 500]", compare="any_order"),
    call("VSIM <vset> VALUES 2 <component> <component> FILTER <filter>", compare="any_order"),
    call("VSIM <vset> ELE <vector_element> COUNT 1 (COUNT <count>|EF <count>|FILTER-EF <count>|<word>)+",
         compare="same_type"),
]
KEYSPACE = [
    Row("DEL <vset>"), Row("TYPE <vset>"), Row("EXISTS <vset>"), Row("OBJECT ENCODING <vset>"), Row("RENAME <vset> <vset>"),
    Row("MULTI"), Row("EXEC"), Row("EXEC"), Row("DISCARD"), Row("HELLO 2", "hello"), Row("HELLO 3", "hello"),
    Row("SET <other> <small>"), Row("DEL <other>"),
]

ROWS = ADDING * 3 + CHANGING * 2 + ASKING * 2 + SEARCHING * 3 + KEYSPACE

"""The rows of the group "heavy and modes": single heavy commands. The modes are in bench_modes.py, TLS is in bench_tls.py."""

from bench_heavy import Row, Stock, fill, load_cost, row, scan_cost
from bench_modes import MODES
from bench_tls import TLS_ROWS
from bench_types import TYPE_ROWS

COLLECTIONS = Stock("collections", [
    fill("redis.call('HSET', KEYS[1], 'field:' .. id, 'value:' .. id)", 200_000, "hash"),
    fill("redis.call('HSET', KEYS[1], 'field:' .. i, 'value:' .. i)", 100, "hash-100"),
    fill("redis.call('RPUSH', KEYS[1], 'element:' .. id)", 200_000, "list"),
    fill("redis.call('SADD', KEYS[1], 'member:' .. id)", 200_000, "set"),
    fill("redis.call('SADD', KEYS[1], 'member:' .. string.format('%012d', i * 2))", 200_000, "set-2"),
    fill("redis.call('SADD', KEYS[1], i * 7)", 500, "integers"),
    fill("redis.call('SADD', KEYS[1], i * 11)", 500, "integers-2"),
    fill("redis.call('ZADD', KEYS[1], i, 'member:' .. id)", 200_000, "zset"),
    fill("redis.call('ZADD', KEYS[1], i, 'member:' .. string.format('%012d', i * 2))", 200_000, "zset-2"),
    fill("redis.call('RPUSH', KEYS[1], (i * 7919) % 100003)", 100_000, "numbers"),
    fill("redis.call('SET', 'weight:' .. i, (i * 7919) % 10007) redis.call('RPUSH', KEYS[1], i)", 10_000, "ids"),
    fill("redis.call('GEOADD', KEYS[1], (i * 7919 % 36000) / 100 - 180, (i * 104729 % 16000) / 100 - 80, id)", 100_000, "places"),
])
HASH_FIELDS = [f"field:{number:012}" for number in range(1, 100_000, 1000)]
SET_MEMBERS = [f"member:{number:012}" for number in range(1, 100_000, 1000)]

COLLECTION_ROWS = [
    row("hashes", COLLECTIONS, "HGETALL of 200,000", "HGETALL", "hash", times=4),
    row("hashes", COLLECTIONS, "HKEYS of 200,000", "HKEYS", "hash", times=4),
    row("hashes", COLLECTIONS, "HGETALL of 100", "HGETALL", "hash-100", times=2000),
    row("hashes", COLLECTIONS, "HMGET of 100", "HMGET", "hash", *HASH_FIELDS, times=1000),
    row("hashes", COLLECTIONS, "HRANDFIELD 1000", "HRANDFIELD", "hash", "1000", "WITHVALUES", times=50),
    Row("HSCAN of 200,000", "hashes", COLLECTIONS, scan_cost("HSCAN", "hash")),
    row("lists", COLLECTIONS, "LRANGE of 200,000", "LRANGE", "list", "0", "-1", times=4),
    row("lists", COLLECTIONS, "LINDEX in the middle", "LINDEX", "list", "100000", times=1000),
    row("lists", COLLECTIONS, "LPOS at the end", "LPOS", "list", "element:000000199999"),
    row("lists", COLLECTIONS, "LINSERT and LREM", "LINSERT", "list", "BEFORE", "element:000000100000", "x",
        before=[("LREM", "list", "0", "x")]),
    row("sets", COLLECTIONS, "SMEMBERS of 200,000", "SMEMBERS", "set", times=4),
    row("sets", COLLECTIONS, "SINTER of 200,000", "SINTER", "set", "set-2", times=3),
    row("sets", COLLECTIONS, "SUNION of 200,000", "SUNION", "set", "set-2", times=2),
    row("sets", COLLECTIONS, "SDIFF of 200,000", "SDIFF", "set", "set-2", times=3),
    row("sets", COLLECTIONS, "SINTERCARD of 200,000", "SINTERCARD", "2", "set", "set-2", times=3),
    row("sets", COLLECTIONS, "SUNIONSTORE of 200,000", "SUNIONSTORE", "to", "set", "set-2", times=2),
    row("sets", COLLECTIONS, "SINTER of 500 integers", "SINTER", "integers", "integers-2", times=500),
    row("sets", COLLECTIONS, "SMISMEMBER of 100", "SMISMEMBER", "set", *SET_MEMBERS, times=1000),
    row("sets", COLLECTIONS, "SRANDMEMBER 1000", "SRANDMEMBER", "set", "1000", times=50),
    Row("SSCAN of 200,000", "sets", COLLECTIONS, scan_cost("SSCAN", "set")),
    row("sorted sets", COLLECTIONS, "ZRANGE of 200,000", "ZRANGE", "zset", "0", "-1", "WITHSCORES", times=3),
    row("sorted sets", COLLECTIONS, "ZRANGE BYSCORE 1000", "ZRANGE", "zset", "100000", "100999", "BYSCORE", times=500),
    row("sorted sets", COLLECTIONS, "ZREVRANGE 1000", "ZRANGE", "zset", "100000", "100999", "REV", times=500),
    row("sorted sets", COLLECTIONS, "ZCOUNT", "ZCOUNT", "zset", "1000", "150000", times=2000),
    row("sorted sets", COLLECTIONS, "ZUNIONSTORE of 200,000", "ZUNIONSTORE", "to", "2", "zset", "zset-2", times=2),
    row("sorted sets", COLLECTIONS, "ZINTERSTORE of 200,000", "ZINTERSTORE", "to", "2", "zset", "zset-2", times=2),
    row("sorted sets", COLLECTIONS, "ZDIFF of 200,000", "ZDIFF", "2", "zset", "zset-2", times=2),
    row("sorted sets", COLLECTIONS, "ZRANDMEMBER 1000", "ZRANDMEMBER", "zset", "1000", times=50),
    Row("ZSCAN of 200,000", "sorted sets", COLLECTIONS, scan_cost("ZSCAN", "zset")),
    row("keys", COLLECTIONS, "SORT of 100,000", "SORT", "numbers", "LIMIT", "0", "10", times=3),
    row("keys", COLLECTIONS, "SORT ALPHA of 100,000", "SORT", "numbers", "ALPHA", "LIMIT", "0", "10", times=3),
    row("keys", COLLECTIONS, "SORT BY GET of 10,000", "SORT", "ids", "BY", "weight:*", "GET", "weight:*"),
    row("keys", COLLECTIONS, "COPY of a hash of 200,000", "COPY", "hash", "copied", "REPLACE", times=2),
    row("keys", COLLECTIONS, "DEL of a hash of 200,000", "DEL", "copied", before=[("COPY", "hash", "copied", "REPLACE")],
        times=2, idle=True),
    row("keys", COLLECTIONS, "UNLINK of a zset of 200,000", "UNLINK", "copied",
        before=[("COPY", "zset", "copied", "REPLACE")], times=2, idle=True),
    row("keys", COLLECTIONS, "DUMP of a hash of 200,000", "DUMP", "hash", times=3),
    row("keys", COLLECTIONS, "DUMP of a zset of 200,000", "DUMP", "zset", times=3),
    row("geography", COLLECTIONS, "GEOSEARCH 1000 km", "GEOSEARCH", "places", "FROMLONLAT", "10", "50", "BYRADIUS", "1000",
        "km", "ASC", "WITHDIST", times=30),
    row("geography", COLLECTIONS, "GEOSEARCH box COUNT 10", "GEOSEARCH", "places", "FROMLONLAT", "10", "50", "BYBOX", "500",
        "500", "km", "COUNT", "10", times=200),
    row("geography", COLLECTIONS, "GEODIST", "GEODIST", "places", "000000000001", "000000050000", times=2000),
]

STRINGS = Stock("strings", [
    ("EVAL", "redis.call('SET', 'bytes-1m', string.rep('x', 1048576)) redis.call('SET', 'bytes-64m', string.rep('x', 67108864))"
             "redis.call('SET', 'bytes-10k', string.rep('x', 10240))", "0"),
    ("SETRANGE", "bits", str(100_000_000 - 1), "x"),
    ("EVAL", "for i = 1, 3 do redis.call('SET', 'bits-' .. i, string.rep(string.char(i * 37), 10000000)) end", "0"),
    fill("for j = 1, 50 do redis.call('PFADD', 'hll-' .. i, i * j, i .. 'x' .. j) end for j = 1, 5000 do "
         "redis.call('PFADD', 'hll-' .. i, j * i * 7) end", 20),
    ("EVAL", "redis.call('SET', 'lcs-1', string.rep('abcdefg', 300)) redis.call('SET', 'lcs-2', string.rep('gfcabed', 300))", "0"),
    fill("redis.call('SET', 'key:' .. id, 'value:' .. id)", 100),
])
SKETCHES = [f"hll-{number}" for number in range(1, 21)]
HUNDRED_KEYS = [f"key:{number:012}" for number in range(1, 101)]

STRING_ROWS = [
    row("strings", STRINGS, "GET of 10 KB", "GET", "bytes-10k", times=2000),
    row("strings", STRINGS, "GET of 1 MB", "GET", "bytes-1m", times=100),
    row("strings", STRINGS, "GET of 64 MB", "GET", "bytes-64m", times=4),
    row("strings", STRINGS, "SET of 10 KB", "SET", "written", "x" * 10_240, times=2000),
    row("strings", STRINGS, "SET of 1 MB", "SET", "written", "x" * 1_048_576, times=50),
    row("strings", STRINGS, "SET of 64 MB", "SET", "written", "x" * 67_108_864, times=1),
    row("strings", STRINGS, "MGET of 100", "MGET", *HUNDRED_KEYS, times=1000),
    row("strings", STRINGS, "MSET of 100", "MSET", *[word for key in HUNDRED_KEYS for word in (key, "value")], times=1000),
    row("strings", STRINGS, "GETRANGE of 100", "GETRANGE", "bytes-1m", "5000", "5099", times=2000),
    row("strings", STRINGS, "APPEND", "APPEND", "written-to", "12345678", times=5000),
    row("strings", STRINGS, "LCS of 2,100 bytes", "LCS", "lcs-1", "lcs-2", times=3),
    row("bits", STRINGS, "BITCOUNT of 100 MB", "BITCOUNT", "bits", times=5),
    row("bits", STRINGS, "BITPOS of 100 MB", "BITPOS", "bits", "1", times=5),
    row("bits", STRINGS, "BITOP AND of 10 MB", "BITOP", "AND", "bits-to", "bits-1", "bits-2", "bits-3", times=5),
    row("bits", STRINGS, "BITOP XOR of 10 MB", "BITOP", "XOR", "bits-to", "bits-1", "bits-2", "bits-3", times=5),
    row("bits", STRINGS, "BITFIELD", "BITFIELD", "field", "INCRBY", "u16", "#7", "1", "GET", "i9", "3", times=5000),
    row("bits", STRINGS, "SETBIT", "SETBIT", "bit", "70001", "1", times=5000),
    row("hyperloglog", STRINGS, "PFADD of 100", "PFADD", "hll-1", *[f"element-{number}" for number in range(100)], times=1000),
    row("hyperloglog", STRINGS, "PFCOUNT of 1", "PFCOUNT", "hll-1", times=20, before=[("PFADD", "hll-1", "a"), ("DEL", "fresh"),
        ("PFMERGE", "hll-1", "hll-2")]),
    row("hyperloglog", STRINGS, "PFCOUNT of 20", "PFCOUNT", *SKETCHES, times=200),
    row("hyperloglog", STRINGS, "PFMERGE of 20", "PFMERGE", "merged", *SKETCHES, times=200),
]

STREAMS = Stock("streams", [
    fill("redis.call('XADD', KEYS[1], i .. '-1', 'field', id, 'other', 'value')", 100_000, "stream"),
    ("XGROUP", "CREATE", "stream", "group", "0"),
    ("XREADGROUP", "GROUP", "group", "first", "COUNT", "10000", "STREAMS", "stream", ">"),
])
STREAM_ROWS = [
    row("streams", STREAMS, "XRANGE of 100,000", "XRANGE", "stream", "-", "+", times=3),
    row("streams", STREAMS, "XREVRANGE of 100", "XREVRANGE", "stream", "+", "-", "COUNT", "100", times=1000),
    row("streams", STREAMS, "XREAD of 100", "XREAD", "COUNT", "100", "STREAMS", "stream", "50000-0", times=1000),
    row("streams", STREAMS, "XREADGROUP of 1000", "XREADGROUP", "GROUP", "group", "second", "COUNT", "1000", "STREAMS",
        "stream", ">", before=[("XGROUP", "SETID", "stream", "group", "50000-1")]),
    row("streams", STREAMS, "XPENDING of 1000", "XPENDING", "stream", "group", "-", "+", "1000", times=50),
    row("streams", STREAMS, "XAUTOCLAIM of 1000", "XAUTOCLAIM", "stream", "group", "first", "0", "0", "COUNT", "1000", times=20),
    row("streams", STREAMS, "XACK of 100", "XACK", "stream", "group", *[f"{number}-1" for number in range(20_001, 20_101)], times=500),
    row("streams", STREAMS, "XADD MAXLEN ~", "XADD", "trimmed", "MAXLEN", "~", "1000", "*", "field", "value", times=5000),
]

KEYS_STOCK = Stock("a million keys", [fill("redis.call('SET', 'key:' .. id, 'value:' .. id)", 1_000_000)])
KEY_ROWS = [
    Row("SCAN of 1,000,000", "keys", KEYS_STOCK, scan_cost("SCAN", count=5000)),
    row("keys", KEYS_STOCK, "KEYS without a match", "KEYS", "*nothing*like*it*", times=1),
    row("keys", KEYS_STOCK, "RANDOMKEY", "RANDOMKEY", times=5000),
    row("keys", KEYS_STOCK, "EXISTS of 100", "EXISTS", *HUNDRED_KEYS, times=1000),
    row("keys", KEYS_STOCK, "RENAME", "RENAME", "key:000000000007", "key:000000000007", times=5000),
    row("server", KEYS_STOCK, "INFO everything", "INFO", "everything", times=200),
    row("server", KEYS_STOCK, "INFO", "INFO", times=200),
    row("server", KEYS_STOCK, "CONFIG GET *", "CONFIG", "GET", "*", times=200),
    row("server", KEYS_STOCK, "COMMAND", "COMMAND", times=20),
    row("server", KEYS_STOCK, "COMMAND DOCS", "COMMAND", "DOCS", times=10),
    row("server", KEYS_STOCK, "MEMORY STATS", "MEMORY", "STATS", times=100),
    Row("GET with 1,000,000 keys", "sizes", KEYS_STOCK, load_cost(600_000, 16, "GET", "key:__rand_int__")),
    Row("SET of 1 byte", "sizes", KEYS_STOCK, load_cost(600_000, 16, "SET", "key:__rand_int__", "x")),
    Row("SET of 1 KB", "sizes", KEYS_STOCK, load_cost(300_000, 16, "SET", "big:1", "x" * 1024)),
    Row("INCRBY", "strings", KEYS_STOCK, load_cost(600_000, 16, "INCRBY", "counter", "3")),
    Row("SET EX", "strings", KEYS_STOCK, load_cost(600_000, 16, "SET", "volatile:__rand_int__", "x", "EX", "100000")),
]

EMPTY = Stock("empty")
# In no order, and half of them written twice, as keys of a server that has been used for a while.
HALF_A_MILLION = ("EVAL", "for i = 1, 750000 do local id = string.format('%012d', i * 7919 % 500000) "
                          "redis.call('SET', 'key:' .. id, string.rep('v', 20 + i % 40)) end", "0")
DUE = ("EVAL", "for i = 1, 500000 do redis.call('SET', 'key:' .. i, 'value', 'PX', 400) end", "0")
EMPTY_ROWS = [
    row("keys", EMPTY, "FLUSHALL of 500,000", "FLUSHALL", before=[HALF_A_MILLION], times=1, idle=True),
    row("keys", EMPTY, "FLUSHALL ASYNC of 500,000", "FLUSHALL", "ASYNC", before=[HALF_A_MILLION], times=1, idle=True),
    row("keys", EMPTY, "FLUSHALL of 50,000 hashes", "FLUSHALL", times=1, idle=True,
        before=[fill("redis.call('HSET', 'key:' .. i, 'a', i, 'b', id, 'c', 'value')", 50_000)]),
    row("keys", EMPTY, "SET PX of 500,000", *DUE, before=[("FLUSHALL",)], times=1),
]

SCRIPTS = Stock("scripts", [("SET", "key", "value")])


def script(name, text, times=30):
    return row("scripts", SCRIPTS, name, "EVAL", text, "1", "key", times=times)


JSON_OBJECT = '{"id":12345,"name":"somebody","tags":["a","b","c"],"price":12.5,"open":true,"nested":{"x":1,"y":2}}'
SCRIPT_ROWS = [
    script("EVAL of return 1", "return 1", times=5000),
    script("1,000 calls of GET", "for i = 1, 1000 do redis.call('GET', KEYS[1]) end"),
    script("1,000 calls of SET", "for i = 1, 1000 do redis.call('SET', KEYS[1], i) end"),
    script("arithmetic, 100,000 steps", "local s = 0 for i = 1, 100000 do s = s + i % 7 * 2 end return s"),
    script("strings, 1,000 joined", "local t = {} for i = 1, 1000 do t[i] = 'item ' .. i end return table.concat(t, ',')"),
    script("string.find, 1,000 times", "local n = 0 for i = 1, 1000 do if string.find('some text ' .. i, '%d+$') then n = n + 1 end end return n"),
    script("tables, 1,000 made", "local t for i = 1, 1000 do t = {a = i, b = {i, i + 1}} end return t.a"),
    script("table.sort of 1,000", "local t = {} for i = 1, 1000 do t[i] = i * 7919 % 1009 end table.sort(t) return t[1]"),
    script("cjson.encode, 1,000 times", f"local o = cjson.decode('{JSON_OBJECT}') for i = 1, 1000 do cjson.encode(o) end"),
    script("cjson.decode, 1,000 times", f"for i = 1, 1000 do cjson.decode('{JSON_OBJECT}') end"),
    script("cjson, array of 10,000", "local t = {} for i = 1, 10000 do t[i] = i end return #cjson.decode(cjson.encode(t))"),
    script("cmsgpack.pack, 1,000 times", f"local o = cjson.decode('{JSON_OBJECT}') for i = 1, 1000 do cmsgpack.pack(o) end"),
    script("cmsgpack.unpack, 1,000 times",
           f"local p = cmsgpack.pack(cjson.decode('{JSON_OBJECT}')) for i = 1, 1000 do cmsgpack.unpack(p) end"),
    script("reply of 10,000 numbers", "local t = {} for i = 1, 10000 do t[i] = i end return t", times=10),
]

ROWS = [*COLLECTION_ROWS, *STRING_ROWS, *STREAM_ROWS, *KEY_ROWS, *EMPTY_ROWS, *SCRIPT_ROWS, *TYPE_ROWS, *MODES, *TLS_ROWS]

"""The rows for the types that the image redis:8 has as modules. Servers without them take no part; the reference with its modules is
compared by --also."""

from bench_heavy import Link, Row, Stock, ask, fill, load_cost, row


def bytes_of(count, *commands):
    """A measurement: what the server has allocated for `count` things that the commands make."""
    def measure(server):
        def used():
            report = ask(server, ("INFO", "memory")).decode()
            return int(report.split("used_memory:")[1].split()[0])

        ask(server, ("FLUSHALL",))
        before = used()
        with Link(server) as link:
            for command in commands:
                link.ask(*command)
        taken = (used() - before) / count
        ask(server, ("FLUSHALL",))
        return taken

    return measure


EMPTY = Stock("empty of these types", needs="JSON.SET")


def bytes_row(group, name, count, *commands):
    return Row(name, group, EMPTY, bytes_of(count, *commands), "bytes", warm=False)


ITEM = "{'id':%d,'name':'item %d','price':%d.5,'tags':['a','b','c'],'open':true,'nested':{'x':%d,'y':[1,2,3]}}".replace("'", '"')
ITEMS = "[" + ",".join(ITEM % (one, one, one % 100, one) for one in range(1000)) + "]"
DOCUMENTS = Stock("documents", [("JSON.SET", "items", "$", ITEMS), ("JSON.SET", "item", "$", ITEM % (7, 7, 7, 7)),
                                ("JSON.SET", "list", "$", "[]")], needs="JSON.SET")
JSON_ROWS = [
    row("JSON", DOCUMENTS, "JSON.SET of 100 bytes", "JSON.SET", "other", "$", ITEM % (7, 7, 7, 7), times=5000),
    row("JSON", DOCUMENTS, "JSON.SET of 90 KB", "JSON.SET", "other", "$", ITEMS, times=30),
    row("JSON", DOCUMENTS, "JSON.SET of a member", "JSON.SET", "item", "$.nested.x", "12", times=5000),
    row("JSON", DOCUMENTS, "JSON.GET of 100 bytes", "JSON.GET", "item", times=5000),
    row("JSON", DOCUMENTS, "JSON.GET of 90 KB", "JSON.GET", "items", times=50),
    row("JSON", DOCUMENTS, "JSON.GET of a member", "JSON.GET", "item", "$.nested.x", times=5000),
    row("JSON", DOCUMENTS, "JSON.GET $..price of 1,000", "JSON.GET", "items", "$..price", times=50),
    row("JSON", DOCUMENTS, "JSON.GET ?(@.price>50)", "JSON.GET", "items", "$[?(@.price>50)].name", times=50),
    row("JSON", DOCUMENTS, "JSON.NUMINCRBY", "JSON.NUMINCRBY", "item", "$.price", "1", times=5000),
    row("JSON", DOCUMENTS, "JSON.ARRAPPEND and ARRPOP", "JSON.ARRAPPEND", "list", "$", "1", before=[("JSON.ARRPOP", "list")], times=50),
    row("JSON", DOCUMENTS, "JSON.MERGE", "JSON.MERGE", "item", "$", '{"nested":{"x":1,"z":2}}', times=5000),
    bytes_row("JSON", "bytes of a document of 100", 1000, *[("JSON.SET", f"item:{one}", "$", ITEM % (one, one, one, one))
                                                            for one in range(1000)]),
    bytes_row("JSON", "bytes of one of 90 KB", 1, ("JSON.SET", "items", "$", ITEMS)),
]

SERIES = Stock("series", [
    fill("redis.call('TS.ADD', KEYS[1], i * 1000, (i * 7919 % 1009) / 4)", 100_000, "series"),
    ("TS.CREATE", "live", "DUPLICATE_POLICY", "LAST", "RETENTION", "60000"),
    fill("redis.call('TS.CREATE', 'many:' .. i, 'LABELS', 'kind', 'many', 'region', i % 10) for j = 1, 1000 do "
            "redis.call('TS.ADD', 'many:' .. i, j * 1000, i * j % 1009) end", 100),
], needs="TS.ADD")
SERIES_ROWS = [
    row("time series", SERIES, "TS.ADD", "TS.ADD", "live", "*", "12.5", times=5000),
    row("time series", SERIES, "TS.MADD of 10", "TS.MADD", *["live", "*", "12.5"] * 10, times=1000),
    row("time series", SERIES, "TS.GET", "TS.GET", "series", times=5000),
    row("time series", SERIES, "TS.RANGE of 100,000", "TS.RANGE", "series", "-", "+", times=3),
    row("time series", SERIES, "TS.RANGE of 100", "TS.RANGE", "series", "50000000", "50099000", times=1000),
    row("time series", SERIES, "TS.RANGE avg of 100,000", "TS.RANGE", "series", "-", "+", "AGGREGATION", "avg", "100000", times=10),
    row("time series", SERIES, "TS.REVRANGE of 100", "TS.REVRANGE", "series", "-", "+", "COUNT", "100", times=1000),
    row("time series", SERIES, "TS.MGET of 100", "TS.MGET", "FILTER", "kind=many", times=100),
    row("time series", SERIES, "TS.QUERYINDEX of 10", "TS.QUERYINDEX", "kind=many", "region=3", times=1000),
    row("time series", SERIES, "TS.MRANGE GROUPBY of 100", "TS.MRANGE", "-", "+", "AGGREGATION", "max", "10000", "FILTER", "kind=many",
        "GROUPBY", "region", "REDUCE", "sum", times=5),
    bytes_row("time series", "bytes of a sample", 1_000_000,
              fill("redis.call('TS.ADD', KEYS[1], i * 1000, (i * 7919 % 1009) / 4)", 1_000_000, "series")),
    bytes_row("time series", "bytes of a labelled series", 1000,
              fill("redis.call('TS.CREATE', 'many:' .. i, 'LABELS', 'kind', 'many', 'region', i % 10)", 1000)),
]

FILTERS = Stock("filters", [("BF.RESERVE", "bloom", "0.01", "2000000"), ("CF.RESERVE", "cuckoo", "2000000"),
                            ("CMS.INITBYDIM", "counts", "2000", "7"), ("TOPK.RESERVE", "top", "50", "2000", "7", "0.9"),
                            ("TDIGEST.CREATE", "digest")], needs="BF.ADD")
FILTER_ROWS = [
    Row("BF.ADD", "filters", FILTERS, load_cost(300_000, 16, "BF.ADD", "bloom", "item:__rand_int__")),
    Row("BF.EXISTS", "filters", FILTERS, load_cost(300_000, 16, "BF.EXISTS", "bloom", "item:__rand_int__")),
    Row("BF.MADD of 10", "filters", FILTERS, load_cost(60_000, 16, "BF.MADD", "bloom", *["item:__rand_int__"] * 10)),
    Row("BF.ADD that grows", "filters", FILTERS, load_cost(300_000, 16, "BF.ADD", "grows", "item:__rand_int__")),
    Row("CF.ADDNX", "filters", FILTERS, load_cost(300_000, 16, "CF.ADDNX", "cuckoo", "item:__rand_int__")),
    Row("CF.EXISTS", "filters", FILTERS, load_cost(300_000, 16, "CF.EXISTS", "cuckoo", "item:__rand_int__")),
    Row("CMS.INCRBY", "sketches", FILTERS, load_cost(300_000, 16, "CMS.INCRBY", "counts", "item:__rand_int__", "1")),
    Row("CMS.QUERY", "sketches", FILTERS, load_cost(300_000, 16, "CMS.QUERY", "counts", "item:__rand_int__")),
    Row("TOPK.ADD", "sketches", FILTERS, load_cost(200_000, 16, "TOPK.ADD", "top", "item:__rand_int__")),
    Row("TDIGEST.ADD", "sketches", FILTERS, load_cost(300_000, 16, "TDIGEST.ADD", "digest", "__rand_int__")),
    row("sketches", FILTERS, "TDIGEST.QUANTILE of 3", "TDIGEST.QUANTILE", "digest", "0.5", "0.9", "0.99", times=2000),
    row("sketches", FILTERS, "TOPK.LIST", "TOPK.LIST", "top", "WITHCOUNT", times=2000),
]

TYPE_ROWS = [*JSON_ROWS, *SERIES_ROWS, *FILTER_ROWS]
